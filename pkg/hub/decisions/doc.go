// Package decisions publishes what Placements choose as PlacementDecisions of
// SIG-Multicluster (KEP-5313), which refer to the ClusterProfiles of package inventory.
//
// The unit of work is one Placement that is labelled for publishing. Its slices, of at most
// a hundred references each, are in its namespace.
//
// # What a reader may rely on
//
// Readers take an absence for an eviction, and a duplicate for nothing. So
//
//   - a reference is added when the profile is whole (Admit), and removed before the
//     profile goes (Withdraw). Package inventory says both, and waits with the deletion of a
//     profile, for a few seconds at most: a webhook that fails must keep no profile alive.
//     Copies of tokens do not wait at all;
//   - what moves from one slice to another is added there before it is removed here;
//   - a cluster that a Placement ceases to choose goes when the decisions are complete and
//     have been so for a second (selection.Rule.Leaving). A Placement that is not decided, a
//     cache that says nothing, a CRD that went, a restart and upstream's gates change
//     nothing;
//   - a Placement that chooses nothing has one empty slice. Without a Placement, its label,
//     or a bound set in the namespace, there is none.
//
// The label decision-key has the Placement's name, decision-index counts its slices from
// 0. Neither tells an order of clusters, since Open Cluster Management keeps none: in a slice
// they are sorted by name. Slices of decision groups have labels of this addon with the
// group's index and name.
//
// # What is written
//
// desired.go plans the writes: one cluster more or less is one write, and slices are filled
// up anew only when there are more than twice as many as needed. What is added is gathered
// for a second, and so is what is put right after somebody else's change: whoever fights
// over a slice gets one write a second. What is withdrawn is gathered for 50 ms.
//
// Slices are named <placement>-profiles-<n>; their number in the name is not their index.
// They have no owner, because a Placement that is restored has another UID. Their labels
// that are not this addon's, annotations and finalizers are left alone. A PlacementDecision
// without the mark is never changed; an event on the Placement names those that have its key,
// among them Open Cluster Management's own (feature gate SIGPlacementDecision).
//
// # Controllers
//
//   - hub.decisions: observe, plan, apply. Placements whose slices must lose a reference
//     come first, namespaces take turns (package fair).
//   - hub.decisions-definitions: looks at all Placements when the CRD of the slices goes or
//     comes.
//   - hub.decisions-start: starts the first, when the hub serves PlacementDecisions.
//
// A failed write is tried again at intervals from 20 ms doubling to a minute, to 5 s if
// something must go, or ten minutes if it is invalid. Conflicts are returned, not retried.
//
// # RBAC, cluster-wide
//
// Besides what package selection lists:
//
//	multicluster.x-k8s.io  placementdecisions  list, watch, create, patch, delete
//	events.k8s.io          events              create
package decisions
