package grants

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// takesEffectAfter is how long a new RoleBinding may take to work: the API servers learn of it by
// a separate watch.
const takesEffectAfter = 5 * time.Second

// Grants creates the manager's RoleBindings where and when an account needs them, and removes
// those that no account needs any more. It is safe for concurrent use.
type Grants struct {
	// Copies knows the copies in target namespaces. Required.
	Copies Copies

	// AllReconciled reports whether every account has claimed what it needs, so that
	// unclaimed grants are not needed. Required by Reconcile.
	AllReconciled func() bool

	reader  client.Reader // caches
	live    client.Reader
	writer  client.Client
	subject rbacv1.Subject
	clock   clock.PassiveClock
	owner   client.FieldOwner

	// written are this process's writes that the cache may not show yet.
	written kube.Expectations

	// brake bounds how often a contested RoleBinding is repaired.
	brake kube.Brake[Grant]

	mu     sync.Mutex
	states map[Grant]*grantState
	claims map[types.NamespacedName][]Grant // by account
}

// grantState is what is known about one grant.
type grantState struct {
	// writing is held while the RoleBinding is created or removed; Grants.mu guards the
	// fields below.
	writing sync.Mutex

	claimedBy map[types.NamespacedName]claim // by account

	made time.Time // when this process made or repaired the RoleBinding; zero if it did not
}

// claim is an account's claim on a grant.
type claim int

const (
	// keep: an existing one must not be removed.
	keep claim = iota
	// need: it must exist.
	need
)

// New returns Grants that binds the ClusterRoles to a subject, the manager's own
// service account, and writes as the given field manager.
func New(
	reader, live client.Reader, writer client.Client, subject rbacv1.Subject, clock clock.PassiveClock,
	owner client.FieldOwner,
) *Grants {
	return &Grants{
		reader: reader, live: live, writer: writer, subject: subject, clock: clock, owner: owner,
		states: map[Grant]*grantState{}, claims: map[types.NamespacedName][]Grant{},
	}
}

// Claim records which grants an account needs from now on, and which it may come to need,
// so that existing ones stay. It returns those that the account claimed before and no
// longer does. A grant must be claimed before it is used, so that it is not removed
// meanwhile.
func (g *Grants) Claim(account types.NamespacedName, needed, kept []Grant) (released []Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := sets.New(g.claims[account]...)
	for _, grant := range kept {
		before.Delete(grant)
		g.state(grant).claimedBy[account] = keep
	}
	for _, grant := range needed {
		before.Delete(grant)
		g.state(grant).claimedBy[account] = need
	}
	for grant := range before {
		delete(g.state(grant).claimedBy, account)
		released = append(released, grant)
	}
	if g.claims[account] = slices.Concat(needed, kept); len(g.claims[account]) == 0 {
		delete(g.claims, account)
	}
	return released
}

// isClaimed reports whether an account claims the grant at least to this degree.
func (g *Grants) isClaimed(grant Grant, least claim) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, claim := range g.state(grant).claimedBy {
		if claim >= least {
			return true
		}
	}
	return false
}

// state returns what is known about a grant. It requires the lock.
func (g *Grants) state(grant Grant) *grantState {
	if g.states[grant] == nil {
		g.states[grant] = &grantState{claimedBy: map[types.NamespacedName]claim{}}
	}
	return g.states[grant]
}

// lock keeps others from creating or removing a grant's RoleBinding.
func (g *Grants) lock(grant Grant) (unlock func()) {
	g.mu.Lock()
	state := g.state(grant)
	g.mu.Unlock()
	state.writing.Lock()
	return state.writing.Unlock
}

// ForbiddenRetry returns how soon to retry a request that was forbidden although its grant was
// just created, and zero if it was not. The waits grow with time.
func (g *Grants) ForbiddenRetry(grant Grant) time.Duration {
	g.mu.Lock()
	made := g.state(grant).made
	g.mu.Unlock()
	if made.IsZero() {
		return 0
	}
	age := g.clock.Since(made)
	if age >= takesEffectAfter {
		return 0
	}
	return max(10*time.Millisecond, age/4)
}

func (g *Grants) setMade(grant Grant, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state(grant).made = at
}

// Ensure brings a grant's RoleBinding to its desired state, and has the copies of a target
// namespace followed, or forgotten if it does not exist.
func (g *Grants) Ensure(ctx context.Context, grant Grant) error {
	made, err := g.ensure(ctx, grant)
	switch {
	case !grant.IsTarget():
	case err == nil:
		g.Copies.Follow(grant.Namespace, made)
	case kube.IsNamespaceMissing(err):
		g.Copies.Lost(grant.Namespace)
	}
	return err
}

