package faults

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
	"open-cluster-management.io/cluster-inventory-addon/manifests"
)

const (
	agentName = "agent"
	// agentCluster is the cluster that the agent runs on, and its namespace on the hub.
	agentCluster = "c1"
	// agentNamespace is where the agent runs.
	agentNamespace = "open-cluster-management-agent-addon"

	agentUser = "system:serviceaccount:" + agentNamespace + ":cluster-inventory-agent"
	hookUser  = "system:serviceaccount:" + agentNamespace + ":cluster-inventory-cleanup"

	// agentRights are the role of agents on the hub, and the RoleBinding in the namespace of each cluster.
	agentRights = "open-cluster-management:cluster-inventory:agent-on-hub"

	// reserved is a name that no property is published under.
	reserved = "reserved.example.com"
)

// agentWriter is this addon's agent. One API server is its spoke and its hub, and one user has its
// rights on both.
func agentWriter() writer {
	kind := func(group, version, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
	}
	return writer{
		name:    agentName,
		stories: agentStories,
		without: ofPrograms, // it elects no leader
		fresh:   true,       // it serves one ManagedClusterAddOn, by its UID
		owned: allOf(
			kind("addon.open-cluster-management.io", "v1beta1", "ManagedClusterAddOn"),
			kind("about.k8s.io", "v1beta1", "ClusterProperty"),
			kind("cluster.open-cluster-management.io", "v1alpha1", "ClusterClaim"),
			kind("", "v1", "ConfigMap"),
			kind("events.k8s.io", "v1", "Event"),
		),
		namespaces: []string{"", agentCluster, agentNamespace},
		watched: []schema.GroupVersionResource{
			{Group: "cluster.open-cluster-management.io", Version: "v1alpha1", Resource: "clusterclaims"},
			{Group: "addon.open-cluster-management.io", Version: "v1beta1", Resource: "managedclusteraddons"},
			{Version: "v1", Resource: "configmaps"},
		},
		crds: []apitest.CRDs{apitest.Hub(), apitest.Spoke(), propertyCRD()},
		apis: []api{
			{crd: claimsOfSpoke, mayGo: staysPublished, matters: isPublished},
			// With their API, properties go, and so do their claims: that is a story of its own.
			{crd: properties, mayGo: never, matters: isPublished},
		},
		user: agentUser,
		programs: func(tb testing.TB) []string {
			return []string{hubtest.Program(tb, agentName)}
		},
		install: func(l *lane, _ []byte) {
			l.createNamespaces(agentCluster, agentNamespace)
			l.grantAgent()
		},
		prepare:  func(l *lane, w *world) { l.deployAgent(w) },
		commands: agentCommands,
		ready: func(_ *running, state map[string]string) bool {
			return strings.Contains(state["managedclusteraddons.addon.open-cluster-management.io "+
				agentCluster+"/"+ocmtest.AddonName], `"PropertiesPublished"`)
		},
	}
}

// shipped are the objects of one file of what is installed on a spoke.
func shipped(tb testing.TB, file string) []*unstructured.Unstructured {
	tb.Helper()
	content, err := manifests.Spoke.ReadFile("spoke/" + file)
	apitest.Must(tb, err)
	objects, err := manifesttest.Decode(bytes.NewReader(content))
	apitest.Must(tb, err)
	return objects
}

// propertyCRD is the shipped CRD of ClusterProperty.
func propertyCRD() apitest.CRDs {
	content, err := manifests.Spoke.ReadFile("spoke/10-clusterproperty-crd.yaml")
	if err != nil {
		panic(err) // it is embedded
	}
	return apitest.YAML(content)
}

// grantAgent gives agent and hook the rights that their manifests and the chart give them.
func (l *lane) grantAgent() {
	l.tb.Helper()
	for _, object := range slices.Concat(shipped(l.tb, "30-agent-rbac.yaml"), shipped(l.tb, "50-cleanup.yaml")) {
		switch object.GetKind() {
		case "ConfigMap":
			continue // the marker, which is each run's own
		case "ServiceAccount", "Role", "RoleBinding":
			object.SetNamespace(agentNamespace)
		}
		if subjects, has, _ := unstructured.NestedSlice(object.Object, "subjects"); has {
			for _, subject := range subjects {
				subject.(map[string]any)["namespace"] = agentNamespace
			}
			apitest.Must(l.tb, unstructured.SetNestedSlice(object.Object, subjects, "subjects"))
		}
		l.hub.MustCreate(object)
	}
	role := manifesttest.Find[rbacv1.ClusterRole](l.tb, hubtest.MustRender(l.tb, ""), "ClusterRole", agentRights)
	l.hub.MustCreate(role, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: agentCluster, Name: agentRights},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: agentRights},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: agentUser}},
	})
}

// deployAgent creates what is deployed with an agent, and a claim of another client.
func (l *lane) deployAgent(w *world) {
	w.T.Helper()
	w.MustCreate(ocmtest.Addon(agentCluster), marker(), &clusterv1alpha1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Name: foreign}, Spec: clusterv1alpha1.ClusterClaimSpec{Value: "theirs"},
	})
	w.hubKubeconfig = l.hubKubeconfig()
	w.hook = func() ([]byte, error) {
		kubeconfig := apitest.Kubeconfig(w.T, l.server.User(w.T, hookUser), "")
		args := append([]string{"cleanup", "--kubeconfig=" + apitest.File(w.T, "kubeconfig", kubeconfig)}, l.agentFlags()...)
		return exec.CommandContext(w.T.Context(), hubtest.Program(w.T, agentName), args...).CombinedOutput()
	}
}

// marker is the ConfigMap by which hook and agent speak, as it is deployed.
func marker() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: "cluster-inventory-cleanup"}}
}

