package upstream

import (
	"context"
	"errors"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// oneRole is a cache of at most one ClusterRole.
type oneRole struct {
	client.Reader
	rules []rbacv1.PolicyRule // nil: there is none
}

func (r *oneRole) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if r.rules == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "clusterroles"}, key.Name)
	}
	*into.(*rbacv1.ClusterRole) = rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: key.Name}, Rules: r.rules}
	return nil
}

var (
	gateIsOff = []rbacv1.PolicyRule{{APIGroups: []string{"x"}, Resources: []string{"y"}, Verbs: []string{"get"}}}
	gateIsOn  = []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
)

// gateWorld is a registration gate that runs, on its own clock.
type gateWorld struct {
	*testing.T
	*RegistrationGate
	cache  *oneRole
	time   *testingclock.FakeClock
	called chan struct{}
}

func unreported(bool, bool) {}

func newGate(reader client.Reader, override Override, clock clock.Clock) *RegistrationGate {
	return &RegistrationGate{
		indicator: indicator{clock: clock, report: unreported},
		reader:    reader, clusterRole: "registration", override: override,
	}
}

func newGateWorld(t *testing.T, rules []rbacv1.PolicyRule, override Override) *gateWorld {
	w := &gateWorld{
		T: t, cache: &oneRole{rules: rules}, time: testingclock.NewFakeClock(time.Unix(1_000_000, 0)),
		called: make(chan struct{}, 100),
	}
	w.RegistrationGate = newGate(w.cache, override, w.time)
	w.Subscribe(func() { w.called <- struct{}{} })
	apitest.Run(t, w.Start)
	apitest.Eventually(t, apitest.Patience, "the gate runs", func() string {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.ctx == nil {
			return "not started"
		}
		return ""
	})
	return w
}

// says compares the gate's verdict, which differs only in its reason: "allowed" and "not
// known" stand for none.
func (w *gateWorld) says(want string) {
	w.Helper()
	verdict, err := w.Verdict(w.Context())
	apitest.Must(w, err)
	got := verdict.Reason
	if got == "" {
		got = map[bool]string{true: "allowed", false: "not known"}[verdict.Allowed]
	}
	if got != want {
		w.Errorf("the gate says %q, want %q", got, want)
	}
}

// notifies waits until the subscribers are notified.
func (w *gateWorld) notifies() {
	w.Helper()
	select {
	case <-w.called:
	case <-time.After(apitest.Patience):
		w.Fatal("no subscriber was notified")
	}
}

func TestGateKeepsItsStateUntilItsRolesAbsenceLasted(t *testing.T) {
	for name, test := range map[string]struct {
		rules       []rbacv1.PolicyRule
		override    Override
		was, counts string
	}{
		"off":                                {gateIsOff, OverrideNone, "allowed", "UpstreamGateUnknown"},
		"on":                                 {gateIsOn, OverrideNone, "UpstreamGateOn", "UpstreamGateUnknown"},
		"on, and said to be off when unseen": {gateIsOn, OverrideOff, "UpstreamGateOn", "allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newGateWorld(t, test.rules, test.override)
			w.says(test.was)
			w.cache.rules = nil
			w.says(test.was)
			w.time.Step(10*time.Second - 1)
			w.says(test.was)
			if len(w.called) > 0 {
				t.Error("a subscriber was notified before it counts")
			}
			w.time.Step(1)
			w.notifies()
			w.says(test.counts)
			if w.time.HasWaiters() {
				t.Error("a timer runs although nothing is going to change")
			}
		})
	}
}

func TestGateWithAReplacedRoleDoesNotChange(t *testing.T) {
	w := newGateWorld(t, gateIsOff, OverrideNone)
	for range 5 {
		w.says("allowed")
		w.cache.rules = nil
		w.says("allowed")
		w.time.Step(9 * time.Second)
		w.says("allowed")
		w.cache.rules = gateIsOff
	}
	w.cache.rules = gateIsOn
	w.says("UpstreamGateOn") // a change is followed at once
}

func TestGateWithoutRoleIsUnknownAfterStart(t *testing.T) {
	w := newGateWorld(t, nil, OverrideNone)
	w.says("not known")
	w.time.Step(9 * time.Second)
	w.cache.rules = gateIsOff
	w.says("allowed")
	w.cache.rules = nil
	w.time.Step(time.Second)
	w.notifies() // of the first absence, which has not lasted
	w.says("allowed")
	w.time.Step(10 * time.Second)
	w.notifies()
	w.says("UpstreamGateUnknown")

	newGateWorld(t, nil, OverrideOff).says("allowed") // the administrator's word does not wait
}

func TestGateAskedBeforeItRunsStillNotifies(t *testing.T) {
	fake := testingclock.NewFakeClock(time.Unix(1_000_000, 0))
	w := &gateWorld{T: t, cache: &oneRole{}, time: fake, called: make(chan struct{}, 100)}
	w.RegistrationGate = newGate(w.cache, OverrideNone, fake)
	w.Subscribe(func() { w.called <- struct{}{} })
	w.says("not known")
	apitest.Run(t, w.Start)
	w.notifies()
	w.says("not known")
	fake.Step(10 * time.Second)
	w.notifies()
	w.says("UpstreamGateUnknown")
}

func TestAGateThatCannotBeReadSaysSo(t *testing.T) {
	errUnreadable := errors.New("the cache has not synced")
	unreadable := apitest.Getter(func(client.ObjectKey, client.Object) error { return errUnreadable })
	now := testingclock.NewFakeClock(time.Now())
	gate := newGate(unreadable, OverrideNone, now)
	if _, err := gate.Verdict(t.Context()); !errors.Is(err, errUnreadable) {
		t.Errorf("got %v", err)
	}
}
