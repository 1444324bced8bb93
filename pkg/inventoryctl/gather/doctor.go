package gather

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upstream"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
)

// listed are the kinds that the inventory uses, with their resources.
var listed = []struct {
	kind     string
	resource schema.GroupResource
}{
	{"ClusterProfiles", schema.GroupResource{Group: "multicluster.x-k8s.io", Resource: "clusterprofiles"}},
	{"ManagedClusters", schema.GroupResource{Group: "cluster.open-cluster-management.io", Resource: "managedclusters"}},
	{"ManagedClusterSets", schema.GroupResource{
		Group: "cluster.open-cluster-management.io", Resource: "managedclustersets",
	}},
	{"ManagedClusterSetBindings", schema.GroupResource{
		Group: "cluster.open-cluster-management.io", Resource: "managedclustersetbindings",
	}},
	{"Placements", schema.GroupResource{Group: "cluster.open-cluster-management.io", Resource: "placements"}},
	{"PlacementDecisions", schema.GroupResource{
		Group: "cluster.open-cluster-management.io", Resource: "placementdecisions",
	}},
	{"ManagedClusterAddOns", schema.GroupResource{
		Group: "addon.open-cluster-management.io", Resource: "managedclusteraddons",
	}},
	{"ManagedServiceAccounts", schema.GroupResource{
		Group: "authentication.open-cluster-management.io", Resource: "managedserviceaccounts",
	}},
	{"Namespaces", schema.GroupResource{Resource: "namespaces"}},
}

// Examine reads the facts about a hub as a whole.
func (h *Hub) Examine(ctx context.Context, now time.Time) (decide.HubFacts, error) {
	var f decide.HubFacts
	for _, step := range []func() error{
		func() error { return h.readInstallation(ctx, &f.Installation) },
		func() (err error) {
			f.Registration, err = object[appsv1.Deployment](
				ctx, h, "Deployments", decide.RegistrationNamespace, decide.RegistrationDeployment)
			return err
		},
		func() (err error) {
			f.RegistrationRole, err = object[rbacv1.ClusterRole](
				ctx, h, "ClusterRoles", "", upstream.DefaultRegistrationClusterRole)
			return err
		},
		func() (err error) {
			f.Proxy, err = object[appsv1.Deployment](ctx, h, "Deployments", decide.ProxyNamespace, upstream.ProxyDeployment)
			return err
		},
		func() error {
			role, err := object[rbacv1.ClusterRole](ctx, h, "ClusterRoles", "", contract.UpstreamSyncerClusterRole)
			f.Syncer = decide.Presence{Found: role.Object != nil, Hidden: role.Hidden}
			return err
		},
		func() (err error) {
			f.Profiles, err = object[apiextensionsv1.CustomResourceDefinition](
				ctx, h, "CustomResourceDefinitions", "", selection.ProfileCRD)
			return err
		},
		func() (err error) {
			f.Addons, err = object[apiextensionsv1.CustomResourceDefinition](
				ctx, h, "CustomResourceDefinitions", "", decide.AddonCRD)
			return err
		},
		func() error { return h.readRights(ctx, &f) },
		func() (err error) {
			f.Agents.Hidden, err = h.eachAddon(ctx, contract.AddonName, func(a *addonv1beta1.ManagedClusterAddOn) {
				f.Agents.Add(a)
			})
			return err
		},
		func() error { return h.readTokens(ctx, &f.Tokens, now) },
		func() (err error) {
			f.Certificates.Hidden, err = h.EachProfile(ctx, "", "", func(p *inventoryv1alpha1.ClusterProfile) {
				f.Certificates.Add(p)
			})
			return served(err)
		},
	} {
		if err := step(); err != nil {
			return f, err
		}
	}
	return f, nil
}

// object reads one object into the form that decisions take.
func object[T any, P interface {
	*T
	client.Object
}](ctx context.Context, h *Hub, kind, namespace, name string) (decide.Object[T], error) {
	found, hidden, err := read[T, P](ctx, h, kind, namespace, name)
	return decide.Object[T]{Object: (*T)(found), Hidden: hidden}, err
}

func (h *Hub) readRights(ctx context.Context, f *decide.HubFacts) error {
	for _, l := range listed {
		may, err := h.MayList(ctx, l.resource, "")
		if err != nil {
			return err
		}
		if !may {
			f.Unreadable = append(f.Unreadable, l.kind)
		}
	}
	return nil
}

func (h *Hub) readTokens(ctx context.Context, f *decide.TokenFacts, now time.Time) (err error) {
	newPage := func() *authv1beta1.ManagedServiceAccountList { return &authv1beta1.ManagedServiceAccountList{} }
	items := func(l *authv1beta1.ManagedServiceAccountList) []authv1beta1.ManagedServiceAccount { return l.Items }
	f.Hidden, err = each(ctx, h, "ManagedServiceAccounts", newPage, items,
		func(a *authv1beta1.ManagedServiceAccount) { f.Add(a, now) },
		client.MatchingLabels{contract.LabelSyncToProfile: "true"})
	return served(err)
}

// served drops the error that a kind is not served: then it has no objects.
func served(err error) error {
	if _, unserved := errors.AsType[*UnservedError](err); unserved {
		return nil
	}
	return err
}
