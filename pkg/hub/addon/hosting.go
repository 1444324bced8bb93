package addon

import (
	"bytes"
	"errors"

	toolscache "k8s.io/client-go/tools/cache"
	"open-cluster-management.io/addon-framework/pkg/addonmanager/constants"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// indexAddonByPlace finds addons by the cluster on which their agents run, or are to.
const indexAddonByPlace = "addonByPlace"

func indexPlace(obj any) ([]string, error) {
	addon, ok := obj.(*addonv1beta1.ManagedClusterAddOn)
	if !ok {
		return nil, errors.New("not a ManagedClusterAddOn")
	}
	return []string{runsOn(addon.Namespace, wantedHost(addon))}, nil
}

// mode tells the framework where a cluster's agent runs. One that is deployed stays there,
// whatever the annotation says by now: the framework would delete what is on the hosting
// cluster without a clean-up, and then wait for one for ever.
func (a *inventoryAgent) mode(addon *addonv1beta1.ManagedClusterAddOn, _ *clusterv1.ManagedCluster) (string, string) {
	host := wantedHost(addon)
	if there, err := a.deployed(addon); err == nil && there.agent() != nil {
		host = there.host()
	}
	if host == "" {
		return constants.InstallModeDefault, ""
	}
	return constants.InstallModeHosted, host
}

// hosted returns the values as they are for a cluster whose agent another one hosts.
func (a *inventoryAgent) hosted(addon *addonv1beta1.ManagedClusterAddOn, values Values) Values {
	if mode, _ := a.mode(addon, nil); mode == constants.InstallModeHosted {
		values.Hosted, values.InstallNamespace = true, hostedNamespace(addon.Namespace)
	}
	return values
}

// refuseHost returns why a cluster's agent cannot run where, and in the namespace in
// which, it is to, or nil.
func (a *inventoryAgent) refuseHost(addon *addonv1beta1.ManagedClusterAddOn, there deployed) *refusal {
	if refused := judgeHost(addon, there.agent() != nil, there.host()); refused != nil || a.places == nil {
		return refused
	}
	place := runsOn(addon.Namespace, wantedHost(addon))
	neighbors, _ := a.places.ByIndex(indexAddonByPlace, place) // fails only without that index
	if len(neighbors) < 2 {
		return nil
	}
	// The framework has put a default namespace into the status of the addon that it passed.
	if cached, ok, _ := a.addons.GetByKey(queueKey(addon.Namespace)); ok {
		addon = cached.(*addonv1beta1.ManagedClusterAddOn)
	}
	wanted, _ := a.wantedNamespace(addon)
	var others []resident
	for _, obj := range neighbors {
		if other, ok := obj.(*addonv1beta1.ManagedClusterAddOn); ok && other.Namespace != addon.Namespace {
			namespace, _ := a.wantedNamespace(other)
			others = append(others, residentOf(other, namespace))
		}
	}
	me := residentOf(addon, wanted)
	if by := takenBy(me, others); by != "" && me.namespace != "" {
		return refuse(contract.ReasonInstallNamespaceTaken,
			"The agent is to run in namespace %s of cluster %s, in which the agent of cluster %s is; "+
				"set spec.agentInstallNamespace in the AddOnDeploymentConfig of one of them",
			me.namespace, place, by)
	}
	return nil
}

// wantedNamespace is the namespace that a cluster's configuration asks for, empty while it
// is not known which one counts.
func (a *inventoryAgent) wantedNamespace(addon *addonv1beta1.ManagedClusterAddOn) (string, *refusal) {
	common, chosen, refused := a.choose(addon)
	if refused != nil || !chosen.known {
		return "", refused
	}
	values := common.Values
	if chosen.configuration != nil {
		values = values.with(chosen.configuration.overrides)
	}
	return values.InstallNamespace, nil
}

// host is the cluster on which the agent runs if that is not its own.
func (d deployed) host() string {
	for _, work := range d {
		if d.deploys(work) && work.Labels[addonv1beta1.AddonNamespaceLabelKey] != "" {
			return work.Namespace
		}
	}
	return ""
}

// deploys reports whether the agent's Deployment is in a work.
func (deployed) deploys(work *workv1.ManifestWork) bool { return deployed{work}.agent() != nil }

// isDeployedFor reports whether a work on a hosting cluster is of this installation of an
// addon. It has no owner, because it is in another namespace.
func isDeployedFor(work *workv1.ManifestWork, addon *addonv1beta1.ManagedClusterAddOn) bool {
	if !work.DeletionTimestamp.IsZero() {
		return false
	}
	agent := deployed{work}.agent()
	return agent == nil || bytes.Contains(agent.Raw, []byte(`"--addon-uid=`+string(addon.UID)+`"`))
}

// agentsOn are the addons whose agents run, or are to run, on a cluster.
func (c *controllers) agentsOn(cluster string) []*addonv1beta1.ManagedClusterAddOn {
	found, err := c.addons.ByIndex(indexAddonByPlace, cluster)
	if err != nil {
		return nil
	}
	var addons []*addonv1beta1.ManagedClusterAddOn
	for _, obj := range found {
		if addon, ok := obj.(*addonv1beta1.ManagedClusterAddOn); ok {
			addons = append(addons, addon)
		}
	}
	return addons
}

// onNeighbors makes the framework look again at the addons whose agents run on the same
// cluster as one that has gone, or whose namespace has changed: theirs may be free now.
func (c *controllers) onNeighbors() toolscache.ResourceEventHandler {
	wake := func(obj any) {
		if stale, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = stale.Obj
		}
		addon, ok := obj.(*addonv1beta1.ManagedClusterAddOn)
		if !ok || addon.Name != contract.AddonName {
			return
		}
		for _, other := range c.agentsOn(runsOn(addon.Namespace, wantedHost(addon))) {
			if other.Namespace != addon.Namespace && other.Status.Namespace == "" {
				c.enqueue(other.Namespace)
			}
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			old, wasOurs := before.(*addonv1beta1.ManagedClusterAddOn)
			now, isOurs := after.(*addonv1beta1.ManagedClusterAddOn)
			if wasOurs && isOurs && (old.Status.Namespace != now.Status.Namespace || wantedHost(old) != wantedHost(now)) {
				wake(old)
				wake(now)
			}
		},
		DeleteFunc: wake,
	}
}
