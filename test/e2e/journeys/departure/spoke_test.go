package departure

import (
	"context"
	"fmt"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// foreignPropertyCRD is a ClusterProperty CRD as the klusterlet's operator would
// have installed it: v1alpha1 alone.
func foreignPropertyCRD() *apiextensionsv1.CustomResourceDefinition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:        journeys.AboutCRD,
			Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, installed by somebody else"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: journeys.AboutGroup,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "clusterproperties", Singular: "clusterproperty",
				Kind: "ClusterProperty", ListKind: "ClusterPropertyList"},
			Scope: apiextensionsv1.ClusterScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1alpha1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"value": text}},
					},
				}},
			}},
		},
	}
}

func oldProperty(name, value string) *unstructured.Unstructured {
	object := journeys.Property(name, value)
	object.SetAPIVersion(journeys.AboutGroup + "/v1alpha1")
	return object
}

func claimOf(t *testing.T, cluster, name string) *clusterv1alpha1.ClusterClaim {
	t.Helper()
	claim := &clusterv1alpha1.ClusterClaim{}
	apitest.Must(t, journeys.ClientOf(t, cluster).Get(t.Context(), types.NamespacedName{Name: name}, claim))
	return claim
}

func agentRestarts(t *testing.T, cluster string) int32 {
	t.Helper()
	return journeys.AgentPod(t.Context(), t, cluster).Status.ContainerStatuses[0].RestartCount
}

// detach deletes the ManagedCluster, as a hub admin does.
func detach(t *testing.T, cluster string) {
	t.Helper()
	apitest.Must(t, journeys.Hub(t).Delete(t.Context(),
		&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}))
}

// letGoEvent is an error until an event about the cluster says that it was released and
// what stays on it.
func letGoEvent(ctx context.Context, c client.Client, cluster string) error {
	events := &eventsv1.EventList{}
	if err := c.List(ctx, events); err != nil {
		return err
	}
	for _, event := range events.Items {
		if event.Reason == "CleanupAbandoned" && event.Regarding.Kind == "ManagedCluster" &&
			event.Regarding.Name == cluster && strings.Contains(event.Note, "ClusterClaim") {
			return nil
		}
	}
	return fmt.Errorf("none among %d events", len(events.Items))
}
