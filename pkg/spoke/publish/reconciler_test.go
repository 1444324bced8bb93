package publish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/spoketest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

var server = apitest.New(apitest.Spoke(), spoketest.Shipped())

func TestMain(m *testing.M) { apitest.Main(m, server) }

// bench is a reconciler that the test calls, on a real API server from which it
// reads instead of a cache.
type bench struct {
	admin      *apitest.World
	wire       *apitest.Wire
	reconciler *Reconciler
	time       *clocktesting.FakePassiveClock
}

func newBench(t *testing.T) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	apitest.Must(t, clusterv1alpha1.Install(scheme))
	// As in the agent, kinds are not looked up in discovery: a kind that is not served
	// responds with 404.
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersion(clusterv1alpha1.GroupVersion).WithKind("ClusterClaim"), meta.RESTScopeRoot)
	for _, version := range []string{"v1beta1", "v9"} {
		mapper.Add(property.GroupVersionKind(version), meta.RESTScopeRoot)
	}
	b := &bench{
		admin: server.World(t, ocmtest.Scheme()), wire: &apitest.Wire{},
		time: clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0)),
	}
	wired, err := client.New(b.wire.Tap(server.Config(t)), client.Options{Scheme: scheme, Mapper: mapper})
	apitest.Must(t, err)
	b.reconciler = &Reconciler{api: property.API{Version: "v1beta1"},
		cached: wired, live: wired, writer: wired, clock: b.time}
	t.Cleanup(func() {
		b.admin.Clear(&clusterv1alpha1.ClusterClaimList{})
		b.admin.Clear(property.NewList("v1beta1"))
	})
	return b
}

func (b *bench) reconcile() error {
	_, err := b.step()
	return err
}

func (b *bench) step() (reconcile.Result, error) {
	return b.reconciler.Reconcile(
		b.admin.T.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "location"}},
	)
}

func (b *bench) mustReconcile() {
	b.admin.T.Helper()
	apitest.Must(b.admin.T, b.reconcile())
}

// converge reconciles until there is no error, nor anything to wait for.
func (b *bench) converge() {
	b.admin.T.Helper()
	var err error
	for range 5 {
		var result reconcile.Result
		if result, err = b.step(); err == nil && result.RequeueAfter == 0 {
			return
		}
		b.time.SetTime(b.time.Now().Add(result.RequeueAfter))
	}
	b.admin.T.Fatalf("does not converge: %v", err)
}

func (b *bench) property(value string) {
	b.admin.T.Helper()
	b.admin.MustCreate(spoketest.Property("v1beta1", "location", value, nil))
}

func (b *bench) edit(value string) {
	b.admin.T.Helper()
	obj := spoketest.Property("v1beta1", "location", "", nil)
	b.admin.MustMerge(obj, `{"spec":{"value":"`+value+`"}}`)
}

func (b *bench) removeProperty() {
	b.admin.T.Helper()
	b.admin.MustDelete(spoketest.Property("v1beta1", "location", "", nil))
}

func (b *bench) claims() map[string]string {
	b.admin.T.Helper()
	list := &clusterv1alpha1.ClusterClaimList{}
	b.admin.MustList(list)
	claims := map[string]string{}
	for _, c := range list.Items {
		claims[c.Name] = c.Spec.Value
	}
	return claims
}

