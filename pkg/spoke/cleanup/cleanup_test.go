package cleanup

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
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

var server = apitest.New(apitest.Spoke())

func TestMain(m *testing.M) { apitest.Main(m, server) }

// bench is a spoke with claims and, unless a test says otherwise, an agent that
// answers the marker of addon u1.
type bench struct {
	admin *apitest.World
	wire  *apitest.Wire
	agent *Reconciler
	hook  *Hook
	stops int
}

// hasty is a clock on which every wait is over at once, with the time passed.
type hasty struct{ *testingclock.FakeClock }

func (c hasty) After(d time.Duration) <-chan time.Time {
	after := c.FakeClock.After(d)
	c.Step(d)
	return after
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{admin: server.World(t, ocmtest.Scheme()), wire: &apitest.Wire{}}
	wired := apitest.NewClient(t, b.wire.Tap(server.Config(t)), ocmtest.Scheme())
	b.agent = &Reconciler{addon: "u1", reader: b.admin, writer: wired, stop: func(context.Context) error {
		b.stops++
		return nil
	}}
	b.hook = &Hook{
		Client: wired, InstallNamespace: b.admin.Namespace("agent", nil), Addon: "u1",
		AgentTimeout: 10 * time.Second,
		Clock:        hasty{testingclock.NewFakeClock(time.Now())},
	}
	return b
}

func (b *bench) claim(name string, labels map[string]string) {
	b.admin.T.Helper()
	claim := &clusterv1alpha1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: clusterv1alpha1.ClusterClaimSpec{Value: "v"},
	}
	b.admin.MustCreate(claim)
	b.admin.CleanUp(claim)
}

func (b *bench) claims() []string {
	b.admin.T.Helper()
	list := &clusterv1alpha1.ClusterClaimList{}
	b.admin.MustList(list)
	names := []string{}
	for _, c := range list.Items {
		names = append(names, c.Name)
	}
	return names
}

func (b *bench) mark(data map[string]string) {
	b.admin.T.Helper()
	b.admin.MustCreate(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.hook.InstallNamespace, Name: "cluster-inventory-cleanup"}, Data: data,
	})
}

func (b *bench) marker() map[string]string {
	b.admin.T.Helper()
	key := MarkerKey(b.hook.InstallNamespace)
	marker := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if !b.admin.Find(marker) {
		return nil
	}
	return marker.Data
}

func (b *bench) reconcileAgent() error {
	_, err := b.agent.Reconcile(b.admin.T.Context(), reconcile.Request{NamespacedName: MarkerKey(b.hook.InstallNamespace)})
	return err
}

func marked() map[string]string {
	return map[string]string{"app.kubernetes.io/managed-by": "cluster-inventory-addon"}
}

func TestAgentAcknowledgesOnceAndOnlyItsOwnRemoval(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after map[string]string
		stops         int
	}{
		"no marker":             {},
		"marker of another UID": {before: map[string]string{"addonUID": "u0"}, after: map[string]string{"addonUID": "u0"}},
		"marker of its UID": {
			before: map[string]string{"addonUID": "u1"},
			after:  map[string]string{"addonUID": "u1", "stopped": "u1"}, stops: 2,
		},
		"acknowledged before it restarted": {
			before: map[string]string{"addonUID": "u1", "stopped": "u1"},
			after:  map[string]string{"addonUID": "u1", "stopped": "u1"}, stops: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if tc.before != nil {
				b.mark(tc.before)
			}
			apitest.Must(b.admin.T, b.reconcileAgent())
			b.wire.Reset()
			apitest.Must(b.admin.T, b.reconcileAgent())
			if diff := cmp.Diff([]string{}, b.wire.Sent()); diff != "" {
				t.Errorf("writes of a second pass:\n%s", diff)
			}
			if diff := cmp.Diff(tc.after, b.marker()); diff != "" {
				t.Errorf("marker (-want +got):\n%s", diff)
			}
			if b.stops != tc.stops {
				t.Errorf("told to stop %d times, want %d", b.stops, tc.stops)
			}
		})
	}
}

func TestAgentDoesNotAcknowledgeBeforeItHasStopped(t *testing.T) {
	b := newBench(t)
	b.mark(map[string]string{"addonUID": "u1"})
	errBusy := errors.New("a write is under way")
	b.agent.stop = func(context.Context) error { return errBusy }
	if err := b.reconcileAgent(); !errors.Is(err, errBusy) {
		t.Errorf("error = %v, want %v", err, errBusy)
	}
	if diff := cmp.Diff(map[string]string{"addonUID": "u1"}, b.marker()); diff != "" {
		t.Errorf("marker (-want +got):\n%s", diff)
	}
}

func TestHookDeletesMarkedClaimsAndCanBeRepeated(t *testing.T) {
	b := newBench(t)
	b.mark(map[string]string{"addonUID": "u0", "stopped": "u0"})
	b.claim("a", marked())
	b.claim("b", marked())
	b.claim("helm", map[string]string{"app.kubernetes.io/managed-by": "Helm"})
	b.claim("theirs", nil)

	apitest.Must(b.admin.T, b.hook.Run(t.Context()))
	if diff := cmp.Diff([]string{"helm", "theirs"}, b.claims()); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"addonUID": "u1"}, b.marker()); diff != "" {
		t.Errorf("marker (-want +got):\n%s", diff)
	}

	apitest.Must(b.admin.T, b.reconcileAgent())
	b.wire.Reset()
	apitest.Must(b.admin.T, b.hook.Run(t.Context()))
	if diff := cmp.Diff([]string{}, b.wire.Sent()); diff != "" {
		t.Errorf("writes of a second run:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"addonUID": "u1", "stopped": "u1"}, b.marker()); diff != "" {
		t.Errorf("the acknowledgement was lost (-want +got):\n%s", diff)
	}
}

