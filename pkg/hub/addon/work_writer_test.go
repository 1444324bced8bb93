package addon

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	worklisters "open-cluster-management.io/api/client/work/listers/work/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
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
	writer := namespaceWriter{cached: worklisters.NewManifestWorkLister(works).ManifestWorks("c1")}

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
