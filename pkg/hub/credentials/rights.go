package credentials

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// place is a right of the manager in one namespace. The RoleBinding that gives it
// and the ClusterRole it refers to have the same name.
type place struct {
	namespace string
	role      string
}

func source(namespace string) place { return place{namespace, contract.TokenSourceRole} }
func target(namespace string) place { return place{namespace, contract.TokenTargetRole} }

func (p place) key() types.NamespacedName {
	return types.NamespacedName{Namespace: p.namespace, Name: p.role}
}

// settlingTime is how long a RoleBinding just made may take to work: the API
// servers learn of it by a watch of their own.
const settlingTime = 5 * time.Second

// errNotOurs is about a RoleBinding that stands where the manager's own should.
var errNotOurs = errors.New("the RoleBinding in the place of the manager's own is not this addon's")

// rights makes the manager's own RoleBindings: where an account needs them, when
// it needs them. RightsReconciler removes them where none does any more.
type rights struct {
	reader  client.Reader // caches
	live    client.Reader
	writer  client.Client
	subject rbacv1.Subject
	clock   clock.PassiveClock

	mu    sync.Mutex
	posts map[place]*post
	of    map[types.NamespacedName][]place // by account
}

// post is what is known of one place.
type post struct {
	// lock is held while the RoleBinding is made or removed; what follows is guarded
	// by rights.mu.
	lock sync.Mutex

	needs map[types.NamespacedName]struct{} // accounts

	made    time.Time // by this process; zero if it was not
	awaited types.UID // of the one made, until it is seen to be gone
	gone    types.UID // of the one this process removed last
}

func newRights(reader, live client.Reader, writer client.Client, subject rbacv1.Subject, clock clock.PassiveClock) *rights {
	return &rights{
		reader: reader, live: live, writer: writer, subject: subject, clock: clock,
		posts: map[place]*post{}, of: map[types.NamespacedName][]place{},
	}
}

// need records where an account needs rights, and returns the places where it
// does not any more.
func (r *rights) need(account types.NamespacedName, places []place) []place {
	r.mu.Lock()
	defer r.mu.Unlock()
	dropped := map[place]struct{}{}
	for _, p := range r.of[account] {
		dropped[p] = struct{}{}
	}
	for _, p := range places {
		delete(dropped, p)
		r.post(p).needs[account] = struct{}{}
	}
	for p := range dropped {
		delete(r.post(p).needs, account)
	}
	if r.of[account] = places; len(places) == 0 {
		delete(r.of, account)
	}
	return members(dropped)
}

func (r *rights) needed(p place) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.post(p).needs) > 0
}

// post returns what is known of a place. The lock is held.
func (r *rights) post(p place) *post {
	if r.posts[p] == nil {
		r.posts[p] = &post{needs: map[types.NamespacedName]struct{}{}}
	}
	return r.posts[p]
}

// locked keeps others from making or removing the RoleBinding of a place.
func (r *rights) locked(p place) (unlock func()) {
	r.mu.Lock()
	found := r.post(p)
	r.mu.Unlock()
	found.lock.Lock()
	return found.lock.Unlock
}

// settling returns how soon to try again what was forbidden in a place whose
// RoleBinding this process has just made, and zero if it has not. The waits grow
// with the time passed.
func (r *rights) settling(p place) time.Duration {
	made := r.madeAt(p)
	if made.IsZero() {
		return 0
	}
	age := r.clock.Since(made)
	if age >= settlingTime {
		return 0
	}
	return max(10*time.Millisecond, age/4)
}

// madeAt returns when this process made the RoleBinding that is in a place, or zero.
func (r *rights) madeAt(p place) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.post(p).made
}

// makes tells whether the RoleBinding of a place was made by this process.
func (r *rights) makes(p place) bool { return !r.madeAt(p).IsZero() }

// note changes what is known of a place.
func (r *rights) note(p place, change func(*post)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r.post(p))
}

// known returns which RoleBinding of a place was removed, and whether one was made
// that the cache may not have yet.
func (r *rights) known(p place) (gone types.UID, awaited bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.post(p)
	return found.gone, found.awaited != "" && r.clock.Since(found.made) < kube.StaleAfter
}

// ensure makes the RoleBinding of a place what it should be. made is true if it
// was made now.
func (r *rights) ensure(ctx context.Context, p place) (made bool, err error) {
	defer r.locked(p)()
	current := &rbacv1.RoleBinding{}
	err = r.reader.Get(ctx, p.key(), current)
	gone, awaited := r.known(p)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return false, fmt.Errorf("reading RoleBinding %s: %w", p.key(), err)
	case err == nil && current.UID != gone:
		return false, r.correct(ctx, current, p)
	case awaited:
		return false, nil // made, and not in the cache yet
	}
	desired := r.desired(p)
	err = r.writer.Create(ctx, desired, client.FieldOwner(ControllerName))
	if apierrors.IsAlreadyExists(err) {
		if err := r.live.Get(ctx, p.key(), current); err != nil {
			return false, fmt.Errorf("reading RoleBinding %s: %w", p.key(), err)
		}
		return false, r.correct(ctx, current, p)
	}
	if err != nil {
		return false, fmt.Errorf("creating RoleBinding %s: %w", p.role, err)
	}
	log.FromContext(ctx).V(1).Info("Created RoleBinding", "roleBinding", p.key())
	r.note(p, func(found *post) { found.made, found.awaited = r.clock.Now(), desired.UID })
	return true, nil
}

