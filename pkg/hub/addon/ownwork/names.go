package ownwork

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"open-cluster-management.io/addon-framework/pkg/addonmanager/constants"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// Name describes the purpose of a ManifestWork of this addon. Only its name is
// reliable: every cluster may change the labels and the content of those in its namespace,
// but create none.
type Name struct {
	// Hosted is the cluster whose agent the work's cluster hosts, empty if the work is for
	// that cluster's own agent.
	Hosted string

	// Cleanup is true for the work with the clean-up Job.
	Cleanup bool
}

// Names are the names of the ManifestWorks for a cluster's own agent. The framework
// would write more of them than one to deploy an agent only if its manifests took more than
// 400 KiB, which the limits of configurations exclude.
func Names() []string {
	return []string{
		constants.DeployWorkNamePrefix(contract.AddonName) + "-0", constants.PreDeleteHookWorkName(contract.AddonName),
	}
}

// ReadName reports whether a ManifestWork has one of the names that addon-framework
// gives to this addon's.
func ReadName(work *workv1.ManifestWork) (Name, bool) {
	const addon = contract.AddonName
	if work.Name == constants.PreDeleteHookWorkName(addon) {
		return Name{Cleanup: true}, true
	}
	if cluster, ok := strings.CutPrefix(work.Name, constants.PreDeleteHookHostingWorkName("", addon)); ok {
		return Name{cluster, true}, cluster != "" && cluster != work.Namespace
	}
	if hosted, ok := strings.CutPrefix(work.Name, constants.DeployHostingWorkNamePrefix("", addon)); ok {
		at := strings.LastIndex(hosted, "-")
		if at < 1 || !isNumber(hosted[at+1:]) {
			return Name{}, false
		}
		return Name{Hosted: hosted[:at]}, hosted[:at] != work.Namespace
	}
	number, ok := strings.CutPrefix(work.Name, constants.DeployWorkNamePrefix(addon)+"-")
	return Name{}, ok && isNumber(number)
}

func isNumber(text string) bool {
	return text != "" && !slices.ContainsFunc([]byte(text), func(c byte) bool { return c < '0' || c > '9' })
}

// HostedCluster returns the cluster whose agent a ManifestWork deploys on a hosting cluster, or
// "".
func HostedCluster(work *workv1.ManifestWork) string {
	name, ok := ReadName(work)
	if !ok {
		return ""
	}
	return name.Hosted
}

// ClusterOf returns the cluster whose agent a ManifestWork deploys or cleans up.
func ClusterOf(work *workv1.ManifestWork) string { return cmp.Or(HostedCluster(work), work.Namespace) }

// WantedHost returns the cluster on which a cluster's agent should run, empty if that is
// the cluster itself.
func WantedHost(addon *addonv1beta1.ManagedClusterAddOn) string {
	return addon.Annotations[addonv1beta1.HostingClusterNameAnnotationKey]
}

const (
	hostedNamespacePrefix = "cluster-inventory-"
	maxNamespaceLength    = 63
)

// HostedNamespace returns the namespace of a cluster's agent on a hosting cluster. Each
// managed cluster has its own, because the klusterlet keeps the agent's kubeconfig for the
// hub there under a fixed name. A shortened name has two hyphens where others have one
// hyphen and a cluster's name, which cannot start with one.
func HostedNamespace(cluster string) string {
	name := hostedNamespacePrefix + cluster
	if len(name) <= maxNamespaceLength {
		return name
	}
	hash := sha256.Sum256([]byte(cluster))
	suffix := "-" + hex.EncodeToString(hash[:4])
	return hostedNamespacePrefix + "-" + cluster[:maxNamespaceLength-len(hostedNamespacePrefix)-1-len(suffix)] + suffix
}
