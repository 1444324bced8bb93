package inventory

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/report"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// indexedReader answers index queries, as a cache would, from live lists. It
// stands for a cache that is never behind, unless a test makes it so.
type indexedReader struct {
	client.Reader

	// stale, if set, is what the cache still holds of a profile (nil: nothing).
	stale func() (profile *inventoryv1alpha1.ClusterProfile, on bool)

	// missing and going are the names of CRDs that are not there, or are being
	// deleted.
	missing, going string

	// cluster, if set, is what the cache still holds of a cluster, and reached is the resource version
	// that its informers have come to; by default, they are up to date.
	cluster *clusterv1.ManagedCluster
	reached string

	indexes map[string]client.IndexerFunc
}

func (r *indexedReader) IndexField(_ context.Context, _ client.Object, name string, extract client.IndexerFunc) error {
	if r.indexes == nil {
		r.indexes = map[string]client.IndexerFunc{}
	}
	r.indexes[name] = extract
	return nil
}

func (r *indexedReader) GetInformer(context.Context, client.Object,
	...cache.InformerGetOption) (cache.Informer, error) {
	return informer{reader: r}, nil
}

// informer never receives an object, either.
type informer struct {
	apitest.SyncedInformer
	reader *indexedReader
}

func (i informer) GetStore() toolscache.Store { return apitest.StoreAt(i.reader.reached) }

func (r *indexedReader) Get(ctx context.Context, key types.NamespacedName,
	obj client.Object, _ ...client.GetOption) error {
	if profile, ok := obj.(*inventoryv1alpha1.ClusterProfile); ok && r.stale != nil {
		if old, on := r.stale(); on {
			if old == nil {
				return apierrors.NewNotFound(inventoryv1alpha1.GroupVersion.WithResource("clusterprofiles").GroupResource(),
					key.Name)
			}
			old.DeepCopyInto(profile)
			return nil
		}
	}
	if cluster, ok := obj.(*clusterv1.ManagedCluster); ok && r.cluster != nil {
		asCached(r.cluster).DeepCopyInto(cluster)
		return nil
	}
	if crd, ok := obj.(*metav1.PartialObjectMetadata); ok && crd.GroupVersionKind() == kube.CRDKind {
		switch key.Name {
		case r.missing:
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		case r.going:
			now := metav1.Now()
			crd.Name, crd.DeletionTimestamp = key.Name, &now
			return nil
		}
	}
	if err := r.Reader.Get(ctx, key, obj); err != nil {
		return err
	}
	switch obj := obj.(type) {
	case *clusterv1.ManagedCluster:
		asCached(obj).DeepCopyInto(obj)
	case *inventoryv1alpha1.ClusterProfile:
		profiles.Trim(obj.DeepCopy()).DeepCopyInto(obj)
	}
	return nil
}

func (r *indexedReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	byField := options.FieldSelector
	options.FieldSelector = nil
	if err := r.Reader.List(ctx, list, options); err != nil || byField == nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	var kept []runtime.Object
	for _, item := range items {
		want := byField.Requirements()[0]
		if slices.Contains(r.indexes[want.Field](item.(client.Object)), want.Value) {
			kept = append(kept, item)
		}
	}
	return meta.SetList(list, kept)
}

// stepper is a pair's reconciler that the test steps by hand.
type stepper struct {
	*world
	r       *Reconciler
	rule    *selection.Rule
	wire    *apitest.Wire
	writer  client.Client
	cache   *indexedReader
	time    *testingclock.FakePassiveClock
	guard   *switchGuard
	members *clusterv1beta2.ManagedClusterSet
	ns      string
	c       *clusterv1.ManagedCluster
	pair    types.NamespacedName
}

// newStepper makes a hub with a cluster of one claim whose set is bound in a
// namespace.
func newStepper(t *testing.T, server *apitest.Server) *stepper {
	t.Helper()
	w := newWorld(t, server.Config(t))
	wire := &apitest.Wire{}
	s := &stepper{
		world:  w,
		wire:   wire,
		writer: apitest.NewClient(t, wire.Tap(server.Config(t)), ocmtest.Scheme()),
		cache:  &indexedReader{Reader: w.Client},
		time:   testingclock.NewFakePassiveClock(time.Date(2026, 3, 3, 3, 3, 3, 999, time.UTC).Add(-watch.RestoreTime)),
		guard:  &switchGuard{},
	}
	s.start()
	s.ns = w.Namespace("team", nil)
	s.members = w.ExclusiveSet("set")
	w.Bind(s.ns, s.members.Name)
	// A set that a test makes invalid would concern the clusters of all others.
	t.Cleanup(func() {
		if err := w.DeleteAllOf(context.WithoutCancel(t.Context()),
			&clusterv1beta2.ManagedClusterSetBinding{}, client.InNamespace(s.ns)); err != nil {
			t.Errorf("unbind: %v", err)
		}
	})
	labels := ocmtest.InSet(s.members.Name)
	labels["env"] = "prod"
	s.c = w.Cluster("c", labels, ocmtest.Claim("b", "2"), ocmtest.Claim("a", "1"))
	s.pair = types.NamespacedName{Namespace: s.ns, Name: s.c.Name}
	return s
}

// start starts the manager, which remembers nothing of what it did before.
func (s *stepper) start() {
	s.T.Helper()
	s.rule = selection.New(s.cache, s.Client, watch.NewDefinitions(s.Client, s.time), s.time)
	apitest.Must(s.T, s.rule.Prepare(s.T.Context()))
	s.later(watch.RestoreTime) // the CRDs of this hub are new
	s.r = newReconciler(s.writer, Options{
		Rule: s.rule, Guard: s.guard.verdict, Clock: s.time, LabelAllow: []string{"env"},
		Metrics: metrics.New(metrics.Options{}),
	})
}

func (s *stepper) later(d time.Duration) { s.time.SetTime(s.time.Now().Add(d)) }

// step reconciles once.
func (s *stepper) step() (reconcile.Result, error) {
	s.T.Helper()
	return s.r.Reconcile(s.T.Context(), reconcile.Request{NamespacedName: s.pair})
}