// situations are all ways to a write, and those to none.
var situations = map[string]struct {
	arrange    func(*bench)
	wantWrites []string
	want       map[string]string
}{
	"new property: created": {
		arrange:    func(b *bench) { b.property("eu") },
		wantWrites: []string{"POST clusterclaims"},
		want:       map[string]string{"location": "eu"},
	},
	"edited property: changed": {
		arrange: func(b *bench) {
			b.property("eu")
			b.converge()
			b.edit("us")
		},
		wantWrites: []string{"PATCH clusterclaims"},
		want:       map[string]string{"location": "us"},
	},
	"property recreated: its owner reference changed": {
		arrange: func(b *bench) {
			b.property("eu")
			b.converge()
			b.removeProperty()
			b.property("eu")
		},
		wantWrites: []string{"PATCH clusterclaims"},
		want:       map[string]string{"location": "eu"},
	},
	"deleted property: deleted": {
		arrange: func(b *bench) {
			b.property("eu")
			b.converge()
			b.removeProperty()
		},
		wantWrites: []string{"DELETE clusterclaims"},
		want:       map[string]string{},
	},
	"property grown too long: deleted": {
		arrange: func(b *bench) {
			b.property("eu")
			b.converge()
			b.edit(strings.Repeat("x", 1025))
		},
		wantWrites: []string{"DELETE clusterclaims"},
		want:       map[string]string{},
	},
	"foreign claim: nothing": {
		arrange: func(b *bench) {
			b.admin.MustCreate(&clusterv1alpha1.ClusterClaim{
				ObjectMeta: metav1.ObjectMeta{Name: "location"}, Spec: clusterv1alpha1.ClusterClaimSpec{Value: "theirs"},
			})
			b.property("eu")
		},
		want: map[string]string{"location": "theirs"},
	},
	"foreign claim without a property: nothing": {
		arrange: func(b *bench) {
			b.admin.MustCreate(&clusterv1alpha1.ClusterClaim{
				ObjectMeta: metav1.ObjectMeta{Name: "location"}, Spec: clusterv1alpha1.ClusterClaimSpec{Value: "theirs"},
			})
		},
		want: map[string]string{"location": "theirs"},
	},
}

func TestReconcileWritesOnceAndThenNothing(t *testing.T) {
	for name, tc := range situations {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			tc.arrange(b)
			b.wire.Reset()
			b.mustReconcile()
			if diff := cmp.Diff(append([]string{}, tc.wantWrites...), b.wire.Sent()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, b.claims()); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
			b.wire.Reset()
			b.mustReconcile()
			if diff := cmp.Diff([]string{}, b.wire.Sent()); diff != "" {
				t.Errorf("writes of a second pass:\n%s", diff)
			}
		})
	}
}

