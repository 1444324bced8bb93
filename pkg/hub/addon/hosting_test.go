package addon

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"open-cluster-management.io/addon-framework/pkg/addonmanager/controllers/agentdeploy"
	"open-cluster-management.io/addon-framework/pkg/index"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	addonlisters "open-cluster-management.io/api/client/addon/listers/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/addontest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/configuration"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
)

const (
	hostingAnnotation = "addon.open-cluster-management.io/hosting-cluster-name"

	hostingPreDelete = "addon.open-cluster-management.io/hosting-addon-pre-delete"
	hostingManifests = "addon.open-cluster-management.io/hosting-manifests-cleanup"
)

const locationAnnotation = "addon.open-cluster-management.io/hosted-manifest-location"

// values are those of all clusters' agents.
func values() manifests.Values {
	return manifests.Values{Revision: manifests.Revision{
		InstallNamespace: "agents",
		Image:            "example.com/inventory:v1",
		PullPolicy:       "Always",
		ClaimLimit:       7,
		LogLevel:         3,
	}}
}

// rendered is the deploy work of a cluster as the API server returns it.
func rendered(t testing.TB, v manifests.Values, cluster string) *workv1.ManifestWork {
	t.Helper()
	renderers, err := manifests.NewRenderers()
	apitest.Must(t, err)
	uid := "uid-of-" + cluster
	objects, err := renderers.Render(v, cluster, uid)
	apitest.Must(t, err)
	return addontest.Work(t, cluster, uid, objects)
}

// trimmed returns a ManifestWork as it is cached.
func trimmed(t testing.TB, work *workv1.ManifestWork) *workv1.ManifestWork {
	t.Helper()
	return addontest.Transformed(manifests.NewWorkTrimmer().Trim, work)
}

// seen is an agent with the content of its caches.
type seen struct {
	*testing.T
	*inventoryAgent
	addonCache, workCache toolscache.Indexer
	revisionCache         toolscache.Store
	revision              addonv1beta1.ConfigReference // of all clusters
}

// offers gives all clusters another AgentRevision.
func (s *seen) offers(installNamespace string) {
	s.Helper()
	revision := addontest.AgentRevision("v1", "2", 1)
	apitest.Must(s, unstructured.SetNestedField(revision.Object, installNamespace, "spec", "installNamespace"))
	apitest.Must(s, s.revisionCache.Add(revision))
	s.revision = addontest.RevisionReference(revision)
}

// sourcesOf returns sources without AddOnDeploymentConfigs.
func sourcesOf(definitions toolscache.Indexer, revisions toolscache.Store) configuration.Sources {
	return configuration.Sources{
		Definitions:       addonlisters.NewClusterManagementAddOnLister(definitions),
		DeploymentConfigs: configuration.NewDeploymentConfigs(toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)),
		Revisions:         configuration.NewRevisions(revisions, nil),
	}
}

func newSeen(t *testing.T) *seen {
	t.Helper()
	renderers, err := manifests.NewRenderers()
	apitest.Must(t, err)
	addons := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, hostIndexers())
	revisions := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	works := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, workIndexers())
	s := &seen{T: t, addonCache: addons, workCache: works, revisionCache: revisions, inventoryAgent: &inventoryAgent{
		renderers: renderers, outcomes: configuration.NewOutcomes(nil), observed: observed{
			addons: addons, works: works,
			sources: sourcesOf(toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, nil), revisions),
		},
	}}
	s.offers("agents")
	return s
}

// addon caches the addon of a cluster, which is hosted if there is a host.
func (s *seen) enabled(cluster, host string) *addonv1beta1.ManagedClusterAddOn {
	s.Helper()
	addon := ocmtest.Addon(cluster)
	addon.UID = types.UID("uid-of-" + cluster)
	addon.Status.Conditions = []metav1.Condition{ocmtest.Condition("Configured", "True", "R", "")}
	addon.Status.ConfigReferences = []addonv1beta1.ConfigReference{s.revision}
	if host != "" {
		addon.Annotations = map[string]string{hostingAnnotation: host}
	}
	apitest.Must(s, s.addonCache.Add(addon))
	return addon
}

// deploys caches the ManifestWorks of a cluster's agent, and returns them: its own and that
// on the host, if there is one.
func (s *seen) deploys(cluster, host string, change ...func(own, onHost *workv1.ManifestWork)) {
	s.Helper()
	s.deploysWith(values(), cluster, host, change...)
}

