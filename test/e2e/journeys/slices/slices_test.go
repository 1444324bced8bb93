package slices

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/simulated"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/witness"
)

const (
	set       = "slices"
	setLabel  = "cluster.open-cluster-management.io/clusterset"
	canary    = "journey-canary"
	placement = "cluster-inventory" // the chart's
	bound     = "bound"             // a consumer that sees all clusters of the set
	choosing  = "choosing"          // a consumer with a publishing Placement
	view      = "view"

	// before and after are how many simulated clusters sort before and after the spoke: it
	// is the last of the first slice, which holds a hundred.
	before, after = 99, 51
	canaryEvery   = 13

	// The product keeps copies for ten seconds, and profiles and references for two minutes,
	// while a cluster is in no slice. The story may see it go a second later than the product.
	keepsCopies   = 9 * time.Second
	keepsProfiles = 2*time.Minute - time.Second

	// forgotten is how long slices may be incomplete before the story has OCM decide again: it
	// repeats a write that failed only after ten minutes.
	forgotten = 30 * time.Second
)

// An admin changes the Placement that installs the addon, as on any day: clusters join and
// leave at both ends, a group of canaries comes, changes and goes, labels change. Clusters
// that stay chosen keep their profiles, the references to them and the copies of
// their tokens, and nothing is cleaned up on the spoke.
func TestClustersThatMoveBetweenSlicesLoseNothing(t *testing.T) {
	f := populated(t)
	for _, action := range f.actions() {
		began := time.Now()
		action.do(t)
		f.settled(t, action.what)
		f.lostNothing(t, action.what, began)
	}
	f.followsTheSteps(t)
	f.spokeKept(t)
}

// followsTheSteps adds a group of canaries in the steps of docs/placements.md, under "Changing
// the install Placement": OCM deletes no addon.
func (f *population) followsTheSteps(t *testing.T) {
	t.Helper()
	const what = "a group of canaries comes in the documented steps"
	began := time.Now()
	values := func(strategy string, more ...string) {
		journeys.Installed(t, append([]string{
			"--set", "installStrategy.type=" + strategy, "--set", "installStrategy.placement.clusterSet=" + set,
		}, more...)...)
	}
	groups := []string{"--set-json", fmt.Sprintf(`installStrategy.placement.decisionStrategy={"groupStrategy":{`+
		`"decisionGroups":[{"groupName":"canary","groupClusterSelector":{"labelSelector":{"matchLabels":{%q:"first"}}}}]}}`,
		canary)}
	values("Manual")
	values("Manual", groups...)
	f.settled(t, what+": it is decided")
	values("Placements", groups...)
	f.settled(t, what)
	f.lostNothing(t, what, began)
	if deleted := f.addons.Since(began, f.always); len(deleted) > 0 {
		t.Errorf("%s: OCM deleted %d addons: %v", what, witness.Different(deleted), some(deleted))
	}
}

// population is the clusters of the story.
type population struct {
	hub      client.WithWatch
	clusters *simulated.Clusters
	ca       []byte
	// chosen are the clusters that the Placements choose now, and always those that they
	// chose from the first action on.
	chosen, always map[string]bool
	began          time.Time

	decided, viewed, addons, cleanups *witness.Log
	consumers                         map[string]*witness.Consumer
	// On the spoke.
	jobs, claims, deployments *witness.Log
}

