package publish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/internal/spoketest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

var server = apitest.New(apitest.Spoke(), spoketest.Shipped())

func TestMain(m *testing.M) { apitest.Main(m, server) }

// bench is a reconciler on a real API server, reconciled by the test, which sees
// every request it sends. It reads from the API server instead of a cache.
type bench struct {
	t          *testing.T
	admin      client.Client
	wire       *apitest.Wire
	reconciler *Reconciler
}

func newBench(t *testing.T) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clusterv1alpha1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	// As in the agent, no kind is asked of discovery: what is not served answers
	// 404.
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersion(clusterv1alpha1.GroupVersion).WithKind("ClusterClaim"), meta.RESTScopeRoot)
	for _, version := range []string{"v1beta1", "v9"} {
		mapper.Add(property.GroupVersionKind(version), meta.RESTScopeRoot)
	}
	wire := &apitest.Wire{}
	newClient := func(wired bool) client.Client {
		cfg := server.Config(t)
		if wired {
			cfg = wire.Tap(cfg)
		}
		c, err := client.New(cfg, client.Options{Scheme: scheme, Mapper: mapper})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	b := &bench{t: t, admin: newClient(false), wire: wire}
	wired := newClient(true)
	b.reconciler = &Reconciler{api: property.API{Version: "v1beta1"}, cached: wired, live: wired, writer: wired}
	t.Cleanup(func() {
		for _, obj := range []client.Object{&clusterv1alpha1.ClusterClaim{}, property.New("v1beta1")} {
			if err := b.admin.DeleteAllOf(context.Background(), obj); err != nil {
				t.Error(err)
			}
		}
	})
	return b
}

func (b *bench) reconcile() error {
	_, err := b.reconciler.Reconcile(b.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "location"}})
	return err
}

// settle reconciles until there is no error.
func (b *bench) settle() {
	b.t.Helper()
	var err error
	for range 5 {
		if err = b.reconcile(); err == nil {
			return
		}
	}
	b.t.Fatalf("does not settle: %v", err)
}

func (b *bench) writes() []string {
	var writes []string
	for _, call := range b.wire.Writes() {
		writes = append(writes, call.Method+" "+call.Resource)
	}
	return writes
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) property(value string) {
	b.t.Helper()
	b.must(b.admin.Create(b.t.Context(), spoketest.Property("v1beta1", "location", value, nil)))
}