func TestReconcileConvergesAfterAFailedWrite(t *testing.T) {
	faults := map[string]apitest.Fault{
		"conflict":                {Status: http.StatusConflict, Reason: "Conflict"},
		"the server is overtaxed": {Status: http.StatusInternalServerError, Reason: "InternalError"},
		"the request is lost":     {Err: errors.New("connection reset")},
		"the answer is lost":      {Err: errors.New("connection reset"), AfterServer: true},
	}
	for name, tc := range situations {
		if len(tc.wantWrites) == 0 {
			continue
		}
		for fault, how := range faults {
			t.Run(fmt.Sprintf("%s, %s", name, fault), func(t *testing.T) {
				b := newBench(t)
				tc.arrange(b)
				b.wire.FailNthWrite(1, how)
				if err := b.reconcile(); err == nil {
					t.Error("a failed write is no error")
				}
				b.converge()
				if diff := cmp.Diff(tc.want, b.claims()); diff != "" {
					t.Errorf("claims (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// lagging is a reader that has not seen any property yet.
type lagging struct{ client.Reader }

func (l lagging) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if obj.GetObjectKind().GroupVersionKind().Kind == property.Kind {
		key.Name = "not-yet"
	}
	return l.Reader.Get(ctx, key, obj, opts...)
}

func TestClaimStaysWhileTheCacheLacksItsProperty(t *testing.T) {
	b := newBench(t)
	b.property("eu")
	b.converge()
	b.reconciler.cached = lagging{b.reconciler.cached}
	b.wire.Reset()
	b.mustReconcile()
	if diff := cmp.Diff([]string{}, b.wire.Sent()); diff != "" {
		t.Errorf("writes:\n%s", diff)
	}
}

// earlier is a reader that returns one object as it was.
type earlier[T interface {
	client.Object
	DeepCopyInto(T)
}] struct {
	client.Reader
	object T
}

func (e earlier[T]) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if into, ok := obj.(T); ok {
		e.object.DeepCopyInto(into)
		return nil
	}
	return e.Reader.Get(ctx, key, obj, opts...)
}

// The cache of properties may be older than that of claims, as after a restart of the agent while its
// API server lags.
func TestAnOldPropertyIsNotPublished(t *testing.T) {
	withdraw := func(b *bench) {
		b.admin.MustMerge(spoketest.Property("v1beta1", "location", "", nil),
			`{"metadata":{"labels":{"open-cluster-management.io/spoke-only":""}}}`)
	}
	for name, tc := range map[string]struct {
		first string
		since func(*bench)
		want  map[string]string
	}{
		"withdrawn since: no claim":               {first: "eu", since: withdraw, want: map[string]string{}},
		"deleted since: no claim":                 {first: "eu", since: (*bench).removeProperty, want: map[string]string{}},
		"edited since: the claim keeps its value": {first: "eu", since: func(b *bench) { b.edit("us") }, want: map[string]string{"location": "us"}},
		"no longer too long: the claim stays as it is": {
			first: strings.Repeat("x", 1025), since: func(b *bench) { b.edit("us") }, want: map[string]string{"location": "us"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.property(tc.first)
			b.converge()
			old := spoketest.Property("v1beta1", "location", "", nil)
			b.admin.MustGet(old)
			tc.since(b)
			b.converge() // by the agent before the restart
			b.reconciler.cached = earlier[*unstructured.Unstructured]{b.reconciler.cached, old}
			b.wire.Reset()
			b.mustReconcile()
			if diff := cmp.Diff([]string{}, b.wire.Sent()); diff != "" {
				t.Errorf("writes:\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, b.claims()); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
		})
	}
}

// A restored spoke loses an edit, which is repeated before the cache is listed again: it shows no change.
func TestAnEditIsRepeatedAfterARestore(t *testing.T) {
	b := newBench(t)
	b.property("us")
	b.converge()
	lost := spoketest.Property("v1beta1", "location", "", nil)
	b.admin.MustGet(lost)
	b.edit("eu")
	b.converge()
	b.reconciler.cached = earlier[*unstructured.Unstructured]{b.reconciler.cached, lost}
	result, err := b.step()
	apitest.Must(t, err)
	if result.RequeueAfter == 0 {
		t.Error("the agent does not look at the property again")
	}
	b.edit("us")
	b.converge()
	if diff := cmp.Diff(map[string]string{"location": "us"}, b.claims()); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

func TestClaimStaysWhenItsPropertysVersionIsNotServed(t *testing.T) {
	b := newBench(t)
	b.property("eu")
	b.converge()
	b.reconciler.api = property.API{Version: "v9"}
	b.reconciler.cached = lagging{b.reconciler.cached}
	b.wire.Reset()
	if err := b.reconcile(); err == nil {
		t.Error("an absence that proves nothing is no error")
	}
	if diff := cmp.Diff([]string{}, b.wire.Sent()); diff != "" {
		t.Errorf("writes:\n%s", diff)
	}
}

func TestClaimThatChangedHandsIsNotTouched(t *testing.T) {
	for name, arrange := range map[string]func(*bench){
		"to be changed": func(b *bench) { b.edit("us") },
		"to be deleted": func(b *bench) { b.removeProperty() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.property("eu")
			b.converge()
			claim := &clusterv1alpha1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: "location"}}
			b.admin.MustGet(claim)
			b.reconciler.cached = earlier[*clusterv1alpha1.ClusterClaim]{b.reconciler.cached, claim}
			b.admin.MustMerge(claim.DeepCopy(), `{"metadata":{"labels":null}}`)
			arrange(b)
			if err := b.reconcile(); err == nil {
				t.Error("no conflict")
			}
			if diff := cmp.Diff(map[string]string{"location": "eu"}, b.claims()); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
		})
	}
}

// Until the cache shows what was written, or what another client has, an edit waits: from an old claim, it
// would be refused again and again.
func TestAnEditWaitsForTheCache(t *testing.T) {
	for name, wrote := range map[string]func(*bench){
		"an own write": func(b *bench) {
			b.edit("us")
			b.mustReconcile()
		},
		"a conflict": func(b *bench) {
			b.admin.MustMerge(&clusterv1alpha1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: "location"}},
				`{"metadata":{"labels":{"team":"a"}}}`)
			b.edit("us")
			if err := b.reconcile(); err == nil {
				t.Error("no conflict")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.property("eu")
			b.converge()
			claim := &clusterv1alpha1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: "location"}}
			b.admin.MustGet(claim)
			current := b.reconciler.cached
			b.reconciler.cached = earlier[*clusterv1alpha1.ClusterClaim]{current, claim}
			wrote(b)
			b.edit("asia")
			b.wire.Reset()
			if result, err := b.step(); err != nil || result.RequeueAfter != kube.StaleAfter {
				t.Errorf("it waits for %s, %v; want %s", result.RequeueAfter, err, kube.StaleAfter)
			}
			if diff := cmp.Diff([]string{}, b.wire.Sent()); diff != "" {
				t.Errorf("writes while the cache is old:\n%s", diff)
			}
			b.reconciler.cached = current
			b.mustReconcile()
			if diff := cmp.Diff([]string{"PATCH clusterclaims"}, b.wire.Sent()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]string{"location": "asia"}, b.claims()); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWriteIsFinishedButNotStartedAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	writer := &creator{}
	r := &Reconciler{clock: clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0)), writer: writer}
	writer.create = func(ctx context.Context) error {
		cancel()
		return ctx.Err()
	}
	if err := r.write(ctx, nil, &clusterv1alpha1.ClusterClaim{}); err != nil {
		t.Errorf("a write under way was broken off: %v", err)
	}
	begun := false
	writer.create = func(context.Context) error {
		begun = true
		return nil
	}
	err := r.write(ctx, nil, &clusterv1alpha1.ClusterClaim{})
	if begun || !errors.Is(err, context.Canceled) {
		t.Errorf("begun = %v, error = %v; want false, %v", begun, err, context.Canceled)
	}
}

// creator creates as a test says.
type creator struct {
	client.Writer
	create func(context.Context) error
}

func (c *creator) Create(ctx context.Context, _ client.Object, _ ...client.CreateOption) error {
	return c.create(ctx)
}

// A claim that another client keeps changing is repaired at a bounded rate; a change of its
// property is published at once.
func TestContestedClaimWaits(t *testing.T) {
	b := newBench(t)
	b.property("a")
	b.mustReconcile()
	claim := &clusterv1alpha1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: "location"}}
	harm := func(n int) {
		t.Helper()
		b.admin.MustMerge(claim.DeepCopy(), fmt.Sprintf(`{"spec":{"value":"hostile-%d"}}`, n))
	}
	for n := range kube.RepairsAtOnce {
		harm(n)
		b.mustReconcile()
	}
	for n := range kube.RepairsAtOnce { // these are not repairs
		b.edit(fmt.Sprint(n))
		b.mustReconcile()
	}
	b.wire.Reset()
	harm(-1)
	b.mustReconcile()
	if sent := b.wire.Sent(); len(sent) > 0 {
		t.Errorf("written while it must wait: %v", sent)
	}
	b.time.SetTime(b.time.Now().Add(kube.RepairEvery))
	b.mustReconcile()
	if diff := cmp.Diff(map[string]string{"location": "9"}, b.claims()); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	harm(-2)
	b.removeProperty()
	b.mustReconcile()
	if claims := b.claims(); len(claims) > 0 {
		t.Errorf("the removal waits: %v", claims)
	}
}
