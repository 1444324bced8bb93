package faults

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// Namespaces of all stories, which stay.
const (
	teamA, teamB = "team-a", "team-b"
	// stranger binds nothing, and must never get anything.
	stranger = "stranger"
	// installer has the Placement by which the addon is installed, and shows no profiles.
	installer = "installer"
)

// consumers are the namespaces in which stories publish clusters.
var consumers = []string{teamA, teamB}

var clusterNames = []string{"c1", "c2", "c3", "c4", "c5", "c6"}

// namespaces of all stories but for those of fleetNames, which only some hubs have.
var namespaces = slices.Concat(consumers, []string{stranger, installer}, clusterNames)

const (
	// reader is the account of clusters that have one.
	reader = "reader"
	// edited is the property that stories edit.
	edited = "size.example.com"
	// foreign is the name of what others have in a team's namespace.
	foreign = "foreign"

	// leaseSeconds is how often clusters should renew their Lease.
	leaseSeconds = 3600

	// tokensLast is for how long tokens are valid, also where a clock is wrong.
	tokensLast = 4 * clockError

	// secretMissing is for how long a Secret is gone that is replaced.
	secretMissing = 4 * time.Second

	// sliceTakes is how long Open Cluster Management takes to write a slice of decisions.
	sliceTakes = 3 * time.Second

	// stepPatience bounds the wait of a story for the effect of one step before the next.
	stepPatience = 100 * time.Second
)

// world is the hub in one run of a story, as its administrator, Open Cluster Management and
// the clusters act in it.
type world struct {
	*ocmtest.Hub
	// tokens are those of the run by value; each has a name: cluster/account#number.
	tokens map[string]string
	// wrote are the values of the edited property by cluster, and the numbers of the tokens
	// by account, in order.
	wrote map[string][]string
	// missed are the effects that did not come in time: after a step, each has patience to come.
	missed []string
	// steps has, for each step, the earliest time at which its effect may have begun: when that of the step before
	// had come.
	steps []time.Time
	// came is when the last effect came, or the act began.
	came     time.Time
	patience time.Duration
	// hubKubeconfig is the file of an agent with its kubeconfig of the hub, and hook runs its clean-up.
	hubKubeconfig string
	hook          func() ([]byte, error)
	// spokes deploy agents; nil in stories without Open Cluster Management's addon manager.
	spokes *spokes
}

func newWorld(hub *ocmtest.Hub) *world {
	return &world{Hub: hub, tokens: map[string]string{}, wrote: map[string][]string{}}
}

// cluster registers a cluster in an exclusive set, with the addon and with a value of the
// edited property.
func (w *world) cluster(name, set, size string) {
	w.T.Helper()
	cluster := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: ocmtest.InSet(set)},
		// No klusterlet renews its Lease.
		Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: leaseSeconds},
	}
	w.MustCreate(cluster)
	apitest.EditStatus(w, cluster, func(c *clusterv1.ManagedCluster) { c.Status = joined(name, size) })
	w.MustCreate(proxyAddon(name))
	w.Enable(name)
	w.wrote[name] = append(w.wrote[name], size)
}

// joined is the status of a cluster that has joined.
func joined(name, size string) clusterv1.ManagedClusterStatus {
	return clusterv1.ManagedClusterStatus{
		Conditions: []metav1.Condition{
			ocmtest.Condition(clusterv1.ManagedClusterConditionHubAccepted, "True", "Accepted", ""),
			ocmtest.Condition(clusterv1.ManagedClusterConditionJoined, "True", "ManagedClusterJoined", ""),
			ocmtest.Condition(clusterv1.ManagedClusterConditionAvailable, "True", "ManagedClusterAvailable", ""),
		},
		Version:       clusterv1.ManagedClusterVersion{Kubernetes: "v1.35.4"},
		ClusterClaims: claims(name, size),
	}
}

func claims(cluster, size string) []clusterv1.ManagedClusterClaim {
	return []clusterv1.ManagedClusterClaim{
		{Name: "id.k8s.io", Value: cluster}, {Name: edited, Value: size},
	}
}

// unregister deletes a cluster with its addon and its account.
func (w *world) unregister(name string) {
	w.T.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.MustDelete(ocmtest.Addon(name), proxyAddon(name), cluster)
	account := &authv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: reader}}
	if w.Find(account) {
		w.MustDelete(account)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: reader}}
		apitest.Must(w.T, client.IgnoreNotFound(w.Delete(w.T.Context(), secret))) // garbage is collected
	}
}