// populated installs the addon by a Placement on the spoke and on the simulated clusters.
func populated(t *testing.T) *population {
	t.Helper()
	hub := journeys.Hub(t)
	cfg, err := journeys.Fleet.Hub()
	apitest.Must(t, err)
	f := &population{
		hub: hub, clusters: simulated.NewClusters(hub), ca: cfg.CAData, chosen: map[string]bool{},
		consumers: map[string]*witness.Consumer{},
	}
	apitest.Must(t, journeys.Fleet.AccountKind(t.Context()))
	apitest.Must(t, hub.Create(t.Context(), &clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: set},
		Spec: clusterv1beta2.ManagedClusterSetSpec{
			ClusterSelector: clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel},
		},
	}))
	for _, namespace := range []string{bound, choosing} {
		apitest.Must(t, hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
		journeys.Bind(t, namespace, set)
	}
	f.watch(t)

	// The spoke comes first, so that its agent need not wait for the others' turn.
	journeys.MoveTo(t.Context(), t, journeys.Cluster1, set)
	f.chosen[journeys.Cluster1] = true
	f.share(t, journeys.Cluster1)
	journeys.Installed(t, "--set", "installStrategy.type=Placements", "--set", "installStrategy.placement.clusterSet="+set)
	apitest.Must(t, hub.Create(t.Context(), &clusterv1beta1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: choosing, Name: view, Labels: map[string]string{journeys.Publish: "true"}},
		Spec:       clusterv1beta1.PlacementSpec{ClusterSets: []string{set}},
	}))
	journeys.Available(t, journeys.Cluster1)
	journeys.Sets(t, journeys.Cluster1, "slices.example", "kept")

	var names []string
	for i := range before {
		names = append(names, fmt.Sprintf("a-%02d", i))
	}
	for i := range after {
		names = append(names, fmt.Sprintf("z-%02d", i))
	}
	f.join(t, names...)
	f.settled(t, "the addon is everywhere")
	apitest.Within(t, journeys.Eventually, "the agent has written its claims", func(context.Context) error {
		if len(f.claims.Present()) == 0 {
			return errors.New("there are none")
		}
		return nil
	})
	f.always, f.began = maps.Clone(f.chosen), time.Now()
	return f
}

// watch follows what may be lost, on the hub and on the spoke.
func (f *population) watch(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	agents := simulated.NewWorkAgents(f.hub, before+after)
	agents.Run(ctx)
	var err error
	f.cleanups, err = witness.Cleanups(ctx, f.hub, agents)
	apitest.Must(t, err)
	f.addons, err = witness.Addons(ctx, f.hub)
	apitest.Must(t, err)
	f.decided, err = witness.Slices(ctx, f.hub, journeys.ManagerNS, placement)
	apitest.Must(t, err)
	f.viewed, err = witness.Slices(ctx, f.hub, choosing, view)
	apitest.Must(t, err)
	spoke := journeys.ClientOf(t, journeys.Cluster1)
	named := func(object *metav1.PartialObjectMetadata) (string, bool) { return object.Name, true }
	ours := func(object *metav1.PartialObjectMetadata) (string, bool) {
		return object.Name, object.Labels[journeys.MarkLabel] == journeys.MarkValue
	}
	f.jobs, f.claims, f.deployments = witness.NewLog(), witness.NewLog(), witness.NewLog()
	apitest.Must(t, errors.Join(
		f.jobs.Objects(ctx, spoke, batchv1.SchemeGroupVersion.WithKind("Job"), journeys.AgentNS, named),
		f.claims.Objects(ctx, spoke, schema.GroupVersion(clusterv1alpha1.GroupVersion).WithKind("ClusterClaim"), "", ours),
		f.deployments.Objects(ctx, spoke, appsv1.SchemeGroupVersion.WithKind("Deployment"), journeys.AgentNS, named)))
}

// follow follows what the consumers see. It waits for the kinds that the chart brings.
func (f *population) follow(t *testing.T) {
	t.Helper()
	for _, namespace := range []string{bound, choosing} {
		consumer, err := witness.Follow(t.Context(), f.hub, namespace)
		apitest.Must(t, err)
		f.consumers[namespace] = consumer
	}
}

// join creates simulated clusters in the set.
func (f *population) join(t *testing.T, names ...string) {
	t.Helper()
	clusters := make([]simulated.Cluster, len(names))
	for i, name := range names {
		labels := map[string]string{setLabel: set}
		if i%canaryEvery == 0 {
			labels[canary] = "first"
		}
		clusters[i] = simulated.Cluster{Name: name, Labels: labels}
		f.chosen[name] = true
	}
	apitest.Must(t, f.clusters.Create(t.Context(), clusters...))
	f.share(t, names...)
}

