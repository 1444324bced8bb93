package faults

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

const (
	// manyClusters is how many clusters the story registers again.
	manyClusters = 1000
	// manyPrefix, with their number, is the name of the story.
	manyPrefix = "register-again-"
	// tokenEvery is of how many neighbors in the order of names two have an account.
	tokenEvery = 40
	// mostWrites bounds the manager's writes for one of the clusters while it is deleted and registered
	// again, with and without a fault, and mostWithToken those for one with an account, which has two
	// profiles and two copies. Without a fault, about 4 and 16 were seen.
	mostWrites, mostWithToken = 10, 24
	// manyPatience is how much longer than others the story may take for each of its steps.
	manyPatience = 5 * time.Minute
	// manyPoll is how often the effect of a step on so many objects is looked for.
	manyPoll = time.Second
)

// manyNames are the clusters of the story.
var manyNames = func() []string {
	names := make([]string, manyClusters)
	for i := range names {
		names[i] = fmt.Sprintf("m%03d", i)
	}
	return names
}()

// many are clusters that are deleted and registered again.
type many struct {
	// all are in the order in which they are deleted, which is random and always the same.
	all []string
	// tokens are those with an account, and atOnce those that are registered again right after they
	// were deleted, perhaps before the manager has seen that.
	tokens, atOnce map[string]bool
}

func newMany(n int) many {
	m := many{all: slices.Clone(manyNames[:n]), tokens: map[string]bool{}, atOnce: map[string]bool{}}
	for i, name := range m.all {
		m.atOnce[name] = i%2 == 1
		m.tokens[name] = i%tokenEvery < 2
	}
	random := rand.New(rand.NewPCG(1, 0)) //nolint:gosec // it is to be repeatable
	random.Shuffle(n, func(i, j int) { m.all[i], m.all[j] = m.all[j], m.all[i] })
	return m
}

// that returns those of which a function is true.
func (m many) that(is func(name string) bool) []string {
	return slices.DeleteFunc(slices.Clone(m.all), func(name string) bool { return !is(name) })
}

// registerAgain is the story of a fleet that is deleted and registered again under its names, as by an
// import. Half of it is registered again when the manager has removed what it had made for it; the other
// half at once. Another cluster stays.
func registerAgain(n int) story {
	m := newMany(n)
	withToken := m.that(func(name string) bool { return m.tokens[name] })
	later := m.that(func(name string) bool { return !m.atOnce[name] })
	cluster := slices.Concat(pairs(teamA, m.all...), pairs(teamB, withToken...))
	kept := []string{teamA + "/c1", teamB + "/c1"}
	s := story{
		name: manyPrefix + strconv.Itoa(n), large: true, patience: manyPatience,
		before: slices.Concat(kept, cluster), after: slices.Concat(kept, cluster), meanwhile: cluster,
		targets: map[string][]string{"c1": {teamA, teamB}},
		races:   m.that(func(name string) bool { return m.atOnce[name] }),
		most:    map[string]int{"c1": mostWithToken},
		// What only the first registrations had.
		outdated: []string{registration(1)},
		setup: func(w *world) {
			apitest.Must(w.T, inParallel(m.all, func(name string) error {
				namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
				err := w.Create(w.T.Context(), namespace)
				if apierrors.IsAlreadyExists(err) { // of the run before
					return nil
				}
				return err
			}))
			w.set(prod)
			w.set(staging)
			w.Bind(teamA, prod)
			w.Bind(teamA, staging)
			w.Bind(teamB, staging)
			w.cluster("c1", staging, "1")
			w.account("c1", teamA, teamB)
			w.registerAll(m, 1, m.all)
		},
		act: func(w *world) { w.registerAllAgain(m, later) },
	}
	for _, name := range m.all {
		s.most[name] = mostWrites
	}
	for _, name := range withToken {
		s.most[name] = mostWithToken
		s.targets[name] = []string{teamA, teamB}
		s.outdated = append(s.outdated, fmt.Sprintf("<%s/%s#1>", name, reader))
	}
	middle := m.that(func(name string) bool { return m.tokens[name] && !m.atOnce[name] })
	s.sample = middle[len(middle)/2]
	return s
}

// storyNamed returns the story of a name among a writer's; registerAgain may be of fewer clusters than
// there.
func storyNamed(among []story, name string) (story, bool) {
	named := func(name string) int {
		return slices.IndexFunc(among, func(s story) bool { return s.name == name })
	}
	if at := named(name); at >= 0 {
		return among[at], true
	}
	if named(manyPrefix+strconv.Itoa(manyClusters)) < 0 {
		return story{}, false
	}
	number, is := strings.CutPrefix(name, manyPrefix)
	n, err := strconv.Atoi(number)
	if !is || err != nil || n < tokenEvery || n > manyClusters {
		return story{}, false
	}
	return registerAgain(n), true
}