// hubKubeconfig is the file with the agent's kubeconfig of the hub.
func (l *lane) hubKubeconfig() string { return filepath.Join(l.folder, "hub.kubeconfig") }

// agentFlags are those of agent and hook.
func (l *lane) agentFlags() []string {
	l.tb.Helper()
	addon := ocmtest.Addon(agentCluster)
	l.hub.MustGet(addon)
	return []string{"--addon-uid=" + string(addon.UID), "--install-namespace=" + agentNamespace}
}

// agentCommands are the agent with the command line of its Deployment, and as the manager completes it,
// but for probes.
func agentCommands(l *lane, cfg *rest.Config, _ version, _ ...string) func() []*exec.Cmd {
	l.tb.Helper()
	kubeconfig := apitest.Kubeconfig(l.tb, cfg, "")
	apitest.Must(l.tb, os.WriteFile(l.hubKubeconfig(), kubeconfig, 0o600))
	deployment := manifesttest.Find[appsv1.Deployment](l.tb, shipped(l.tb, "40-agent.yaml"), "Deployment",
		"cluster-inventory-agent")
	args := slices.Concat(deployment.Spec.Template.Spec.Containers[0].Args, l.agentFlags(), []string{
		"--kubeconfig=" + apitest.File(l.tb, "kubeconfig", kubeconfig),
		"--hub-kubeconfig=" + l.hubKubeconfig(),
		"--cluster-name=" + agentCluster,
		"--reserved-properties=" + reserved,
		"--health-probe-bind-address=0",
	})
	path := cmp.Or(l.program, hubtest.Program(l.tb, agentName))
	return func() []*exec.Cmd { return []*exec.Cmd{exec.Command(path, args...)} }
}

// spoils makes the file with the kubeconfig of the hub useless until the returned function is called.
func (w *world) spoils(path string) (again func()) {
	w.T.Helper()
	content, err := os.ReadFile(path)
	apitest.Must(w.T, err)
	replace := func(content []byte) {
		w.T.Helper()
		// As a kubelet does, at once.
		next := path + ".next"
		apitest.Must(w.T, os.WriteFile(next, content, 0o600)) //nolint:gosec // a file of this test
		apitest.Must(w.T, os.Rename(next, path))
	}
	replace([]byte("no kubeconfig"))
	return func() { replace(content) }
}

// property is a ClusterProperty.
func property(name, value string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("about.k8s.io/v1beta1")
	object.SetKind("ClusterProperty")
	object.SetName(name)
	object.Object["spec"] = map[string]any{"value": value}
	return object
}

// sets creates a property with a value, or gives it another one, and waits until its claim has it.
func (w *world) sets(name, value string) {
	w.T.Helper()
	w.wrote[name] = append(w.wrote[name], value)
	if object := property(name, ""); w.Find(object) {
		w.edits(name, fmt.Sprintf(`{"spec":{"value":%q}}`, value))
	} else {
		w.MustCreate(property(name, value))
	}
	w.claims(name, value)
}

// edits changes a property by a merge patch.
func (w *world) edits(name, patch string) {
	w.T.Helper()
	w.MustMerge(property(name, ""), patch)
}

// claim is the claim of a name, or nil.
func (w *world) claim(name string) *clusterv1alpha1.ClusterClaim {
	w.T.Helper()
	claim := &clusterv1alpha1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if !w.Find(claim) {
		return nil
	}
	return claim
}

// claims waits until the agent's claim of a name has a value.
func (w *world) claims(name, value string) {
	w.T.Helper()
	w.step(fmt.Sprintf("claim %s has the value %s", name, value), func() bool {
		claim := w.claim(name)
		return claim != nil && claim.Spec.Value == value && len(claim.OwnerReferences) == 1 &&
			claim.Labels["app.kubernetes.io/managed-by"] == "cluster-inventory-addon"
	})
}

// unclaims waits until there is no claim of a name.
func (w *world) unclaims(name string) {
	w.T.Helper()
	w.step("claim "+name+" is gone", func() bool { return w.claim(name) == nil })
}

// reports waits until the cluster's condition has a reason and says that, among other things.
func (w *world) reports(reason, text string) {
	w.T.Helper()
	w.step(fmt.Sprintf("the condition is %s: %s", reason, text), func() bool {
		condition := w.AddonCondition(agentCluster, "PropertiesPublished")
		return condition.Reason == reason && strings.Contains(condition.Message, text)
	})
}

// writesClaim creates another client's claim, or gives it another value.
func (w *world) writesClaim(name, value string) {
	w.T.Helper()
	w.wrote[name] = append(w.wrote[name], value)
	if claim := w.claim(name); claim != nil {
		w.MustMerge(claim, fmt.Sprintf(`{"spec":{"value":%q}}`, value))
		return
	}
	w.MustCreate(&clusterv1alpha1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterClaimSpec{Value: value},
	})
}

// altersClaim has another client change the agent's claim of a property, and waits until the agent has
// put it right.
func (w *world) altersClaim(name, patch, value string) {
	w.T.Helper()
	claim := w.claim(name)
	if claim == nil {
		return // a step before has missed it
	}
	w.MustMerge(claim, patch)
	w.claims(name, value)
}

// losesClaim has another client delete a claim, if there is one.
func (w *world) losesClaim(name string) {
	w.T.Helper()
	if claim := w.claim(name); claim != nil {
		apitest.Must(w.T, client.IgnoreNotFound(w.Delete(w.T.Context(), claim)))
	}
}

// cleansUp runs the hook that comes before the removal of the addon.
func (w *world) cleansUp() {
	w.T.Helper()
	if output, err := w.hook(); err != nil {
		w.missed = append(w.missed, fmt.Sprintf("the hook fails: %v: %s", err, tail(string(output))))
	}
}