func (s *seen) deploysWith(v manifests.Values, cluster, host string, change ...func(own, onHost *workv1.ManifestWork)) {
	s.Helper()
	if host != "" {
		v = v.OnHost()
	}
	full := rendered(s, v, cluster)
	own, onHost := full.DeepCopy(), full.DeepCopy()
	onHost.Namespace, onHost.Name = host, "addon-cluster-inventory-deploy-hosting-"+cluster+"-0"
	onHost.OwnerReferences = nil
	own.Spec.Workload.Manifests, onHost.Spec.Workload.Manifests = nil, nil
	for _, manifest := range full.Spec.Workload.Manifests {
		object := &unstructured.Unstructured{}
		apitest.Must(s, object.UnmarshalJSON(manifest.Raw))
		work := own
		if object.GetAnnotations()[locationAnnotation] == "hosting" {
			work = onHost
		}
		if object.GetKind() != "Job" {
			work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, manifest)
		}
	}
	for _, apply := range change {
		apply(own, onHost)
	}
	works := []*workv1.ManifestWork{own}
	if host != "" {
		works = append(works, onHost)
	}
	for _, work := range works {
		apitest.Must(s, s.workCache.Update(trimmed(s, work)))
	}
}

func (s *seen) decideNamespace(addon *addonv1beta1.ManagedClusterAddOn) (string, *configuration.Refusal) {
	s.Helper()
	return s.observed.sources.DecideNamespace(addon, s.observed.locate(addon))
}

// When the framework asks for the namespace, it has put its own default into the status of
// the addon that it passes. The hosting cluster's own agent is in that very namespace.
func TestFrameworksDefaultNamespaceIsNotUsed(t *testing.T) {
	const usual = "open-cluster-management-agent-addon"
	s := newSeen(t)
	s.enabled("host", "").Status.Namespace = usual
	passed := s.enabled("c1", "host").DeepCopy()
	passed.Status.Namespace = usual
	if got, err := s.namespace(t.Context(), passed); err != nil || got != "cluster-inventory-c1" {
		t.Errorf("namespace %q, %v", got, err)
	}
}

// Hosting, or having hosted, another cluster's agent changes nothing about a cluster's own
// agent.
func TestAHostedAgentDoesNotDisturbItsHostingCluster(t *testing.T) {
	s := newSeen(t)
	host := s.enabled("host", "")
	s.deploys("host", "")
	hosted := s.enabled("c1", "host")
	s.deploys("c1", "") // and runs on its own cluster
	hosted.Status.Namespace = "agents"
	hosted.Status.Conditions = append(hosted.Status.Conditions, ocmtest.Condition("Available", "True", "R", ""))
	if _, refused := s.decideNamespace(hosted); refused == nil || refused.Reason != "HostingRefused" {
		t.Errorf("the hosted agent moves: %+v", refused)
	}
	if namespace, refused := s.decideNamespace(host); refused != nil || namespace != "agents" {
		t.Errorf("the host's own agent is to run in %q: %+v", namespace, refused)
	}
}

// If a cluster's own agent and a hosted one compete for a namespace, the one that is not
// deployed yields.
func TestNamespaceHoldsOneAgent(t *testing.T) {
	const shared = "cluster-inventory-c1"
	s := newSeen(t)
	s.offers(shared)
	host, hosted := s.enabled("host", ""), s.enabled("c1", "host")
	check := func(addon *addonv1beta1.ManagedClusterAddOn, want string) {
		t.Helper()
		_, refused := s.decideNamespace(addon)
		reason := ""
		if refused != nil {
			reason = refused.Reason
		}
		if reason != want {
			t.Errorf("cluster %s: %q, want %q", addon.Namespace, reason, want)
		}
	}
	check(host, "InstallNamespaceTaken")
	check(hosted, "")

	v := values()
	v.InstallNamespace = shared
	own := trimmed(t, rendered(t, v, "host"))
	apitest.Must(t, s.workCache.Add(own))
	check(host, "")
	check(hosted, "InstallNamespaceTaken")
	apitest.Must(t, s.workCache.Delete(own))
	s.deploys("c1", "host")
	check(host, "InstallNamespaceTaken")
	check(hosted, "")
}

