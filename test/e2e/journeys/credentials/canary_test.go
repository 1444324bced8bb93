package credentials

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/canary"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// A token in a place where it should not be is found there.
func TestTokenInAnObjectIsFound(t *testing.T) {
	journeys.Installed(t)
	token, search := canary.Made(), canary.New()
	search.For(token)
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "a-token"}
	annotated := meta
	annotated.Annotations = map[string]string{"example.com/note": token}
	for _, tc := range []struct {
		where  string
		object client.Object
		want   bool
	}{
		{"the data of a Secret", &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"token": []byte(token)}}, false},
		{"the annotations of a Secret", &corev1.Secret{ObjectMeta: annotated}, true},
		{"a ConfigMap", &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"token": token}}, true},
		{"an event", &corev1.Event{
			ObjectMeta: meta, Message: "refused " + token,
			InvolvedObject: corev1.ObjectReference{Namespace: meta.Namespace, Name: meta.Name},
		}, true},
	} {
		t.Run(tc.where, func(t *testing.T) {
			apitest.Must(t, journeys.Hub(t).Create(t.Context(), tc.object))
			if err := search.Objects(t.Context(), journeys.Hub(t)); (err != nil) != tc.want {
				t.Errorf("found: %v, want %t", err, tc.want)
			}
			apitest.Must(t, journeys.Hub(t).Delete(t.Context(), tc.object))
		})
	}
}
