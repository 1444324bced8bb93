package configuration

import (
	"cmp"
	"errors"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	addonlisters "open-cluster-management.io/api/client/addon/listers/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
)

// Sources are the caches from which configurations come.
type Sources struct {
	Definitions       addonlisters.ClusterManagementAddOnLister
	DeploymentConfigs *Store
	Revisions         *Store
}

// Decision is the result of a cluster's configuration.
type Decision struct {
	// Known is false while the configuration that applies is unknown.
	Known bool

	// Configured is true if the cluster has an AddOnDeploymentConfig.
	Configured bool

	// Refused is why the configuration is not applied, or nil.
	Refused *Refusal

	// Values are those of the cluster's manifests, without what identifies it, if they are
	// known and nothing is refused.
	Values manifests.Values
}

// Decide decides about a cluster's addon.
func (s Sources) Decide(addon *addonv1beta1.ManagedClusterAddOn, at Location) Decision {
	revision, chosen, refused := s.choose(addon, at)
	decision := Decision{Known: chosen.known, Configured: chosen.configuration != nil, Refused: refused}
	if refused == nil && chosen.known {
		decision.Values, decision.Refused = decideValues(revision, chosen, at)
	}
	return decision
}

// DecideNamespace returns the namespace of a cluster's agent, empty while the configuration is
// unknown, or why the agent cannot run.
func (s Sources) DecideNamespace(addon *addonv1beta1.ManagedClusterAddOn, at Location) (string, *Refusal) {
	revision, chosen, refused := s.choose(addon, at)
	if refused != nil || !chosen.known {
		return "", refused
	}
	return decideNamespace(revision, chosen, at)
}

// choose returns a cluster's AgentRevision and its configuration. That is known only if the
// AgentRevision is, too.
func (s Sources) choose(
	addon *addonv1beta1.ManagedClusterAddOn, at Location,
) (revision, chosen choice, refused *Refusal) {
	definition := s.Definition()
	if revision, refused = decideRevision(addon, definition, s.Revisions.finder()); refused != nil {
		return choice{}, choice{}, refused
	}
	chosen, refused = decideConfiguration(addon, definition, s.DeploymentConfigs.find)
	chosen.known = chosen.known && revision.known
	if refused == nil && chosen.known {
		refused = validateHost(addon, at)
	}
	return revision, chosen, refused
}

// Definition returns the ClusterManagementAddOn, or nil.
func (s Sources) Definition() *addonv1beta1.ClusterManagementAddOn {
	definition, err := s.Definitions.Get(contract.AddonName)
	if err != nil {
		return nil // it does not exist; a cache returns no other errors
	}
	return definition
}

// ErrNoImage says that nothing indicates the image with which to clean up a spoke.
var ErrNoImage = errors.New("the clean-up Job needs an image, and there is no valid AgentRevision that names one")

// ForCleanup returns the values with which a spoke is cleaned up whose agent's manifests and
// configuration are gone: those of clusters that get the addon now, which are those of the
// AgentRevision of all clusters, else of the newest one. The agent ran on a host or, if that
// is empty, in a namespace of its own cluster; empty means the usual one.
func (s Sources) ForCleanup(host, namespace string) (manifests.Values, error) {
	revision := s.Revisions.ofAll(s.Definition())
	if revision == nil {
		revision = s.Revisions.newest()
	}
	if revision == nil {
		return manifests.Values{}, ErrNoImage
	}
	values := revision.values
	if host != "" {
		return values.OnHost(), nil
	}
	values.InstallNamespace = cmp.Or(namespace, values.InstallNamespace)
	return values, nil
}
