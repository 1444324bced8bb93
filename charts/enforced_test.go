package charts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/policies"
)

// rendered are the chart's policies and their bindings, by name.
func rendered(t *testing.T, values string) (
	map[string]*admissionregistrationv1.ValidatingAdmissionPolicy,
	map[string]*admissionregistrationv1.ValidatingAdmissionPolicyBinding,
) {
	t.Helper()
	all := map[string]*admissionregistrationv1.ValidatingAdmissionPolicy{}
	bindings := map[string]*admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	for _, object := range hubtest.MustRender(t, values) {
		switch object.GetKind() {
		case "ValidatingAdmissionPolicy":
			policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
			apitest.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, policy))
			all[policy.Name] = policy
		case "ValidatingAdmissionPolicyBinding":
			binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
			apitest.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, binding))
			bindings[binding.Name] = binding
		}
	}
	return all, bindings
}

// TestTheManagerKnowsThePolicies: what the manager and kubectl inventory compare the hub's policies
// with are those of the chart.
func TestTheManagerKnowsThePolicies(t *testing.T) {
	for _, values := range []string{
		"", "{decisions: {enabled: false}, credentials: {mode: disabled}, access: {clusterProxy: {enabled: false}}}",
	} {
		found, bindings := rendered(t, values)
		var want []string
		for _, policy := range policies.All() {
			if values != "" && policy.Limits != nil {
				continue
			}
			want = append(want, policy.Name)
			if problem := policy.Validate(found[policy.Name], bindings[policy.Name], hubtest.Namespace); problem != "" {
				t.Errorf("with values %q, %s: %s", values, policy.Name, problem)
			}
		}
		for kind, names := range map[string][]string{
			"policies": slices.Sorted(maps.Keys(found)), "bindings": slices.Sorted(maps.Keys(bindings)),
		} {
			if diff := cmp.Diff(want, names); diff != "" {
				t.Errorf("with values %q, %s (-known +in the chart):\n%s", values, kind, diff)
			}
		}
	}
}

// testThePoliciesAreWatched: the manager notices that policies are gone, do not deny or do not refuse
// any more.
func testThePoliciesAreWatched(t *testing.T) {
	p := install(t)
	checker, err := policies.New(server.User(t, hubtest.User), nil, hubtest.Namespace)
	apitest.Must(t, err)
	fine := map[string]string{}
	for _, policy := range policies.All() {
		fine[policy.Name] = ""
	}
	eventually := func(what string, changes map[string]string) {
		t.Helper()
		want := maps.Clone(fine)
		maps.Copy(want, changes)
		p.Eventually(what, func() string {
			found, err := checker.Check(t.Context())
			if err != nil {
				return err.Error()
			}
			return cmp.Diff(want, found)
		})
	}
	eventually("all policies are enforced", nil)

	counts := metrics.New(metrics.Options{})
	watched := func(what string, want map[string]float64) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		watch := &policies.Watch{Checker: checker, Patience: time.Second, Report: counts.PolicyEnforced}
		ended := make(chan error, 1)
		go func() { ended <- watch.Start(ctx) }()
		p.Eventually(what, func() string {
			return cmp.Diff(want, apitest.Shown(t, counts, "cluster_inventory_policy_enforced"))
		})
		cancel()
		apitest.Must(t, <-ended)
	}
	ones := map[string]float64{}
	for name := range fine {
		ones[name] = 1
	}
	watched("the metric shows that all are enforced", ones)

	before := map[string]*admissionregistrationv1.ValidatingAdmissionPolicy{}
	bindingOf := func(name string) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
		binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.MustGet(binding)
		return binding
	}
	for name := range fine {
		before[name] = &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.MustGet(before[name])
	}
	restore := func(name string) {
		policy := before[name].DeepCopy()
		apitest.Edit(p, policy, func(now *admissionregistrationv1.ValidatingAdmissionPolicy) { now.Spec = before[name].Spec })
	}

	// Nothing shows that these refuse nothing, but what they accept.
	const accepts = "the API server accepts what it must refuse"
	tried := map[string]string{}
	for _, name := range []string{
		"addons", "clusterprofiles", "configmaps", "events", "leases", "manifestworks", "placementdecisions", "rolebindings",
	} {
		tried["cluster-inventory-"+name] = accepts
		p.MustMerge(before["cluster-inventory-"+name].DeepCopy(), `{"spec":{"validations":[{"expression":"true"}]}}`)
	}
	eventually("policies are found that refuse nothing", tried)
	zeros := maps.Clone(ones)
	for name := range tried {
		delete(zeros, name) // shown as 0
	}
	watched("the metric shows which are not enforced", zeros)
	const attempted = "cluster-inventory-policy-check"
	if meta := (metav1.ObjectMeta{Namespace: hubtest.Namespace, Name: attempted}); p.Find(&workv1.ManifestWork{ObjectMeta: meta}) ||
		p.Find(&corev1.ConfigMap{ObjectMeta: meta}) {
		t.Error("what the manager tried exists now")
	}
	for name := range tried {
		restore(name)
	}
	eventually("the policies refuse again", nil)

	const secrets, certificates = "cluster-inventory-secrets", "cluster-inventory-certificates"
	binding := bindingOf(secrets)
	p.MustMerge(binding.DeepCopy(), `{"spec":{"validationActions":["Warn"]}}`)
	p.MustMerge(before[certificates].DeepCopy(), `{"spec":{"failurePolicy":"Ignore"}}`)
	target, decisions := before["cluster-inventory-token-target"].DeepCopy(), before["cluster-inventory-placementdecisions"].DeepCopy()
	p.MustDelete(target, decisions)
	eventually("policies are found that do not deny", map[string]string{
		secrets:        "its ValidatingAdmissionPolicyBinding does not deny",
		certificates:   "its failurePolicy is not Fail",
		target.Name:    "it does not exist",
		decisions.Name: "it does not exist",
	})
	p.MustMerge(binding, `{"spec":{"validationActions":["Deny"]}}`)
	restore(certificates)
	for _, deleted := range []*admissionregistrationv1.ValidatingAdmissionPolicy{target, decisions} {
		deleted.ResourceVersion, deleted.UID = "", ""
		p.MustCreate(deleted)
	}
	eventually("all are enforced again", nil)

	stranger, err := policies.New(server.User(t, "somebody"), nil, hubtest.Namespace)
	apitest.Must(t, err)
	found, err := stranger.Check(t.Context())
	apitest.Must(t, err)
	if want := fmt.Sprintf("it cannot be read: validatingadmissionpolicies.admissionregistration.k8s.io %q is forbidden", secrets); len(found) != len(fine) || len(found[secrets]) < len(want) || found[secrets][:len(want)] != want {
		t.Errorf("without rights: %v", found)
	}
}