// share gives clusters an account whose token is copied to both consumers.
func (f *population) share(t *testing.T, names ...string) {
	t.Helper()
	apitest.Must(t, simulated.Each(t.Context(), len(names), func(ctx context.Context, i int) error {
		account := simulated.NewAccount(f.hub, names[i], f.ca)
		if err := account.Create(ctx); err != nil {
			return err
		}
		return account.Share(ctx, bound+","+choosing)
	}))
}

// label sets a cluster's label; "" removes it.
func (f *population) label(t *testing.T, cluster, label, value string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, label, value)
	if value == "" {
		patch = fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, label)
	}
	object := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	apitest.Must(t, f.hub.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)))
}

// group gives the Placements a first group of the clusters with this value of the canary
// label; "" removes it.
func (f *population) group(t *testing.T, value string) {
	t.Helper()
	patch := `{"spec":{"decisionStrategy":null}}`
	if value != "" {
		patch = fmt.Sprintf(`{"spec":{"decisionStrategy":{"groupStrategy":{"decisionGroups":[{"groupName":"canary",`+
			`"groupClusterSelector":{"labelSelector":{"matchLabels":{%q:%q}}}}]}}}}`, canary, value)
	}
	f.patchPlacements(t, patch)
}

// patchPlacements patches the Placement that installs the addon and the one that publishes.
func (f *population) patchPlacements(t *testing.T, patch string) {
	t.Helper()
	for _, key := range []types.NamespacedName{{Namespace: journeys.ManagerNS, Name: placement}, {Namespace: choosing, Name: view}} {
		object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		apitest.Must(t, f.hub.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
}

type action struct {
	what string
	do   func(t *testing.T)
}

// actions are the admin's day.
func (f *population) actions() []action {
	const front, end, leaver = "0-front", "zz-end", "a-03"
	return []action{
		{"a cluster joins in front", func(t *testing.T) { f.join(t, front) }},
		{"a cluster joins at the end", func(t *testing.T) { f.join(t, end) }},
		{"a group of canaries comes", func(t *testing.T) { f.group(t, "first") }},
		{"one more canary", func(t *testing.T) { f.label(t, "a-01", canary, "first") }},
		{"one canary less", func(t *testing.T) { f.label(t, "a-13", canary, "") }},
		{"the canaries are others", func(t *testing.T) {
			for _, cluster := range []string{"a-05", "a-50", "z-07"} {
				f.label(t, cluster, canary, "second")
			}
			f.group(t, "second")
		}},
		{"the canaries go", func(t *testing.T) { f.group(t, "") }},
		{"a cluster in front leaves the set", func(t *testing.T) {
			delete(f.chosen, leaver)
			delete(f.always, leaver)
			f.label(t, leaver, setLabel, "")
		}},
		{"and comes back", func(t *testing.T) {
			f.chosen[leaver] = true
			f.label(t, leaver, setLabel, set)
		}},
	}
}

// settled waits until the Placements have decided, and every chosen cluster has everything,
// for a while.
func (f *population) settled(t *testing.T, what string) {
	t.Helper()
	if len(f.consumers) == 0 {
		f.follow(t)
	}
	began := time.Now()
	decides := began
	type part struct {
		what string
		log  *witness.Log
	}
	parts := []part{{"the install Placement", f.decided}, {"the publishing Placement", f.viewed}, {"addons", f.addons}}
	for namespace, consumer := range f.consumers {
		parts = append(parts, part{"profiles of " + namespace, consumer.Profiles},
			part{"copies of " + namespace, consumer.Copies})
	}
	parts = append(parts, part{"references", f.consumers[choosing].References})
	apitest.Within(t, 2*journeys.Eventually, "after: "+what, func(context.Context) error {
		if time.Since(began) < journeys.Quiet {
			return errors.New("it has hardly begun")
		}
		for _, part := range parts {
			if err := part.log.Exactly(f.chosen); err != nil {
				if isSlices := part.log == f.decided || part.log == f.viewed; isSlices && time.Since(decides) > forgotten {
					decides = time.Now()
					t.Logf("%s: after %s, %s: %v; OCM is made to decide again", what,
						time.Since(began).Round(time.Second), part.what, err)
					f.patchPlacements(t, fmt.Sprintf(`{"metadata":{"annotations":{"journey":%q}}}`, decides))
				}
				return fmt.Errorf("%s: %w", part.what, err)
			}
			if since := time.Since(part.log.Changed()); since < journeys.Quiet {
				return fmt.Errorf("%s changed %s ago", part.what, since)
			}
		}
		return nil
	})
}

// lostNothing checks that no cluster that stayed chosen lost anything that a consumer
// sees, unless OCM left it out of all slices for longer than the product waits.
func (f *population) lostNothing(t *testing.T, what string, began time.Time) {
	t.Helper()
	moved := f.decided.Since(began, f.always)
	deleted := f.addons.Since(began, f.always)
	t.Logf("%s: %d clusters were in no slice, for %s at most; OCM deleted %d addons, back after %s at most; all took %s",
		what, witness.Different(moved), witness.Longest(moved), witness.Different(deleted), witness.Longest(deleted),
		time.Since(began).Round(time.Second))
	for namespace, consumer := range f.consumers {
		for kind, log := range map[string]*witness.Log{
			"profile": consumer.Profiles, "reference": consumer.References, "copy": consumer.Copies,
		} {
			lost := slices.DeleteFunc(log.Since(began, f.always), func(absence witness.Absence) bool {
				left := f.inNoSlice(namespace, absence)
				excused := left >= keepsProfiles || kind == "copy" && left >= keepsCopies
				if excused {
					t.Logf("%s: in namespace %s %s lost its %s after %s in no slice", what, namespace, absence.Name, kind, left)
				}
				return excused
			})
			if len(lost) == 0 {
				continue
			}
			t.Errorf("%s: in namespace %s %d clusters that were chosen all along lost their %s, for %s at most: %v", what,
				namespace, witness.Different(lost), kind, witness.Longest(lost), some(lost))
		}
	}
	cleaned := 0
	for _, cluster := range f.cleanups.CreatedSince(began) {
		if f.always[cluster] {
			cleaned++
		}
	}
	if cleaned > 0 {
		t.Errorf("%s: %d clusters that were chosen all along were sent the clean-up Job", what, cleaned)
	}
}

// inNoSlice is for how long a cluster was in no slice on which a namespace depends when it
// lost something there.
func (f *population) inNoSlice(namespace string, lost witness.Absence) time.Duration {
	left := f.decided.AwayBefore(lost.Name, lost.From)
	if namespace == choosing {
		left = max(left, f.viewed.AwayBefore(lost.Name, lost.From))
	}
	return left
}

func some(absences []witness.Absence) []string {
	names := make([]string, 0, len(absences))
	for _, absence := range absences {
		names = append(names, absence.Name)
	}
	return names[:min(len(names), 3)]
}

// spokeKept checks that nothing was cleaned up on the spoke, and logs what its agent went
// through.
func (f *population) spokeKept(t *testing.T) {
	t.Helper()
	journeys.Available(t, journeys.Cluster1)
	if ran := f.jobs.CreatedSince(f.began); slices.Contains(ran, "cluster-inventory-cleanup") {
		t.Errorf("these Jobs ran on the spoke: %v", ran)
	}
	claims := f.claims.Since(f.began, nil)
	if len(claims) > 0 {
		t.Errorf("%d ClusterClaims of the spoke went, for %s at most: %v", witness.Different(claims),
			witness.Longest(claims), some(claims))
	}
	agents := f.deployments.Since(f.began, map[string]bool{"cluster-inventory-agent": true})
	t.Logf("the agent was reinstalled %d times, its Deployment away for %s at most", len(agents), witness.Longest(agents))
}
