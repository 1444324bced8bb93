package charts

import (
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub"
)

// TestUpgradeReplacesAnOlderDefinition: the hook is there only where the hub's definition of
// AgentRevisions is older than the chart's, and its Job has the rights that it takes.
func TestUpgradeReplacesAnOlderDefinition(t *testing.T) {
	t.Parallel()
	own := apitest.Start(t, apitest.Hub(), apitest.AgentRevision())
	h := newHub(t, own)
	h.MustCreate(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hubtest.Namespace}})
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	definition.SetName("agentrevisions.inventory.open-cluster-management.io")
	hook := func(values string) []*unstructured.Unstructured {
		t.Helper()
		release := chartutil.ReleaseOptions{Name: "ci", Namespace: hubtest.Namespace, IsUpgrade: true}
		chart, all, err := hubtest.ForRelease(t, release, values)
		apitest.Must(t, err)
		files, err := engine.RenderWithClient(chart, all, own.Config(t))
		apitest.Must(t, err)
		objects, err := manifesttest.Decode(strings.NewReader(files["cluster-inventory/templates/upgrade.yaml"]))
		apitest.Must(t, err)
		return objects
	}
	if objects := hook(""); len(objects) > 0 {
		t.Errorf("the hub has the chart's definition, and there is a hook: %v", identifyAll(objects))
	}
	h.MustGet(definition)
	number := definition.GetAnnotations()["inventory.open-cluster-management.io/definition"]
	// That of a chart before definitions had numbers, with a column that this one has not.
	h.MustMerge(definition, `{"metadata":{"annotations":null},"spec":{"versions":[{"name":"v1alpha1","served":true,`+
		`"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`)
	if objects := hook("{gitOps: true, access: {clusterProxy: {enabled: false}}}"); len(objects) > 0 {
		t.Errorf("Argo CD applies the definition, and there is a hook: %v", identifyAll(objects))
	}
	objects := hook("")
	for _, object := range objects {
		if object.GetAnnotations()["helm.sh/hook"] != "pre-upgrade" {
			t.Errorf("%s is no hook", manifesttest.Identify(object))
		}
		h.MustCreate(object.DeepCopy())
	}
	job := manifesttest.Find[batchv1.Job](t, objects, "Job", "cluster-inventory-upgrade").Spec.Template.Spec
	manifesttest.CheckRestricted(t, job)
	config := manifesttest.Find[corev1.ConfigMap](t, objects, "ConfigMap", job.Volumes[0].ConfigMap.Name)
	mounted := job.Containers[0].VolumeMounts[0].MountPath + "/definition.yaml"
	args := slices.Clone(job.Containers[0].Args)
	at := slices.Index(args, "--file="+mounted)
	if at < 0 {
		t.Fatalf("arguments %v do not name %s", args, mounted)
	}
	args[at] = "--file=" + apitest.File(t, "definition.yaml", []byte(config.Data["definition.yaml"]))
	account := "system:serviceaccount:" + hubtest.Namespace + ":" + job.ServiceAccountName
	user := own.User(t, account)
	h.EventuallyAllowed(user, true, authorizationv1.ResourceAttributes{
		Verb: "get", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: definition.GetName(),
	})
	cmd := hub.NewCommand()
	cmd.SetArgs(append(args, "--kubeconfig="+apitest.File(t, "kubeconfig", apitest.Kubeconfig(t, user, ""))))
	apitest.Must(t, cmd.ExecuteContext(t.Context()))
	h.MustGet(definition)
	if got := definition.GetAnnotations()["inventory.open-cluster-management.io/definition"]; got != number || number == "" {
		t.Errorf("the definition has the annotations %v", definition.GetAnnotations())
	}
	if objects := hook(""); len(objects) > 0 {
		t.Errorf("after the upgrade there is still a hook: %v", identifyAll(objects))
	}
}

// TestApplyingTheRenderedChartLosesNoAddon: "helm template" renders the hooks, too, and kubectl
// takes them for ordinary objects. The uninstall Job must not remove the addon then, whenever it
// runs. What docs/gitops.md says to do first makes it remove the addon.
func TestApplyingTheRenderedChartLosesNoAddon(t *testing.T) {
	t.Parallel()
	own := apitest.Start(t, apitest.Hub(), apitest.AgentRevision(), apitest.ClusterProfile(), apitest.PlacementDecision())
	h := newHub(t, own)
	h.MustCreate(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:cluster-manager-registration:controller"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"cluster.open-cluster-management.io"}, Resources: []string{"managedclusters"}, Verbs: []string{"get"},
		}},
	})
	for _, namespace := range []string{hubtest.Namespace, "open-cluster-management-addon"} {
		h.MustCreate(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	objects := hubtest.MustRender(t, placements)
	job := manifesttest.Find[batchv1.Job](t, objects, "Job", "cluster-inventory-uninstall")
	apply := func() {
		t.Helper()
		// Pods need their ServiceAccount; kubectl keeps the order in which Helm sorts.
		for _, first := range []bool{true, false} {
			for _, object := range objects {
				if (object.GetKind() == "ServiceAccount") == first {
					apitest.Must(t, h.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object.DeepCopy()),
						client.FieldOwner("kubectl"), client.ForceOwnership))
				}
			}
		}
	}
	user := own.User(t, "system:serviceaccount:"+hubtest.Namespace+":"+job.Spec.Template.Spec.ServiceAccountName)
	without := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: hubtest.Namespace, Name: "cluster-inventory-applied-without-hooks",
	}}
	runJob := func() {
		t.Helper()
		for _, needed := range []authorizationv1.ResourceAttributes{
			{Namespace: without.Namespace, Verb: "get", Resource: "configmaps", Name: without.Name},
			{
				Verb: "patch", Group: "addon.open-cluster-management.io", Resource: "clustermanagementaddons",
				Name: "cluster-inventory",
			},
		} {
			h.EventuallyAllowed(user, true, needed)
		}
		cmd := hub.NewCommand()
		cmd.SetArgs(slices.Concat(job.Spec.Template.Spec.Containers[0].Args, []string{
			"--timeout=1m", "--kubeconfig=" + apitest.File(t, "kubeconfig", apitest.Kubeconfig(t, user, "")),
		}))
		apitest.Must(t, cmd.ExecuteContext(t.Context()))
	}
	apply()
	cluster := h.Cluster("c", nil).Name
	for _, time := range []string{"first", "second"} {
		if time == "second" {
			apply()
		}
		runJob()
		definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "cluster-inventory"}}
		h.MustGet(definition)
		addon := ocmtest.Addon(cluster)
		h.MustGet(addon)
		if !addon.DeletionTimestamp.IsZero() || definition.Spec.InstallStrategy.Type != "Placements" {
			t.Fatalf("applied for the %s time, the Job removes the addon: %v, %+v",
				time, addon.DeletionTimestamp, definition.Spec.InstallStrategy)
		}
	}
	h.MustDelete(without)
	runJob()
	if h.Find(ocmtest.Addon(cluster)) {
		t.Error("the Job does not remove the addon although the chart is being uninstalled")
	}
}
