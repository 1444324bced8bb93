package addon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/release"
)

// on makes another cluster host an agent.
func on(host string) func(*addonv1beta1.ManagedClusterAddOn) {
	return func(a *addonv1beta1.ManagedClusterAddOn) { a.Annotations = map[string]string{hostingAnnotation: host} }
}

// hostedWork is the ManifestWork on the hosting cluster, for the agent or its clean-up.
func hostedWork(addon *addonv1beta1.ManagedClusterAddOn, host, name string) *workv1.ManifestWork {
	return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: host, Name: name + addon.Namespace}}
}

const (
	hostedDeploy  = "addon-cluster-inventory-deploy-hosting-"
	hostedCleanup = "addon-cluster-inventory-pre-delete-hosting-"
)

func hostedAgent(r *rollout, addon *addonv1beta1.ManagedClusterAddOn, host string) *appsv1.Deployment {
	r.T.Helper()
	work := hostedWork(addon, host, hostedDeploy)
	work.Name += "-0"
	if !r.Find(work) {
		return nil
	}
	return inWork[appsv1.Deployment](r, work, "Deployment")
}

// hosts waits until a cluster hosts the agent of another one.
func (r *rollout) hosts(host string, addon *addonv1beta1.ManagedClusterAddOn) {
	r.T.Helper()
	r.Eventually("the agent of cluster "+addon.Namespace+" is hosted", func() string {
		agent := hostedAgent(r, addon, host)
		if agent == nil {
			return "there is none"
		}
		return cmp.Diff("cluster-inventory-"+addon.Namespace, agent.Namespace)
	})
}

// hosted: another cluster hosts the agent, which has its own namespace there and does not
// move. A Job on the hosting cluster removes it.
func hosted(r *rollout) {
	host := r.join()
	r.refer(host)
	r.runsAnywhere(host)
	addon := r.join(on(host.Namespace))
	r.refer(addon)
	namespace := "cluster-inventory-" + addon.Namespace
	r.hosts(host.Namespace, addon)
	r.Eventually("it is registered", func() string {
		r.MustGet(addon)
		if !apimeta.IsStatusConditionTrue(addon.Status.Conditions, "RegistrationApplied") ||
			!apimeta.IsStatusConditionTrue(addon.Status.Conditions, "HostingClusterValidity") ||
			addon.Status.Namespace != namespace {
			return fmt.Sprintf("status %+v", addon.Status)
		}
		return ""
	})
	managed := r.deployWork(addon)
	r.MustGet(managed)
	if got := kindsIn(r, managed); slices.Contains(got, "Deployment") || !slices.Contains(got, "ClusterRole") {
		r.T.Errorf("the managed cluster has %v", got)
	}
	r.MustGet(host)
	if host.Status.Namespace != "agents" || r.agent(host).Namespace != "agents" {
		r.T.Errorf("the hosting cluster's own agent is in %s", host.Status.Namespace)
	}

	r.config("hosted", zoneA)
	for _, zone := range []string{"a", ""} {
		if zone == "" {
			r.refer(addon)
		} else {
			r.refer(addon, "hosted")
		}
		r.Eventually("the hosted agent is to run in zone "+zone, func() string {
			return cmp.Diff(zone, hostedAgent(r, addon, host.Namespace).Spec.Template.Spec.NodeSelector["zone"])
		})
	}
	for _, elsewhere := range []string{"", "another"} {
		apitest.Edit(r, addon, func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Annotations[hostingAnnotation] = elsewhere
		})
		r.says(addon, "HostingRefused", host.Namespace)
		if agent := hostedAgent(r, addon, host.Namespace); agent == nil {
			r.T.Fatal("the agent is gone")
		}
	}
	apitest.Edit(r, addon, func(a *addonv1beta1.ManagedClusterAddOn) { a.Annotations[hostingAnnotation] = host.Namespace })
	r.Eventually("it is as it was", func() string {
		desired, err := r.outcomes.Desired(r.T.Context(), addon.Namespace)
		if err != nil || desired == nil || !desired.Absent {
			return fmt.Sprintf("%+v, %v", desired, err)
		}
		return ""
	})

	r.Eventually("the addon waits for its clean-up", func() string {
		r.MustGet(addon)
		if !slices.Contains(addon.Finalizers, hostingPreDelete) {
			return fmt.Sprintf("finalizers %v", addon.Finalizers)
		}
		return ""
	})
	r.MustDelete(addon)
	cleanup := hostedWork(addon, host.Namespace, hostedCleanup)
	r.EventuallyExists(cleanup)
	job := inWork[batchv1.Job](r, cleanup, "Job")
	if job.Namespace != namespace {
		r.T.Errorf("the clean-up runs in %s", job.Namespace)
	}
	apitest.EditStatus(r, cleanup, func(w *workv1.ManifestWork) {
		done := "True"
		w.Status.Conditions = []metav1.Condition{ocmtest.Condition("Applied", "True", "R", ""),
			ocmtest.Condition("Available", "True", "R", "")}
		w.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{
			ResourceMeta: workv1.ManifestResourceMeta{Group: "batch", Resource: "jobs", Namespace: namespace, Name: job.Name},
			Conditions:   []metav1.Condition{},
			StatusFeedbacks: workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{{
				Name: "JobComplete", Value: workv1.FieldValue{Type: workv1.String, String: &done},
			}}},
		}}
	})
	r.EventuallyGone(addon)
	r.EventuallyGone(cleanup)
	deploy := hostedWork(addon, host.Namespace, hostedDeploy)
	deploy.Name += "-0"
	r.EventuallyGone(deploy)
	r.runsAnywhere(host)
}

