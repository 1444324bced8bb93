package addontest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"open-cluster-management.io/addon-framework/pkg/utils"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// DeploymentConfigs and AgentRevisions are the kinds of configurations.
var (
	DeploymentConfigs = addonv1beta1.ConfigGroupResource{
		Group: "addon.open-cluster-management.io", Resource: "addondeploymentconfigs",
	}
	AgentRevisions = addonv1beta1.ConfigGroupResource{
		Group: "inventory.open-cluster-management.io", Resource: "agentrevisions",
	}
)

// AgentRevision returns one with a revision of the manifests, created at a time in seconds.
func AgentRevision(name, manifests string, created int64) *unstructured.Unstructured {
	revision := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"manifests": manifests, "image": "example.com/inventory:" + name, "imagePullPolicy": "Always",
		"installNamespace": "agents",
	}}}
	revision.SetName(name)
	revision.SetCreationTimestamp(metav1.Unix(created, 0))
	return revision
}

// RevisionReference returns a reference to the content of an AgentRevision.
func RevisionReference(revision *unstructured.Unstructured) addonv1beta1.ConfigReference {
	hash, err := utils.GetSpecHash(revision)
	if err != nil {
		panic(err)
	}
	return addonv1beta1.ConfigReference{ConfigGroupResource: AgentRevisions, DesiredConfig: &addonv1beta1.ConfigSpecHash{
		ConfigReferent: addonv1beta1.ConfigReferent{Name: revision.GetName()}, SpecHash: hash,
	}}
}
