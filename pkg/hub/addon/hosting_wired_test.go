package addon

import (
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
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

// hosted: another cluster hosts the agent, which has its own namespace there and does not
// move. It is removed with a Job on the hosting cluster.
func hosted(r *rollout) {
	host := r.join()
	r.refer(host)
	r.runsAnywhere(host)
	addon := r.join(on(host.Namespace))
	r.refer(addon)
	namespace := "cluster-inventory-" + addon.Namespace
	r.Eventually("the agent is hosted", func() string {
		agent := hostedAgent(r, addon, host.Namespace)
		if agent == nil {
			return "there is none"
		}
		return cmp.Diff(namespace, agent.Namespace)
	})
	r.Eventually("it is registered", func() string {
		r.MustGet(addon)
		if !apimeta.IsStatusConditionTrue(addon.Status.Conditions, "RegistrationApplied") ||
			!apimeta.IsStatusConditionTrue(addon.Status.Conditions, "HostingClusterValidity") || addon.Status.Namespace != namespace {
			return fmt.Sprintf("status %+v", addon.Status)
		}
		return ""
	})
	managed := r.deployWork(addon)
	r.MustGet(managed)
	if got := kindsIn(r, managed); slices.Contains(got, "Deployment") || !slices.Contains(got, "ClusterRole") {
		r.T.Errorf("the managed cluster has %v", got)
	}
	if host.Status.Namespace == namespace {
		r.T.Errorf("the hosting cluster's own agent is in %s, too", namespace)
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
		if !slices.Contains(addon.Finalizers, "addon.open-cluster-management.io/hosting-addon-pre-delete") {
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
		w.Status.Conditions = []metav1.Condition{ocmtest.Condition("Applied", "True", "R", ""), ocmtest.Condition("Available", "True", "R", "")}
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

// twoInOneNamespace: two hosted agents are to run in one namespace. The second gets nothing
// there, in particular no kubeconfig for the hub, until the first has gone.
func twoInOneNamespace(r *rollout) {
	host := r.join()
	r.refer(host)
	r.runsAnywhere(host)
	r.config("shared", "agentInstallNamespace: hosted-agents")
	first := r.join(on(host.Namespace), r.names("shared"))
	r.refer(first, "shared")
	r.Eventually("the first is hosted", func() string {
		if hostedAgent(r, first, host.Namespace) == nil {
			return "it is not"
		}
		return ""
	})
	second := r.join(on(host.Namespace), r.names("shared"))
	r.refer(second, "shared")
	r.says(second, "InstallNamespaceTaken", "namespace hosted-agents of cluster "+host.Namespace, "cluster "+first.Namespace)
	r.Stays(unwritten, "the second", func() string {
		r.MustGet(second)
		if second.Status.Namespace != "" || hostedAgent(r, second, host.Namespace) != nil {
			return fmt.Sprintf("it is registered: %+v", second.Status)
		}
		return ""
	})
	if hostedAgent(r, first, host.Namespace) == nil {
		r.T.Error("the first is gone")
	}

	r.MustDelete(first)
	apitest.Edit(r, first, func(a *addonv1beta1.ManagedClusterAddOn) { a.Finalizers = nil })
	r.EventuallyGone(first)
	r.Eventually("the second is hosted", func() string {
		r.MustGet(second)
		if second.Status.Namespace != "hosted-agents" || hostedAgent(r, second, host.Namespace) == nil {
			return fmt.Sprintf("%+v", second.Status)
		}
		return ""
	})
	r.says(second, "Applied")
}

func kindsIn(r *rollout, work *workv1.ManifestWork) []string {
	r.T.Helper()
	var kinds []string
	for _, manifest := range work.Spec.Workload.Manifests {
		object := &metav1.PartialObjectMetadata{}
		apitest.Must(r.T, decodeManifest(manifest.Raw, object))
		kinds = append(kinds, object.Kind)
	}
	return kinds
}