// annotatedLater: a Placement installs the addon without the annotation. An agent that
// never became available is then moved; one that is or was available is not.
func annotatedLater(r *rollout) {
	host, addon, running, silent := r.join(), r.join(), r.join(), r.join()
	for _, each := range []*addonv1beta1.ManagedClusterAddOn{host, addon, running, silent} {
		r.refer(each)
		r.runsAnywhere(each)
	}
	r.becomesAvailable(running)
	apitest.EditStatus(r, silent, func(a *addonv1beta1.ManagedClusterAddOn) {
		apimeta.SetStatusCondition(&a.Status.Conditions, ocmtest.Condition("PropertiesPublished", "True", "Published", ""))
	})
	r.Wire.Settle(r.T, apitest.Patience, unwritten)
	for _, each := range []*addonv1beta1.ManagedClusterAddOn{addon, running, silent} {
		apitest.Edit(r, each, on(host.Namespace))
	}
	r.hosts(host.Namespace, addon)
	r.Eventually("nothing runs on the managed cluster", func() string {
		work := r.deployWork(addon)
		r.MustGet(work)
		if kinds := kindsIn(r, work); slices.Contains(kinds, "Deployment") {
			return fmt.Sprintf("it has %v", kinds)
		}
		r.MustGet(addon)
		return cmp.Diff("cluster-inventory-"+addon.Namespace, addon.Status.Namespace)
	})
	for _, each := range []*addonv1beta1.ManagedClusterAddOn{running, silent} {
		r.says(each, "HostingRefused", "runs on cluster "+each.Namespace)
		r.runsAnywhere(each)
	}
	r.runsAnywhere(host)
}

// twoInOneNamespace: one configuration requests one namespace for two hosted agents.
// Neither gets anything there, in particular no kubeconfig for the hub, until it no longer
// does. Other clusters are not affected.
func twoInOneNamespace(r *rollout) {
	host := r.join()
	r.refer(host)
	r.runsAnywhere(host)
	third := r.join(on(host.Namespace))
	r.refer(third)
	r.hosts(host.Namespace, third)
	r.Wire.Settle(r.T, apitest.Patience, unwritten)

	r.config("shared", "agentInstallNamespace: hosted-agents")
	both := []*addonv1beta1.ManagedClusterAddOn{
		r.join(on(host.Namespace), r.names("shared")), r.join(on(host.Namespace), r.names("shared")),
	}
	for _, addon := range both {
		r.refer(addon, "shared")
		r.says(addon, "InstallNamespaceTaken", "AddOnDeploymentConfig "+r.configs+"/shared", "spec.agentInstallNamespace is hosted-agents",
			"namespace cluster-inventory-"+addon.Namespace)
	}
	r.Stays(unwritten, "neither is registered", func() string {
		for _, addon := range both {
			r.MustGet(addon)
			if addon.Status.Namespace != "" || hostedAgent(r, addon, host.Namespace) != nil {
				return fmt.Sprintf("cluster %s is: %+v", addon.Namespace, addon.Status)
			}
		}
		return ""
	})
	for _, others := range []*addonv1beta1.ManagedClusterAddOn{host, third} {
		before := others.DeepCopy()
		r.MustGet(others)
		if others.Status.Namespace == "hosted-agents" || before.UID != others.UID {
			r.T.Errorf("cluster %s is in %s", others.Namespace, others.Status.Namespace)
		}
	}

	r.config("shared", zoneA)
	for _, addon := range both {
		r.refer(addon, "shared")
		r.hosts(host.Namespace, addon)
		r.says(addon, "Applied")
	}
	r.runsAnywhere(host)
}

