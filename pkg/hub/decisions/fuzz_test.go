package decisions

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

// Whatever a tenant makes of a PlacementDecision, one patch makes it what it should be again.
func FuzzAlteredDecision(f *testing.F) {
	f.Add("view-profiles-0", "cluster-inventory-addon", "view", "0", "0", "group", "c1", "", true)
	f.Add("view-profiles-00", "", "", "-1", "9999999999999999999999", "\x00", "", "elsewhere", false)
	f.Add("-profiles-1-profiles-", "another", "view\n", " 1", "", "", "c2", "team", true)
	f.Fuzz(func(t *testing.T, name, scheduler, key, index, groupIndex, group, cluster, namespace string, marked bool) {
		current := &inventoryv1alpha1.PlacementDecision{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Labels: map[string]string{
				"multicluster.x-k8s.io/decision-key": key, "multicluster.x-k8s.io/decision-index": index,
				"inventory.open-cluster-management.io/decision-group-index": groupIndex,
				"inventory.open-cluster-management.io/decision-group-name":  group, "theirs": "stays",
			}},
			Decisions: []inventoryv1alpha1.ClusterDecision{{
				ClusterProfileRef: inventoryv1alpha1.ClusterProfileReference{Name: cluster, Namespace: namespace},
			}},
			SchedulerName: scheduler,
		}
		if marked {
			current.Labels["app.kubernetes.io/managed-by"] = "cluster-inventory-addon"
		}
		if isOurs(current) && parseName(name) == "" {
			t.Errorf("%q counts as one of ours", name)
		}
		if base := parseName(name); base != "" && len(base) >= len(name) {
			t.Errorf("the base of %q is %q", name, base)
		}
		want := slice{name: name, index: 1, clusters: []string{"a", "b"}}
		want.group = observedSlice(current, "view").group
		changes := desiredChanges(current, "view", want)
		if metadata, ok := changes["metadata"].(map[string]any); ok {
			for key, value := range metadata["labels"].(map[string]any) {
				if value == nil {
					delete(current.Labels, key)
				} else {
					current.Labels[key] = value.(string)
				}
			}
		}
		if list, ok := changes["decisions"].([]inventoryv1alpha1.ClusterDecision); ok {
			current.Decisions = list
		}
		if name, ok := changes["schedulerName"].(string); ok {
			current.SchedulerName = name
		}
		if again := desiredChanges(current, "view", want); len(again) > 0 || observedSlice(current, "view").altered {
			t.Errorf("still to be changed: %v; it is %+v", again, current)
		}
		if current.Labels["theirs"] != "stays" {
			t.Error("another client's label is gone")
		}
	})
}
