// Package credentials copies tokens of ManagedServiceAccounts to consumers: to the
// namespaces in which the inventory shows the cluster and that the account names.
//
// # The rule
//
// An account's token is copied into a namespace, as the Secret
// "<cluster>-<account>" with the keys token and ca.crt, if and only if
//
//  1. the account is labelled to be copied and not being deleted;
//  2. its annotation names the namespace, or it has none and the manager does not
//     require one;
//  3. the rule of what is published where (package selection) selects the cluster
//     for the namespace, and a ClusterProfile of our cluster manager is there and not
//     being deleted. A ClusterProfile alone proves nothing: users who may create one may forge
//     all its labels and owners;
//  4. no other account would be copied there under the same name, unless the account's
//     own copy is there already;
//  5. the account's status names the Secret of the account's own name, that Secret
//     was made by managed-serviceaccount for this very account, and it holds a
//     token that has not expired. The spoke's agent writes status and Secret, so
//     neither is trusted further than that.
//
// A Secret with the copy's name that managed-serviceaccount's own syncer has left behind is
// taken over in place under the same rule, if its one owner is that ClusterProfile and its
// token was issued to this account. Any other Secret is left alone.
//
// A definite No withdraws the copy at once. An unknown state, such as an API server's error
// or a Placement without a decision, creates nothing and deletes nothing. While the hub does
// not serve what the rule reads, or objects may still be restored, an existing copy gets no
// rotated token, either. An account that vanishes with its CRD, or returns without its status
// while objects are being restored, is no reason to withdraw anything.
//
// # Packages
//
//   - source: the accounts, and what may be copied of their tokens;
//   - target: the copies, and every write of a Secret;
//   - bearer: a token and its claims, which no log or message may contain;
//   - grants: the RoleBindings by which the manager may read tokens and maintain copies;
//   - report: what is wrong with each account, and how it is reported.
//
// They do not import each other, except for bearer; this package reconciles an account through them. It
// observes caches and memory, decides (desired.go), claims the grants it needs, withdraws
// copies that must not exist, reads the token if necessary, decides finally, and writes the
// copies that differ. It remembers only digests of tokens. Nothing of a token is logged at
// any verbosity, nor repeated from an API server's message.
//
// This package determines the condition CredentialsSynced of a ManagedClusterAddOn; package
// conditions writes it.
//
// # Controllers
//
//   - hub.credentials: one account and all its copies, once the hub serves
//     ManagedServiceAccounts; until then, only withdrawals. These go first, unless they
//     have failed for half a minute, then accounts that have copies, then first copies.
//     What is done in one target namespace waits for no other (operations.go). All
//     accounts are looked at when their CRD goes or comes.
//   - hub.credentials-rights: removes RoleBindings that are not needed any more.
//
// Package notices creates events on the consumers' own ClusterProfiles and set bindings that say
// which tokens are not copied there and why. A namespace learns about clusters that it sees, and
// about no others.
//
// What fails is retried after 20 ms, then at doubling intervals up to a minute, or to 5 s
// for the first half minute of a withdrawal and where another client was faster, each copy
// by itself (failures.go);
// one that another client keeps changing is repaired ten times at once and then every ten
// seconds (kube.Brake); one whose name another Secret has, or whose token has expired, every
// 20 seconds; a token that cannot be copied is read again after 20 seconds, then at doubling
// intervals, and every token every four to six minutes.
//
// Each copy has a budget (Options.WriteEvery): ten writes in a row, then one in each interval,
// so that a spoke that changes its token all the time does not multiply that by the number of
// target namespaces. The last token always arrives. Withdrawals and repairs are exempt.
//
// # RBAC
//
//	cluster-wide:
//	authentication.open-cluster-management.io  managedserviceaccounts  list, watch
//	multicluster.x-k8s.io               clusterprofiles          list, watch
//	apiextensions.k8s.io                customresourcedefinitions  get, list, watch
//	events.k8s.io                       events                   create
//	rbac.authorization.k8s.io           clusterroles             bind                   (the two)
//	rbac.authorization.k8s.io           rolebindings             create
//	rbac.authorization.k8s.io           rolebindings             get, list, watch       (of the two names)
//	rbac.authorization.k8s.io           rolebindings             patch, delete          (of the two names)
//
//	by RoleBinding:
//	(core)                              secrets                  get                    (clusters' namespaces)
//	(core)                              secrets                  get, list, watch       (target namespaces)
//	(core)                              secrets                  create, patch, delete  (target namespaces)
package credentials