// A spoke's administrator can change the labels, annotations and content of all
// ManifestWorks in its namespace. That never makes one of them a ManifestWork of another
// cluster.
func TestASpokeCannotForgeAManifestWorkOfAnotherCluster(t *testing.T) {
	s := newSeen(t)
	victim := s.enabled("victim", "")
	s.deploys("victim", "")
	for _, name := range []string{
		"addon-cluster-inventory-deploy-0", "addon-managed-serviceaccount-deploy-0", "addon-cluster-inventory-pre-delete",
		"addon-cluster-inventory-deploy-hosting-another-0",
	} {
		s.deploys("victim", "attacker", func(_, forged *workv1.ManifestWork) {
			forged.Name = name
			forged.Labels = map[string]string{
				"open-cluster-management.io/addon-name":      "cluster-inventory",
				"open-cluster-management.io/addon-namespace": "victim",
			}
		})
	}
	indexes := []string{index.ManifestWorkByHostedAddon, index.ManifestWorkHookByHostedAddon, indexWorkByCluster}
	for _, by := range indexes {
		for _, work := range indexed[*workv1.ManifestWork](s.workCache, by, queueKey("victim")) {
			if work.Namespace != "victim" {
				t.Errorf("%s: the framework takes %s/%s for one", by, work.Namespace, work.Name)
			}
		}
	}
	if there := s.observed.deployed(victim); len(there.Works) != 1 || there.Host != "" {
		t.Errorf("%d ManifestWorks count, host %q", len(there.Works), there.Host)
	}
	if own := indexed[any](s.workCache, index.ManifestWorkByAddon, queueKey("attacker")); len(own) != 1 {
		t.Errorf("%d ManifestWorks are the spoke's own", len(own)) // the first name is one
	}
}

// A ManifestWork on a hosting cluster counts only with the agent of this installation, in
// the agent's namespace.
func TestHostingClustersChangesAreNotDeployed(t *testing.T) {
	replace := func(old, by string) func(_, onHost *workv1.ManifestWork) {
		return func(_, onHost *workv1.ManifestWork) {
			for i, manifest := range onHost.Spec.Workload.Manifests {
				onHost.Spec.Workload.Manifests[i].Raw = []byte(strings.ReplaceAll(string(manifest.Raw), old, by))
			}
		}
	}
	for name, test := range map[string]struct {
		change func(own, onHost *workv1.ManifestWork)
		host   string
	}{
		"nothing":              {change: func(_, _ *workv1.ManifestWork) {}, host: "h"},
		"another installation": {change: replace("uid-of-c1", "another")},
		"another namespace":    {change: replace("cluster-inventory-c1", "elsewhere")},
		"no agent": {change: func(_, onHost *workv1.ManifestWork) {
			onHost.Spec.Workload.Manifests = onHost.Spec.Workload.Manifests[:1]
		}},
		"being deleted": {change: func(_, onHost *workv1.ManifestWork) {
			onHost.DeletionTimestamp = ptr.To(metav1.Now())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSeen(t)
			addon := s.enabled("c1", "h")
			s.deploys("c1", "h", test.change)
			there := s.observed.deployed(addon)
			if got := there.Host; got != test.host || (there.Agent != nil) != (test.host != "") {
				t.Errorf("the agent runs on %q: %t", got, there.Agent != nil)
			}
		})
	}
}

// A former host may have put another agent into the work that is left there.
func TestAnnotationDeterminesTheHost(t *testing.T) {
	s := newSeen(t)
	addon := s.enabled("c1", "h2")
	for _, host := range []string{"h1", "h2", "h3"} {
		s.deploys("c1", host)
	}
	if got := s.observed.deployed(addon).Host; got != "h2" {
		t.Errorf("host %q", got)
	}
}