func (r *rights) desired(p place) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.role, Labels: copyLabels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: p.role},
		Subjects:   []rbacv1.Subject{r.subject},
	}
}

// correct puts right what somebody changed. The lock of the place is held.
func (r *rights) correct(ctx context.Context, current *rbacv1.RoleBinding, p place) error {
	desired := r.desired(p)
	switch {
	case !contains(current.Labels, desired.Labels):
		return fmt.Errorf("%w: it is not labelled %s=%s and %s=true; delete RoleBinding %s", errNotOurs, contract.LabelManagedBy, contract.ManagedBy, contract.LabelCredential, p.role)
	case current.RoleRef != desired.RoleRef:
		return fmt.Errorf("%w: it refers to %s %q, which cannot be changed; delete RoleBinding %s", errNotOurs, current.RoleRef.Kind, current.RoleRef.Name, p.role)
	case apiequality.Semantic.DeepEqual(current.Subjects, desired.Subjects):
		return nil
	}
	patch, err := kube.MergePatch(current.ResourceVersion, map[string]any{"subjects": desired.Subjects})
	if err != nil {
		return err
	}
	written := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.role}}
	if err := r.writer.Patch(ctx, written, patch, client.FieldOwner(ControllerName)); err != nil {
		return fmt.Errorf("patching RoleBinding %s: %w", p.role, err)
	}
	r.note(p, func(found *post) { found.made = r.clock.Now() })
	return nil
}

// restore puts right the RoleBinding that is in the cache, of a place that no account
// is known to need: without it nobody could look there.
func (r *rights) restore(ctx context.Context, p place, current *rbacv1.RoleBinding) error {
	defer r.locked(p)()
	if gone, _ := r.known(p); current.UID == gone {
		return nil
	}
	return r.correct(ctx, current, p)
}

// remove deletes the RoleBinding that is in the cache, if no account has come to
// need it meanwhile.
func (r *rights) remove(ctx context.Context, p place, current *rbacv1.RoleBinding) error {
	defer r.locked(p)()
	if gone, _ := r.known(p); r.needed(p) || current.UID == gone {
		return nil
	}
	err := r.writer.Delete(ctx, current.DeepCopy(), client.Preconditions{UID: ptr.To(current.UID)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting RoleBinding: %w", err)
	}
	log.FromContext(ctx).V(1).Info("Deleted RoleBinding", "roleBinding", p.key())
	r.note(p, func(found *post) { found.gone, found.awaited, found.made = current.UID, "", time.Time{} })
	return nil
}

// vanished takes note that a RoleBinding is gone, so that one this process has made
// is not waited for.
func (r *rights) vanished(obj client.Object) {
	r.note(place{namespace: obj.GetNamespace(), role: obj.GetName()}, func(found *post) {
		if found.awaited == obj.GetUID() {
			found.awaited, found.made = "", time.Time{}
		}
	})
}

// forget drops what is known of a place without RoleBinding that nobody needs.
func (r *rights) forget(p place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found := r.posts[p]; found != nil && len(found.needs) == 0 && found.lock.TryLock() {
		delete(r.posts, p)
		found.lock.Unlock()
	}
}

// RightsReconciler removes a RoleBinding that no account needs any more, in a
// target namespace only when every copy there is gone, and brings back one that is
// needed. The request is the RoleBinding. RoleBindings are the record of where
// copies are: after a start, every target namespace that has one is looked into.
type RightsReconciler struct {
	reader  client.Reader // caches
	rights  *rights
	targets *targets
	book    *book

	// settled is true when every account has been looked at, so that what none of
	// them needs is not needed.
	settled func() bool
}

// Reconcile looks at one RoleBinding.
func (r *RightsReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	p := place{namespace: req.Namespace, role: req.Name}
	isTarget := p.role == contract.TokenTargetRole
	current := &rbacv1.RoleBinding{}
	err := r.reader.Get(ctx, req.NamespacedName, current)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	exists := err == nil && contains(current.Labels, copyLabels())
	switch {
	case r.rights.needed(p):
		made, err := r.rights.ensure(ctx, p)
		if isTarget && err == nil {
			r.targets.watch(p.namespace, made) //nolint:contextcheck // it outlives this reconciliation
		}
		return reconcile.Result{}, err
	case !exists:
		if isTarget {
			r.targets.stop(p.namespace)
		}
		r.rights.forget(p)
		return reconcile.Result{}, nil
	}
	if isTarget {
		switch err := r.rights.restore(ctx, p, current); {
		case err != nil && isRefusal(err):
			// It gives another right, or another the right, and must not be changed, as
			// where no set is bound: no way to any copy, and what may be there goes with
			// its profile.
			log.FromContext(ctx).Info("Cannot look for copies", "namespace", p.namespace, "reason", err.Error())
		case err != nil:
			return reconcile.Result{}, err
		default:
			r.targets.watch(p.namespace, false) //nolint:contextcheck // it outlives this reconciliation
			if !r.targets.synced(p.namespace) || r.book.copiesIn(p.namespace) > 0 {
				return reconcile.Result{}, nil // both end with an event
			}
		}
	}
	if !r.settled() {
		return reconcile.Result{}, nil // all are looked at again then
	}
	return reconcile.Result{}, r.rights.remove(ctx, p, current)
}
