package credentials

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/consumers"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

// Consumers that forget a cluster when its profile lacks an access provider for a moment,
// or reconnect with every version of it, see a profile through which they stay connected:
// tokens rotate, cluster-proxy's Secret is recreated, and the manager restarts.
func TestNoVersionOfAProfileBreaksAConsumer(t *testing.T) {
	journeys.WithAccess(t)
	journeys.Installed(t)
	clusters := []string{journeys.Cluster1, journeys.Cluster2}
	journeys.Enabled(t, clusters...)
	ns := journeys.Sandbox(t, "inputs", clusters...)
	for _, cluster := range clusters {
		offers(t, ns, cluster, throughProxy)
		account(t, cluster, "inputs", ns)
		hasCopy(t, ns, cluster, "inputs")
	}
	watch, err := consumers.Follow(context.WithoutCancel(t.Context()), journeys.Hub(t), ns)
	apitest.Must(t, err)
	t.Cleanup(func() {
		watch.Stop()
		if err := watch.Problems(); err != nil {
			t.Errorf("a version of a profile breaks a consumer:\n%v", err)
		}
	})

	for _, cluster := range clusters {
		rotated(t, cluster, "inputs")
		hasCopy(t, ns, cluster, "inputs")
	}
	serving := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: fleet.AccessNamespace, Name: "cluster-proxy-user-serving-cert",
	}}
	apitest.Must(t, journeys.Hub(t).Get(t.Context(), client.ObjectKeyFromObject(serving), serving))
	again := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: serving.Namespace, Name: serving.Name, Labels: serving.Labels, Annotations: serving.Annotations,
		},
		Data: serving.Data, Type: serving.Type,
	}
	apitest.Must(t, journeys.Hub(t).Delete(t.Context(), serving))
	apitest.Must(t, client.IgnoreAlreadyExists(journeys.Hub(t).Create(t.Context(), again)))
	journeys.Replaced(t, fleet.HubName, journeys.ManagerPod(t.Context(), t))
	apitest.Within(t, journeys.Eventually, "the new manager leads", func(ctx context.Context) error {
		return journeys.Leads(ctx, t)
	})
	// What the new manager wrote at its start came before these.
	for _, cluster := range clusters {
		journeys.Sets(t, cluster, "inputs.example.com", "seen")
		journeys.Shows(t, ns, cluster, "inputs.example.com", "seen")
		apitest.Within(t, journeys.Soon, "the profile of "+cluster+" is validated", func(ctx context.Context) error {
			profile, err := journeys.ProfileOf(ctx, journeys.Hub(t), ns, cluster)
			if err == nil && !watch.Saw(profile) {
				err = errors.New("its last version is not")
			}
			return err
		})
	}
}