// registration is the name of a claim that only one registration of a cluster has.
func registration(number int) string { return fmt.Sprintf("registration-%d.example.com", number) }

// registerAll registers clusters, for the first or the second time.
func (w *world) registerAll(m many, number int, names []string) {
	w.T.Helper()
	var mu sync.Mutex
	apitest.Must(w.T, inParallel(names, func(name string) error { return w.registerOne(m, number, name, &mu) }))
}

// registerOne registers a cluster, with its account. The lock guards what the world notes.
func (w *world) registerOne(m many, number int, name string, mu *sync.Mutex) error {
	set := prod
	if m.tokens[name] {
		set = staging
	}
	size := strconv.Itoa(number)
	cluster := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: ocmtest.InSet(set)},
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: leaseSeconds},
	}
	mu.Lock()
	w.wrote[name] = append(w.wrote[name], size)
	mu.Unlock()
	err := w.createWithStatus(cluster, func() {
		cluster.Status = joined(name, size)
		claim := clusterv1.ManagedClusterClaim{Name: registration(number), Value: name}
		cluster.Status.ClusterClaims = append(cluster.Status.ClusterClaims, claim)
	})
	addon := ocmtest.Addon(name)
	err = errors.Join(err, w.Create(w.T.Context(), proxyAddon(name)), w.createWithStatus(addon, func() {
		addon.Status.HealthCheck.Mode = addonv1beta1.HealthCheckModeCustomized
	}))
	if err != nil || !m.tokens[name] {
		return err
	}
	account := ocmtest.NewAccount(name, reader, teamA, teamB, stranger)
	if err := w.Create(w.T.Context(), account); err != nil {
		return err
	}
	expires := time.Now().Add(time.Hour)
	token := ocmtest.TokenOf(name, reader, expires)
	mu.Lock()
	w.names(account, token)
	mu.Unlock()
	before := account.DeepCopy()
	account.Status.TokenSecretRef = &authv1beta1.SecretRef{Name: reader, LastRefreshTimestamp: metav1.Now()}
	account.Status.ExpirationTimestamp = ptr.To(metav1.NewTime(expires.Truncate(time.Second)))
	return errors.Join(
		w.Create(w.T.Context(), ocmtest.TokenSecret(account, token, ocmtest.CA())),
		w.Status().Patch(w.T.Context(), account, client.MergeFrom(before)),
	)
}

// deleteOne deletes a cluster with its addons, its account and the account's Secret.
func (w *world) deleteOne(m many, name string) error {
	objects := []client.Object{
		ocmtest.Addon(name), proxyAddon(name), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}},
	}
	if m.tokens[name] {
		of := metav1.ObjectMeta{Namespace: name, Name: reader}
		objects = append(objects, &authv1beta1.ManagedServiceAccount{ObjectMeta: of}, &corev1.Secret{ObjectMeta: of})
	}
	for _, object := range objects {
		if err := w.Delete(w.T.Context(), object); err != nil {
			return fmt.Errorf("deleting %T of %s: %w", object, name, err)
		}
	}
	return nil
}

// registerAllAgain deletes all clusters and registers them again, some of them only when nothing that
// the manager made for them is left.
func (w *world) registerAllAgain(m many, later []string) {
	w.T.Helper()
	var mu sync.Mutex
	apitest.Must(w.T, inParallel(m.all, func(name string) error {
		if err := w.deleteOne(m, name); err != nil || !m.atOnce[name] {
			return err
		}
		return w.registerOne(m, 2, name, &mu)
	}))
	w.stepWithin(manyPatience, manyPoll, "nothing of the deleted clusters is left", func() bool {
		return !slices.ContainsFunc(w.made(), func(cluster string) bool { return slices.Contains(later, cluster) })
	})
	if len(w.missed) > 0 {
		return
	}
	w.registerAll(m, 2, later)
}

// made are the clusters that have a profile, a copy of a token or a right to one's source.
func (w *world) made() []string {
	w.T.Helper()
	var clusters []string
	profiles, copies := &inventoryv1alpha1.ClusterProfileList{}, &corev1.SecretList{}
	rights := &metav1.PartialObjectMetadataList{}
	rights.SetGroupVersionKind(rightsKind)
	w.MustList(profiles)
	w.MustList(copies)
	w.MustList(rights)
	for _, profile := range profiles.Items {
		clusters = append(clusters, profile.Name)
	}
	for _, secret := range copies.Items {
		if slices.Contains(consumers, secret.Namespace) {
			clusters = append(clusters, strings.TrimSuffix(secret.Name, "-"+reader))
		}
	}
	for _, right := range rights.Items {
		if right.Name == sourceRights {
			clusters = append(clusters, right.Namespace)
		}
	}
	return clusters
}