// unregistered waits until a cluster is gone, which may have finalizers, and reports whether it
// is.
func (w *world) unregistered(name string) bool {
	w.T.Helper()
	w.step("cluster "+name+" is gone", func() bool {
		return !w.Find(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	})
	return len(w.missed) == 0
}

// edit changes the property, as a klusterlet does.
func (w *world) edit(name, size string) {
	w.T.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.wrote[name] = append(w.wrote[name], size)
	apitest.EditStatus(w, cluster, func(c *clusterv1.ManagedCluster) { c.Status.ClusterClaims = claims(name, size) })
}

// move puts a cluster into another exclusive set.
func (w *world) move(name, set string) {
	w.T.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	apitest.Edit(w, cluster, func(c *clusterv1.ManagedCluster) { c.Labels = ocmtest.InSet(set) })
}

// set creates an exclusive set.
func (w *world) set(name string) {
	w.T.Helper()
	w.MustCreate(&clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: clusterv1beta2.ManagedClusterSelector{
			SelectorType: clusterv1beta2.ExclusiveClusterSetLabel,
		}},
	})
}

// unbind ends the binding of a set to a namespace.
func (w *world) unbind(namespace, set string) {
	w.T.Helper()
	w.MustDelete(&clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: set}})
}

// account creates the account of a cluster with a first token.
func (w *world) account(cluster string, targets ...string) {
	w.T.Helper()
	w.rotate(w.Account(cluster, reader, targets...))
}

// rotate gives an account another token.
func (w *world) rotate(account *authv1beta1.ManagedServiceAccount) {
	w.T.Helper()
	// Not w.Rotate, whose tokens have expired where a clock is an hour ahead.
	expires := time.Now().Add(tokensLast)
	token := ocmtest.TokenOf(account.Namespace, account.Name, expires)
	w.StoreToken(account, token, ocmtest.CA())
	w.ReportToken(account, account.Name, expires)
	w.names(account, token)
}

// rotateUnnoticed gives an account another token and does not say so in its status, whose times
// have a resolution of a second.
func (w *world) rotateUnnoticed(cluster string) {
	w.T.Helper()
	account := &authv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: reader}}
	w.MustGet(account)
	token := ocmtest.TokenOf(cluster, reader, account.Status.ExpirationTimestamp.Time)
	w.StoreToken(account, token, ocmtest.CA())
	w.names(account, token)
}

// names gives a token of an account its name.
func (w *world) names(account *authv1beta1.ManagedServiceAccount, token string) {
	of := account.Namespace + "/" + account.Name
	number := fmt.Sprint(len(w.wrote[of]) + 1)
	w.wrote[of] = append(w.wrote[of], number)
	w.tokens[token] = of + "#" + number
}

// rotateNamed is rotate for an account by its cluster.
func (w *world) rotateNamed(cluster string) {
	w.T.Helper()
	account := &authv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: reader}}
	w.MustGet(account)
	w.rotate(account)
}

// place creates a publishing Placement that has decided for the clusters.
func (w *world) place(namespace string, clusters ...string) {
	w.T.Helper()
	w.Placement(namespace, "view", clusters...)
}

// replacePlacement deletes that Placement and creates it again; its decisions stay.
func (w *world) replacePlacement(namespace string, clusters ...string) {
	w.T.Helper()
	old := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "view"}}
	w.MustGet(old)
	w.MustDelete(old)
	again := &clusterv1beta1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: old.Name, Labels: old.Labels}, Spec: old.Spec,
	}
	w.MustCreate(again)
	w.decide(namespace, clusters...)
}

// replaceTokenSecret deletes the Secret of an account's token and creates it again, when the
// manager has looked at a new token again.
func (w *world) replaceTokenSecret(cluster string) {
	w.T.Helper()
	old := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: reader}}
	w.MustGet(old)
	w.MustDelete(old)
	apitest.Must(w.T, pause(w.T.Context(), secretMissing))
	w.MustCreate(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster, Name: reader, Labels: old.Labels, OwnerReferences: old.OwnerReferences,
		},
		Type: old.Type, Data: old.Data,
	})
}

// replaceGate deletes the ClusterRole that shows whether Open Cluster Management writes
// ClusterProfiles itself, and creates it again.
func (w *world) replaceGate() {
	w.T.Helper()
	w.MustDelete(gateRole())
	w.MustCreate(gateRole())
}

// gateRole says that it does not.
func gateRole() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:cluster-manager-registration:controller"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"cluster.open-cluster-management.io"}, Resources: []string{"managedclusters"},
			Verbs: []string{"get"},
		}},
	}
}

// decide changes what it has decided.
func (w *world) decide(namespace string, clusters ...string) {
	w.T.Helper()
	placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "view"}}
	decision := &clusterv1beta1.PlacementDecision{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "view-decision-1"},
	}
	w.Decide(placement, decision, clusters...)
}

// decideSlices changes what it has decided, in slices that take a while each, and then says how
// much that is.
func (w *world) decideSlices(namespace string, of ...[]string) {
	w.T.Helper()
	placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "view"}}
	for i, clusters := range of {
		if i > 0 {
			apitest.Must(w.T, pause(w.T.Context(), sliceTakes))
			w.came = time.Now() // until all slices are written, no cluster counts as absent
		}
		part := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("view-decision-%d", i+1),
			Labels: map[string]string{clusterv1beta1.PlacementLabel: "view"},
		}}
		if !w.Find(part) {
			w.MustCreate(part)
		}
		apitest.EditStatus(w, part, func(d *clusterv1beta1.PlacementDecision) {
			d.Status.Decisions = []clusterv1beta1.ClusterDecision{}
			for _, cluster := range clusters {
				d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
			}
		})
	}
	apitest.EditStatus(w, placement, func(p *clusterv1beta1.Placement) {
		p.Status.NumberOfSelectedClusters = int32(len(slices.Concat(of...))) //nolint:gosec // a handful
	})
}

