package decisions

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// hub is shared by tests, whose managers act on all of it: they leave it empty.
var hub = apitest.New(apitest.Hub(), apitest.ClusterProfile(), apitest.PlacementDecision())

func TestMain(m *testing.M) { apitest.Main(m, hub) }

// rights are those doc.go lists, with those of the packages it names.
func rights() []rbacv1.PolicyRule {
	rule := func(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	return []rbacv1.PolicyRule{
		rule("cluster.open-cluster-management.io",
			[]string{"managedclusters", "managedclustersets", "managedclustersetbindings", "placements", "placementdecisions"},
			"list", "watch"),
		rule("addon.open-cluster-management.io", []string{"managedclusteraddons", "clustermanagementaddons"}, "list", "watch"),
		rule("multicluster.x-k8s.io", []string{"clusterprofiles"}, "list", "watch", "create", "patch", "delete"),
		rule("multicluster.x-k8s.io", []string{"clusterprofiles/status"}, "patch"),
		rule("multicluster.x-k8s.io", []string{"placementdecisions"}, "list", "watch", "create", "patch", "delete"),
		rule("", []string{"namespaces"}, "list", "watch"),
		rule("apiextensions.k8s.io", []string{"customresourcedefinitions"}, "get", "list", "watch"),
		rule("events.k8s.io", []string{"events"}, "create"),
	}
}

// world is a hub with a namespace that binds a set, and a manager that publishes decisions
// there.
type world struct {
	*ocmtest.Hub
	whole *testing.T
	wire  *apitest.Wire
	cfg   *rest.Config
	time  *apitest.Clock
	ns    string
	set   string

	rule   *selection.Rule
	refs   *Decisions
	looked *looked
	stop   func()
}

// looked are the pairs that subscribers of Decisions were told to reconcile.
type looked struct {
	mu    sync.Mutex
	pairs map[types.NamespacedName]int
}

func (l *looked) at(pair types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pairs[pair]++
}

func (l *looked) count(pair types.NamespacedName) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pairs[pair]
}

func newWorld(t *testing.T, server *apitest.Server) *world {
	t.Helper()
	w := &world{Hub: ocmtest.New(t, server.Config(t)), whole: t,
		wire: &apitest.Wire{}, time: apitest.Ahead(watch.RestoreTime)}
	user := w.Name("decisions-manager")
	w.MustCreate(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rights()},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		},
	)
	w.cfg = w.wire.Tap(server.User(t, user))
	w.ns, w.set = w.Namespace("team", nil), w.ExclusiveSet("set").Name
	w.Bind(w.ns, w.set)
	return w
}

// in returns the same world for a subtest.
func (w *world) in(t *testing.T) *world {
	sub := *w
	sub.Hub = w.In(t)
	return &sub
}

// clearHub deletes what the manager follows or makes.
func (w *world) clearHub() {
	for _, list := range []client.ObjectList{
		&clusterv1beta1.PlacementList{}, &clusterv1beta1.PlacementDecisionList{},
		&inventoryv1alpha1.PlacementDecisionList{}, &inventoryv1alpha1.ClusterProfileList{},
	} {
		w.Clear(list)
	}
}

func (w *world) manager() manager.Manager {
	limits := profiles.Limits{Properties: 1000, PropertyBytes: 64 << 10}
	byObject := selection.CacheOptions()
	maps.Copy(byObject, inventory.CacheOptions(limits))
	maps.Copy(byObject, CacheOptions())
	byObject[&addonv1beta1.ManagedClusterAddOn{}] = cache.ByObject{
		Field: fields.OneTermEqualSelector(metav1.ObjectNameField, "cluster-inventory"),
	}
	return ocmtest.NewManager(w.whole, w.cfg, byObject)
}

// start runs only the decisions, until w.stop is called or the test ends. The test itself
// says how profiles stand.
func (w *world) start() {
	w.T.Helper()
	mgr := w.manager()
	definitions := w.definitions(mgr)
	rule := selection.New(mgr.GetCache(), mgr.GetAPIReader(), definitions, w.time)
	w.add(mgr, Options{Rule: rule, Definitions: definitions, Clock: w.time})
	w.looked = &looked{pairs: map[types.NamespacedName]int{}}
	w.refs.Subscribe(w.looked.at)
	apitest.Must(w.T, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := rule.Prepare(ctx); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	})))
	w.stop = apitest.Run(w.whole, mgr.Start)
}

func (w *world) add(mgr manager.Manager, opts Options) {
	w.T.Helper()
	var err error
	w.refs, err = Add(w.whole.Context(), mgr, opts)
	apitest.Must(w.T, err)
	w.rule = opts.Rule
}

// definitions follow CRDs, as the manager's do.
func (w *world) definitions(mgr manager.Manager) *watch.Definitions {
	w.T.Helper()
	definitions := watch.NewDefinitions(mgr.GetAPIReader(), w.time)
	apitest.Must(w.T, definitions.AddTo(mgr, "definitions"))
	return definitions
}

func (w *world) pair(cluster string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.ns, Name: cluster}
}

// withdraw says that a cluster's profile must not be referred to, and reports whether it is not.
func (w *world) withdraw(cluster string) bool {
	w.rule.AllowReferences(w.pair(cluster), selection.No)
	return w.refs.Refer(w.T.Context(), w.pair(cluster)) == selection.No
}

func (w *world) admit(clusters ...string) {
	for _, cluster := range clusters {
		w.rule.AllowReferences(w.pair(cluster), selection.Yes)
	}
}

