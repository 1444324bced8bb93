package spoke

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/spoketest"
)

// Until the administrator has given it a working kubeconfig, a hosted agent reports on the
// hub what it lacks, and is alive but not ready. It follows another one without a restart.
func TestAHostedAgentWaitsForAKubeconfigThatWorks(t *testing.T) {
	w := newWorld(t, allVersions)
	good, err := os.ReadFile(w.opts.Kubeconfig)
	apitest.Must(t, err)
	agent := "system:serviceaccount:" + w.opts.InstallNamespace + ":cluster-inventory-agent"
	w.opts.Hosted, w.opts.Kubeconfig = true, filepath.Join(t.TempDir(), "kubeconfig")
	write := func(content []byte) { apitest.Must(t, os.WriteFile(w.opts.Kubeconfig, content, 0o600)) }
	w.spoke.MustCreate(spoketest.Property("v1beta1", "location", "eu", nil))
	apitest.Run(t, func(ctx context.Context) error {
		return runHosted(ctx, &clusterAccess{path: w.opts.HubKubeconfig}, w.opts, time.Second)
	})

	reports := func(what string) {
		t.Helper()
		w.eventuallyCondition("False ManagedKubeconfigInvalid The Secret " + w.opts.InstallNamespace +
			"/cluster-inventory-managed-kubeconfig on the hosting cluster, with the kubeconfig of the managed cluster, " +
			"cannot be used: " + what + ".")
	}
	reports("it does not exist, or has no key kubeconfig")
	if alive, ready := w.probe("healthz"), w.probe("readyz"); alive != "" || ready == "" {
		t.Errorf("alive: %q, ready: %q", alive, ready)
	}
	write([]byte("no kubeconfig"))
	reports("its kubeconfig cannot be read")
	write(w.kubeconfig(spokeServer.User(t, "nobody")))
	reports("its user may not list clusterproperties")
	w.mayNotWatch("half")
	write(w.kubeconfig(spokeServer.User(t, "half")))
	reports("its user may not watch configmaps")
	nowhere := spokeServer.Config(t)
	nowhere.Host = "https://" + freeAddress(t)
	write(apitest.Kubeconfig(t, nowhere, ""))
	reports("the managed cluster cannot be reached with it; the agent's log says why")
	w.claimsStay(map[string]string{})

	write(good)
	w.eventuallyCondition("True Published 1 property published.")
	w.eventuallyClaims(map[string]string{"location*": "eu"})
	w.spoke.Eventually("the agent is ready", func() string { return w.probe("readyz") })

	write([]byte("no kubeconfig"))
	write(w.kubeconfig(spokeServer.User(t, agent)))
	w.edit("v1beta1", "location", `{"spec":{"value":"us"}}`)
	w.eventuallyClaims(map[string]string{"location*": "us"})
	w.eventuallyCondition("True Published 1 property published.")

	apitest.Must(t, os.Remove(w.opts.Kubeconfig))
	reports("it does not exist, or has no key kubeconfig")
	w.claimsStay(map[string]string{"location*": "us"})
	write(good)
	w.eventuallyCondition("True Published 1 property published.")
}

// mayNotWatch gives a user all of the agent's rights except watching the marker, without
// which the agent would wait forever.
func (w *world) mayNotWatch(user string) {
	w.t.Helper()
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}
	name := metav1.ObjectMeta{Namespace: w.opts.InstallNamespace, Name: user}
	cluster := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.opts.InstallNamespace + "-" + user}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
			Name: "open-cluster-management:cluster-inventory:agent:" + w.opts.InstallNamespace,
		},
	}
	w.spoke.MustCreate(cluster,
		&rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "patch"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: name, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		})
	w.spoke.CleanUp(cluster)
}

// A manager whose cache has not filled cannot be stopped. The process then ends, and is
// started again.
func TestAHostedAgentEndsEvenIfPublishingDoesNot(t *testing.T) {
	release, ended := make(chan struct{}), make(chan error, 1)
	t.Cleanup(func() { close(release) })
	stuck := func(context.Context) error {
		<-release
		return nil
	}
	go func() { ended <- while(t.Context(), time.Millisecond, func(context.Context) {}, stuck) }()
	select {
	case err := <-ended:
		if !errors.Is(err, errEndless) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(apitest.Patience):
		t.Error("it hangs")
	}
}

// If publishing ends by itself, the agent waits for that and says why.
func TestAHostedAgentEndsAsPublishingDoes(t *testing.T) {
	failed := errors.New("an address cannot be bound")
	forever := func(ctx context.Context) { <-ctx.Done() }
	if err := while(t.Context(), 0, forever, func(context.Context) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("it ended with %v", err)
	}
	clean := func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	}
	if err := while(t.Context(), apitest.Patience, func(context.Context) {}, clean); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
