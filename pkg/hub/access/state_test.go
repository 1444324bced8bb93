package access

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// A CA that was published just now must not be forgotten because another one arrives before
// the ConfigMap that stores it is seen.
func TestWrittenStateCountsBeforeItIsSeen(t *testing.T) {
	version := func(resourceVersion string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "hub", Name: contract.AccessStateName, ResourceVersion: resourceVersion},
		}
	}
	now := time.Now()
	for name, tc := range map[string]struct {
		seen  *corev1.ConfigMap
		after time.Duration
		want  string
	}{
		"nothing is seen yet":                    {nil, 0, "7"},
		"what was before is seen":                {version("5"), 0, "7"},
		"it is seen":                             {version("7"), 0, "7"},
		"another client changed it":              {version("9"), 0, "9"},
		"it is never seen: not forever":          {version("5"), kube.StaleAfter, "5"},
		"deleted by another client: not forever": {nil, kube.StaleAfter, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newState(nil, "hub", "proxy")
			s.wrote(version("7"), now)
			got := ""
			if found := s.latest(found[corev1.ConfigMap]{object: tc.seen}, now.Add(tc.after)); found.object != nil {
				got = found.object.ResourceVersion
			}
			if got != tc.want {
				t.Errorf("version %q counts, want %q", got, tc.want)
			}
		})
	}
}