// step waits for the effect of a step, and notes if it does not come. After that, nothing is
// waited for any more.
func (w *world) step(effect string, seen func() bool) {
	w.T.Helper()
	w.stepWithin(w.patience, 50*time.Millisecond, effect, seen)
}

// stepWithin is step with other times.
func (w *world) stepWithin(limit, every time.Duration, effect string, seen func() bool) {
	w.T.Helper()
	w.steps = append(w.steps, w.came)
	defer func() { w.came = time.Now() }()
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for len(w.missed) == 0 && !seen() {
		if time.Now().After(deadline) {
			w.missed = append(w.missed, fmt.Sprintf("not within %s: %s", limit, effect))
			return
		}
		<-tick.C
	}
}

// shows waits until the profile of a cluster shows a value of the edited property.
func (w *world) shows(namespace, cluster, size string) {
	w.T.Helper()
	w.step(fmt.Sprintf("profile %s/%s shows %s", namespace, cluster, size), func() bool {
		profile := w.Profile(namespace, cluster)
		return profile != nil && sizeOf(profile) == size
	})
}

func sizeOf(profile *inventoryv1alpha1.ClusterProfile) string {
	for _, property := range profile.Status.Properties {
		if property.Name == edited {
			return property.Value
		}
	}
	return ""
}

// gone waits until there is no profile of a cluster.
func (w *world) gone(namespace, cluster string) {
	w.T.Helper()
	w.step(fmt.Sprintf("profile %s/%s is gone", namespace, cluster), func() bool {
		return w.Profile(namespace, cluster) == nil
	})
}

// copied waits until the copies of the first cluster's token in the namespaces are the newest.
func (w *world) copied(namespaces ...string) {
	w.T.Helper()
	newest := w.newest()
	for _, namespace := range namespaces {
		w.step(fmt.Sprintf("token %s is in %s", newest, namespace), func() bool { return w.holds(namespace) == newest })
	}
}

// copiedFirst waits until the copy in one of the namespaces is the newest.
func (w *world) copiedFirst(namespaces ...string) {
	w.T.Helper()
	newest := w.newest()
	w.step(fmt.Sprintf("token %s is in one of %s", newest, namespaces), func() bool {
		return slices.ContainsFunc(namespaces, func(namespace string) bool { return w.holds(namespace) == newest })
	})
}

// withdrawn waits until there is no copy of the first cluster's token, and no right to it or to its
// source.
func (w *world) withdrawn(namespace string) {
	w.T.Helper()
	w.step("no token is in "+namespace, func() bool {
		return w.holds(namespace) == "" && !w.Find(rights(namespace, targetRights)) && !w.Find(rights("c1", sourceRights))
	})
}

// unread waits until there is no right to the tokens of a cluster.
func (w *world) unread(cluster string) {
	w.T.Helper()
	w.step("no right to the tokens of "+cluster, func() bool { return !w.Find(rights(cluster, sourceRights)) })
}

// newest is the name of the newest token of the first cluster.
func (w *world) newest() string {
	const account = "c1/" + reader
	return fmt.Sprintf("%s#%s", account, w.wrote[account][len(w.wrote[account])-1])
}

// holds is the name of the token in the copy of the first cluster's, or empty if there is none.
func (w *world) holds(namespace string) string {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c1-" + reader}}
	if !w.Find(secret) {
		return ""
	}
	return cmp.Or(w.tokens[string(secret.Data["token"])], "unknown")
}

// plantForeign creates what belongs to others in a team's namespace, which must stay as they are: a
// profile of another cluster manager, a Secret and a RoleBinding.
func (w *world) plantForeign() {
	w.T.Helper()
	meta := metav1.ObjectMeta{Namespace: teamA, Name: foreign}
	w.MustCreate(
		&inventoryv1alpha1.ClusterProfile{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: teamA, Name: foreign, Labels: map[string]string{"x-k8s.io/cluster-manager": "another"},
			},
			Spec: inventoryv1alpha1.ClusterProfileSpec{
				ClusterManager: inventoryv1alpha1.ClusterManager{Name: "another"},
			},
		},
		&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"token": []byte("theirs")}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "somebody"}},
		},
	)
}

// isForeign reports whether an object is one of those.
func isForeign(key string) bool { return strings.HasSuffix(key, "/"+foreign) }

// pairs are namespace/cluster for each of some clusters.
func pairs(namespace string, clusters ...string) []string {
	all := make([]string, 0, len(clusters))
	for _, cluster := range slices.Sorted(slices.Values(clusters)) {
		all = append(all, namespace+"/"+cluster)
	}
	return all
}
