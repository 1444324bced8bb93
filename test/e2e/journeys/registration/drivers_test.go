package registration

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

const (
	agentAccount = "cluster-inventory-agent"
	agentRole    = "open-cluster-management:cluster-inventory:agent-on-hub"
)

// users are the users to which the agents' rights are granted.
var users = map[string]string{
	byCertificate: "system:open-cluster-management:cluster:" + byCertificate +
		":addon:cluster-inventory:agent:cluster-inventory",
	byToken: "system:serviceaccount:" + byToken + ":" + agentAccount,
}

// One klusterlet gives its agent a certificate, the other a token. Both agents publish and
// report, and neither may do anything else on the hub.
func TestAgentsComeByCertificateAndByToken(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, byCertificate, byToken)
	ns := journeys.Sandbox(t, "drivers", byCertificate, byToken)
	for cluster, driver := range map[string]string{byCertificate: "csr", byToken: "token"} {
		journeys.Sets(t, cluster, "driver.example", driver)
		journeys.HasProfile(t, ns, cluster)
		journeys.Shows(t, ns, cluster, "driver.example", driver)
		addon := journeys.AddonOf(cluster)
		apitest.Must(t, journeys.Hub(t).Get(t.Context(), client.ObjectKeyFromObject(addon), addon))
		if len(addon.Status.Registrations) != 1 || addon.Status.Registrations[0].KubeClient.Driver != driver {
			t.Errorf("%s registers as %+v, want the driver %s", cluster, addon.Status.Registrations, driver)
		}
	}
	reports(t, byCertificate, byToken)

	for cluster, other := range map[string]string{byCertificate: byToken, byToken: byCertificate} {
		agent := agentOf(t, cluster)
		user, err := who(t.Context(), agent)
		apitest.Must(t, err)
		if user.Username != users[cluster] {
			t.Errorf("the agent of %s is %s, want %s", cluster, user.Username, users[cluster])
		}
		status := client.RawPatch(types.MergePatchType, []byte(`{"status":{"healthCheck":{}}}`))
		spec := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: agentAccount}}
		ctx := t.Context()
		for what, try := range map[string]struct {
			do  func() error
			may bool
		}{
			"read its addon": {may: true, do: func() error {
				return agent.List(ctx, &addonv1beta1.ManagedClusterAddOnList{}, client.InNamespace(cluster),
					client.MatchingFields{metav1.ObjectNameField: journeys.AddonName})
			}},
			"read the other addons of its namespace": {do: func() error {
				return agent.List(ctx, &addonv1beta1.ManagedClusterAddOnList{}, client.InNamespace(cluster))
			}},
			"write its addon's status": {may: true, do: func() error {
				return agent.Status().Patch(ctx, journeys.AddonOf(cluster), status, client.DryRunAll)
			}},
			"write its addon": {do: func() error {
				return agent.Patch(ctx, journeys.AddonOf(cluster), spec, client.DryRunAll)
			}},
			"delete its addon": {do: func() error { return agent.Delete(ctx, journeys.AddonOf(cluster), client.DryRunAll) }},
			"read another cluster's addon": {do: func() error {
				return agent.List(ctx, &addonv1beta1.ManagedClusterAddOnList{}, client.InNamespace(other),
					client.MatchingFields{metav1.ObjectNameField: journeys.AddonName})
			}},
			"write another cluster's addon's status": {do: func() error {
				return agent.Status().Patch(ctx, journeys.AddonOf(other), status, client.DryRunAll)
			}},
			"list addons": {do: func() error { return agent.List(ctx, &addonv1beta1.ManagedClusterAddOnList{}) }},
			"list Secrets of its namespace": {do: func() error {
				return agent.List(ctx, &corev1.SecretList{}, client.InNamespace(cluster))
			}},
			"list Secrets": {do: func() error { return agent.List(ctx, &corev1.SecretList{}) }},
			"make tokens of its account": {do: func() error {
				return agent.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
			}},
			"read its ManagedCluster": {do: func() error {
				return agent.Get(ctx, types.NamespacedName{Name: cluster}, &clusterv1.ManagedCluster{})
			}},
			"list profiles": {do: func() error { return agent.List(ctx, &inventoryv1alpha1.ClusterProfileList{}) }},
			"list bindings": {do: func() error {
				return agent.List(ctx, &rbacv1.RoleBindingList{}, client.InNamespace(cluster))
			}},
		} {
			if err := try.do(); try.may && err != nil || !try.may && !apierrors.IsForbidden(err) {
				t.Errorf("the agent of %s may %s: %t; it got: %v", cluster, what, try.may, err)
			}
		}
	}
}