// mustStep reconciles once, which must succeed, and checks what was written.
func (s *stepper) mustStep(want ...string) reconcile.Result {
	s.T.Helper()
	s.wire.Reset()
	result, err := s.step()
	if err != nil {
		s.T.Fatalf("reconcile: %v", err)
	}
	if diff := cmp.Diff(want, s.wire.Sent(), cmpopts.EquateEmpty()); diff != "" {
		s.T.Fatalf("writes (-want +got):\n%s", diff)
	}
	return result
}

// settled checks that one more step changes nothing.
func (s *stepper) settled() {
	s.T.Helper()
	if result := s.mustStep(); result != (reconcile.Result{}) {
		s.T.Fatalf("there is more to do: %+v", result)
	}
}

// reporter returns what creates the events that are due in a scope, and returns when to do it
// again.
func (s *stepper) reporter(every time.Duration) func(scope types.NamespacedName) (again time.Duration) {
	reports := report.Reports(s.rule, s.r.outcomes, s.time, every)
	events := notices.NewReporter(s.cache, s.r.writer, s.time, reports.Controller, reports.Action)
	return func(scope types.NamespacedName) time.Duration {
		s.T.Helper()
		current, err := reports.Current(s.T.Context(), scope)
		apitest.Must(s.T, err)
		again, err := events.Report(s.T.Context(), scope, current)
		apitest.Must(s.T, err)
		return again
	}
}

func (s *stepper) mine() *inventoryv1alpha1.ClusterProfile {
	s.T.Helper()
	return s.Profile(s.ns, s.c.Name)
}

func (s *stepper) came(want report.Kind, why string) {
	s.T.Helper()
	got, ok := s.r.outcomes.Get(s.pair)
	if !ok {
		s.T.Fatal("the pair has no outcome")
	}
	if got.Kind != want || !strings.Contains(got.Why, why) {
		s.T.Errorf("outcome = %d %q, want %d with %q", got.Kind, got.Why, want, why)
	}
}

func (s *stepper) claims(claims ...clusterv1.ManagedClusterClaim) {
	s.T.Helper()
	apitest.EditStatus(s, s.c, func(c *clusterv1.ManagedCluster) { c.Status.ClusterClaims = claims })
}

// plant creates a profile of the pair that this addon did not create.
func (s *stepper) plant(manager string) *inventoryv1alpha1.ClusterProfile {
	s.T.Helper()
	p := &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.ns, Name: s.c.Name,
			Labels: map[string]string{
				"team": "x", "x-k8s.io/cluster-manager": manager, "multicluster.x-k8s.io/clusterset": ""},
			Annotations: map[string]string{"note": "y"},
			Finalizers:  []string{"example.com/hold"},
		},
		Spec: inventoryv1alpha1.ClusterProfileSpec{ClusterManager: inventoryv1alpha1.ClusterManager{Name: manager}},
	}
	s.MustCreate(p)
	apitest.EditStatus(s, p, func(p *inventoryv1alpha1.ClusterProfile) {
		p.Status.Conditions = []metav1.Condition{ocmtest.Condition("Theirs", "True", "R", "")}
		p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{Name: "theirs",
			Cluster: clientcmdv1.Cluster{Server: "https://x"}}}
		p.Status.Properties = []inventoryv1alpha1.Property{{Name: "a", Value: "1", LastObservedTime: earlier},
			{Name: "z", Value: "9", LastObservedTime: earlier}}
	})
	return s.mine()
}

// ownProfile is the pair's profile as this addon makes it.
func (s *stepper) ownProfile() *inventoryv1alpha1.ClusterProfile {
	seen := metav1.NewTime(time.Date(2026, 3, 3, 3, 3, 3, 0, time.UTC))
	shown := func(conditionType, reason, message string) metav1.Condition {
		c := ocmtest.Condition(conditionType, "True", reason, message)
		c.ObservedGeneration = 1
		return c
	}
	return &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.ns, Name: s.c.Name, Generation: 1,
			Labels: map[string]string{
				"app.kubernetes.io/managed-by":              "cluster-inventory-addon",
				"x-k8s.io/cluster-manager":                  "open-cluster-management",
				"open-cluster-management.io/cluster-name":   s.c.Name,
				"multicluster.x-k8s.io/clusterset":          s.members.Name,
				"multicluster.x-k8s.io/inventory-member-id": s.c.Name,
				"env": "prod",
			},
			Annotations: map[string]string{"inventory.open-cluster-management.io/copied-labels": "env"},
		},
		Spec: inventoryv1alpha1.ClusterProfileSpec{DisplayName: s.c.Name,
			ClusterManager: inventoryv1alpha1.ClusterManager{Name: "open-cluster-management"}},
		Status: inventoryv1alpha1.ClusterProfileStatus{
			Version: inventoryv1alpha1.ClusterVersion{Kubernetes: "v1.35.4"},
			Conditions: []metav1.Condition{
				shown("ControlPlaneHealthy", "ManagedClusterAvailable", "Managed cluster is available"),
				shown("Joined", "ManagedClusterJoined", "Managed cluster joined"),
			},
			Properties: []inventoryv1alpha1.Property{
				{Name: "a", Value: "1", LastObservedTime: seen},
				{Name: "b", Value: "2", LastObservedTime: seen},
			},
		},
	}
}

// earlier is when other clients saw the values of properties that they wrote.
var earlier = metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const propertiesList = "inventory.open-cluster-management.io/properties"

// sameProfile compares all but what the API server sets.
var sameProfile = cmp.Options{
	cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "ResourceVersion", "CreationTimestamp", "ManagedFields"),
	cmpopts.IgnoreTypes(metav1.TypeMeta{}),
	cmpopts.EquateEmpty(),
}

// onBothHubs runs a test against both forms of the ClusterProfile API.
func onBothHubs(t *testing.T, test func(t *testing.T, s *stepper)) {
	for name, server := range map[string]*apitest.Server{"list maps": mapHub, "atomic lists": atomicHub} {
		t.Run(name, func(t *testing.T) { test(t, newStepper(t, server)) })
	}
}