// choose plays OCM's scheduler: it creates a publishing Placement if there is none, writes
// its slices, with separate ones for each group, and then its status.
func (w *world) choose(placement string, groups ...[]string) {
	w.T.Helper()
	p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.ns, Name: placement, Labels: map[string]string{"inventory.open-cluster-management.io/publish": "true"},
	}}
	if !w.Find(p) {
		w.MustCreate(p)
	}
	if len(groups) == 0 {
		groups = [][]string{nil}
	}
	n, total := 0, 0
	for index, clusters := range groups {
		total += len(clusters)
		for rest := clusters; ; {
			n++
			size := min(len(rest), 100)
			w.decision(placement, n, index, rest[:size])
			if rest = rest[size:]; len(rest) == 0 {
				break
			}
		}
	}
	for n++; ; n++ {
		surplus := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns,
			Name: decisionName(placement, n)}}
		if !w.Find(surplus) {
			break
		}
		w.MustDelete(surplus)
	}
	apitest.EditStatus(w, p, func(p *clusterv1beta1.Placement) {
		p.Status.NumberOfSelectedClusters = int32(total)
		p.Status.Conditions = []metav1.Condition{
			ocmtest.Condition("PlacementMisconfigured", "False", "Succeedconfigured", ""),
			ocmtest.Condition("PlacementSatisfied", "True", "AllDecisionsScheduled", ""),
		}
		p.Status.DecisionGroups = []clusterv1beta1.DecisionGroupStatus{}
	})
}

func decisionName(placement string, n int) string { return fmt.Sprintf("%s-decision-%d", placement, n) }

// decision writes one slice of OCM's.
func (w *world) decision(placement string, n, group int, clusters []string) {
	w.T.Helper()
	if len(placement) > 63 {
		return // no label can name it
	}
	d := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.ns, Name: decisionName(placement, n), Labels: map[string]string{
			"cluster.open-cluster-management.io/placement":            placement,
			"cluster.open-cluster-management.io/decision-group-index": strconv.Itoa(group),
			"cluster.open-cluster-management.io/decision-group-name":  "",
		},
	}}
	if !w.Find(d) {
		w.MustCreate(d)
	}
	apitest.EditStatus(w, d, func(d *clusterv1beta1.PlacementDecision) {
		d.Status.Decisions = []clusterv1beta1.ClusterDecision{}
		for _, cluster := range clusters {
			d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
		}
	})
}

// slices returns this addon's slices of a Placement, by index.
func (w *world) slices(placement string) []inventoryv1alpha1.PlacementDecision {
	w.T.Helper()
	list := &inventoryv1alpha1.PlacementDecisionList{}
	w.MustList(list, client.InNamespace(w.ns), client.MatchingLabels{
		"app.kubernetes.io/managed-by": "cluster-inventory-addon", "multicluster.x-k8s.io/decision-key": placement,
	})
	slices.SortFunc(list.Items, func(a, b inventoryv1alpha1.PlacementDecision) int {
		index := func(d inventoryv1alpha1.PlacementDecision) int {
			n, _ := strconv.Atoi(d.Labels["multicluster.x-k8s.io/decision-index"])
			return n
		}
		return index(a) - index(b)
	})
	return list.Items
}

// shown are the references of a Placement's slices, as "a b|c", slice by slice.
func (w *world) shown(placement string) string {
	w.T.Helper()
	var parts []string
	for i, one := range w.slices(placement) {
		if got := one.Labels["multicluster.x-k8s.io/decision-index"]; got != strconv.Itoa(i) {
			return fmt.Sprintf("slice %d has the index %q", i, got)
		}
		var names []string
		for _, d := range one.Decisions {
			names = append(names, d.ClusterProfileRef.Name)
		}
		parts = append(parts, strings.Join(names, " "))
	}
	return strings.Join(parts, "|")
}

const none = "none"

// shows waits until the slices of a Placement are as shown; none means that there are none.
func (w *world) shows(placement, want string) {
	w.T.Helper()
	w.Eventually("the slices of "+placement, func() string {
		got := w.shown(placement)
		if len(w.slices(placement)) == 0 {
			got = none
		}
		return cmp.Diff(want, got)
	})
}

// follows waits until the manager has processed all that happened before to Placements
// chosen before: it creates a slice of a later one.
func (w *world) follows() {
	w.T.Helper()
	name := w.Name(fmt.Sprint("later", len(w.wire.Writes("placementdecisions"))))
	w.admit(name)
	w.choose(name, []string{name})
	w.shows(name, name)
}

// written are the writes of PlacementDecisions, without those of follows.
func (w *world) written() []string {
	var list []apitest.Call
	for _, call := range w.wire.Writes("placementdecisions") {
		if !call.Mentions("later") {
			list = append(list, call)
		}
	}
	return apitest.Summarize(list)
}

func (w *world) wrote(what string, want ...string) {
	w.T.Helper()
	for i := range want {
		want[i] += " placementdecisions"
	}
	if diff := cmp.Diff(want, w.written(), equateEmpty); diff != "" {
		w.T.Errorf("%s: writes (-want +got):\n%s", what, diff)
	}
}

var equateEmpty = cmp.FilterValues(func(a, b []string) bool { return len(a) == 0 && len(b) == 0 }, cmp.Ignore())

// some are n names of clusters.
func some(n int) []string {
	names := make([]string, n)
	for i := range n {
		names[i] = name(i)
	}
	return names
}
