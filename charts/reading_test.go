package charts

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
)

// hostAgents gives the manager, until the test ends, what the chart does with
// agent.hosted.enabled.
func (h *installed) hostAgents() {
	h.T.Helper()
	h.setRights(hostingValues, installedValues)
	h.T.Cleanup(func() { h.setRights(installedValues, hostingValues) })
	h.EventuallyAllowed(server.User(h.T, hubtest.User), true, authorizationv1.ResourceAttributes{
		Group: workv1.GroupName, Verb: "list", Resource: "manifestworks",
	})
	h.Eventually("ManifestWorks of hosted agents are not refused for their names", func() string {
		err := h.manager.Create(h.T.Context(), hostedWork("default"), client.DryRunAll)
		if err != nil && isRefused(err, "only the ManifestWorks of its own agents") {
			return err.Error()
		}
		return ""
	})
}

// setRights replaces the rights and policies that the chart renders otherwise with other
// values. It may be called from a Cleanup.
func (h *installed) setRights(values, before string) {
	h.T.Helper()
	old := map[string]client.Object{}
	for _, object := range hubtest.MustRender(h.T, before) {
		if hubtest.Rights(object) {
			old[object.GetKind()+object.GetName()] = object
		}
	}
	for _, object := range hubtest.MustRender(h.T, values) {
		if !hubtest.Rights(object) {
			continue
		}
		key := object.GetKind() + object.GetName()
		if _, there := old[key]; !there {
			h.MustCreate(object)
			continue
		}
		delete(old, key)
		current := object.DeepCopy()
		h.MustGet(current)
		object.SetResourceVersion(current.GetResourceVersion())
		apitest.Must(h.T, h.Update(context.WithoutCancel(h.T.Context()), object))
	}
	for _, object := range old {
		h.Remove(object)
	}
}

// TestWorksAndGrantsAreReadByName except ManifestWorks with agent.hosted.enabled.
func TestWorksAndGrantsAreReadByName(t *testing.T) {
	for values, want := range map[string][]string{
		"":            nil,
		hostingValues: {"open-cluster-management:cluster-inventory:hosted-agents manifestworks"},

		"credentials: {mode: disabled}": nil,
	} {
		var all []string
		for _, object := range hubtest.MustRender(t, values) {
			if object.GetKind() != "ClusterRole" {
				continue
			}
			role := manifesttest.Find[rbacv1.ClusterRole](
				t, []*unstructured.Unstructured{object}, object.GetKind(), object.GetName(),
			)
			for _, rule := range role.Rules {
				reads := slices.ContainsFunc(rule.Verbs, func(verb string) bool { return verb != "create" && verb != "bind" })
				for _, resource := range rule.Resources {
					if reads && len(rule.ResourceNames) == 0 && slices.Contains([]string{"manifestworks", "rolebindings"}, resource) {
						all = append(all, role.Name+" "+resource)
					}
				}
			}
		}
		if diff := cmp.Diff(want, all); diff != "" {
			t.Errorf("rights on all, with %q (-want +got):\n%s", values, diff)
		}
	}
}

func hostedWork(host string) *workv1.ManifestWork {
	return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: host, Name: "addon-cluster-inventory-deploy-hosting-guest-0",
	}}
}

// testTheManagerReadsNothingOfOthers tries, as the manager, to read ManifestWorks and
// RoleBindings of others: the former contain Secrets, of bootstrap kubeconfigs for example.
func testTheManagerReadsNothingOfOthers(t *testing.T) {
	p := install(t)
	cluster := p.namespace("cluster1")
	label := map[string]string{
		"open-cluster-management.io/addon-name":           "cluster-inventory",
		"app.kubernetes.io/managed-by":                    "cluster-inventory-addon",
		"inventory.open-cluster-management.io/credential": "true",
	}
	at := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: cluster, Name: name, Labels: label}
	}
	work, role := &workv1.ManifestWork{ObjectMeta: at("theirs")}, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"}
	p.MustCreate(work, &rbacv1.RoleBinding{ObjectMeta: at("theirs"), RoleRef: role})
	p.CleanUp(work)
	for _, kind := range []struct {
		object client.Object
		list   client.ObjectList
		own    []string
	}{
		{
			&workv1.ManifestWork{}, &workv1.ManifestWorkList{},
			[]string{"addon-cluster-inventory-deploy-0", "addon-cluster-inventory-pre-delete"},
		},
		{&rbacv1.RoleBinding{}, &rbacv1.RoleBindingList{}, []string{agentRole, tokenSource, tokenTarget}},
	} {
		watching, err := client.NewWithWatch(server.User(t, hubtest.User), client.Options{Scheme: ocmtest.Scheme()})
		apitest.Must(t, err)
		for name, selected := range map[string][]client.ListOption{
			"all":               nil,
			"of a namespace":    {client.InNamespace(cluster)},
			"by label":          {client.MatchingLabels(label)},
			"by another's name": {client.MatchingFields{"metadata.name": "theirs"}},
			"all but a name": {&client.ListOptions{Raw: &metav1.ListOptions{
				FieldSelector: "metadata.name!=" + kind.own[0],
			}}},
		} {
			if err := watching.List(t.Context(), kind.list, selected...); !apierrors.IsForbidden(err) {
				t.Errorf("listing %T %s: the manager gets %v", kind.list, name, err)
			}
			if _, err := watching.Watch(t.Context(), kind.list, selected...); !apierrors.IsForbidden(err) {
				t.Errorf("watching %T %s: the manager gets %v", kind.list, name, err)
			}
		}
		err = watching.Get(t.Context(), client.ObjectKey{Namespace: cluster, Name: "theirs"}, kind.object)
		if !apierrors.IsForbidden(err) {
			t.Errorf("getting another's %T: the manager gets %v", kind.object, err)
		}
		for _, name := range kind.own {
			apitest.Must(t, watching.List(t.Context(), kind.list, client.MatchingFields{"metadata.name": name}))
			watch, err := watching.Watch(t.Context(), kind.list, client.MatchingFields{"metadata.name": name})
			apitest.Must(t, err)
			watch.Stop()
		}
	}
	p.Eventually("ManifestWorks of hosted agents are refused", func() string {
		err := p.manager.Create(t.Context(), hostedWork(cluster), client.DryRunAll)
		if isRefused(err, "only the ManifestWorks of its own agents") {
			return ""
		}
		return "the answer: " + errorText(err)
	})
	for _, verb := range []string{"update", "deletecollection"} {
		p.EventuallyAllowed(server.User(t, hubtest.User), false, authorizationv1.ResourceAttributes{
			Group: workv1.GroupName, Verb: verb, Resource: "manifestworks", Namespace: cluster,
		})
	}
}
