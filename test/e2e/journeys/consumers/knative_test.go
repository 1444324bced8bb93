package consumers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/guide"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

const (
	knativeNamespace = "knative-operator"
	knativeServing   = "knative-serving" // namespace and name
	knativeAccount   = "knative"
	knativeVersion   = "v1.23.0" // of operator v0.50.1
)

// The Knative operator resolves a cluster through its profile, and creates there the object
// that will own what it installs.
func TestKnativeOperator(t *testing.T) {
	journeys.WithAccess(t)
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster2)
	hub, spoke := journeys.Hub(t), journeys.ClientOf(t, journeys.Cluster2)
	for _, name := range []string{knativeNamespace, knativeServing} {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		apitest.Must(t, client.IgnoreAlreadyExists(hub.Create(t.Context(), object)))
	}
	set := journeys.Set(t, "knative")
	journeys.InSet(t, journeys.Cluster2, set)
	journeys.Bind(t, knativeNamespace, set)
	meta := metav1.ObjectMeta{Name: "journey-" + knativeAccount}
	journeys.Create(t, spoke, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: journeys.AgentNS, Name: knativeAccount}},
	})
	account := decode(t, fmt.Sprintf(`
apiVersion: authentication.open-cluster-management.io/v1beta1
kind: ManagedServiceAccount
metadata:
  name: %s
  namespace: %s
  labels: {authentication.open-cluster-management.io/sync-to-clusterprofile: "true"}
  annotations: {inventory.open-cluster-management.io/sync-to-namespaces: %s}
spec: {rotation: {validity: 24h}}`, knativeAccount, journeys.Cluster2, knativeNamespace))[0]
	journeys.Create(t, hub, account)
	copied(t, knativeNamespace, journeys.Cluster2, knativeAccount)

	serving := &unstructured.Unstructured{}
	read := &reader{files: map[string]func(*testing.T, string){
		"knative-values.yaml": installKnative,
		"knative-serving.yaml": func(t *testing.T, path string) {
			content, err := os.ReadFile(path)
			apitest.Must(t, err)
			serving = decode(t, string(content))[0]
			_, err = guide.Type(t.Context(), journeys.Fleet, "kubectl apply -f -", string(content))
			apitest.Must(t, err)
		},
	}}
	read.follow(t, "knative.md", "Knative operator")
	apitest.Within(t, journeys.Eventually, "the target cluster is resolved", func(ctx context.Context) error {
		resolved, err := condition(ctx, hub, serving, "TargetClusterResolved")
		if err == nil && resolved["status"] != string(metav1.ConditionTrue) {
			err = fmt.Errorf("it is %v", resolved)
		}
		return err
	})
	t.Log("KnativeServing: TargetClusterResolved=True")
	anchor := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: knativeServing, Name: "knativeserving-" + knativeServing + "-root-owner",
	}}
	apitest.Within(t, journeys.Eventually, "the anchor is on "+journeys.Cluster2, func(ctx context.Context) error {
		if err := spoke.Get(ctx, client.ObjectKeyFromObject(anchor), anchor); err != nil {
			return err
		}
		if anchor.Annotations["operator.knative.dev/anchor"] != "true" {
			return fmt.Errorf("it has the annotations %v", anchor.Annotations)
		}
		return nil
	})
	t.Logf("ConfigMap %s/%s is on %s", anchor.Namespace, anchor.Name, journeys.Cluster2)

	// The connection is used again, long after the first credential was fetched: the
	// operator continues to install Knative, and removes it while there still is a profile.
	rotated(t, knativeNamespace, journeys.Cluster2, knativeAccount)
	apitest.Must(t, hub.Delete(t.Context(), serving))
	apitest.Within(t, journeys.Eventually, "the operator has cleaned up", func(ctx context.Context) error {
		return errors.Join(journeys.Gone(ctx, hub, serving), journeys.Gone(ctx, spoke, anchor))
	})
	t.Log("KnativeServing and the anchor are gone")
}

// installKnative installs Knative's own chart with the values in a file.
func installKnative(t *testing.T, values string) {
	t.Helper()
	sources, err := fleet.KnativeOperatorSources(t.Context())
	apitest.Must(t, err)
	objects, err := journeys.Fleet.Template(
		t.Context(), "knative", releasedChart(t, sources), knativeNamespace, "--values", values,
	)
	apitest.Must(t, err)
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "Deployment" && o.GetName() != knativeNamespace // the webhook
	})
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			asImage(t, object)
		}
	}
	apitest.Must(t, journeys.Fleet.Apply(t.Context(), fleet.HubName, objects...))
	rolledOut(t, fleet.HubName, knativeNamespace, knativeNamespace)
}

// releasedChart sets in the sources' chart what a release sets: its version.
func releasedChart(t *testing.T, sources string) string {
	t.Helper()
	from, to := filepath.Join(sources, "config", "charts", "knative-operator"), t.TempDir()
	apitest.Must(t, filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text := strings.NewReplacer("{{ tag }}", knativeVersion, "{{ version }}", knativeVersion).Replace(string(content))
		return os.WriteFile(filepath.Join(to, name), []byte(text), 0o600)
	}))
	return to
}

// asImage gives the operator's container what its image would contain: the program, and the
// path of its data.
func asImage(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	deployment := &appsv1.Deployment{}
	apitest.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment))
	container := &deployment.Spec.Template.Spec.Containers[0]
	container.Command = []string{"/operator"}
	container.Env = append(container.Env, corev1.EnvVar{Name: "KO_DATA_PATH", Value: "/kodata"})
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(deployment)
	apitest.Must(t, err)
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(content, "spec", "template", "metadata", "creationTimestamp")
	object.Object = content
}

func decode(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := fleet.Decode(strings.NewReader(text))
	apitest.Must(t, err)
	return objects
}
