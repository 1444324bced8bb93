package uninstall

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

func TestNext(t *testing.T) {
	definition := func(strategy, keep string) *addonv1beta1.ClusterManagementAddOn {
		d := &addonv1beta1.ClusterManagementAddOn{}
		d.Annotations = map[string]string{"inventory.open-cluster-management.io/keep-profiles": keep}
		d.Spec.InstallStrategy.Type = strategy
		return d
	}
	withPlacement := definition("Manual", "false")
	withPlacement.Spec.InstallStrategy.Placements = []addonv1beta1.PlacementStrategy{{}}

	addon := func(cluster, reason string) addonv1beta1.ManagedClusterAddOn {
		a := addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster}}
		if reason != "" {
			a.Status.Conditions = []metav1.Condition{{Type: "ProfilesSynced", Reason: reason}}
		}
		return a
	}
	deleting := func(a addonv1beta1.ManagedClusterAddOn) addonv1beta1.ManagedClusterAddOn {
		a.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		return a
	}
	type addons = []addonv1beta1.ManagedClusterAddOn
	profiles := []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}}

	const toManual = "the install strategy to become Manual"
	tests := map[string]struct {
		seen observed
		keep bool
		want step
	}{
		"placements still install: first they must stop": {
			seen: observed{
				definition: definition("Placements", "false"),
				addons:     addons{addon("c1", "Synced")},
				profiles:   profiles,
			},
			want: step{declare: true, waitingFor: toManual},
		},
		"manual, but a placement is still listed: it must go": {
			seen: observed{definition: withPlacement},
			want: step{declare: true, waitingFor: toManual},
		},
		"profiles are to stay: the manager must be told": {
			seen: observed{definition: definition("Manual", "false"), addons: addons{addon("c1", "Synced")}},
			keep: true,
			want: step{declare: true, keep: true, waitingFor: toManual},
		},
		"profiles are to stay: no addon goes before the manager has answered for every one": {
			seen: observed{
				definition: definition("Manual", "true"),
				addons:     addons{addon("c2", "Synced"), addon("c1", "ProfilesKept"), addon("c3", "")},
			},
			keep: true,
			want: step{waitingFor: "the manager to confirm that it keeps the profiles of c2, c3"},
		},
		"profiles are to stay and the manager has answered: the addons go": {
			seen: observed{
				definition: definition("Manual", "true"),
				addons:     addons{addon("c1", "ProfilesKept"), addon("c2", "ClusterProfileAPIMissing")},
			},
			keep: true,
			want: step{
				deleteAddons: addons{addon("c1", "ProfilesKept"), addon("c2", "ClusterProfileAPIMissing")},
				waitingFor:   "the addon to be removed from c1, c2",
			},
		},
		"an addon being deleted need not be answered for, and is not deleted twice": {
			seen: observed{
				definition: definition("Manual", "true"),
				addons:     addons{deleting(addon("c1", "Synced")), addon("c2", "ProfilesKept")},
			},
			keep: true,
			want: step{deleteAddons: addons{addon("c2", "ProfilesKept")}, waitingFor: "the addon to be removed from c1, c2"},
		},
		"the manager leaves profiles to upstream: they are kept unasked": {
			seen: observed{
				definition: definition("Manual", "false"),
				addons:     addons{addon("c1", "UpstreamGateOn")},
				profiles:   profiles,
			},
			want: step{declare: true, keep: true, waitingFor: toManual},
		},
		"the manager cannot tell whose profiles are: they are kept unasked": {
			seen: observed{
				definition: definition("Manual", "false"),
				addons:     addons{addon("c1", "UpstreamGateUnknown")},
				profiles:   profiles,
			},
			want: step{declare: true, keep: true, waitingFor: toManual},
		},
		"an earlier attempt decided to keep: the next one keeps": {
			seen: observed{definition: definition("Manual", "true"), profiles: profiles},
			want: step{unmarkProfiles: profiles, waitingFor: "1 ClusterProfiles to be released"},
		},
		"kept, and none is marked any more: done": {
			seen: observed{definition: definition("Manual", "true")},
			keep: true,
			want: step{},
		},
		"profiles are not to stay: no answer is waited for": {
			seen: observed{definition: definition("Manual", "false"), addons: addons{addon("c1", "")}, profiles: profiles},
			want: step{deleteAddons: addons{addon("c1", "")}, waitingFor: "the addon to be removed from c1"},
		},
		"addons are gone: profiles that are left go": {
			seen: observed{definition: definition("Manual", "false"), profiles: profiles},
			want: step{deleteProfiles: profiles, waitingFor: "1 ClusterProfiles to be deleted"},
		},
		"the manager still has rights to tokens: they are waited for": {
			seen: observed{definition: definition("Manual", "false"), grants: []string{"c1", "team-a"}},
			want: step{waitingFor: "the manager to remove copies of tokens and its RoleBindings for them, in c1, team-a"},
		},
		"profiles stay, and the manager still has rights to tokens: they are waited for": {
			seen: observed{definition: definition("Manual", "true"), grants: []string{"team-a"}},
			keep: true,
			want: step{waitingFor: "the manager to remove copies of tokens and its RoleBindings for them, in team-a"},
		},
		"profiles are left, and rights: the profiles go first": {
			seen: observed{definition: definition("Manual", "false"), profiles: profiles, grants: []string{"team-a"}},
			want: step{deleteProfiles: profiles, waitingFor: "1 ClusterProfiles to be deleted"},
		},
		"no definition any more: the rest is removed all the same": {
			seen: observed{addons: addons{addon("c1", "Synced")}},
			want: step{deleteAddons: addons{addon("c1", "Synced")}, waitingFor: "the addon to be removed from c1"},
		},
		"nothing is there: done": {
			seen: observed{definition: definition("Manual", "false")},
			want: step{},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := next(test.seen, test.keep)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(step{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("next step (-want +got):\n%s", diff)
			}
		})
	}
}
