package grants

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var (
	subject = rbacv1.Subject{Kind: "ServiceAccount", Namespace: "inventory", Name: "manager"}
	reader  = types.NamespacedName{Namespace: "c1", Name: "reader"}
	writer  = types.NamespacedName{Namespace: "c1", Name: "writer"}
)

func TestCompare(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*rbacv1.RoleBinding)
		differs bool
		refused string
	}{
		"as it should be":        {change: func(*rbacv1.RoleBinding) {}},
		"with a label of others": {change: func(b *rbacv1.RoleBinding) { b.Labels["theirs"] = "x" }},
		"with no subject":        {change: func(b *rbacv1.RoleBinding) { b.Subjects = nil }, differs: true},
		"with another subject":   {change: func(b *rbacv1.RoleBinding) { b.Subjects[0].Name = "x" }, differs: true},
		"with a subject too many": {change: func(b *rbacv1.RoleBinding) { b.Subjects = append(b.Subjects, subject) },
			differs: true},
		"without labels": {change: func(b *rbacv1.RoleBinding) { b.Labels = nil }},
		"to another role": {change: func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "view" },
			refused: `it refers to ClusterRole "view"`},
		"to a Role": {change: func(b *rbacv1.RoleBinding) { b.RoleRef.Kind = "Role" },
			refused: "it refers to Role"},
	} {
		t.Run(name, func(t *testing.T) {
			have := desiredBinding(Target("team"), subject)
			test.change(have)
			differs, err := compare(have, desiredBinding(Target("team"), subject))
			if differs != test.differs || (err != nil) != (test.refused != "") {
				t.Fatalf("got %t, %v", differs, err)
			}
			if err != nil && (!errors.Is(err, ErrNotOurs) || !strings.Contains(err.Error(), test.refused) || !IsRefusal(err)) {
				t.Errorf("got error %v, want one with %q", err, test.refused)
			}
		})
	}
}

func TestClaimsAreReleasedByTheLastAccount(t *testing.T) {
	g := New(nil, nil, nil, subject, testingclock.NewFakePassiveClock(time.Unix(100, 0)), "test")
	if released := g.Claim(reader, []Grant{Source("c1"), Target("team")}, nil); len(released) > 0 {
		t.Errorf("a first claim released %v", released)
	}
	g.Claim(writer, []Grant{Target("team")}, nil)
	released := g.Claim(reader, []Grant{Target("other")}, nil)
	if len(released) != 2 || !slices.Contains(released, Source("c1")) || !slices.Contains(released, Target("team")) {
		t.Errorf("released %v", released)
	}
	for grant, claimed := range map[Grant]bool{Source("c1"): false, Target("team"): true, Target("other"): true} {
		if got := g.isClaimed(grant, need); got != claimed {
			t.Errorf("%v is claimed: %t, want %t", grant, got, claimed)
		}
	}
	g.Claim(reader, nil, nil)
	g.Claim(writer, nil, nil)
	for _, grant := range []Grant{Source("c1"), Target("team"), Target("other")} {
		g.forget(grant)
	}
	if len(g.states) > 0 || len(g.claims) > 0 {
		t.Errorf("left in memory: %v, %v", g.states, g.claims)
	}
}

func TestANewGrantTakesEffectLater(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Unix(100, 0))
	g := New(nil, nil, nil, subject, clock, "test")
	if wait := g.ForbiddenRetry(Target("team")); wait != 0 {
		t.Errorf("a request without a new grant is retried in %s", wait)
	}
	g.setMade(Target("team"), clock.Now())
	for _, step := range []struct{ after, want time.Duration }{
		{0, 10 * time.Millisecond}, {time.Second, 250 * time.Millisecond}, {takesEffectAfter, 0},
	} {
		clock.SetTime(time.Unix(100, 0).Add(step.after))
		if got := g.ForbiddenRetry(Target("team")); got != step.want {
			t.Errorf("after %s: retry in %s, want %s", step.after, got, step.want)
		}
	}
}

func TestKeptGrantIsNeitherCreatedNorReleased(t *testing.T) {
	g := New(nil, nil, nil, subject, testingclock.NewFakePassiveClock(time.Unix(100, 0)), "test")
	source := []Grant{Source("c1")}
	g.Claim(reader, source, nil)
	if released := g.Claim(reader, nil, source); len(released) > 0 {
		t.Errorf("released %v", released)
	}
	if g.isClaimed(Source("c1"), need) || !g.isClaimed(Source("c1"), keep) {
		t.Error("want it kept, and not needed")
	}
	if released := g.Claim(reader, nil, nil); !slices.Equal(released, source) {
		t.Errorf("released %v, want %v", released, source)
	}
}

// hub stores RoleBindings, and its cache shows none.
type hub struct {
	client.Client
	created int
}

func (h *hub) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "rolebindings"}, key.Name)
}

func (h *hub) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	h.created++
	obj.SetUID(types.UID(strconv.Itoa(h.created)))
	obj.SetResourceVersion(strconv.Itoa(h.created))
	return nil
}

// unfollowed is where no copies are followed.
type unfollowed struct{ Copies }

func (unfollowed) Follow(string, bool) {}

// TestAGrantThatTheCacheNeverShowsIsCreatedAgain: another client deletes a RoleBinding at once, and both
// events come before its creation is recorded, or the watch misses both.
func TestAGrantThatTheCacheNeverShowsIsCreatedAgain(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Unix(100, 0))
	h := &hub{}
	g := New(h, h, h, subject, clock, "test")
	g.Copies = unfollowed{}
	g.Claim(reader, []Grant{Target("team")}, nil)
	step := func() time.Duration {
		t.Helper()
		result, err := g.Reconcile(t.Context(), reconcile.Request{NamespacedName: Target("team").Key()})
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	again := step()
	if h.created != 1 || again == 0 {
		t.Fatalf("%d created; again after %s", h.created, again)
	}
	if left := step(); h.created != 1 || left == 0 { // the cache may only lag
		t.Fatalf("%d created; again after %s", h.created, left)
	}
	clock.SetTime(clock.Now().Add(again))
	if step(); h.created != 2 {
		t.Errorf("%d created, want another one", h.created)
	}
}