func (b *bench) edit(value string) {
	b.t.Helper()
	obj := spoketest.Property("v1beta1", "location", "", nil)
	b.must(b.admin.Patch(b.t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"value":"`+value+`"}}`))))
}

func (b *bench) removeProperty() {
	b.t.Helper()
	b.must(b.admin.Delete(b.t.Context(), spoketest.Property("v1beta1", "location", "", nil)))
}

func (b *bench) claims() map[string]string {
	b.t.Helper()
	list := &clusterv1alpha1.ClusterClaimList{}
	b.must(b.admin.List(b.t.Context(), list))
	claims := map[string]string{}
	for _, c := range list.Items {
		claims[c.Name] = c.Spec.Value
	}
	return claims
}

// situations are the ways to a write: what is there before, and what should be
// there after.
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
			b.settle()
			b.edit("us")
		},
		wantWrites: []string{"PATCH clusterclaims"},
		want:       map[string]string{"location": "us"},
	},
	"property made anew: its owner reference changed": {
		arrange: func(b *bench) {
			b.property("eu")
			b.settle()
			b.removeProperty()
			b.property("eu")
		},
		wantWrites: []string{"PATCH clusterclaims"},
		want:       map[string]string{"location": "eu"},
	},
	"deleted property: deleted": {
		arrange: func(b *bench) {
			b.property("eu")
			b.settle()
			b.removeProperty()
		},
		wantWrites: []string{"DELETE clusterclaims"},
		want:       map[string]string{},
	},
	"property grown too long: deleted": {
		arrange: func(b *bench) {
			b.property("eu")
			b.settle()
			b.edit(strings.Repeat("x", 1025))
		},
		wantWrites: []string{"DELETE clusterclaims"},
		want:       map[string]string{},
	},
	"foreign claim: nothing": {
		arrange: func(b *bench) {
			b.must(b.admin.Create(b.t.Context(), &clusterv1alpha1.ClusterClaim{
				ObjectMeta: metav1.ObjectMeta{Name: "location"}, Spec: clusterv1alpha1.ClusterClaimSpec{Value: "theirs"},
			}))
			b.property("eu")
		},
		want: map[string]string{"location": "theirs"},
	},
	"foreign claim without a property: nothing": {
		arrange: func(b *bench) {
			b.must(b.admin.Create(b.t.Context(), &clusterv1alpha1.ClusterClaim{
				ObjectMeta: metav1.ObjectMeta{Name: "location"}, Spec: clusterv1alpha1.ClusterClaimSpec{Value: "theirs"},
			}))
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
			b.must(b.reconcile())
			if diff := cmp.Diff(tc.wantWrites, b.writes()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, b.claims()); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
			b.wire.Reset()
			b.must(b.reconcile())
			if diff := cmp.Diff([]string(nil), b.writes()); diff != "" {
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
				b.settle()
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

func TestClaimOfAPropertyThatTheCacheDoesNotKnowYetStays(t *testing.T) {
	b := newBench(t)
	b.property("eu")
	b.settle()
	b.reconciler.cached = lagging{b.reconciler.cached}
	b.wire.Reset()
	b.must(b.reconcile())
	if diff := cmp.Diff([]string(nil), b.writes()); diff != "" {
		t.Errorf("writes:\n%s", diff)
	}
}

func TestClaimStaysWhenItsPropertysVersionIsNotServed(t *testing.T) {
	b := newBench(t)
	b.property("eu")
	b.settle()
	b.reconciler.api = property.API{Version: "v9"}
	b.reconciler.cached = lagging{b.reconciler.cached}
	b.wire.Reset()
	if err := b.reconcile(); err == nil {
		t.Error("an absence that is no answer is no error")
	}
	if diff := cmp.Diff([]string(nil), b.writes()); diff != "" {
		t.Errorf("writes:\n%s", diff)
	}
}

// stale is a reader that returns the claim as it was.
type stale struct {
	client.Reader
	claim *clusterv1alpha1.ClusterClaim
}

func (s stale) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if claim, ok := obj.(*clusterv1alpha1.ClusterClaim); ok {
		s.claim.DeepCopyInto(claim)
		return nil
	}
	return s.Reader.Get(ctx, key, obj, opts...)
}

func TestClaimThatChangedHandsIsNotTouched(t *testing.T) {
	for name, arrange := range map[string]func(*bench){
		"to be changed": func(b *bench) { b.edit("us") },
		"to be deleted": func(b *bench) { b.removeProperty() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.property("eu")
			b.settle()
			claim := &clusterv1alpha1.ClusterClaim{}
			b.must(b.admin.Get(t.Context(), client.ObjectKey{Name: "location"}, claim))
			b.reconciler.cached = stale{b.reconciler.cached, claim}
			b.must(b.admin.Patch(t.Context(), claim.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":null}}`))))
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

func TestWriteIsFinishedButNotBegunAfterTheEnd(t *testing.T) {
	claim := &clusterv1alpha1.ClusterClaim{}
	ctx, cancel := context.WithCancel(t.Context())
	err := write(ctx, "changed", claim, func(ctx context.Context) error {
		cancel()
		return ctx.Err()
	})
	if err != nil {
		t.Errorf("a write under way was broken off: %v", err)
	}
	begun := false
	err = write(ctx, "changed", claim, func(context.Context) error {
		begun = true
		return nil
	})
	if begun || !errors.Is(err, context.Canceled) {
		t.Errorf("begun = %v, error = %v; want false, %v", begun, err, context.Canceled)
	}
}
