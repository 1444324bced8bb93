package uninstall

import (
	"fmt"
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
	addons := func(list ...addonv1beta1.ManagedClusterAddOn) addonSummary {
		summary := addonSummary{}
		for i := range list {
			summary.add(&list[i])
		}
		return summary
	}

	const toManual = "the install strategy to become Manual"
	tests := map[string]struct {
		seen observed
		keep bool
		want step
	}{
		"placements still install: first they must stop": {
			seen: observed{
				definition: definition("Placements", "false"),
				addons:     addons(addon("c1", "Synced")),
				profiles:   1,
			},
			want: step{declare: true, waitingFor: toManual},
		},
		"manual, but a placement is still listed: it must go": {
			seen: observed{definition: withPlacement},
			want: step{declare: true, waitingFor: toManual},
		},
		"profiles are to stay: the addon must be annotated first": {
			seen: observed{definition: definition("Manual", "false"), addons: addons(addon("c1", "Synced"))},
			keep: true,
			want: step{declare: true, keep: true, waitingFor: toManual},
		},
		"profiles are to stay: no addon is deleted before the manager has confirmed every one": {
			seen: observed{
				definition: definition("Manual", "true"),
				addons:     addons(addon("c2", "Synced"), addon("c1", "ProfilesKept"), addon("c3", "")),
			},
			keep: true,
			want: step{waitingFor: "the manager to confirm that it keeps the profiles of c2, c3"},
		},
		"profiles are to stay and the manager has answered: the addons go": {
			seen: observed{
				definition: definition("Manual", "true"),
				addons:     addons(addon("c1", "ProfilesKept"), addon("c2", "ClusterProfileAPIMissing")),
			},
			keep: true,
			want: step{
				action:     deleteAddons,
				waitingFor: "the addon to be removed from c1, c2",
			},
		},
		"an addon being deleted need not be answered for, and is not deleted twice": {
			seen: observed{
				definition: definition("Manual", "true"),
				addons:     addons(deleting(addon("c1", "Synced")), addon("c2", "ProfilesKept")),
			},
			keep: true,
			want: step{action: deleteAddons, waitingFor: "the addon to be removed from c1, c2"},
		},
		"upstream's gate is on: profiles are kept unasked": {
			seen: observed{
				definition: definition("Manual", "false"), gate: gateOn, addons: addons(addon("c1", "Synced")), profiles: 1,
			},
			want: step{declare: true, keep: true, waitingFor: toManual},
		},
		"it is not known yet whether upstream's gate is on: nothing is done": {
			seen: observed{
				definition: definition("Placements", "false"), gate: gatePending, addons: addons(addon("c1", "Synced")),
			},
			want: step{waitingFor: "the ClusterRole of OCM's registration controller, " +
				"which tells whether OCM's own ClusterProfile feature gate is on"},
		},
		"a spoke says that upstream's gate is on: profiles go all the same": {
			seen: observed{
				definition: definition("Manual", "false"), addons: addons(addon("c1", "UpstreamGateOn")), profiles: 1,
			},
			want: step{action: deleteAddons, waitingFor: "the addon to be removed from c1"},
		},
		"the manager leaves profiles to upstream: that is an answer": {
			seen: observed{
				definition: definition("Manual", "true"), gate: gateOn,
				addons: addons(addon("c1", "UpstreamGateOn"), addon("c2", "UpstreamGateUnknown")),
			},
			want: step{action: deleteAddons, waitingFor: "the addon to be removed from c1, c2"},
		},
		"profiles are to stay and the manager answered long ago for some: the others are not waited for": {
			seen: observed{
				definition: definition("Manual", "true"), answered: true,
				addons: addons(addon("c1", "ProfilesKept"), addon("c2", "Synced")),
			},
			want: step{action: deleteAddons, waitingFor: "the addon to be removed from c1, c2"},
		},
		"an earlier attempt decided to keep: the next one keeps": {
			seen: observed{definition: definition("Manual", "true"), profiles: 1},
			want: step{action: unmarkProfiles, waitingFor: "1 ClusterProfiles to be released"},
		},
		"kept, and none is marked any more: done": {
			seen: observed{definition: definition("Manual", "true")},
			keep: true,
			want: step{},
		},
		"all addons are being deleted: they are waited for": {
			seen: observed{definition: definition("Manual", "false"), addons: addons(deleting(addon("c1", "Synced")))},
			want: step{waitingFor: "the addon to be removed from c1"},
		},
		"profiles are not to stay: no answer is waited for": {
			seen: observed{definition: definition("Manual", "false"), addons: addons(addon("c1", "")), profiles: 1},
			want: step{action: deleteAddons, waitingFor: "the addon to be removed from c1"},
		},
		"addons are gone: profiles that are left go": {
			seen: observed{definition: definition("Manual", "false"), profiles: 1},
			want: step{action: deleteProfiles, waitingFor: "1 ClusterProfiles to be deleted"},
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
		"the manager does not remove its rights: a user has to": {
			seen: observed{definition: definition("Manual", "false"), grants: []string{"c1"}, grantsStay: true},
			want: step{failure: errGrantsStay},
		},
		"profiles are left, and rights: the profiles go first": {
			seen: observed{definition: definition("Manual", "false"), profiles: 1, grants: []string{"team-a"}},
			want: step{action: deleteProfiles, waitingFor: "1 ClusterProfiles to be deleted"},
		},
		"no definition any more: the rest is removed all the same": {
			seen: observed{addons: addons(addon("c1", "Synced"))},
			want: step{action: deleteAddons, waitingFor: "the addon to be removed from c1"},
		},
		"nothing is there: done": {
			seen: observed{definition: definition("Manual", "false")},
			want: step{},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := next(test.seen, test.keep)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(step{}), cmpopts.EquateEmpty(), cmpopts.EquateErrors()); diff != "" {
				t.Errorf("next step (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamesKeepTheFirstAndCountTheRest(t *testing.T) {
	var list names
	if got := list.String(); got != "" {
		t.Errorf("none: %q", got)
	}
	for i := range 10_000 {
		list.add(fmt.Sprintf("c%04d", (i*7)%10_000)) // each once, in another order
	}
	want := "c0000, c0001, c0002, c0003, c0004, c0005, c0006, c0007, c0008, c0009 and 9990 more"
	if got := list.String(); got != want {
		t.Errorf("got %q", got)
	}
	if len(list.first) != 10 || cap(list.first) > 100 {
		t.Errorf("%d names are kept, with room for %d", len(list.first), cap(list.first))
	}
}
