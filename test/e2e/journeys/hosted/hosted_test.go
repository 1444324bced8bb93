package hosted

import (
	"context"
	"fmt"
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

const (
	// namespace is that of the hosted agent, on both clusters.
	namespace = "cluster-inventory-" + managed

	account    = "cluster-inventory-agent"
	hostedWith = "addon.open-cluster-management.io/hosting-cluster-name"
)

var secret = types.NamespacedName{Namespace: namespace, Name: "cluster-inventory-managed-kubeconfig"}

// The agent of a cluster without workloads runs on another one. It reports what it lacks
// until the administrator has given it a working kubeconfig, and then publishes. Disabling
// the addon cleans up both clusters. The hosting cluster's own agent is not affected.
func TestAClusterHostsTheAgentOfAnother(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, hosting)
	ns := journeys.Sandbox(t, "hosted", hosting, managed)
	own := journeys.AgentPod(t.Context(), t, hosting)
	// An administrator may create the agent's namespace and restrict the pods in it.
	journeys.Create(t, journeys.ClientOf(t, hosting), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}})
	addon := journeys.AddonOf(managed)
	addon.Annotations = map[string]string{hostedWith: hosting}
	apitest.Must(t, journeys.Hub(t).Create(t.Context(), addon))
	t.Cleanup(func() { _ = journeys.Hub(t).Delete(context.Background(), journeys.AddonOf(managed)) })

	lacks := func(what string) {
		t.Helper()
		journeys.Says(t, managed, journeys.PropertiesPublished, metav1.ConditionFalse,
			"ManagedKubeconfigInvalid", secret.String(), what)
	}
	journeys.Says(t, managed, "HostingClusterValidity", metav1.ConditionTrue, "HostingClusterValid")
	lacks("it does not exist")
	provides(t, kubeconfig(t, "a.wrong.token"))
	lacks("the managed cluster refuses its credentials")
	provides(t, kubeconfig(t, token(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
		Name: "default"}})))
	lacks("its user may not list clusterproperties")

	agent := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	provides(t, kubeconfig(t, token(t, agent)))
	journeys.Available(t, managed)
	journeys.Says(t, managed, journeys.PropertiesPublished, metav1.ConditionTrue, "Published")
	for _, cluster := range []string{hosting, managed} {
		journeys.Sets(t, cluster, "where.example", cluster)
	}
	for _, cluster := range []string{hosting, managed} {
		journeys.HasProfile(t, ns, cluster)
		journeys.Shows(t, ns, cluster, "where.example", cluster)
	}
	nothingRuns(t, managed)

	// Another kubeconfig replaces the first.
	provides(t, kubeconfig(t, token(t, agent)))
	journeys.Sets(t, managed, "where.example", "still there")
	journeys.Shows(t, ns, managed, "where.example", "still there")

	journeys.Disable(t, managed)
	journeys.HasNoProfile(t, ns, managed)
	for _, cluster := range []string{hosting, managed} {
		apitest.Within(t, journeys.Eventually, "nothing of it is left on "+cluster,
			func(ctx context.Context) error { return clean(ctx, t, cluster) })
	}
	apitest.Within(t, journeys.Soon, "nothing of it is left on the hub", func(ctx context.Context) error {
		works := &workv1.ManifestWorkList{}
		err := journeys.Hub(t).List(ctx, works, client.MatchingLabels{addonv1beta1.AddonNamespaceLabelKey: managed})
		if err == nil && len(works.Items) > 0 {
			err = fmt.Errorf("ManifestWork %s/%s", works.Items[0].Namespace, works.Items[0].Name)
		}
		return err
	})
	journeys.Shows(t, ns, hosting, "where.example", hosting)
	if now := journeys.AgentPod(t.Context(), t, hosting); now.UID != own.UID {
		t.Errorf("the hosting cluster's own agent was replaced: %s, then %s", own.Name, now.Name)
	}
}

// provides gives the agent a kubeconfig for the managed cluster, as an administrator does.
func provides(t *testing.T, content []byte) {
	t.Helper()
	c := journeys.ClientOf(t, hosting)
	object := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name},
		Data:       map[string][]byte{"kubeconfig": content},
	}
	err := c.Update(t.Context(), object)
	if apierrors.IsNotFound(err) {
		err = c.Create(t.Context(), object)
	}
	apitest.Must(t, err)
}

// token returns a token of a ServiceAccount on the managed cluster, once OCM has created it there.
func token(t *testing.T, of *corev1.ServiceAccount) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	apitest.Within(t, journeys.Eventually, "a token of "+of.Name, func(ctx context.Context) error {
		return journeys.ClientOf(t, managed).SubResource("token").Create(ctx, of, request)
	})
	return request.Status.Token
}

func kubeconfig(t *testing.T, token string) []byte {
	t.Helper()
	admin, err := journeys.Fleet.Cluster(managed)
	apitest.Must(t, err)
	ca := admin.CAData
	if admin.CAFile != "" {
		ca, err = os.ReadFile(admin.CAFile)
		apitest.Must(t, err)
	}
	content, err := clientcmd.Write(api.Config{
		Clusters:       map[string]*api.Cluster{managed: {Server: admin.Host, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*api.AuthInfo{account: {Token: token}},
		Contexts:       map[string]*api.Context{managed: {Cluster: managed, AuthInfo: account}},
		CurrentContext: managed,
	})
	apitest.Must(t, err)
	return content
}

// nothingRuns checks that a cluster has no workload of the addon.
func nothingRuns(t *testing.T, cluster string) {
	t.Helper()
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &batchv1.JobList{}, &corev1.PodList{}} {
		apitest.Must(t, journeys.ClientOf(t, cluster).List(t.Context(), list))
		if err := journeys.NoneOfOurs(list); err != nil {
			t.Errorf("on %s: %v", cluster, err)
		}
	}
}

// clean is an error while anything of the hosted agent is on a cluster, except the
// namespace and, on the hosting one, what the administrator has put there.
func clean(ctx context.Context, t *testing.T, cluster string) error {
	t.Helper()
	c := journeys.ClientOf(t, cluster)
	if cluster == hosting {
		theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}}
		if err := client.IgnoreNotFound(c.Delete(ctx, theirs)); err != nil {
			return err
		}
	} else if err := journeys.Clean(ctx, c); err != nil {
		return err
	}
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &corev1.PodList{}, &batchv1.JobList{}, &corev1.ConfigMapList{},
		&corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &corev1.SecretList{},
	} {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		if err := journeys.NoneOfOurs(list); err != nil {
			return err
		}
	}
	return nil
}
