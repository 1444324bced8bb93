package gather

import (
	"context"
	"errors"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/policies"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upstream"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide/doctor"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/rollout"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/settings"
)

// listed are the kinds that the inventory uses, by group. Their resources have the same names in lower case.
var listed = []struct {
	group string
	kinds []string
}{
	{"multicluster.x-k8s.io", []string{"ClusterProfiles"}},
	{"cluster.open-cluster-management.io", []string{
		"ManagedClusters", "ManagedClusterSets", "ManagedClusterSetBindings", "Placements", "PlacementDecisions",
	}},
	{"addon.open-cluster-management.io", []string{"ManagedClusterAddOns"}},
	{"authentication.open-cluster-management.io", []string{"ManagedServiceAccounts"}},
	{"", []string{"Namespaces"}},
}

// Examine reads the facts about a hub as a whole.
func (h *Hub) Examine(ctx context.Context, now time.Time) (doctor.HubFacts, error) {
	var f doctor.HubFacts
	for _, step := range []func() error{
		func() error { return h.readStrategy(ctx, &f) },
		func() error { return load(ctx, h, "Leases", f.Manager.Namespace, contract.LeaseName, &f.Manager.Lease) },
		func() error { return h.readPolicies(ctx, &f.Policies) },
		func() error {
			return load(
				ctx, h, "Deployments", doctor.RegistrationNamespace, doctor.RegistrationDeployment, &f.Registration)
		},
		func() error {
			return load(ctx, h, "ClusterRoles", "", f.Manager.Settings.RegistrationClusterRole, &f.RegistrationRole)
		},
		func() error {
			return load(ctx, h, "Deployments", f.Manager.Settings.ClusterProxyNamespace, upstream.ProxyDeployment, &f.Proxy)
		},
		func() error { return h.readImpersonation(ctx, &f) },
		func() error { return load(ctx, h, "ClusterRoles", "", contract.UpstreamSyncerClusterRole, &f.Syncer) },
		func() error { return load(ctx, h, "CustomResourceDefinitions", "", rule.ProfileCRD, &f.Profiles) },
		func() error { return load(ctx, h, "CustomResourceDefinitions", "", doctor.AddonCRD, &f.Addons) },
		func() error { return h.readRights(ctx, &f) },
		func() error { return h.readAgents(ctx, &f) },
		func() (err error) {
			f.Tokens.Hidden, err = h.EachAccount(ctx, "", func(a *authv1beta1.ManagedServiceAccount) { f.Tokens.Add(a, now) })
			return err
		},
		func() (err error) {
			f.Certificates.Hidden, err = h.EachProfile(ctx, "", "", func(p *inventoryv1alpha1.ClusterProfile) {
				f.Certificates.Add(p)
				f.Members.Add(p)
			})
			f.Members.Hidden = f.Certificates.Hidden
			return served(err)
		},
	} {
		if err := step(); err != nil {
			return f, err
		}
	}
	return f, nil
}

// readStrategy reads whether the addon is installed on the hub, and the Placements that say on
// which clusters.
func (h *Hub) readStrategy(ctx context.Context, f *doctor.HubFacts) (err error) {
	if f.Installation, err = h.installation(ctx); err == nil {
		f.Manager, err = h.manager(ctx, f.Installation.Object)
	}
	definition := f.Installation.Object
	f.Rollout.Definition, f.Rollout.HiddenDefinition = definition, f.Installation.Hidden
	if err != nil || definition == nil {
		return err
	}
	strategy := definition.Spec.InstallStrategy
	if f.Strategy.ByPlacement = strategy.Type == addonv1beta1.AddonInstallStrategyPlacements; !f.Strategy.ByPlacement {
		return nil
	}
	for _, one := range strategy.Placements {
		placement := doctor.InstallPlacement{Ref: one.PlacementRef}
		if err := load(ctx, h, "Placements", one.Namespace, one.Name, &placement.Object); err != nil {
			return err
		}
		f.Strategy.Placements = append(f.Strategy.Placements, placement)
	}
	return nil
}

// manager reads the Deployment of the manager, given the ClusterManagementAddOn, which is nil if it
// is absent or hidden.
func (h *Hub) manager(
	ctx context.Context, definition *addonv1beta1.ClusterManagementAddOn,
) (doctor.ManagerFacts, error) {
	m := doctor.ManagerFacts{Namespace: doctor.ManagerNamespace(definition), Settings: settings.Default()}
	err := load(ctx, h, "Deployments", m.Namespace, contract.ManagerDeployment, &m.Deployment)
	if m.Deployment.Object != nil {
		m.Settings = settings.Of(m.Deployment.Object)
	}
	// The chart says so as well, to readers who may not read the Deployment.
	if definition != nil && definition.Annotations[contract.AnnotationExclusiveSetsOnly] == "true" {
		m.Settings.ExclusiveSetsOnly = true
	}
	return m, err
}

// settings reads the ClusterManagementAddOn and the manager's settings, its defaults if they may not be read.
func (h *Hub) settings(ctx context.Context) (
	installation decide.Object[addonv1beta1.ClusterManagementAddOn], of settings.Settings, err error,
) {
	if installation, err = h.installation(ctx); err != nil {
		return installation, settings.Default(), err
	}
	m, err := h.manager(ctx, installation.Object)
	return installation, m.Settings, err
}