// hosted joins a cluster, and another one whose agent it hosts.
func (r *rollout) hosted() (host, addon *addonv1beta1.ManagedClusterAddOn) {
	host = r.join()
	r.refer(host)
	addon = r.join(on(host.Namespace))
	r.refer(addon)
	r.hosts(host.Namespace, addon)
	return host, addon
}

// hostGone: the hosting cluster leaves the hub. That is reported at once, and the hosted cluster's
// addon can be removed.
func hostGone(r *rollout) {
	host, addon := r.hosted()
	finalizers := func(want bool) func() string {
		return func() string {
			r.MustGet(addon)
			for _, finalizer := range []string{hostingPreDelete, hostingManifests} {
				if slices.Contains(addon.Finalizers, finalizer) != want {
					return fmt.Sprintf("finalizers %v", addon.Finalizers)
				}
			}
			return ""
		}
	}
	r.Eventually("the addon waits for its clean-up", finalizers(true))
	r.Wire.Settle(r.T, apitest.Patience, unwritten)

	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: host.Namespace}}
	apitest.Edit(r, cluster, func(c *clusterv1.ManagedCluster) { c.Finalizers = []string{foreignFinalizer} })
	r.MustDelete(cluster)
	r.Eventually("nothing waits for the host", finalizers(false))
	deploy := hostedWork(addon, host.Namespace, hostedDeploy)
	deploy.Name += "-0"
	r.EventuallyGone(deploy)
	apitest.Edit(r, cluster, func(c *clusterv1.ManagedCluster) { c.Finalizers = nil })
	r.EventuallyGone(cluster)
	r.Eventually("it is said that the host is gone", func() string {
		r.MustGet(addon)
		if !apimeta.IsStatusConditionFalse(addon.Status.Conditions, "HostingClusterValidity") {
			return fmt.Sprintf("%+v", addon.Status.Conditions)
		}
		return ""
	})
	r.MustDelete(addon)
	r.EventuallyGone(addon)
}

// letGo: the hub stops waiting for a clean-up on the hosting cluster that does not succeed.
// The framework, which runs all the time, leaves nothing there.
func letGo(r *rollout) {
	host, addon := r.hosted()
	r.Eventually("the addon waits for its clean-up", func() string {
		r.MustGet(addon)
		if !slices.Contains(addon.Finalizers, hostingPreDelete) {
			return fmt.Sprintf("finalizers %v", addon.Finalizers)
		}
		return ""
	})
	r.MustDelete(addon)
	cleanup, deploy := hostedWork(addon, host.Namespace, hostedCleanup), hostedWork(addon, host.Namespace, hostedDeploy)
	deploy.Name += "-0"
	r.EventuallyExists(cleanup)

	limit := releasesTomorrow(r.world, true)
	r.Eventually("it is let go", func() string {
		_, err := limit.Reconcile(r.T.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: addon.Namespace}})
		if err != nil {
			return err.Error() // the framework has written, too
		}
		if r.Find(addon.DeepCopy()) {
			return "the addon is still there"
		}
		return ""
	})
	r.Eventually("nothing is left on the host", func() string { return r.leftOn(host.Namespace, cleanup, deploy) })
	r.Stays(unwritten, "nothing comes back", func() string { return r.leftOn(host.Namespace, cleanup, deploy) })
	r.runsAnywhere(host)
}

