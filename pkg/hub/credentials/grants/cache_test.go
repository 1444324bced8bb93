package grants

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTrim(t *testing.T) {
	for _, grant := range []Grant{Source("c1"), Target("team")} {
		want := desiredBinding(grant, subject)
		full := want.DeepCopy()
		full.Annotations = map[string]string{"other": strings.Repeat("x", 250<<10)}
		full.Labels["other"] = strings.Repeat("x", 63)
		full.OwnerReferences = []metav1.OwnerReference{{Name: strings.Repeat("x", 250<<10)}}
		want.Labels = nil
		if diff := cmp.Diff(want, trim(full)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
