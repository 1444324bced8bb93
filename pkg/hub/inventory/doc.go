// Package inventory maintains the ClusterProfiles: it creates those that package selection
// asks for and fills them.
//
// The unit of work is one pair of namespace and cluster, whose name is the profile's own.
// Only a definite No of the rule deletes, and only profiles that this addon created or
// adopted. While the answer is unknown, a profile of ours stays; its content is updated as
// long as the cluster is in the inventory, and nothing is created, adopted or deleted.
//
// # Packages
//
//   - profiles: the pure decisions about a pair: its next step and the content of its profile;
//   - report: the outcomes of all pairs, and how they are reported.
//
// This package observes a pair, decides with profiles, writes, and records the outcome with report.
//
// # Ownership
//
// Of a ClusterProfile this addon owns the labels that name manager, cluster, set and the
// mark, the labels it copied from labels and properties and the annotation that lists them,
// spec.displayName, status.version, the conditions ControlPlaneHealthy and Joined, of
// status.properties the entries that it wrote (profiles/decide_authorship.go) or that the cluster has
// claims of, and of status.accessProviders the entries that package access decides about.
// Everything else belongs to others and is never touched. Package conditions writes the
// condition ProfilesSynced of a ManagedClusterAddOn; this package determines its content.
// Every write is as small as possible, carries an optimistic lock, and is omitted if
// nothing changes.
//
// # Controller
//
// The controller hub.inventory observes, settles, decides, applies and prunes. It starts when all
// kinds that it needs are served but ClusterProfiles, and follows these once they are. Until
// then, it only tells others about pairs. It looks at all pairs when the CRD of something they
// are computed from is created or deleted, and, at most once a second, at those that wait because
// the install strategy may create their cluster's addon again, when the strategy or its
// Placements' decisions change. It writes at most access providers while the guard says that
// upstream writes the profiles.
//
// Package notices creates events on set bindings and Placements that name the clusters whose
// profile is withheld and say why, on profiles that lack an access provider, and on
// ManagedClusters whose profiles change more often than their budgets allow.
//
// Pairs are reconciled when something they depend on changes; again after a failed write,
// at intervals from 20 ms doubling to a minute, or to 5 s if the profile must be removed; and
// every second while Placements' decisions settle. Conflicts are returned, not retried.
//
// A profile that another client keeps changing, or deleting, is repaired ten times at once
// and then every ten seconds (kube.Brake), each time with at most one write of the object
// and one of its status; removals are counted apart.
//
// Each profile has a budget (Options.WriteEvery): ten writes in a row, then one in each
// interval, so that a cluster that changes all the time does not keep every watcher of its
// profiles busy. A change that waits is reconciled when its turn comes, and shows the values
// of that time. What consumers must know at once does not wait (profiles.IsUrgent), nor does removal.
// The same kube.Brake counts both, and starts with full budgets.
//
// Profiles that must be removed precede edits of others, and edits precede creations.
// Namespaces take turns, and each has a bounded number of writes in flight (package fair),
// so that a slow webhook in one delays no other.
//
// # Input from spokes
//
// A ManagedCluster is reduced to the profiles.Limits before it is cached (profiles/validate.go), so that no
// spoke can fill the manager's memory, or a namespace. What was left out is recorded with
// it and named in the condition.
//
// A cluster's member id is what its label asks for, unless another cluster has it, or else its
// name (members.go). Who has one keeps it; profiles say who had it before a restart. An id is
// free for another cluster once no profile has it, nor a write in progress.
//
// # RBAC, cluster-wide
//
// Besides what package selection lists:
//
//	multicluster.x-k8s.io  clusterprofiles         create, patch, delete
//	multicluster.x-k8s.io  clusterprofiles/status  patch
//	events.k8s.io          events                  create
package inventory