// A spoke that writes another driver or subject into the status of its addon gains nothing:
// the rights move to another user of the spoke itself, at most. Its klusterlet would
// correct the status, so it does not run until the manager has acted on it.
func TestASpokeLiesAboutItsRegistration(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, byCertificate, byToken)
	for cluster, other := range map[string]string{byCertificate: byToken, byToken: byCertificate} {
		registration := cluster + "/registration-agent"
		journeys.Stopped(t, registration)
		lies := []string{"token", "csr"}
		if cluster == byToken {
			lies = []string{"csr", "token"}
		}
		// First another driver, then its own with another subject: either moves the
		// rights.
		for _, driver := range lies {
			lie := fmt.Appendf(nil, `{"status":{"registrations":[{"type":"kubeClient","kubeClient":{"driver":%q,
				"subject":{"user":%q,"groups":["system:masters","system:serviceaccounts"]}}}]}}`, driver, users[other])
			apitest.Must(t, klusterlet(t, cluster).Status().Patch(t.Context(), journeys.AddonOf(cluster),
				client.RawPatch(types.MergePatchType, lie)))
			itsOwn := "system:open-cluster-management:cluster:" + cluster + ":addon:cluster-inventory:agent:cluster-inventory"
			if driver == "token" {
				itsOwn = "system:serviceaccount:" + cluster + ":" + agentAccount
			}
			granted := func(ctx context.Context) error { return grantedTo(ctx, t, cluster, itsOwn) }
			apitest.Within(t, journeys.Soon, "the rights in "+cluster+" move", granted)
			journeys.Stays(t, journeys.Quiet, "the rights in "+cluster, granted)
		}
		journeys.Started(t, registration)
		apitest.Within(t, journeys.Soon, "the truth comes back to "+cluster, func(ctx context.Context) error {
			return errors.Join(grantedTo(ctx, t, cluster, users[cluster]), registeredAs(ctx, t, cluster, users[cluster]))
		})
	}
	reports(t, byCertificate, byToken)
}

// registeredAs is an error unless a cluster's addon says that its agent is this user.
func registeredAs(ctx context.Context, t *testing.T, cluster, user string) error {
	t.Helper()
	addon := journeys.AddonOf(cluster)
	if err := journeys.Hub(t).Get(ctx, client.ObjectKeyFromObject(addon), addon); err != nil {
		return err
	}
	if len(addon.Status.Registrations) != 1 || addon.Status.Registrations[0].KubeClient.Subject.User != user {
		return fmt.Errorf("it registers as %+v", addon.Status.Registrations)
	}
	return nil
}

// grantedTo is an error unless the agent's rights in a cluster's namespace are this user's
// alone.
func grantedTo(ctx context.Context, t *testing.T, cluster, user string) error {
	t.Helper()
	binding := &rbacv1.RoleBinding{}
	if err := journeys.Hub(t).Get(ctx, types.NamespacedName{Namespace: cluster, Name: agentRole}, binding); err != nil {
		return err
	}
	if !cmp.Equal(binding.Subjects, []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}) {
		return fmt.Errorf("they are granted to %+v", binding.Subjects)
	}
	return nil
}

// When the addon is disabled, Open Cluster Management deletes the agent's ServiceAccount at
// once: the token becomes invalid while the addon still exists, because the spoke is slow.
// The agent stops and the spoke is cleaned up without it.
func TestDisablingEndsTheTokenFirst(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, byToken)
	journeys.Sets(t, byToken, "left.example", "behind")
	reports(t, byToken)
	token := agentOf(t, byToken)
	earlier := cleanupLogs(t, byToken)

	const work = byToken + "/work-agent"
	journeys.Stopped(t, work)
	apitest.Must(t, journeys.Hub(t).Delete(t.Context(), journeys.AddonOf(byToken)))
	apitest.Within(t, journeys.Soon, "the token ends before the addon", func(ctx context.Context) error {
		user, refused := who(ctx, token)
		addon := journeys.AddonOf(byToken)
		if err := journeys.Hub(t).Get(ctx, client.ObjectKeyFromObject(addon), addon); err != nil {
			return err
		}
		if refused == nil {
			return fmt.Errorf("it is still that of %s", user.Username)
		}
		if !apierrors.IsUnauthorized(refused) {
			return refused
		}
		return nil
	})
	journeys.Started(t, work)
	journeys.Disable(t, byToken)
	apitest.Within(t, journeys.Eventually, "the spoke is clean", func(ctx context.Context) error {
		return journeys.Clean(ctx, journeys.ClientOf(t, byToken))
	})
	var log strings.Builder
	for pod, all := range cleanupLogs(t, byToken) {
		log.WriteString(strings.TrimPrefix(all, earlier[pod]))
	}
	if !strings.Contains(log.String(), "The agent has stopped publishing") {
		t.Errorf("the agent did not acknowledge that it stopped:\n%s", log.String())
	}
	for name, object := range map[string]client.Object{
		agentAccount: &corev1.ServiceAccount{}, agentRole: &rbacv1.RoleBinding{},
	} {
		object.SetNamespace(byToken)
		object.SetName(name)
		apitest.Within(t, journeys.Soon, "the hub is clean", func(ctx context.Context) error {
			return journeys.Gone(ctx, journeys.Hub(t), object)
		})
	}

	journeys.Enabled(t, byToken)
	reports(t, byToken)
}

// cleanupLogs is what each clean-up Pod of a cluster logged, by the name of the file.
func cleanupLogs(t *testing.T, cluster string) map[string]string {
	t.Helper()
	logs := map[string]string{}
	apitest.Must(t, filepath.WalkDir(filepath.Join(journeys.Fleet.LogDir(), cluster, "pods"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.Contains(path, "cluster-inventory-cleanup") {
			return err
		}
		content, err := os.ReadFile(path)
		logs[path] = string(content)
		return err
	}))
	return logs
}