func TestHookWaitsForTheAgent(t *testing.T) {
	b := newBench(t)
	b.hook.AgentTimeout = time.Hour // on its clock
	b.mark(map[string]string{"addonUID": "u1"})
	b.claim("a", marked())
	// The agent answers before the hook reads the marker for the third time. A claim
	// deleted by then was deleted too early.
	looks := 0
	var early []string
	b.wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Method == http.MethodGet && call.Resource == "configmaps" {
			if looks++; looks == 3 {
				early = b.claims()
				apitest.Must(b.admin.T, b.reconcileAgentUnwired())
			}
		}
		return apitest.Fault{}
	})
	apitest.Must(b.admin.T, b.hook.Run(t.Context()))
	if diff := cmp.Diff([]string{"a"}, early); diff != "" {
		t.Errorf("claims before the agent answered (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{}, b.claims()); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

// reconcileAgentUnwired reconciles the agent during a request of the hook, past the
// wire.
func (b *bench) reconcileAgentUnwired() error {
	agent := *b.agent
	agent.writer = b.admin
	_, err := agent.Reconcile(b.admin.T.Context(), reconcile.Request{NamespacedName: MarkerKey(b.hook.InstallNamespace)})
	return err
}

func TestHookRecoversFromAFailedRequest(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for name, fault := range map[string]apitest.Fault{
			"overtaxed":          {Status: http.StatusTooManyRequests, Reason: "TooManyRequests"},
			"conflict":           {Status: http.StatusConflict, Reason: "Conflict"},
			"the answer is lost": {Err: errors.New("connection reset"), AfterServer: true},
		} {
			t.Run(fmt.Sprintf("write %d, %s", n, name), func(t *testing.T) {
				b := newBench(t)
				b.mark(nil)
				b.claim("a", marked())
				b.claim("b", marked())
				b.wire.FailNthWrite(n, fault)
				apitest.Must(b.admin.T, b.hook.Run(t.Context()))
				if diff := cmp.Diff([]string{}, b.claims()); diff != "" {
					t.Errorf("claims (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(map[string]string{"addonUID": "u1"}, b.marker()); diff != "" {
					t.Errorf("marker (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestHookFailsWhileAnAgentDoesNotStop(t *testing.T) {
	b := newBench(t)
	b.claim("a", marked())
	b.wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Resource == "clusterclaims" && call.Method == http.MethodGet && len(b.claims()) == 0 {
			b.admin.MustCreate(&clusterv1alpha1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: marked()}})
		}
		return apitest.Fault{}
	})
	if err := b.hook.Run(t.Context()); !errors.Is(err, errClaimsLeft) {
		t.Errorf("error = %v, want %v", err, errClaimsLeft)
	}
}

func TestHookGivesUpInTimeAndSaysWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		resource, method string
		want             []string
	}{
		"claims cannot be listed": {"clusterclaims", http.MethodGet, []string{"listing ClusterClaims", "no rights"}},
		"claim cannot be deleted": {"clusterclaims", http.MethodDelete, []string{"deleting ClusterClaim a", "no rights"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.claim("a", marked())
			b.wire.Fail(func(call apitest.Call) apitest.Fault {
				if call.Resource == tc.resource && call.Method == tc.method {
					return apitest.Fault{Status: http.StatusForbidden, Reason: "Forbidden", Message: "no rights"}
				}
				return apitest.Fault{}
			})
			err := b.hook.Run(t.Context())
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not contain %q", err, part)
				}
			}
		})
	}
}

func TestHookDeletesALateAgentsClaims(t *testing.T) {
	b := newBench(t)
	looks := 0
	b.wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Resource == "clusterclaims" && call.Method == http.MethodGet {
			if looks++; looks == 2 {
				b.claim("late", marked())
			}
		}
		return apitest.Fault{}
	})
	apitest.Must(b.admin.T, b.hook.Run(t.Context()))
	if diff := cmp.Diff([]string{}, b.claims()); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if !slices.Contains(b.wire.Sent(), "DELETE clusterclaims") {
		t.Error("the hook did not look again")
	}
}

func TestHookSucceedsWithoutMarker(t *testing.T) {
	b := newBench(t)
	b.claim("a", marked())
	apitest.Must(b.admin.T, b.hook.Run(t.Context()))
	if diff := cmp.Diff([]string{}, b.claims()); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

func TestHookSucceedsWithoutClusterClaimAPI(t *testing.T) {
	w := server.World(t, ocmtest.Scheme())
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "clusterclaims.cluster.open-cluster-management.io"},
	}
	w.MustDelete(crd)
	t.Cleanup(func() { server.Install(t, apitest.Spoke()) })
	w.EventuallyGone(crd)
	w.Eventually("ClusterClaims are not served", func() string {
		fresh := apitest.NewClient(t, server.Config(t), ocmtest.Scheme())
		if err := fresh.List(t.Context(), &clusterv1alpha1.ClusterClaimList{}); !apimeta.IsNoMatchError(err) {
			return fmt.Sprint("the answer: ", err)
		}
		return ""
	})
	b := newBench(t)
	apitest.Must(t, b.hook.Run(t.Context()))
}