const (
	post        = "POST clusterprofiles"
	patchMain   = "PATCH clusterprofiles"
	patchStatus = "PATCH clusterprofiles/status"
	del         = "DELETE clusterprofiles"
)

func TestCreationIsTwoWritesAndAChangeOne(t *testing.T) {
	onBothHubs(t, func(t *testing.T, s *stepper) {
		s.mustStep(post, patchStatus)
		want := s.ownProfile()
		if diff := cmp.Diff(want, s.mine(), sameProfile); diff != "" {
			t.Fatalf("profile (-want +got):\n%s", diff)
		}
		s.came(report.InPlace, "")
		s.settled()

		s.later(time.Hour)
		s.claims(ocmtest.Claim("b", "2"), ocmtest.Claim("a", "changed"))
		s.mustStep(patchStatus)
		want.Status.Properties[0] = inventoryv1alpha1.Property{Name: "a", Value: "changed",
			LastObservedTime: metav1.Date(2026, 3, 3, 4, 3, 3, 0, time.UTC)}
		if diff := cmp.Diff(want, s.mine(), sameProfile); diff != "" {
			t.Errorf("profile after a change (-want +got):\n%s", diff)
		}
		s.settled()

		apitest.Edit(s, s.c, func(c *clusterv1.ManagedCluster) { c.Labels["env"] = "test" })
		s.mustStep(patchMain)
		want.Labels["env"] = "test"
		if diff := cmp.Diff(want, s.mine(), sameProfile); diff != "" {
			t.Errorf("profile after a label changed (-want +got):\n%s", diff)
		}
		s.settled()

		s.claims()
		s.mustStep(patchStatus)
		want.Status.Properties = nil
		if diff := cmp.Diff(want, s.mine(), sameProfile); diff != "" {
			t.Errorf("profile without claims (-want +got):\n%s", diff)
		}
		s.settled()
	})
}

func TestBareClustersProfileIsCreatedWithOneWrite(t *testing.T) {
	s := newStepper(t, mapHub)
	apitest.EditStatus(s, s.c, func(c *clusterv1.ManagedCluster) {
		c.Status.Conditions, c.Status.ClusterClaims, c.Status.Version.Kubernetes = []metav1.Condition{}, nil, ""
	})
	s.mustStep(post)
	s.settled()
}

func TestAdoptionKeepsUIDAndOthersFields(t *testing.T) {
	onBothHubs(t, func(t *testing.T, s *stepper) {
		planted := s.plant("open-cluster-management")
		s.mustStep(patchMain, patchStatus)
		want := s.ownProfile()
		want.Labels["team"] = "x"
		want.Annotations["note"] = "y"
		want.Finalizers = planted.Finalizers
		want.Generation = 2 // the display name is part of the spec
		for i := range want.Status.Conditions {
			want.Status.Conditions[i].ObservedGeneration = 2
		}
		want.Status.Conditions = append(planted.Status.Conditions, want.Status.Conditions...)
		want.Status.AccessProviders = planted.Status.AccessProviders
		want.Status.Properties[0].LastObservedTime = earlier
		want.Status.Properties = append(want.Status.Properties, planted.Status.Properties[1])
		// It was there already, so the managed fields do not say that it is ours now.
		want.Annotations[propertiesList] = `["a","b"]`
		got := s.mine()
		if diff := cmp.Diff(want, got, sameProfile); diff != "" {
			t.Errorf("profile (-want +got):\n%s", diff)
		}
		if got.UID != planted.UID {
			t.Errorf("the UID was %s and is %s", planted.UID, got.UID)
		}
		s.settled()
	})
}

// OCM's registration controller leaves its profiles behind when its gate is switched off.
// Where lists are atomic, only the claims tell which of their properties were its own.
func TestTakeoverFromOCMKeepsOthersProperties(t *testing.T) {
	onBothHubs(t, func(t *testing.T, s *stepper) {
		profile := &inventoryv1alpha1.ClusterProfile{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: s.c.Name},
			Spec: inventoryv1alpha1.ClusterProfileSpec{
				ClusterManager: inventoryv1alpha1.ClusterManager{Name: "open-cluster-management"},
			},
		}
		s.MustCreate(profile)
		add := func(owner string, properties ...inventoryv1alpha1.Property) {
			t.Helper()
			profile.Status.Properties = append(profile.Status.Properties, properties...)
			apitest.Must(t, s.Status().Update(t.Context(), profile, client.FieldOwner(owner)))
		}
		add("registration", inventoryv1alpha1.Property{Name: "a", Value: "1", LastObservedTime: earlier},
			inventoryv1alpha1.Property{Name: "unclaimed", Value: "1", LastObservedTime: earlier})
		add("agent-sandbox", inventoryv1alpha1.Property{Name: "theirs.example", Value: "1", LastObservedTime: earlier},
			inventoryv1alpha1.Property{Name: "b", Value: "theirs", LastObservedTime: earlier})
		step := func() {
			t.Helper()
			_, err := s.step()
			apitest.Must(t, err)
		}
		step()
		want := map[string]string{"a": "1", "b": "2", "theirs.example": "1"}
		if isAtomic := strings.Contains(t.Name(), "atomic"); isAtomic {
			want["unclaimed"] = "1"
		}
		shown := func() map[string]string {
			got := map[string]string{}
			for _, property := range s.mine().Status.Properties {
				got[property.Name] = property.Value
			}
			return got
		}
		if diff := cmp.Diff(want, shown()); diff != "" {
			t.Errorf("properties (-want +got):\n%s", diff)
		}
		step()
		s.settled()

		s.claims()
		for range 3 {
			step()
		}
		s.settled()
		delete(want, "a")
		delete(want, "b")
		if diff := cmp.Diff(want, shown()); diff != "" {
			t.Errorf("properties without claims (-want +got):\n%s", diff)
		}
	})
}