// Held manifests stay on their cluster. Each of the two clusters may change its
// ManifestWork, and its changes must not reach the other one.
func TestHeldManifestsOfAHostedAgentStayOnTheirCluster(t *testing.T) {
	manifest := func(kind, namespace, name, location string) workv1.Manifest {
		raw, err := json.Marshal(map[string]any{
			"apiVersion": map[string]string{"Deployment": "apps/v1"}[kind] + map[bool]string{true: "v1"}[kind != "Deployment"],
			"kind":       kind,
			"metadata": map[string]any{
				"namespace": namespace, "name": name,
				"annotations": map[string]string{locationAnnotation: location},
				"labels":      map[string]string{locationAnnotation: location},
			},
		})
		apitest.Must(t, err)
		return workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}}
	}
	s := newSeen(t)
	addon := s.enabled("c1", "h")
	s.deploys("c1", "h")
	sound, err := s.renderers.Held(s.observed.deployed(addon), string(addon.UID))
	apitest.Must(t, err)
	s.deploys("c1", "h", func(own, onHost *workv1.ManifestWork) {
		for _, work := range []*workv1.ManifestWork{own, onHost} {
			for _, location := range []string{"hosting", "managed", "", "none", "nonsense"} {
				work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests,
					manifest("Secret", "kube-system", "evil", location),
					manifest("Deployment", "cluster-inventory-c1", "evil", location))
			}
		}
		// Each has what only the other should have.
		own.Spec.Workload.Manifests = append(own.Spec.Workload.Manifests,
			manifest("ServiceAccount", "cluster-inventory-c1", manifests.AgentName, "hosting"))
		onHost.Spec.Workload.Manifests = append(onHost.Spec.Workload.Manifests,
			manifest("ConfigMap", "cluster-inventory-c1", "cluster-inventory-cleanup", ""))
	})
	held, err := s.renderers.Held(s.observed.deployed(addon), string(addon.UID))
	apitest.Must(t, err)
	if diff := cmp.Diff(identities(sound), identities(held)); diff != "" {
		t.Errorf("held (-sound +changed):\n%s", diff)
	}
	if len(held) != 12 {
		t.Errorf("%d manifests are held: %v", len(held), identities(held))
	}
	job, ok := held[len(held)-1].(*unstructured.Unstructured)
	if !ok || job.GetAnnotations()[locationAnnotation] != "hosting" {
		t.Fatalf("the last is %+v", held[len(held)-1])
	}
	typed := manifesttest.Find[batchv1.Job](t, []*unstructured.Unstructured{job}, "Job", "cluster-inventory-cleanup")
	if !slices.Contains(typed.Spec.Template.Spec.Containers[0].Args, "--kubeconfig=/var/run/managed/kubeconfig") {
		t.Errorf("the Job does not work on the managed cluster: %v", typed.Spec.Template.Spec.Containers[0].Args)
	}
}

// What a spoke wrote into its own ManifestWork does not get to the cluster to which its agent may move.
func TestNothingIsHeldForAnotherCluster(t *testing.T) {
	for host, held := range map[string]bool{"": true, "h": false} {
		s := newSeen(t)
		s.revision.DesiredConfig.SpecHash = "forged"
		addon := s.enabled("c1", host)
		hashes, err := json.Marshal(agentdeploy.ConfigsToMap(addon.Status.ConfigReferences))
		apitest.Must(t, err)
		s.deploys("c1", "", func(own, _ *workv1.ManifestWork) {
			metav1.SetMetaDataAnnotation(&own.ObjectMeta, workv1.ManifestConfigSpecHashAnnotationKey, string(hashes))
		})
		got, err := s.Manifests(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}, addon)
		if held != (err == nil && len(got) > 0) || !held && !errors.Is(err, configuration.ErrHeld) {
			t.Errorf("annotated with %q: %d manifests, %v; want some: %t", host, len(got), err, held)
		}
	}
}

func identities(objects []runtime.Object) []string {
	var all []string
	for _, object := range objects {
		o := object.(metav1.Object)
		all = append(all, strings.Join([]string{
			o.GetAnnotations()[locationAnnotation], object.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName(),
		}, " "))
	}
	return all
}

// An agent stays hosted for as long as anything of it is on the host; afterwards its addon
// waits for no clean-up there.
func TestAHostedAgentStaysHostedUntilItIsGone(t *testing.T) {
	s := newSeen(t)
	addon := s.enabled("c1", "h")
	addon.Finalizers = []string{hostingPreDelete, hostingManifests, foreignFinalizer}
	check := func(what, mode, host string, finalizers ...string) {
		t.Helper()
		passed := addon.DeepCopy()
		gotMode, gotHost := s.frameworkMode(passed, nil)
		if gotMode != mode || gotHost != host {
			t.Errorf("%s: mode %s, host %q", what, gotMode, gotHost)
		}
		if diff := cmp.Diff(finalizers, passed.Finalizers); diff != "" {
			t.Errorf("%s: finalizers (-want +got):\n%s", what, diff)
		}
	}
	s.deploys("c1", "h")
	check("deployed", "Hosted", "h", addon.Finalizers...)
	addon.Annotations = nil
	check("without the annotation", "Hosted", "h", addon.Finalizers...)
	s.deploys("c1", "h", func(_, onHost *workv1.ManifestWork) { onHost.DeletionTimestamp = ptr.To(metav1.Now()) })
	check("being deleted", "Hosted", "h", addon.Finalizers...)
	for _, obj := range s.workCache.List() {
		if work, ok := obj.(*workv1.ManifestWork); ok && work.Namespace == "h" {
			apitest.Must(t, s.workCache.Delete(work))
		}
	}
	check("gone", "Default", "", hostingManifests, foreignFinalizer) // the framework removes that one

	// Now the framework could not add the finalizer of the default mode.
	addon.Finalizers, addon.DeletionTimestamp = []string{foreignFinalizer}, ptr.To(metav1.Now())
	if got, err := s.Manifests(t.Context(), nil, addon); err != nil || got != nil {
		t.Errorf("%d manifests of an addon that has been cleaned up, %v", len(got), err)
	}
}

