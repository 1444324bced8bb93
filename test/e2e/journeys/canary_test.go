package journeys

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/canary"
)

// tokens are those that stories dealt with.
var tokens = canary.New()

// noTokenAnywhere looks for every token of every story so far in all that people
// and other programs read.
func noTokenAnywhere(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), eventually)
	defer cancel()
	found := []error{tokens.Logs(world.LogDir())}
	for _, cluster := range []string{"hub", cluster1, cluster2} {
		found = append(found, tokens.Objects(ctx, clientOf(t, cluster)))
	}
	if installedWith != nil {
		found = append(found, tokens.Metrics(ctx, "http://"+managerPod(ctx, t).Status.PodIP+":8080/metrics"))
	}
	if err := errors.Join(found...); err != nil {
		t.Error(err)
	}
}

// A token that somebody puts where it should not be is found there.
func TestTokenInAnObjectIsFound(t *testing.T) {
	installed(t)
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
			apitest.Must(t, hub(t).Create(t.Context(), tc.object))
			if err := search.Objects(t.Context(), hub(t)); (err != nil) != tc.want {
				t.Errorf("found: %v, want %t", err, tc.want)
			}
			apitest.Must(t, hub(t).Delete(t.Context(), tc.object))
		})
	}
}