func TestForeignProfilesAreLeftAlone(t *testing.T) {
	tests := map[string]struct {
		manager string
		mark    bool
		prepare func(*stepper)
		kind    report.Kind
		why     string
	}{
		"another manager's, wanted":       {manager: "gke", kind: report.Foreign, why: `cluster manager "gke"`},
		"another manager's with our mark": {manager: "gke", mark: true, kind: report.Foreign, why: `cluster manager "gke"`},
		"another manager's, not wanted": {manager: "gke", mark: true,
			prepare: withdraw, kind: report.Withheld, why: "is in no ManagedClusterSet"},
		"ours without mark, not wanted": {manager: "open-cluster-management",
			prepare: withdraw, kind: report.LeftAlone, why: "did not create"},
		"ours without mark, perhaps wanted": {manager: "open-cluster-management",
			prepare: unbindUnknown, kind: report.Undecided, why: "condition Bound"},
		"another manager's, the namespace going": {manager: "gke",
			prepare: terminate, kind: report.Foreign, why: `cluster manager "gke"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStepper(t, mapHub)
			planted := s.plant(test.manager)
			if test.mark {
				apitest.Edit(s, planted, func(p *inventoryv1alpha1.ClusterProfile) {
					p.Labels["app.kubernetes.io/managed-by"] = "cluster-inventory-addon"
				})
			}
			if test.prepare != nil {
				test.prepare(s)
			}
			s.settled()
			if diff := cmp.Diff(planted, s.mine(), cmpopts.IgnoreTypes(metav1.TypeMeta{})); diff != "" {
				t.Errorf("it was touched (-before +after):\n%s", diff)
			}
			s.came(test.kind, test.why)
		})
	}
}

func (s *stepper) binding() *clusterv1beta2.ManagedClusterSetBinding {
	return &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: s.members.Name}}
}

func (s *stepper) bindingSays(conditions ...metav1.Condition) {
	apitest.EditStatus(s, s.binding(),
		func(b *clusterv1beta2.ManagedClusterSetBinding) { b.Status.Conditions = conditions })
}

func withdraw(s *stepper)      { s.bindingSays(ocmtest.Condition("Bound", "False", "R", "")) }
func unbindUnknown(s *stepper) { s.bindingSays([]metav1.Condition{}...) }
func terminate(s *stepper) {
	s.MustDelete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}})
}

func TestOnlyADefiniteNoDeletes(t *testing.T) {
	tests := map[string]struct {
		prepare func(*stepper)
		writes  []string
		kind    report.Kind
		why     string
	}{
		"unbound": {prepare: withdraw, writes: []string{del}, kind: report.Withheld, why: "is in no ManagedClusterSet"},
		"the addon is deleted": {
			prepare: func(s *stepper) { s.MustDelete(ocmtest.Addon(s.c.Name)) },
			writes:  []string{del}, kind: report.Withheld, why: "does not have the addon",
		},
		"not accepted any more": {
			prepare: func(s *stepper) {
				apitest.Edit(s, s.c, func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false })
			},
			writes: []string{del}, kind: report.Withheld, why: "is not accepted",
		},
		"the cluster is gone": {
			prepare: func(s *stepper) { s.MustDelete(s.c) },
			writes:  []string{del}, kind: report.Withheld, why: "is not a ManagedCluster",
		},
		"the cluster left the set": {
			prepare: func(s *stepper) {
				apitest.Edit(s, s.c,
					func(c *clusterv1.ManagedCluster) { c.Labels["cluster.open-cluster-management.io/clusterset"] = "other" })
			},
			writes: []string{del}, kind: report.Withheld, why: "is in no ManagedClusterSet",
		},
		"the binding says nothing": {prepare: unbindUnknown, kind: report.Undecided, why: "condition Bound"},
		"the set is gone": {
			prepare: func(s *stepper) { s.MustDelete(s.members) },
			kind:    report.Undecided, why: "does not exist",
		},
		"the set's selector is invalid": {
			prepare: func(s *stepper) {
				apitest.Edit(s, s.members, func(set *clusterv1beta2.ManagedClusterSet) {
					set.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{SelectorType: "LabelSelector",
						LabelSelector: invalidSelector}
				})
			},
			kind: report.Undecided, why: "is invalid",
		},
		"the namespace is going": {prepare: terminate, kind: report.Failed, why: "the Namespace is being deleted"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStepper(t, mapHub)
			s.mustStep(post, patchStatus)
			uid := s.mine().UID
			test.prepare(s)
			s.mustStep(test.writes...)
			s.came(test.kind, test.why)
			if len(test.writes) > 0 {
				if got := s.mine(); got != nil {
					t.Errorf("the profile is still there")
				}
				call := s.wire.Writes()[0]
				if !strings.Contains(call.Body, string(uid)) || !strings.Contains(call.Body, "preconditions") {
					t.Errorf("the delete names no UID: %s", call.Body)
				}
			} else if got := s.mine(); got == nil || got.UID != uid {
				t.Errorf("the profile is gone or another: %+v", got)
			}
			s.settled()
		})
	}
}

func TestContentIsUpdatedWhileUnknown(t *testing.T) {
	s := newStepper(t, mapHub)
	s.mustStep(post, patchStatus)
	unbindUnknown(s)
	s.claims(ocmtest.Claim("a", "new"))
	s.mustStep(patchStatus)
	if got := s.mine().Status.Properties[0].Value; got != "new" {
		t.Errorf("property a = %s, want new", got)
	}
	s.came(report.Undecided, "condition Bound")
	s.settled()
}

func TestDeleteAffectsOnlyTheObservedProfile(t *testing.T) {
	tests := map[string]func(*stepper, *inventoryv1alpha1.ClusterProfile){
		"recreated by another client": func(s *stepper, p *inventoryv1alpha1.ClusterProfile) {
			s.MustDelete(p)
			fresh := &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace,
				Name: p.Name, Labels: p.Labels}, Spec: p.Spec}
			s.MustCreate(fresh)
		},
		"its mark taken off": func(s *stepper, p *inventoryv1alpha1.ClusterProfile) {
			apitest.Edit(s, p.DeepCopy(),
				func(p *inventoryv1alpha1.ClusterProfile) { delete(p.Labels, "app.kubernetes.io/managed-by") })
		},
	}
	for name, meanwhile := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStepper(t, mapHub)
			s.mustStep(post, patchStatus)
			withdraw(s)
			old := s.mine()
			s.cache.stale = func() (*inventoryv1alpha1.ClusterProfile, bool) { return old, true }
			meanwhile(s, old)
			if _, err := s.step(); !apierrors.IsConflict(err) {
				t.Errorf("reconcile = %v, want a conflict", err)
			}
			if s.mine() == nil {
				t.Error("a profile that was not read was deleted")
			}
		})
	}
}

func TestAStaleCacheCausesNoSecondWrite(t *testing.T) {
	frozen := func(s *stepper) {
		old := s.mine()
		s.cache.stale = func() (*inventoryv1alpha1.ClusterProfile, bool) { return old, true }
	}
	tests := map[string]struct {
		before func(*stepper) // done with a cache that is up to date
		change func(*stepper) // then the cache stands still
		writes []string
	}{
		"after a birth": {
			before: func(*stepper) {}, change: func(*stepper) {}, writes: []string{post, patchStatus},
		},
		"after a change": {
			before: func(s *stepper) { s.mustStep(post, patchStatus) },
			change: func(s *stepper) { s.claims(ocmtest.Claim("a", "x")) }, writes: []string{patchStatus},
		},
		"after a delete": {
			before: func(s *stepper) { s.mustStep(post, patchStatus) },
			change: withdraw, writes: []string{del},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStepper(t, mapHub)
			test.before(s)
			frozen(s)
			test.change(s)
			s.mustStep(test.writes...)
			if result := s.mustStep(); result.RequeueAfter != 5*time.Second {
				t.Errorf("result = %+v, want to wait for the cache", result)
			}
			s.cache.stale = nil
			s.settled()
		})
	}

	t.Run("after half a creation", func(t *testing.T) {
		s := newStepper(t, mapHub)
		frozen(s)
		s.wire.FailNthWrite(2, apitest.Fault{Status: http.StatusInternalServerError, Reason: "InternalError"})
		if _, err := s.step(); err == nil {
			t.Fatal("the status was to be refused")
		}
		if result := s.mustStep(); result.RequeueAfter != 5*time.Second {
			t.Errorf("result = %+v, want to wait for the cache", result)
		}
		s.cache.stale = nil
		s.mustStep(patchStatus)
		s.settled()
	})

	t.Run("a cache that never catches up does not stop the work forever", func(t *testing.T) {
		s := newStepper(t, mapHub)
		frozen(s)
		s.mustStep(post, patchStatus)
		s.later(5 * time.Second)
		// The profile exists, so the second creation is refused, without harm.
		if result := s.mustStep(post); result.RequeueAfter != 5*time.Second {
			t.Errorf("result = %+v, want to wait for the cache", result)
		}
	})
}

func TestPlacementsRestrict(t *testing.T) {
	start := func(t *testing.T) (*stepper, *clusterv1beta1.Placement, *clusterv1beta1.PlacementDecision) {
		s := newStepper(t, mapHub)
		placement, decision := s.Placement(s.ns, "view", s.c.Name, "another")
		s.mustStep(post, patchStatus)
		s.settled()
		return s, placement, decision
	}
	waits := func(t *testing.T, s *stepper, want time.Duration) {
		t.Helper()
		if result := s.mustStep(); result.RequeueAfter != want {
			t.Fatalf("result = %+v, want to wait %s", result, want)
		}
	}

	t.Run("an absence must last a second", func(t *testing.T) {
		s, placement, decision := start(t)
		s.later(time.Hour)
		s.Decide(placement, decision, "another")
		waits(t, s, time.Second)
		s.later(700 * time.Millisecond)
		waits(t, s, 300*time.Millisecond)
		s.later(200 * time.Millisecond)
		// It must also have lasted since slices were written.
		s.Decide(placement, decision, "yet another")
		waits(t, s, time.Second)
		s.came(report.InPlace, "")
		s.later(time.Second)
		s.mustStep(del)
		s.came(report.Withheld, "is not chosen by a Placement")
		s.settled()
	})
	t.Run("a cluster that moves between slices stays", func(t *testing.T) {
		s, placement, decision := start(t)
		s.later(time.Hour)
		// Both slices name two clusters in sum all the time.
		second := slice(s.ns, "view-decision-2", "view")
		s.MustCreate(second)
		apitest.EditStatus(s, decision,
			func(d *clusterv1beta1.PlacementDecision) { d.Status.Decisions[0].ClusterName = "third" })
		waits(t, s, time.Second)
		s.later(time.Second / 2)
		apitest.EditStatus(s, second, func(d *clusterv1beta1.PlacementDecision) {
			d.Status.Decisions = []clusterv1beta1.ClusterDecision{{ClusterName: s.c.Name}}
		})
		apitest.EditStatus(s, placement, func(p *clusterv1beta1.Placement) { p.Status.NumberOfSelectedClusters = 3 })
		s.settled()
		s.later(time.Hour)
		s.settled()
	})
	t.Run("decisions that do not add up say nothing, until they do", func(t *testing.T) {
		s, placement, decision := start(t)
		s.later(time.Hour)
		apitest.EditStatus(s, decision,
			func(d *clusterv1beta1.PlacementDecision) { d.Status.Decisions = d.Status.Decisions[1:] })
		waits(t, s, time.Second)
		s.later(time.Second)
		s.mustStep()
		s.came(report.Undecided, "another number of clusters")
		apitest.EditStatus(s, placement, func(p *clusterv1beta1.Placement) { p.Status.NumberOfSelectedClusters = 1 })
		waits(t, s, time.Second)
		s.later(time.Second)
		s.mustStep(del)
	})
	t.Run("an event during the reconciliation is not missed", func(t *testing.T) {
		s, placement, decision := start(t)
		s.later(time.Hour)
		apitest.EditStatus(s, decision,
			func(d *clusterv1beta1.PlacementDecision) { d.Status.Decisions = d.Status.Decisions[1:] })
		waits(t, s, time.Second)
		s.later(time.Second)
		o, selected, err := s.rule.Observe(t.Context(), s.pair)
		if err != nil {
			t.Fatal(err)
		}
		apitest.EditStatus(s, placement, func(p *clusterv1beta1.Placement) { p.Status.NumberOfSelectedClusters = 1 })
		_, left, err := s.rule.Settle(t.Context(), s.pair, o, selected, false)
		if err != nil || left != time.Second {
			t.Errorf("settle = %s, %v; want to look again in a second", left, err)
		}
	})
	t.Run("a new Placement that is not decided keeps profiles and creates none", func(t *testing.T) {
		s, placement, decision := start(t)
		s.MustDelete(placement)
		s.MustDelete(decision)
		undecidedPlacement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
			Namespace: s.ns, Name: "new", Labels: map[string]string{"inventory.open-cluster-management.io/publish": "true"},
		}}
		s.MustCreate(undecidedPlacement)
		waits(t, s, time.Second)
		s.later(time.Hour)
		s.mustStep()
		s.came(report.Undecided, `Placement "new" has not been scheduled`)
		s.MustDelete(s.mine())
		s.mustStep()
		s.came(report.Undecided, `Placement "new" has not been scheduled`)
	})
	t.Run("a deleted Placement widens at once, or withholds at once where one is required", func(t *testing.T) {
		s, placement, decision := start(t)
		s.Decide(placement, decision, "another")
		s.later(time.Hour)
		waits(t, s, time.Second)
		s.later(time.Second)
		s.mustStep(del)
		apitest.Edit(s, placement, func(p *clusterv1beta1.Placement) { p.Labels = nil })
		s.mustStep(post, patchStatus)
		apitest.Edit(s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}}, func(n *corev1.Namespace) {
			n.Annotations = map[string]string{"inventory.open-cluster-management.io/require-placement": "true"}
		})
		s.mustStep(del)
		s.came(report.Withheld, "requires a Placement")
	})
}

func TestInvalidClaimsAreLeftOutAlone(t *testing.T) {
	onBothHubs(t, func(t *testing.T, s *stepper) {
		s.claims(ocmtest.Claim("empty", ""), ocmtest.Claim("twice", "1"), ocmtest.Claim("twice", "2"), ocmtest.Claim("a", "1"), ocmtest.Claim("b", "2"))
		s.mustStep(post, patchStatus)
		if diff := cmp.Diff(s.ownProfile(), s.mine(), sameProfile); diff != "" {
			t.Errorf("profile (-want +got):\n%s", diff)
		}
		got, _ := s.r.outcomes.Get(s.pair)
		if diff := cmp.Diff([]string{`"empty" has no value`, `"twice" occurs 2 times`}, got.Properties); diff != "" {
			t.Errorf("left out (-want +got):\n%s", diff)
		}
		s.settled()
	})
}

func TestTheGuardStopsEveryWrite(t *testing.T) {
	s := newStepper(t, mapHub)
	s.guard.blocked.Store(true)
	s.settled()
	if _, ok := s.r.outcomes.Get(s.pair); ok {
		t.Error("a pair that is not looked at has no outcome")
	}
	s.guard.blocked.Store(false)
	s.mustStep(post, patchStatus)
	uid := s.mine().UID
	s.guard.blocked.Store(true)
	withdraw(s)
	s.claims(ocmtest.Claim("a", "new"))
	s.settled()
	s.guard.blocked.Store(false)
	s.bindingSays(ocmtest.Condition("Bound", "True", "R", ""))
	s.mustStep(patchStatus)
	if s.mine().UID != uid {
		t.Error("the profile is another one")
	}

	s.r.opts.Guard = func(context.Context) (profiles.Verdict, error) { return profiles.Verdict{}, errors.New("no cache") }
	s.claims(ocmtest.Claim("a", "newer"))
	s.wire.Reset()
	if _, err := s.step(); err == nil || len(s.wire.Writes()) != 0 {
		t.Errorf("with a guard that fails: error %v, writes %v", err, s.wire.Sent())
	}
}

func TestRefusalsAreReportedAndRetried(t *testing.T) {
	t.Run("a quota", func(t *testing.T) {
		s := newStepper(t, mapHub)
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "none"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/clusterprofiles.multicluster.x-k8s.io": resource.MustParse("0")}},
		}
		s.MustCreate(quota)
		apitest.EditStatus(s, quota, func(q *corev1.ResourceQuota) {
			q.Status.Hard = q.Spec.Hard
			q.Status.Used = corev1.ResourceList{"count/clusterprofiles.multicluster.x-k8s.io": resource.MustParse("0")}
		})
		s.Eventually("the quota refuses", func() string {
			if _, err := s.step(); !apierrors.IsForbidden(err) {
				if p := s.mine(); p != nil {
					s.MustDelete(p)
					s.later(5 * time.Second) // or the profile that was made is waited for
				}
				return fmt.Sprintf("reconcile = %v, want the quota's refusal", err)
			}
			return ""
		})
		s.came(report.Failed, "exceeded quota: none")
		s.MustDelete(quota)
		s.Eventually("the quota is gone", func() string {
			if _, err := s.step(); err != nil {
				return err.Error()
			}
			return ""
		})
		s.came(report.InPlace, "")
	})
	t.Run("an error whose text changes is reported once", func(t *testing.T) {
		s := newStepper(t, mapHub)
		retries := 0
		s.wire.Fail(func(call apitest.Call) apitest.Fault {
			if call.Method != http.MethodPost || call.Resource != "clusterprofiles" {
				return apitest.Fault{}
			}
			retries++
			return apitest.Fault{Status: http.StatusInternalServerError, Reason: "InternalError", Message: fmt.Sprintf("the time is %d", retries)}
		})
		for range 5 {
			if _, err := s.step(); err == nil {
				t.Fatal("the write did not fail")
			}
			s.later(kube.LastingAfter)
		}
		s.came(report.Failed, "the time is 2")
	})
	t.Run("a terminating namespace is not even tried", func(t *testing.T) {
		s := newStepper(t, mapHub)
		terminate(s)
		s.settled()
		s.came(report.Failed, "the Namespace is being deleted")
	})
	t.Run("a conflict is not reported, and no write follows until the cache shows the other one", func(t *testing.T) {
		s := newStepper(t, mapHub)
		s.mustStep(post, patchStatus)
		s.claims(ocmtest.Claim("a", "x"))
		old := s.mine()
		s.cache.stale = func() (*inventoryv1alpha1.ClusterProfile, bool) { return old, true }
		apitest.Edit(s, old.DeepCopy(), func(p *inventoryv1alpha1.ClusterProfile) {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, "somebody", "else")
		})
		if _, err := s.step(); !apierrors.IsConflict(err) {
			t.Fatalf("reconcile = %v, want the conflict", err)
		}
		s.came(report.InPlace, "")
		if result := s.mustStep(); result.RequeueAfter != kube.StaleAfter {
			t.Errorf("reconcile = %+v, want a look in %s", result, kube.StaleAfter)
		}
		s.cache.stale = nil
		s.mustStep(patchStatus)
	})
}

func TestWithoutAnAPINothingIsKnown(t *testing.T) {
	for _, crd := range selection.CRDs() {
		for how, set := range map[string]func(*indexedReader, string){
			"missing": func(r *indexedReader, name string) { r.missing = name },
			"going":   func(r *indexedReader, name string) { r.going = name },
		} {
			t.Run(crd+" is "+how, func(t *testing.T) {
				s := newStepper(t, mapHub)
				s.mustStep(post, patchStatus)
				// What disappears with the API's objects looks like this.
				s.MustDelete(ocmtest.Addon(s.c.Name))
				withdraw(s)
				set(s.cache, crd)
				s.settled()
				got, ok := s.r.outcomes.Get(s.pair)
				switch {
				case crd == selection.ProfileCRD && ok:
					t.Errorf("there is no profile to have an outcome about: %+v", got)
				case crd != selection.ProfileCRD:
					s.came(report.Undecided, "the hub does not serve "+crd)
				}
				set(s.cache, "")
				s.mustStep(del)
			})
		}
	}
}

// TestEveryWriteMayFail makes each write of each scenario fail in each way, once,
// and then expects the same end as without the fault.
func TestEveryWriteMayFail(t *testing.T) {
	scenarios := map[string]struct {
		prepare func(*stepper)
		writes  int
		gone    bool
	}{
		"birth":    {prepare: func(*stepper) {}, writes: 2},
		"adoption": {prepare: func(s *stepper) { s.plant("open-cluster-management") }, writes: 2},
		"change of labels and claims": {prepare: func(s *stepper) {
			s.mustStep(post, patchStatus)
			s.claims(ocmtest.Claim("a", "x"))
			apitest.Edit(s, s.c, func(c *clusterv1.ManagedCluster) { c.Labels["env"] = "test" })
		}, writes: 2},
		"withdrawal": {prepare: func(s *stepper) { s.mustStep(post, patchStatus); withdraw(s) }, writes: 1, gone: true},
	}
	faults := map[string]apitest.Fault{
		"conflict":          {Status: http.StatusConflict, Reason: "Conflict", Message: "m"},
		"internal error":    {Status: http.StatusInternalServerError, Reason: "InternalError", Message: "m"},
		"unprocessable":     {Status: http.StatusUnprocessableEntity, Reason: "Invalid", Message: "m"},
		"connection lost":   {Err: errors.New("reset")},
		"the answer lost":   {Err: errors.New("reset"), AfterServer: true},
		"answered in error": {Status: http.StatusGatewayTimeout, Reason: "Timeout", Message: "m", AfterServer: true},
	}
	for name, scenario := range scenarios {
		for fault, kind := range faults {
			for n := 1; n <= scenario.writes; n++ {
				t.Run(fmt.Sprintf("%s, write %d, %s", name, n, fault), func(t *testing.T) {
					t.Parallel()
					s := newStepper(t, mapHub)
					scenario.prepare(s)
					s.wire.Reset()
					s.wire.FailNthWrite(n, kind)
					for steps := 0; ; steps++ {
						if steps == 5 {
							t.Fatal("does not come to rest")
						}
						result, err := s.step()
						if err == nil && result.RequeueAfter == 0 {
							break
						}
						s.later(result.RequeueAfter)
					}
					if got := len(s.wire.Writes()); got > scenario.writes+2 {
						t.Errorf("%d writes: %v", got, s.wire.Sent())
					}
					s.settled()
					o, _, err := s.rule.Observe(t.Context(), s.pair)
					if err != nil {
						t.Fatal(err)
					}
					if scenario.gone {
						if o.Profile != nil {
							t.Error("the profile is still there")
						}
						s.came(report.Withheld, "")
						return
					}
					want, _ := profiles.Desired(profiles.Observed{Observation: o}, s.r.opts.LabelAllow, metav1.Now())
					if diff := cmp.Diff(want, o.Profile, cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("profile (-want +got):\n%s", diff)
					}
					s.came(report.InPlace, "")
				})
			}
		}
	}
}

// A profile that is invalid or too large is retried like one that cannot be written for another
// reason, because a change of an admission policy sends no event.
func TestARefusedProfileIsRetried(t *testing.T) {
	for reason, status := range map[string]int{"Invalid": 422, "RequestEntityTooLarge": 413} {
		t.Run(reason, func(t *testing.T) {
			s := newStepper(t, mapHub)
			s.wire.Fail(func(call apitest.Call) apitest.Fault {
				if call.IsWrite() {
					return apitest.Fault{Status: status, Reason: reason, Message: "no such profile"}
				}
				return apitest.Fault{}
			})
			if _, err := s.step(); err == nil {
				t.Error("reconcile returned no error, so the queue does not try again")
			}
			s.came(report.Failed, "no such profile")
			s.wire.Fail(nil)
			s.mustStep(post, patchStatus)
			s.came(report.InPlace, "")
		})
	}
}

// A removal is retried every five seconds at most, but not for as long as a policy refuses it: there may be
// thousands.
func TestARemovalThatIsRefusedForLongIsUrgentNoLonger(t *testing.T) {
	s := newStepper(t, mapHub)
	s.mustStep(post, patchStatus)
	withdraw(s)
	s.wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Method == http.MethodDelete {
			return apitest.Fault{Status: http.StatusForbidden, Reason: "Forbidden", Message: "a policy says no"}
		}
		return apitest.Fault{}
	})
	for _, isUrgent := range []bool{true, false} {
		result, err := s.step()
		if !apierrors.IsForbidden(err) || (result.Priority == nil) != isUrgent {
			t.Errorf("reconcile = %+v, %v; want urgent: %t", result, err, isUrgent)
		}
		s.later(kube.LastingAfter)
	}
	s.wire.Fail(nil)
	s.mustStep(del)
}

// TestAProfileIsGoneOnlyIfTheHubSaysSo has the hub not serve ClusterProfiles for a moment: its answer
// to a deletion then says nothing about the profile.
func TestAProfileIsGoneOnlyIfTheHubSaysSo(t *testing.T) {
	s := newStepper(t, mapHub)
	s.mustStep(post, patchStatus)
	withdraw(s)
	s.wire.FailNthWrite(1, apitest.Fault{Status: http.StatusNotFound, Message: "404 page not found"})
	if _, err := s.step(); err == nil {
		t.Error("the deletion is not tried again")
	}
	s.mustStep(del)
}

// TestADeletedProfileIsPatchedOnce deletes a profile before the cache shows that: it must not be patched
// again and again until then.
func TestADeletedProfileIsPatchedOnce(t *testing.T) {
	s := newStepper(t, mapHub)
	s.mustStep(post, patchStatus)
	s.claims(ocmtest.Claim("a", "x"))
	s.wire.FailNthWrite(1, apitest.Fault{Status: http.StatusNotFound, Reason: "NotFound", Message: "no such profile"})
	if _, err := s.step(); err == nil {
		t.Error("the write is not tried again")
	}
	s.mustStep()
	s.later(kube.StaleAfter)
	s.mustStep(patchStatus) // the cache has it all the same
	s.came(report.InPlace, "")
}

// A transient error is not a refusal.
func TestAServerThatFailsIsNotReported(t *testing.T) {
	for reason, status := range map[string]int{"InternalError": 500, "Unauthorized": 401, "": 502} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			s := newStepper(t, mapHub)
			s.mustStep(post, patchStatus)
			s.claims(ocmtest.Claim("a", "x"))
			s.wire.FailNthWrite(1, apitest.Fault{Status: status, Reason: reason, Message: "not now"})
			if _, err := s.step(); err == nil {
				t.Fatal("the failure is not retried")
			}
			s.came(report.InPlace, "")
			s.mustStep(patchStatus)

			// One that lasts is reported.
			s.claims(ocmtest.Claim("a", "y"))
			s.wire.Fail(func(call apitest.Call) apitest.Fault {
				if call.IsWrite() {
					return apitest.Fault{Status: status, Reason: reason, Message: "not now"}
				}
				return apitest.Fault{}
			})
			for _, want := range []report.Kind{report.InPlace, report.InPlace, report.Failed} {
				if _, err := s.step(); err == nil {
					t.Fatal("the failure is not retried")
				}
				s.came(want, "")
				s.later(20 * time.Second)
			}
			s.wire.Fail(nil)
			s.mustStep(patchStatus)
			s.came(report.InPlace, "")
		})
	}
}

// Another client removes or edits the list of copied labels: they are still ours, and others'
// labels are not.
func TestCopiedLabelsAreRecognizedWithoutTheirList(t *testing.T) {
	const list = "inventory.open-cluster-management.io/copied-labels"
	for name, edit := range map[string]func(*inventoryv1alpha1.ClusterProfile){
		"stripped": func(p *inventoryv1alpha1.ClusterProfile) { delete(p.Annotations, list) },
		"edited":   func(p *inventoryv1alpha1.ClusterProfile) { p.Annotations[list] = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			onBothHubs(t, func(t *testing.T, s *stepper) {
				s.r.opts.LabelAllow = []string{"env", "zone", "tier"}
				clusterLabel := func(key, value string) {
					apitest.Edit(s, s.c, func(c *clusterv1.ManagedCluster) { c.Labels[key] = value })
				}
				clusterLabel("tier", "1")
				s.mustStep(post, patchStatus)
				apitest.Edit(s, s.mine(), func(p *inventoryv1alpha1.ClusterProfile) {
					p.Labels["zone"] = "theirs"
					edit(p)
				})
				clusterLabel("env", "test")
				clusterLabel("zone", "ours")
				apitest.Edit(s, s.c, func(c *clusterv1.ManagedCluster) { delete(c.Labels, "tier") })
				s.mustStep(patchMain)
				want := s.ownProfile()
				want.Labels["env"], want.Labels["zone"] = "test", "theirs"
				if diff := cmp.Diff(want, s.mine(), sameProfile); diff != "" {
					t.Errorf("profile (-want +got):\n%s", diff)
				}
				s.settled()

				// A client that sets a copied label owns it, once it is not listed.
				apitest.Edit(s, s.mine(), func(p *inventoryv1alpha1.ClusterProfile) {
					p.Labels["env"] = "theirs"
					delete(p.Annotations, list)
				})
				s.settled()
			})
		})
	}
}

// TestAnOldCacheOfClustersBringsNoOldValueBack: an API server that lags fills the cache of a manager
// that starts. Events of profiles come first, so a property has a value that the manager before has
// written, and that the cache of clusters does not show yet.
func TestAnOldCacheOfClustersBringsNoOldValueBack(t *testing.T) {
	onBothHubs(t, func(t *testing.T, s *stepper) {
		s.mustStep(post, patchStatus)
		old := s.c.DeepCopy()
		s.claims(ocmtest.Claim("a", "2"), ocmtest.Claim("b", "2"))
		s.mustStep(patchStatus)
		s.cache.cluster, s.cache.reached = old, "1"
		s.start()
		if result := s.mustStep(); result.RequeueAfter == 0 {
			t.Error("it does not look again")
		}
		s.cache.cluster = nil
		s.settled()

		// What the hub itself has is written, although the cache cannot be trusted yet. A cache that is newer
		// than what was read a moment ago is not asked about again.
		s.claims(ocmtest.Claim("a", "3"), ocmtest.Claim("b", "2"))
		s.mustStep(patchStatus)
		s.claims(ocmtest.Claim("a", "4"), ocmtest.Claim("b", "2"))
		s.mustStep(patchStatus)
		s.settled()
	})
}