// TestHostingIsTurnedOff while an agent is hosted: it stays as it is, nothing is put in its place
// in all states of its addon, and only ManifestWorks of its own names are read. All continues
// when hosting is turned on again.
func TestHostingIsTurnedOff(t *testing.T) {
	r := newRevisionStory(t)
	r.common = r.revision("v1", "2")
	r.offers(r.common)
	hosting, withoutHosting := Options{Release: release.Options{HostedAgents: true}}, Options{}
	r.restart(hosting)
	r = r.in(t)
	host, addon := r.hosted()
	removed := r.join(on(host.Namespace))
	r.refer(removed)
	r.hosts(host.Namespace, removed)
	for _, each := range []*addonv1beta1.ManagedClusterAddOn{addon, removed} {
		r.Eventually("the addon waits for its clean-up", func() string {
			r.MustGet(each)
			if !slices.Contains(each.Finalizers, hostingPreDelete) {
				return fmt.Sprintf("finalizers %v", each.Finalizers)
			}
			return ""
		})
	}
	r.settle()

	r.restart(withoutHosting)
	const value = "set the chart's value agent.hosted.enabled to true"
	later, own := r.join(on(host.Namespace)), r.join()
	r.refer(later)
	r.refer(own)
	r.runsAnywhere(own)
	for _, each := range []*addonv1beta1.ManagedClusterAddOn{addon, removed, later} {
		r.says(each, "HostingDisabled", value)
	}
	apitest.Edit(r, addon, func(a *addonv1beta1.ManagedClusterAddOn) { a.Annotations = nil })
	r.MustDelete(removed)
	r.Wire.Settle(t, apitest.Patience, unwritten)
	limit := releasesTomorrow(r.world, false)
	_, err := limit.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: removed.Namespace}})
	apitest.Must(t, err)
	r.says(addon, "HostingDisabled", value)
	if problem := r.isRegistered(later); problem != "" {
		t.Error(problem)
	}
	for _, each := range []*addonv1beta1.ManagedClusterAddOn{addon, removed} {
		if hostedAgent(r.rollout, each, host.Namespace) == nil {
			t.Errorf("the agent of cluster %s is gone from its host", each.Namespace)
		}
		if kinds := r.kinds(each); slices.Contains(kinds, "Deployment") || !slices.Contains(kinds, "ClusterRole") {
			t.Errorf("cluster %s has %v", each.Namespace, kinds)
		}
		if r.Find(hostedWork(each, host.Namespace, hostedCleanup)) || !r.Find(each.DeepCopy()) {
			t.Errorf("the addon of cluster %s is being removed, or gone", each.Namespace)
		}
	}
	names := []string{"metadata.name=addon-cluster-inventory-deploy-0", "metadata.name=addon-cluster-inventory-pre-delete"}
	for _, call := range r.Wire.Calls() {
		if call.Resource == "manifestworks" && call.Method == http.MethodGet &&
			!slices.Contains(names, call.Query.Get("fieldSelector")) {
			t.Errorf("it reads ManifestWorks by %v", call.Query)
		}
	}

	r.restart(hosting)
	r.hosts(host.Namespace, later)
	r.EventuallyExists(hostedWork(removed, host.Namespace, hostedCleanup))
	r.says(addon, "HostingRefused", host.Namespace)
}

// kinds are those that a cluster's own ManifestWork has.
func (r *revisions) kinds(addon *addonv1beta1.ManagedClusterAddOn) []string {
	r.T.Helper()
	work := r.deployWork(addon)
	r.MustGet(work)
	return kindsIn(r.rollout, work)
}

// leftOn returns which of some ManifestWorks are there.
func (r *rollout) leftOn(host string, works ...*workv1.ManifestWork) string {
	r.T.Helper()
	for _, work := range works {
		if r.Find(work.DeepCopy()) {
			return fmt.Sprintf("ManifestWork %s/%s", host, work.Name)
		}
	}
	return ""
}

func kindsIn(r *rollout, work *workv1.ManifestWork) []string {
	r.T.Helper()
	var kinds []string
	for _, manifest := range work.Spec.Workload.Manifests {
		object := &metav1.PartialObjectMetadata{}
		apitest.Must(r.T, json.Unmarshal(manifest.Raw, object))
		kinds = append(kinds, object.Kind)
	}
	return kinds
}

// releasesTomorrow returns the reconciler that ends waits, for which every limit has passed.
func releasesTomorrow(w *world, hosting bool) *release.Reconciler {
	return &release.Reconciler{
		Client: w, Live: w, Recorder: events.NewFakeRecorder(10),
		Clock:   testingclock.NewFakePassiveClock(time.Now().Add(24 * time.Hour)),
		Options: release.Options{Unreachable: 5 * time.Minute, Job: time.Hour, HostedAgents: hosting},
	}
}
