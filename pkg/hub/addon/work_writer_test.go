package addon

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workclient "open-cluster-management.io/api/client/work/clientset/versioned"
	worklisters "open-cluster-management.io/api/client/work/listers/work/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/addontest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
)

// A patch of manifests or of their options gets the rules of the agent that the
// ManifestWork will have, and any other patch stays as it is.
func TestPatchesGetTheRulesOfTheAgentInTheWork(t *testing.T) {
	agent := func(content string) string {
		return `{"kind":"Deployment","metadata":{"name":"cluster-inventory-agent","annotations":` +
			`{"inventory.open-cluster-management.io/content":"` + content + `"}}}`
	}
	options := `[{"resourceIdentifier":{"group":"apps","resource":"deployments","namespace":"**","name":"cluster-inventory-agent"}}]`
	cached := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "deploy"}}
	apitest.Must(t, json.Unmarshal([]byte(options), &cached.Spec.ManifestConfigs))
	cached.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(agent("old"))}}}
	works := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
	apitest.Must(t, works.Add(cached))
	writer := namespaceWriter{of: workWriter{cached: worklisters.NewManifestWorkLister(works)}, namespace: "c1"}

	for name, test := range map[string]struct {
		patch string
		want  string // the content in the rules; none if the patch stays as it is
	}{
		"metadata":  {patch: `{"metadata":{"annotations":{"a":"b"}}}`},
		"manifests": {patch: `{"spec":{"workload":{"manifests":[` + agent("new") + `]}}}`, want: "new"},
		"options":   {patch: `{"spec":{"manifestConfigs":` + options + `}}`, want: "old"},
		"manifests and options": {patch: `{"spec":{"workload":{"manifests":[` +
			agent("new") + `]},"manifestConfigs":` + options + `}}`, want: "new"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := writer.withRules("deploy", []byte(test.patch))
			apitest.Must(t, err)
			if test.want == "" {
				if string(got) != test.patch {
					t.Errorf("the patch is now %s", got)
				}
				return
			}
			var before, after workv1.ManifestWork
			apitest.Must(t, json.Unmarshal([]byte(test.patch), &before))
			apitest.Must(t, json.Unmarshal(got, &after))
			if diff := cmp.Diff(before.Spec.Workload, after.Spec.Workload); diff != "" {
				t.Errorf("manifests (-before +after):\n%s", diff)
			}
			want, err := manifests.WithRules(cached.Spec.ManifestConfigs, []workv1.Manifest{
				{RawExtension: runtime.RawExtension{Raw: []byte(agent(test.want))}},
			})
			apitest.Must(t, err)
			if diff := cmp.Diff(want, after.Spec.ManifestConfigs); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
	if cached.Spec.ManifestConfigs[0].ConditionRules != nil {
		t.Error("the cached ManifestWork was changed")
	}
	if _, err := writer.withRules("gone", []byte(`{"spec":{"manifestConfigs":`+options+`}}`)); err == nil {
		t.Error("a patch of what is not cached got rules")
	}
	if _, err := writer.withRules("deploy", []byte("{")); err == nil {
		t.Error("a patch that is none was sent")
	}
}

// A cache may show an addon as being deleted for minutes after it is gone.
func TestNoWorkIsCreatedForAnAddonThatIsGone(t *testing.T) {
	w := newWorld(t)
	const work0 = "addon-cluster-inventory-deploy-0"
	works, err := workclient.NewForConfig(hub.Config(t))
	apitest.Must(t, err)
	addon := w.Addon(foreignFinalizer)
	w.MustDelete(addon)
	w.MustGet(addon)
	addons := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, hostIndexers())
	apitest.Must(t, addons.Add(addon))
	writer := workWriter{Interface: works, observed: observed{addons: addons}, live: w.Client}
	create := func() error {
		work := addontest.Work(t, addon.Namespace, string(addon.UID), []runtime.Object{&corev1.Namespace{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "n"},
		}})
		work.ObjectMeta = metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}
		_, err := writer.WorkV1().ManifestWorks(addon.Namespace).Create(t.Context(), work, metav1.CreateOptions{})
		return err
	}
	apitest.Must(t, create()) // such as that with the clean-up Job
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: addon.Namespace, Name: work0}}
	w.MustDelete(work)
	w.MustMerge(addon, `{"metadata":{"finalizers":null}}`)
	w.EventuallyGone(addon)
	for _, when := range []string{"is gone", "is another one", "has vanished from the cache"} {
		if err := create(); !apierrors.IsConflict(err) || w.Find(work) {
			t.Errorf("the addon %s: %v, the ManifestWork exists: %t", when, err, w.Find(work))
		}
		apitest.Must(t, client.IgnoreAlreadyExists(w.Create(t.Context(), &addonv1beta1.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{Namespace: addon.Namespace, Name: addon.Name},
		})))
		if when == "is another one" {
			apitest.Must(t, addons.Delete(addon)) // after the framework has read it
		}
	}
}
