package manifests

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/ownwork"
)

// Deployed is what an addon's ManifestWorks, as trimmed by WorkTrimmer, say about its agent.
type Deployed struct {
	// Works are the ManifestWorks with which the agent is deployed. At most one of them, the
	// last, is on a hosting cluster.
	Works []*workv1.ManifestWork

	// Agent is the agent's Deployment, or nil. That of a hosted agent is on its host: the
	// content of a cluster's own ManifestWork must not affect another cluster.
	Agent *workv1.Manifest

	// Host is the cluster on which the agent runs if that is not its own, and Namespace the
	// agent's namespace; both are empty if there is no agent.
	Host      string
	Namespace string

	// FormerHost is a hosting cluster from which the agent is being deleted, or "".
	FormerHost string

	// CleansUp is true if the clean-up Job has been sent to the spoke, or its hosting cluster.
	CleansUp bool

	// Refused is what the spoke refused to apply, and why, or "".
	Refused string
}

// DeployedFor reads the ManifestWorks for a cluster's agent, those on other clusters included.
// Those of a previous installation, which Kubernetes has not deleted yet, do not count. If a
// former host has put another agent into the work that is left there, the one on the cluster
// of the annotation counts.
func DeployedFor(addon *addonv1beta1.ManagedClusterAddOn, works []*workv1.ManifestWork) Deployed {
	var there Deployed
	var hosted *workv1.ManifestWork
	namespace, wanted := ownwork.HostedNamespace(addon.Namespace), ownwork.WantedHost(addon)
	for _, work := range works {
		name, _ := ownwork.ReadName(work)
		isDeleted := !work.DeletionTimestamp.IsZero()
		switch {
		case name.Hosted == "" && !isOwnedBy(work, addon.UID):
		case name.Hosted == "" && !name.Cleanup:
			there.Works = append(there.Works, work)
		case name.Hosted == "", name.Cleanup && !isDeleted && runs(work.Spec.Workload.Manifests, addon.UID):
			there.CleansUp = true
		case !deploys(work, namespace, addon.UID):
		case isDeleted:
			there.FormerHost = cmp.Or(there.FormerHost, work.Namespace)
		case hosted == nil || work.Namespace == wanted:
			hosted = work
		}
	}
	there.Agent = agentOf(there.Works...)
	if hosted != nil {
		there.Works, there.Agent, there.Host = append(there.Works, hosted), agentOf(hosted), hosted.Namespace
	}
	there.Namespace = namespaceOf(there.Agent)
	there.Refused = refusedBySpoke(there.Works)
	return there
}

func isOwnedBy(work *workv1.ManifestWork, addon types.UID) bool {
	return slices.ContainsFunc(work.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == addon })
}

// deploys reports whether a ManifestWork on a hosting cluster deploys the agent of an
// installation. It has no owner, because it is in another namespace.
func deploys(work *workv1.ManifestWork, namespace string, addon types.UID) bool {
	agent := agentOf(work)
	return agent != nil && namespaceOf(agent) == namespace && runs([]workv1.Manifest{*agent}, addon)
}

// runs reports whether manifests run the agent, or the clean-up, of an installation. It
// searches the JSON, because the works of all clusters are read for each of their events.
func runs(manifests []workv1.Manifest, addon types.UID) bool {
	argument := []byte(`"--addon-uid=` + string(addon) + `"`)
	return slices.ContainsFunc(manifests, func(m workv1.Manifest) bool { return bytes.Contains(m.Raw, argument) })
}

// agentOf returns the agent's Deployment in trimmed works, or nil.
func agentOf(works ...*workv1.ManifestWork) *workv1.Manifest {
	for _, work := range works {
		for i := range work.Spec.Workload.Manifests {
			manifest := &work.Spec.Workload.Manifests[i]
			identity, ok := manifest.Object.(*metav1.PartialObjectMetadata)
			if ok && identity.Kind == "Deployment" && identity.Name == AgentName {
				return manifest
			}
		}
	}
	return nil
}

func namespaceOf(agent *workv1.Manifest) string {
	if agent == nil {
		return ""
	}
	return agent.Object.(metav1.Object).GetNamespace()
}

// Carries reports whether the works were written for these configurations, hashes by name.
// The framework records in every work the configurations to which the addon refers at that
// time, and Open Cluster Management considers these applied.
func (d Deployed) Carries(hashes map[string]string) bool {
	for _, work := range d.Works {
		var noted map[string]string
		if note, ok := work.Annotations[workv1.ManifestConfigSpecHashAnnotationKey]; ok {
			if err := json.Unmarshal([]byte(note), &noted); err != nil {
				return false
			}
		}
		if !maps.Equal(noted, hashes) {
			return false
		}
	}
	return true
}

func refusedBySpoke(works []*workv1.ManifestWork) string {
	for _, work := range works {
		for _, manifest := range work.Status.ResourceStatus.Manifests {
			if why := ownwork.Refusal(manifest.Conditions); why != "" {
				what := manifest.ResourceMeta
				return fmt.Sprintf("%s %s: %s", what.Resource,
					strings.TrimPrefix(what.Namespace+"/"+what.Name, "/"), why)
			}
		}
	}
	return ""
}