// rightsKind is that of RoleBindings.
var rightsKind = rbacv1.SchemeGroupVersion.WithKind("RoleBindingList")

// clusterOf is the cluster that the manager writes an object of a name for, or "".
func clusterOf(key string) string {
	namespace, name, _ := strings.Cut(key, "/")
	if !slices.Contains(consumers, namespace) {
		return namespace
	}
	return strings.TrimSuffix(name, "-"+reader)
}

// sampled are faults that each of a cluster's kinds of writes gets some of, in turns.
var sampled = []proxy.Kind{
	proxy.KillBefore, proxy.Hang, proxy.Status409, proxy.Lost, proxy.KillAfter, proxy.Status429, proxy.Status500,
}

// sampleOf returns the plans of a story of many clusters: faults of what is written for one of them, in
// the middle; of the watches of every kind; and of processes.
func sampleOf(s story, ref reference) []plan {
	var all []plan
	add := func(kind proxy.Kind, key proxy.Key) {
		all = append(all, plan{story: s.name, fault: proxy.Fault{Kind: kind, Key: key}})
	}
	var firsts []proxy.Key
	for _, key := range ref.writes {
		isAlike := func(other proxy.Key) bool { return other.Verb == key.Verb && other.Resource == key.Resource }
		if clusterOf(key.Object) == s.sample && key.N == 1 && !slices.ContainsFunc(firsts, isAlike) {
			firsts = append(firsts, key)
		}
	}
	slices.SortFunc(firsts, func(a, b proxy.Key) int { return strings.Compare(a.String(), b.String()) })
	next := 0
	for range 2 {
		for _, key := range firsts {
			add(sampled[next%len(sampled)], key)
			next++
		}
	}
	var resources []string
	for _, event := range ref.events {
		resources = append(resources, event.Resource)
	}
	for _, resource := range slices.Compact(sorted(resources)) {
		for _, kind := range proxy.OfWatches {
			add(kind, proxy.Key{Resource: resource})
		}
	}
	for _, kind := range []proxy.Kind{paused, restarted, proxy.Lagging} {
		add(kind, proxy.Key{})
	}
	return all
}

// checkEach returns for which clusters more was written than a story allows.
func checkEach(s story, writes []proxy.Write) []string {
	of := map[string][]proxy.Write{}
	for _, write := range writes {
		of[clusterOf(write.Key.Object)] = append(of[clusterOf(write.Key.Object)], write)
	}
	var findings []string
	for _, name := range slices.Sorted(maps.Keys(s.most)) {
		if n := len(of[name]); n > s.most[name] {
			text := fmt.Sprintf("%d for %s, at most %d are right: %s", n, name, s.most[name], listed(of[name]))
			findings = append(findings, text)
		}
	}
	return findings
}

// checkOutdated returns which objects have something in the end of what only an earlier registration had.
func checkOutdated(s story, got result) []string {
	var findings []string
	for _, id := range slices.Sorted(maps.Keys(got.after)) {
		for _, text := range s.outdated {
			if got.converged && strings.Contains(got.after[id], text) {
				findings = append(findings, fmt.Sprintf("%s has %s in the end", id, text))
			}
		}
	}
	return findings
}

// costs says what a run took, how much was written for one cluster, and what.
func (r result) costs() string {
	of, kinds, most, name := map[string]int{}, map[string]int{}, 0, ""
	for _, write := range r.record.Writes {
		cluster := clusterOf(write.Key.Object)
		if of[cluster]++; of[cluster] > most {
			most, name = of[cluster], cluster
		}
		kinds[fmt.Sprintf("%s %s: %d", write.Key.Verb, write.Key.Resource, write.Code)]++
	}
	text := fmt.Sprintf("%d writes, at most %d for one cluster (%s), in %s; the manager had up to %d MiB",
		len(r.record.Writes), most, name, r.took.Round(time.Second/10), r.peak)
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		text += fmt.Sprintf("\n%5d %s", kinds[kind], kind)
	}
	return text
}

// settle takes, from counts, what may or may not happen when a cluster is registered again before the
// manager has seen its deletion: an object is deleted and created again once, or stays.
func settle(races []string, counts map[string]int) {
	if len(races) == 0 {
		return
	}
	for what := range counts {
		id, isDeleted := strings.CutPrefix(what, deleted+" ")
		_, key, _ := strings.Cut(id, " ")
		again := created + " " + id
		if isDeleted && counts[what] > 0 && counts[again] > 0 && slices.Contains(races, clusterOf(key)) {
			counts[what]--
			counts[again]--
		}
	}
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n == 0 })
}