// ensure brings a grant's RoleBinding to its desired state. made is true if it was created
// now.
func (g *Grants) ensure(ctx context.Context, grant Grant) (made bool, err error) {
	defer g.lock(grant)()
	current, exists, err := g.find(ctx, grant)
	switch {
	case err != nil:
		return false, err
	case current != nil:
		return false, g.repair(ctx, grant, current)
	case exists:
		return false, nil
	}
	if err := g.brake.Check(grant, kube.Rewrite, "", g.clock.Now()); err != nil {
		return false, err
	}
	binding := desiredBinding(grant, g.subject)
	err = g.writer.Create(ctx, binding, g.owner)
	if apierrors.IsAlreadyExists(err) {
		current := &rbacv1.RoleBinding{}
		if err := g.live.Get(ctx, grant.Key(), current); err != nil {
			return false, fmt.Errorf("reading RoleBinding %s: %w", grant.Key(), err)
		}
		return false, g.repair(ctx, grant, current)
	}
	if err != nil {
		return false, fmt.Errorf("creating RoleBinding %s: %w", grant.role, err)
	}
	log.FromContext(ctx).V(1).Info("Created RoleBinding", "roleBinding", grant.Key())
	g.wrote(grant, "", binding)
	return true, nil
}

// Exists reports whether a grant's RoleBinding is in the cache, or was created and is not there yet.
func (g *Grants) Exists(ctx context.Context, grant Grant) (bool, error) {
	_, exists, err := g.find(ctx, grant)
	return exists, err
}

// find returns a grant's cached RoleBinding, unless this process has deleted it. One that it has created exists,
// even if the cache does not show it yet.
func (g *Grants) find(ctx context.Context, grant Grant) (current *rbacv1.RoleBinding, exists bool, err error) {
	current, err = kube.Get(ctx, g.reader, grant.Key(), &rbacv1.RoleBinding{})
	if err != nil {
		return nil, false, err
	}
	if current != nil && !g.written.IsDeleted(current) {
		return current, true, nil
	}
	return nil, g.written.IsAwaited(grant.Key(), g.clock.Now()), nil
}

// repair repairs the subjects of a RoleBinding, unless it was just written and the cache
// does not show that yet. The grant is locked.
func (g *Grants) repair(ctx context.Context, grant Grant, current *rbacv1.RoleBinding) error {
	desired := desiredBinding(grant, g.subject)
	differs, err := compare(current, desired)
	if err != nil || !differs || g.written.Wait(grant.Key(), current, g.clock.Now()) > 0 {
		return err
	}
	if err := g.brake.Check(grant, kube.Rewrite, current.ResourceVersion, g.clock.Now()); err != nil {
		return err
	}
	patch, err := kube.MergePatch(current.ResourceVersion, map[string]any{"subjects": desired.Subjects})
	if err != nil {
		return err
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: grant.Namespace, Name: grant.role}}
	if err := g.writer.Patch(ctx, binding, patch, g.owner); err != nil {
		if apierrors.IsConflict(err) {
			g.brake.Lost(grant, kube.Rewrite, current.ResourceVersion, g.clock.Now())
		}
		return fmt.Errorf("patching RoleBinding %s: %w", grant.role, err)
	}
	g.wrote(grant, current.ResourceVersion, binding)
	return nil
}

// wrote records a write that brought a grant's RoleBinding from a version to its present
// one.
func (g *Grants) wrote(grant Grant, before string, binding *rbacv1.RoleBinding) {
	now := g.clock.Now()
	g.brake.Wrote(grant, kube.Rewrite, before, binding.ResourceVersion, now)
	g.written.Wrote(binding, now)
	g.setMade(grant, now)
}

// repairIdle repairs the cached RoleBinding of a grant that no account is known to need:
// without it the manager could not read the copies in the namespace.
func (g *Grants) repairIdle(ctx context.Context, grant Grant, current *rbacv1.RoleBinding) error {
	defer g.lock(grant)()
	if g.written.IsDeleted(current) {
		return nil
	}
	return g.repair(ctx, grant, current)
}

// remove deletes the cached RoleBinding of a grant, unless an account has claimed it
// meanwhile.
func (g *Grants) remove(ctx context.Context, grant Grant, current *rbacv1.RoleBinding) error {
	defer g.lock(grant)()
	if g.isClaimed(grant, keep) || g.written.IsDeleted(current) {
		return nil
	}
	if err := g.brake.Check(grant, kube.Remove, current.ResourceVersion, g.clock.Now()); err != nil {
		return err
	}
	err := g.writer.Delete(ctx, current.DeepCopy(), client.Preconditions{UID: ptr.To(current.UID)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting RoleBinding: %w", err)
	}
	log.FromContext(ctx).V(1).Info("Deleted RoleBinding", "roleBinding", grant.Key())
	g.brake.Wrote(grant, kube.Remove, current.ResourceVersion, "", g.clock.Now())
	g.written.Deleted(current, g.clock.Now())
	g.setMade(grant, time.Time{})
	return nil
}

// Vanished records that a RoleBinding was deleted, so that the cache is not expected to
// show it.
func (g *Grants) Vanished(binding client.Object) {
	if g.written.Vanished(binding) {
		g.setMade(Of(client.ObjectKeyFromObject(binding)), time.Time{})
	}
}

// forget drops the state of an unclaimed grant without RoleBinding.
func (g *Grants) forget(grant Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if found := g.states[grant]; found != nil && len(found.claimedBy) == 0 && found.writing.TryLock() {
		delete(g.states, grant)
		g.written.Forget(grant.Key())
		found.writing.Unlock()
	}
}
