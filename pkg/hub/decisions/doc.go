// Package decisions publishes the clusters that Placements choose as PlacementDecisions of
// SIG-Multicluster (KEP-5313), which refer to the ClusterProfiles of package inventory.
//
// The unit of work is one Placement that is labelled for publishing. Its slices, of at most
// a hundred references each, are in its namespace.
//
// # What consumers may rely on
//
// Consumers treat a missing reference as an eviction, and ignore duplicates. So
//
//   - a reference is added when the profile is complete, and removed before the profile is
//     deleted. Package inventory says so (selection.Rule.AllowReferences), and asks whether a
//     slice refers to a profile (Refer) before it deletes that. It waits for a few seconds at
//     most: a failing webhook must not keep a profile alive. Copies of tokens do not wait at all;
//   - a cluster that moves to another slice is added there before it is removed here;
//   - a cluster that a Placement ceases to choose is removed when the decisions are complete
//     and have been so for a second (selection.Rule.Leaving). An undecided Placement, a cache
//     that cannot be trusted, a deleted CRD, a restart and upstream's gates change nothing;
//   - a Placement that chooses nothing has one empty slice. Without a Placement, its label,
//     or a bound set in the namespace, there is none.
//
// The label decision-key holds the Placement's name, decision-index counts its slices from
// 0. Neither expresses an order of clusters, since Open Cluster Management keeps none: in a
// slice they are sorted by name. Slices of decision groups have labels of this addon with
// the group's index and name.
//
// # Writes
//
// desired.go plans the writes: adding or removing a cluster is one write, and slices are
// refilled only when there are more than twice as many as needed. Additions are gathered
// for a second, and so are repairs after another client's change: a client that contends for
// a slice causes one write a second. Withdrawals are gathered for 50 ms.
//
// Slices are named <placement>-profiles-<n>; the number in the name is not their index.
// They have no owner, because a restored Placement has another UID. Others' labels,
// annotations and finalizers are left alone. A PlacementDecision without the mark is never
// changed; an event on the Placement names those with its key, among them Open Cluster
// Management's own (feature gate SIGPlacementDecision).
//
// # Controllers
//
//   - hub.decisions: observe, plan, apply, once the hub serves PlacementDecisions. Placements
//     whose slices must lose a reference come first, namespaces take turns (package fair). All
//     Placements are looked at when the CRD of the slices is deleted or created.
//
// A failed write is retried at intervals from 20 ms doubling to a minute, or to 5 s
// for a removal. Conflicts are returned, not retried.
//
// # RBAC, cluster-wide
//
// Besides what package selection lists:
//
//	multicluster.x-k8s.io  placementdecisions  list, watch, create, patch, delete
//	events.k8s.io          events              create
package decisions