// A cluster that does not run its own agent does not run another one's.
func TestAHostedClusterDoesNotHost(t *testing.T) {
	s := newSeen(t)
	s.enabled("h1", "h2")
	addon := s.enabled("c1", "h1")
	_, refused := s.decideNamespace(addon)
	if refused == nil {
		t.Fatal("not refused")
	}
	if diff := cmp.Diff("HostingRefused: Cluster h1 cannot host the agent: its own agent runs on cluster h2; name another cluster in the "+
		"annotation addon.open-cluster-management.io/hosting-cluster-name", refused.Reason+": "+refused.Message); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

// A work on a former host has the same name as the one on the present host. The framework
// must not see it, or it would delete the one for the other, again and again. An addon
// whose agent is not hosted has all such works deleted.
func TestLeftoversOnAFormerHostDoNotCount(t *testing.T) {
	s := newSeen(t)
	addon := s.enabled("c1", "former")
	s.deploys("c1", "former")
	addon.UID = "uid-of-a-later-installation"
	addon.Annotations[hostingAnnotation] = "host"
	framework := indexerOnHost{s.workCache, s.observed}
	hosts := func() []string {
		t.Helper()
		found, err := framework.ByIndex(index.ManifestWorkByHostedAddon, "c1/cluster-inventory")
		apitest.Must(t, err)
		var namespaces []string
		for _, obj := range found {
			namespaces = append(namespaces, obj.(*workv1.ManifestWork).Namespace)
		}
		slices.Sort(namespaces)
		return namespaces
	}
	if got := hosts(); len(got) != 0 {
		t.Errorf("before the agent is deployed, ManifestWorks on %v count", got)
	}
	s.deploys("c1", "host", func(_, onHost *workv1.ManifestWork) {
		for i, manifest := range onHost.Spec.Workload.Manifests {
			onHost.Spec.Workload.Manifests[i].Raw = bytes.ReplaceAll(manifest.Raw, []byte("uid-of-c1"), []byte(addon.UID))
		}
	})
	if diff := cmp.Diff([]string{"host"}, hosts()); diff != "" {
		t.Errorf("clusters whose ManifestWorks count (-want +got):\n%s", diff)
	}
	all, err := s.workCache.ByIndex(index.ManifestWorkByHostedAddon, "c1/cluster-inventory")
	apitest.Must(t, err)
	if len(all) != 2 {
		t.Errorf("%d ManifestWorks are there", len(all))
	}
	apitest.Must(t, s.workCache.Delete(all[0]))
	apitest.Must(t, s.workCache.Delete(all[1]))
	addon.Annotations = nil
	s.deploys("c1", "former")
	if diff := cmp.Diff([]string{"former"}, hosts()); diff != "" {
		t.Errorf("of an agent that is not hosted (-want +got):\n%s", diff)
	}
}

// What is held keeps its policies, on the cluster where the pods are.
func TestNetworkPoliciesAreHeldWithTheAgent(t *testing.T) {
	policies := func(objects []runtime.Object) []string {
		return slices.DeleteFunc(identities(objects), func(identity string) bool {
			return !strings.Contains(identity, " NetworkPolicy ")
		})
	}
	for name, test := range map[string]struct {
		host string
		want []string
	}{
		"on its own cluster": {"", []string{
			" NetworkPolicy agents cluster-inventory-agent", " NetworkPolicy agents cluster-inventory-cleanup",
		}},
		"on a hosting cluster": {"h", []string{
			"hosting NetworkPolicy cluster-inventory-c1 cluster-inventory-agent",
			"hosting NetworkPolicy cluster-inventory-c1 cluster-inventory-cleanup",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSeen(t)
			addon := s.enabled("c1", test.host)
			v := values()
			v.NetworkPolicy = &manifests.NetworkPolicy{APIServerPorts: []int32{443, 6443}, DNSPorts: []int32{53}}
			s.deploysWith(v, "c1", test.host)
			held, err := s.renderers.Held(s.observed.deployed(addon), string(addon.UID))
			apitest.Must(t, err)
			if diff := cmp.Diff(test.want, policies(held)); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
		})
	}
}