// Settings reads the manager's settings; its defaults if they may not be read, or if the hub does not
// serve ClusterManagementAddOns, without which there is no manager.
func (h *Hub) Settings(ctx context.Context) (settings.Settings, error) {
	_, of, err := h.settings(ctx)
	return of, served(err)
}

// readAgents reads the addons of all clusters, and which clusters of bound sets have none.
func (h *Hub) readAgents(ctx context.Context, f *doctor.HubFacts) (err error) {
	has := map[string]bool{}
	f.Agents.Hidden, err = h.eachAddon(ctx, contract.AddonName, func(a *addonv1beta1.ManagedClusterAddOn) {
		has[a.Namespace] = true
		f.Agents.Add(a)
		f.Rollout.Add(a)
	})
	f.Rollout.HiddenAddons = f.Agents.Hidden
	if err != nil {
		return err
	}
	sets, hiddenSets, err := h.sets(ctx)
	if err != nil {
		return err
	}
	hiddenBindings, err := h.eachBinding(ctx, "", func(b *clusterv1beta2.ManagedClusterSetBinding) {
		f.Bound.AddBinding(b, sets[b.Spec.ClusterSet])
	})
	if err != nil {
		return err
	}
	hiddenClusters, err := h.eachCluster(ctx, func(c *clusterv1.ManagedCluster) {
		f.Bound.AddCluster(c, has[c.Name], f.Manager.Settings.ExclusiveSetsOnly)
		f.Members.AddCluster(c)
	})
	f.Members.HiddenClusters = hiddenClusters
	f.Bound.Hidden = decide.HiddenKinds(rule.Hidden{
		Addons: f.Agents.Hidden, Sets: hiddenSets, Bindings: hiddenBindings, Clusters: hiddenClusters,
	}, false)
	return err
}

// Rollout reads how far the agents of all clusters are.
func (h *Hub) Rollout(ctx context.Context) (rollout.Facts, error) {
	installation, err := h.installation(ctx)
	f := rollout.Facts{Definition: installation.Object, HiddenDefinition: installation.Hidden}
	if err == nil {
		f.HiddenAddons, err = h.eachAddon(ctx, contract.AddonName, f.Add)
	}
	return f, err
}

// readPolicies reads the admission policies, and the ClusterRoles that tell which of them the chart
// installs.
func (h *Hub) readPolicies(ctx context.Context, f *doctor.PolicyFacts) error {
	var roles []*rbacv1.ClusterRole
	for _, name := range policies.Roles() {
		role, _, err := read(ctx, h, "ClusterRoles", "", name, &rbacv1.ClusterRole{})
		if err != nil {
			return err
		}
		roles = append(roles, role)
	}
	for _, one := range policies.All() {
		policy, hidden, err := read(ctx, h, "ValidatingAdmissionPolicies", "", one.Name,
			&admissionregistrationv1.ValidatingAdmissionPolicy{})
		if err != nil {
			return err
		}
		binding, hiddenToo, err := read(ctx, h, "ValidatingAdmissionPolicyBindings", "", one.Name,
			&admissionregistrationv1.ValidatingAdmissionPolicyBinding{})
		if err != nil {
			return err
		}
		if f.Hidden = hidden || hiddenToo; f.Hidden {
			return nil
		}
		f.Add(one, policy, binding, roles...)
	}
	return nil
}

// readImpersonation reads on which clusters cluster-proxy impersonates its clients, if its
// version makes that a problem.
func (h *Hub) readImpersonation(ctx context.Context, f *doctor.HubFacts) (err error) {
	if !doctor.ForwardsImpersonation(f.Proxy.Object) {
		return nil
	}
	configs := map[string][]client.ObjectKey{} // by cluster
	f.Impersonation.Hidden, err = h.eachAddon(ctx, proxyAddon, func(a *addonv1beta1.ManagedClusterAddOn) {
		configs[a.Namespace] = doctor.DeploymentConfigs(a)
	})
	known := map[client.ObjectKey]decide.Object[addonv1beta1.AddOnDeploymentConfig]{}
	for cluster, keys := range configs {
		var found []decide.Object[addonv1beta1.AddOnDeploymentConfig]
		for _, key := range keys {
			if _, isKnown := known[key]; !isKnown && err == nil {
				var config decide.Object[addonv1beta1.AddOnDeploymentConfig]
				err = load(ctx, h, "AddOnDeploymentConfigs", key.Namespace, key.Name, &config)
				known[key] = config
			}
			found = append(found, known[key])
		}
		f.Impersonation.Add(cluster, found)
	}
	return err
}

// load reads one object into the form that decisions take.
func load[T any, P interface {
	*T
	client.Object
}](ctx context.Context, h *Hub, kind, namespace, name string, into *decide.Object[T]) (err error) {
	into.Object, into.Hidden, err = read(ctx, h, kind, namespace, name, P(new(T)))
	return err
}

func (h *Hub) readRights(ctx context.Context, f *doctor.HubFacts) error {
	for _, l := range listed {
		for _, kind := range l.kinds {
			may, err := h.mayList(ctx, l.group, strings.ToLower(kind))
			if err != nil {
				return err
			}
			if !may {
				f.Unreadable = append(f.Unreadable, kind)
			}
		}
	}
	return nil
}

// served drops the error that a kind is not served: then it has no objects.
func served(err error) error {
	if _, unserved := errors.AsType[*UnservedError](err); unserved {
		return nil
	}
	return err
}
