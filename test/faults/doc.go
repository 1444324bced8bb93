// Package faults injects faults into what the manager exchanges with a hub, one at a time, and
// compares what comes of it with what happens without the fault. Its tests are the suite.
//
// A hub is a real etcd and kube-apiserver with the chart's rights and admission policies; the
// manager is the real program, and package proxy is between the two. It elects a leader only in plans of
// leaders, versions and a hub that is restarted or restored. Open Cluster Management is played by package ocmtest,
// but for its own components in some stories (below), and clusters, accounts and cluster-proxy are objects only.
// Agents have their own stories (below), and are deployed only where Open Cluster Management's addon manager runs.
// Nothing collects garbage, so what the manager leaves behind stays and is seen.
//
// # Components
//
// In some stories, Open Cluster Management's own components run (component.go): its placement
// controller in spread, and in install and rollback also its addon manager and its registration
// controller. They are the real programs, each with the rights that OCM's operator gives to its
// account, and each has a proxy of its own. They run on from one run to the next, like
// the manager, but start again after faults of the hub, of an API or of programs. Before the next run,
// each has seen that the clusters of the last one are gone. Plans have faults of the manager, as in other
// stories, or of what one component writes. The latter begin with "placement:", "addon:" or
// "registration:", and the manager then has none:
//
//	spread placement:hang patch placementdecisions.cluster.open-cluster-management.io/status team-a/view-decision-2 1
//
// Writes of the addon manager and the registration controller have only kill-before, kill-after, hang and 500,
// because the manager cannot tell other refusals apart.
//
// The oracles are the same, and check only the manager. They do not compare the slices themselves,
// but what comes of them. The placement controller drops the errors of writes of slices. It tries again with
// its next event of the Placement, of its slices or its clusters, or after ten minutes. As on a busy
// hub, there is such an event: from 20 seconds after the story began, and every 20 seconds, an annotation
// of all Placements changes. So plans show what the manager does while slices are wrong for about 20
// seconds, not for ten minutes. After a restore of etcd, components are started again at once, because
// their caches may keep what the restored hub does not have.
//
// These stories need a folder with OCM's programs (-upstream, which make robust fills), so TestSeeded
// leaves them out. The plans of spread have 250 clusters and take long: they run last, and there are
// none with faults of APIs or CRDs, wrong clocks or times, slow webhooks or lagging API servers.
//
// # Agents
//
// In install and rollback (install.go), the ClusterManagementAddOn has an install strategy of type
// Placements, and a progressive rollout to one cluster at a time. The addon manager creates and
// deletes the addon, and chooses the AgentRevision of each cluster. Their hub (conversion.go) serves
// and stores addons as OCM's operator sets it up: in v1alpha1, which the addon manager uses, with
// OCM's conversion webhook. Other stories have only v1beta1.
//
// The suite plays the work agents of all clusters (spokes.go), past the proxies: ManifestWorks are
// reported as applied and available, clean-up Jobs as complete, and what is deleted is let go. In
// rollback, the second agent never becomes available on the third cluster, so that the rollout ends
// there, in every run, until it is taken back. The suite also deletes ManifestWorks whose addon is
// gone. No other garbage is collected. Nothing asks for certificates, and nothing writes conditions
// of an agent's own.
//
// Two oracles are for agents: the ManifestWork of a cluster that some namespace shows throughout is
// never deleted; and in rollback, each cluster gets the AgentRevisions that the story says, in that
// order, so the fourth one never gets the second.
//
// # Many clusters
//
// In the story register-again-1000 (many.go), a fleet of 1000 clusters is deleted and registered again
// under its names, in a random order that is always the same. Half of them is registered again right
// after its deletion, perhaps before the manager has seen that, the other half when nothing is left of
// what the manager made for it. The one namespace shows all of them, the other one those that have an
// account, of which there are fifty. In the end, no object may have a property or a token of the first
// registrations. What differs in the oracles:
//
//   - What the manager made for a cluster that is registered again at once may stay, or be deleted and
//     created again once.
//   - The manager's writes for one cluster are bounded.
//
// One plan per write would be thousands. So the plans are a sample: for one cluster with an account, in
// the middle of the order, each kind of write has two of the faults of writes, in turns. All watches are
// closed, or expire, and there are the leader's pause, the restart of the hub and its lag. Each run logs
// what it took: writes, time and memory. With fewer clusters, at least forty, it can be repeated sooner:
//
//	make robust PLAN='register-again-80 none'
//
// # Writers
//
// The same suite runs for another writer (writer.go): upstream's own (upstream.go), which are
// Open Cluster Management's registration controller with its ClusterProfile gate and
// managed-serviceaccount's manager with its syncer. Both are the real programs behind one proxy,
// end and start together, and start again before every run. One user has what OCM's operator and
// managed-serviceaccount's chart give to their two accounts. Plans are derived from all that the
// two programs write and watch, clusters' finalizers and roles included. The oracles are the
// same. What is different, and why:
//
//   - Kubernetes' garbage collector runs on the hub, past the proxy: upstream leaves copies of
//     tokens to it.
//   - An account's token may be in every namespace that shows the cluster, because upstream has
//     no way to say less.
//   - The story of many clusters takes too long.
//   - Ten of the stories are about what only this addon has or promises: place, slices and spread
//     (publishing Placements), disable, install and rollback (the addon on a cluster), replace (what the
//     manager reads of other components), damage (repairs of copies and rights), edit-beside-apply and
//     edit-beside-update (properties of other clients).
//   - No leader is paused or replaced: each of the two programs elects one by times of its own.
//   - Their clocks are right.
//   - No CRD is recreated, because garbage collection deletes what its objects own. OCM's own kinds are
//     always served, because its controllers rightly take away what depends on them.
//   - They write no PlacementDecisions and no access providers, so of the order of changes only
//     the owners of copies are checked.
//   - APIs of addons are served in all versions, without OCM's conversion webhook.
//   - A story whose runs without a fault differ, or do not reach its state, has no plans and is
//     listed as "no reference". For this addon, it fails the suite.
//
// # Agent
//
// The agent is a third writer (agent.go). It is the real program with the command line of its
// Deployment, and starts again before every run, because it serves one ManagedClusterAddOn. One API
// server is its spoke and its hub, and both kubeconfigs lead to one proxy, which also means that a
// killed or restored API server is both. One user has the agent's rights on the spoke, from its
// manifests, and on the hub, from the chart. The klusterlet is not part of any story: the agent's
// result is ClusterClaims, and the condition PropertiesPublished. Its stories (agent_stories.go):
//
//   - properties: a property is created, edited three times and deleted.
//   - report: a property gets a value that is too long, is repaired, and is withdrawn by its label for
//     a while; another one has a reserved name.
//   - foreign: properties have the names of other clients' claims, one of which is then deleted.
//   - altered: another client changes and deletes claims of the agent's.
//   - hub-kubeconfig: the file with the kubeconfig of the hub cannot be used for a while.
//   - property-api: the CRD of ClusterProperties is deleted with all objects, and created again.
//   - removal: the hook, also the real program but past the proxy, stops the agent and deletes the
//     claims.
//
// The oracles are the same. In stories, a claim is a pair without a namespace; what is said below of a
// profile is true of a claim. What is different:
//
//   - No leader is paused or replaced by another version, because the agent elects none, and no clock or
//     time is wrong. It writes into no consumer namespace, so no webhook is slow.
//   - ClusterClaims and ClusterProperties are not served for a while, and ClusterClaims are recreated.
//     Of a recreated CRD of ClusterProperties, property-api shows what is right: claims go with their
//     properties.
//   - While ClusterProperties are not served, two more writes of the addon's status may say so at once.
//   - property-api has no such faults, because its act is one. ClusterClaims are recreated only in
//     stories that delete and create none themselves, which leaves hub-kubeconfig.
//   - removal has no restore of etcd and no faults of APIs: an agent that has stopped does not start
//     again, and the hook takes claims for gone that are not served.
//   - Events about properties are not compared: proxy and watcher leave them out.
//   - Of the order of changes, nothing is checked.
//
// # Stories
//
// A story (stories.go) is what an administrator, Open Cluster Management and clusters do: a
// setup, and an act while which there is a fault. Each is played twice without a fault first.
// What both runs have in common is its reference: the hub's state before and after, how often
// each object was created and deleted, every write and every event of a watch. States are
// compared without times, identities and versions (normal.go). A difference between the two
// runs' states fails the suite; writes and events that only one of them has are printed, and
// get no plans.
//
// # Plans
//
// A plan is a story with one fault, written as
//
//	edit 409 patch clusterprofiles.multicluster.x-k8s.io/status team-a/c1 2
//
// for the second write of that kind to that object. Package proxy lists the faults of writes,
// events and watches; plan.go those of processes: the leading manager is paused while another
// one stands by (leader-paused for 25 seconds, leader-paused-2s, leader-paused-60s), the hub is killed
// and started again, or etcd is restored from a snapshot taken before the act, which is then repeated.
//
// In two more (versions.go), the next version of the manager is involved, which is this tree with the
// patch versions/next.patch: it writes more and other content into profiles, copies and addons. Two
// managers run, as in a rollout. After its first write of the act, the leader ends as a kubelet would end
// it, and the other one takes over:
//
//   - upgraded: the next version leads first, and this one takes over.
//   - rolled-back: this version leads first. When the act is over and the next version has begun to
//     write, this version is started again, and the next one ends.
//
// In the end, this version must have brought back exactly the state of the reference, without creating
// or deleting an object more or less often. With each change of the version, each profile, reference,
// copy and addon may be written one more time, a profile's status and the rest apart. The patch contains
// only what this version can know to be the addon's: it leaves other labels and annotations of copies
// and references alone, as those of other clients, so a label that a next version adds to them stays
// after a rollback. Nor does it contain what the admission policies of this version's chart refuse, such
// as one more key of copies or another schedulerName of references: a next version comes with its own.
//
// Clocks are wrong by an hour in others (clocks.go), from the start of the manager, before the setup, to
// the end:
//
//   - clock-ahead, clock-behind: the clock of the manager's controllers, by the patch
//     versions/clock.patch. Leader election keeps the machine's. They have plans in six stories, with
//     bindings, tokens and decisions.
//   - timestamps-ahead, timestamps-behind: all that the manager reads on the hub, as if the clocks of the
//     API server and of all other clients were wrong: times of metadata, of managed fields, conditions
//     and properties, and of the status of accounts. The proxy shifts what the manager writes the other
//     way round, so that it reads again what it wrote.
//
// Tokens are valid for longer than that.
//
// The longest faults, of 29 and of 60 seconds, have plans only in the stories rotate, unbind and move.
//
// Faults of APIs (apis.go) are for kinds that the manager reads or writes and that come and go
// with other components: ClusterProfiles, SIG-Multicluster's PlacementDecisions,
// ManagedServiceAccounts and cluster-proxy's configuration, in stories whose states have objects
// that are or depend on one. In stories without Open Cluster Management's components, they are also
// for the kinds by which clusters are chosen: clusters, sets, bindings, addons, the
// ClusterManagementAddOn and, if there are references, Placements and their decisions. The
// administrator changes the CRD past the proxy:
//
//   - unserved: for five seconds, no version is served, and the objects stay.
//   - recreated: the CRD is deleted with all objects and created again at once (recreated-10s: ten
//     seconds after all have gone). Then the administrator restores the objects of others with their
//     status, as a tool for backups does, and gives the Secrets of restored accounts their new owner.
//     The next plan has a new hub, because a manager that starts infers a restore from a CRD that is
//     younger than others.
//
// The act begins meanwhile. Its own requests for the kind, and no others, wait until the fault is
// over, so some stories have all of their act and others the rest of it afterward. What differs in
// the oracles: refused attempts to write the unserved kind are counted for each object, at most
// twelve, and not as writes. Profiles that went with their CRD count as neither deleted nor created
// if each comes again, once; what that takes may be written besides. Meanwhile, PlacementDecisions
// may lack them. Copies of tokens stay. After five seconds without one of these kinds, two more writes of
// each addon's status may say so. RoleBindings that the reference deletes and creates again may stay if
// ManagedServiceAccounts are not served or recreated: any account that is restored may need them.
//
// Two more faults update the CRDs of ClusterProfiles and of SIG-Multicluster's PlacementDecisions, in
// the same stories and in the same way (crds.go). Nothing may change for the manager, and the oracles
// are as usual. The next plan has a new hub:
//
//   - new-version: one more version is served, with the same schema and no conversion, and objects are
//     stored in it from now on.
//   - new-field: likewise, and both versions have one more field.
//
// ClusterProfiles are not recreated in stories that delete and create one themselves, nor where
// another client writes to one: what then counts as the effect of the fault depends on which of
// the two was first. PlacementDecisions are not recreated, either: most of what is checked of them
// is that references stay, and those the fault takes.
//
// The other two faults change how the API server answers throughout (package proxy):
//
//   - slow-webhook: every write into one consumer namespace takes effect after eight seconds
//     (slow-webhook-29s: after 29; API servers grant a webhook 30). Writes into other consumer
//     namespaces must be complete before the first slow one is, if the act has both, or before the last one
//     if the story waits before it goes on. This compares their order and no durations. After five seconds, two
//     more writes of each addon's status may say that a copy is late, and no longer.
//   - lagging: the manager is killed right after its first write of the act, and starts with an API
//     server that is cut off from etcd: until ten seconds after its first list (lagging-1s: one second,
//     lagging-60s: a minute), lists for informers show the hub as it was before the act, and watches
//     show nothing newer. Reads without a resource version, which must be consistent, are current. On
//     the wire, informers' lists have the resource version 0; the proxy asks for exactly the one before
//     the act instead. It refuses watches that begin with what exists, so that client-go lists.
//     RoleBindings that the reference deletes and creates again may stay, because the manager may never
//     see why they should go.
//
// One plan follows another on the same hub, with the same manager unless the fault or a finding
// has changed it; before each, the hub is emptied, and that is checked. In install, rollback and spread, a plan does
// not start with an empty hub if the one before was of its story, had no finding, and had no fault but one of a write,
// an event or a watch, and if the plan needs no new programs: the story then undoes what it has done, until the hub is
// in the reference's state before.
//
// # Oracles
//
// A plan passes if all of these are content (oracle.go):
//
//   - the state after is that of the reference, in a bounded time;
//   - every object was created and deleted as often as in the reference;
//   - there were at most twice as many writes, besides what the section Plans allows, and not counting
//     those that did not reach a hub that was away, nor, for each write of another client to profiles, one
//     that is refused as a conflict;
//   - for three seconds after the state was reached there were none, one plan in a hundred of
//     TestRobust for a minute; but if an event is missing or late, a write of its object may be refused as a
//     conflict or find no such object, and if watches end, a deletion of each object may find none;
//   - at every moment, as an independent watcher saw it past the proxy: profiles only of pairs
//     that are selected at some time, none gone of those that stay selected, others'
//     objects untouched, and no token, searched by its value in every watched object and in all that the
//     manager sends, where it must never be, nor in the manager's log;
//   - in the order of their versions, nothing refers to a profile before that exists, no profile goes before
//     what refers to it, except three seconds after the latest step of the story or start of a manager, what is
//     always chosen keeps its reference and its access providers, and a copy of a token belongs to a profile that
//     exists (order.go); not after a restore of etcd, which uses versions again;
//   - what a consumer saw of a property, of the cluster's or of another client's, and of a copied
//     token, is a subsequence of what was written, and ends with the last, no property goes
//     while its profile stays, and copies hold nothing else;
//   - no ManifestWork with the agent of a cluster that stays shown is deleted, and where the story
//     says so, it deploys what was rolled out, in that order;
//   - the manager did not end by itself, nor while the hub was emptied before, unless it lost its Lease to a
//     pause or an outage, was started while the hub was away, or saw that the hub had been restored.
//
// Verdicts: "finding" is the manager's; "broken" is everything else, such as an error of the
// proxy or a hub that cannot be emptied, and such a plan runs again; "not reached" means that twice the write or
// event of the plan did not come, so that nothing was injected: such a plan does not count as run. A story that
// never reaches its state, before or after the fault, ends at its bound, and is a finding. Each outcome says how
// busy the machine was: on a busy one, the bounds of time are what to doubt. Findings begin with the oracle that
// they violate; the summary counts plans by it. Results of different writers and programs, and of different
// versions of the suite, are kept apart. An interrupt lets the plans end that have begun, and prints the summary.
//
// # Running
//
//	make robust                       # all plans, an hour at a time; the next run goes on
//	make robust TIME=8h SEED=7
//	make robust STORY=register-again-1000
//	make robust PLAN='edit 409 patch clusterprofiles.multicluster.x-k8s.io/status team-a/c1 2'
//	make robust PLANS=40 SEED=7       # 40 plans of some stories, which the seed chooses, and the story of many
//	                                  # clusters without a fault. Left out are stories with components, known
//	                                  # findings, and faults that take long. A plan with a finding that a busy
//	                                  # machine may cause runs again, and fails only if both runs have one
//	make robust WRITER=agent          # likewise, with this addon's agent
//	make robust WRITER=upstream       # likewise, with upstream's own writers
//	make robust-reverts               # shows what finds each known fix that is taken away
//
// # Reverts
//
// A patch in the folder reverts takes one known fix away, and its head names plans, after a line
// "Writer: agent" if they are the agent's. One of these must have a finding with it, and none without it, or the
// suite would not have found what was wrong. That the program ends by itself does not count. make verify checks
// that all patches apply, also those of the folder versions.
//
// docs/reliability.md has what ran, and docs/reliability-findings.md what was found.
package faults
