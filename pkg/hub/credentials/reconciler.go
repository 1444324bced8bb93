package credentials

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// maxErrorBytes bounds what of an API server's refusal is repeated to people.
	maxErrorBytes = 300

	// syncerWait is how soon to look again while it cannot be told whether
	// upstream's syncer is on; normally its answer comes first.
	syncerWait = time.Second
)

// Reconciler keeps the copies of one account. The request is the account: its
// cluster's namespace and its name.
type Reconciler struct {
	observer observer
	live     client.Reader // Secrets, past every cache
	writer   client.Client
	rights   *rights
	targets  *targets
	book     *book
	sources  *sources
	outcomes *outcomes
	clock    clock.PassiveClock

	// dropped is told of places where an account needs no rights any more.
	dropped func(place)

	// settled is told when every account has been looked at since the start.
	settled func()
}

// work is one reconciliation.
type work struct {
	observed
	decisions []decision
	outcome   outcome
	again     time.Duration
	errs      []error

	// reads is true when the token has to be read, now or at the next check.
	reads bool

	// unsettled is true when something waits for rights just given: there is
	// nothing to say yet.
	unsettled bool
}

func (w *work) later(after time.Duration) { w.again = sooner(w.again, after) }

// Reconcile brings the copies of an account to what they should be: first it
// takes away what must not be, then it reads the token if it has to, and then
// writes what differs.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if !r.observer.syncer.Known() {
		return reconcile.Result{RequeueAfter: syncerWait}, nil
	}
	w := &work{}
	var err error
	if w.observed, w.again, err = r.observer.observe(ctx, req.NamespacedName, r.clock.Now()); err != nil {
		return reconcile.Result{}, err
	}
	for _, t := range w.targets {
		w.decisions = append(w.decisions, decide(w.observed, t))
	}
	r.claimRights(w)
	r.withdrawAll(ctx, w)
	r.publishAll(ctx, w)
	r.releaseRights(w)
	r.record(w)
	if err := errors.Join(w.errs...); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: w.again}, nil
}

// claimRights records what rights the account may need before any is used, so that
// none of them is removed meanwhile.
func (r *Reconciler) claimRights(w *work) {
	w.reads = slices.ContainsFunc(w.decisions, func(d decision) bool { return r.isToBe(w, d) })
	r.dropAll(r.rights.need(w.key, r.places(w)))
}

// releaseRights does it again when copies have gone.
func (r *Reconciler) releaseRights(w *work) {
	r.dropAll(r.rights.need(w.key, r.places(w)))
	if w.known && r.observer.accounts.looked(w.key) {
		r.settled()
	}
}

func (r *Reconciler) dropAll(places []place) {
	for _, p := range places {
		r.dropped(p)
	}
}

// places are where the account needs rights: at its token if it is to be copied
// anywhere, and wherever there is a copy or is to be one.
func (r *Reconciler) places(w *work) []place {
	var places []place
	for _, d := range w.decisions {
		if d.action == publish || r.book.hasCopy(copyKey(w.key, d.namespace), r.clock.Now()) {
			places = append(places, target(d.namespace))
		}
	}
	if w.reads {
		places = append(places, source(w.key.Namespace))
	}
	return places
}

// withdrawAll deletes every copy that must not be.
func (r *Reconciler) withdrawAll(ctx context.Context, w *work) {
	for i, d := range w.decisions {
		if d.action == withdraw {
			r.withdraw(ctx, w, d.namespace)
		}
		w.say(w.decisions[i])
	}
}

// withdraw deletes the account's copy in one namespace, under every UID that it
// may have there.
func (r *Reconciler) withdraw(ctx context.Context, w *work, namespace string) {
	secret := copyKey(w.key, namespace)
	if !r.book.hasCopy(secret, r.clock.Now()) {
		r.book.forget(secret)
		return
	}
	// Whatever is wrong with the RoleBinding, it may give the right all the same.
	permitted := r.permitted(ctx, w, target(namespace))
	if err := r.remove(ctx, secret); err != nil {
		if permitted {
			r.failed(w, target(namespace), namespace, err, err.Error())
		}
		return
	}
	log.FromContext(ctx).Info("Withdrew a copy", "secret", secret)
}

// remove deletes the copy that is, or may be, in a place. Finalizers do not keep
// it: whoever could read it while they do is who must not.
func (r *Reconciler) remove(ctx context.Context, secret types.NamespacedName) error {
	uids, seen := r.book.identities(secret)
	if seen != nil && len(seen.Finalizers) > 0 {
		if err := r.release(ctx, secret, seen.ResourceVersion); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("taking the finalizers off Secret %s: %w", secret.Name, err)
		}
	}
	for _, uid := range uids {
		if err := r.delete(ctx, secret, uid); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes the Secret of this UID, if it is there.
func (r *Reconciler) delete(ctx context.Context, secret types.NamespacedName, uid types.UID) error {
	err := r.writer.Delete(ctx, &corev1.Secret{ObjectMeta: objectMeta(secret)}, client.Preconditions{UID: &uid})
	if apierrors.IsConflict(err) {
		// Another is there, most likely.
		have := &corev1.Secret{}
		if missing := r.live.Get(kube.WithoutBodies(ctx), secret, have); missing == nil && have.UID != uid || apierrors.IsNotFound(missing) {
			err = nil
		}
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Secret %s: %w", secret.Name, err)
	}
	r.book.deleted(secret, uid, r.clock.Now())
	return nil
}

// release takes all finalizers off a copy.
func (r *Reconciler) release(ctx context.Context, secret types.NamespacedName, resourceVersion string) error {
	patch, err := releasePatch(resourceVersion)
	if err != nil {
		return err
	}
	return r.writer.Patch(kube.WithoutBodies(ctx), &corev1.Secret{ObjectMeta: objectMeta(secret)}, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(ControllerName))
}

// publishAll reads the token, if it has to, and writes the copies that differ.
func (r *Reconciler) publishAll(ctx context.Context, w *work) {
	if !w.reads {
		r.sources.forget(w.key)
		return
	}
	now := r.clock.Now()
	ref := referenceOf(w.account)
	found, current := r.sources.current(w.key, ref, now)
	var read *content
	switch problem := ref.problem(w.account.Name, now); {
	case problem != "":
		w.reads = false
		found = finding{problem: problem}
	case !current || found.problem == "" && r.differs(w, found):
		var ok bool
		if found, read, ok = r.read(ctx, w, ref); !ok {
			return
		}
	}
	if found.problem == "" && !now.Before(found.expires) {
		found = finding{problem: "its token has expired at " + found.expires.Format(time.RFC3339)}
	}
	if found.problem != "" {
		r.withdrawSource(ctx, w, found)
		return
	}
	w.later(expiresIn(found.expires, now))
	w.later(expiresIn(found.next, now))
	for _, d := range w.decisions {
		if r.isToBe(w, d) {
			r.put(ctx, w, d, found, read)
		}
	}
}

// withdrawSource takes back every copy of a token that must not be used.
func (r *Reconciler) withdrawSource(ctx context.Context, w *work, found finding) {
	w.outcome.note(contract.ReasonInvalidSource, "", found.problem)
	if !found.next.IsZero() {
		w.later(expiresIn(found.next, r.clock.Now()))
	}
	for i, d := range w.decisions {
		if r.isToBe(w, d) {
			w.decisions[i].action = withdraw
			r.withdraw(ctx, w, d.namespace)
		}
	}
}

// isToBe tells whether there is to be a copy, or the one that is there kept true.
func (r *Reconciler) isToBe(w *work, d decision) bool {
	return d.action == publish || d.action == maintain && r.book.hasCopy(copyKey(w.key, d.namespace), r.clock.Now())
}

// differs tells whether any copy is not known to hold what was found.
func (r *Reconciler) differs(w *work, found finding) bool {
	return slices.ContainsFunc(w.decisions, func(d decision) bool {
		return r.isToBe(w, d) && !r.holds(w.key, d, found)
	})
}

// holds tells whether a copy is known to be right.
func (r *Reconciler) holds(account types.NamespacedName, d decision, found finding) bool {
	known, v := r.book.look(copyKey(account, d.namespace), r.clock.Now())
	return known == trusted && v.content == found.content && (d.profile.owner == "" || v.owner == d.profile.owner)
}

// read reads the account's token. ok is false if it could not be told what is
// there.
func (r *Reconciler) read(ctx context.Context, w *work, ref reference) (f finding, c *content, ok bool) {
	at := source(w.key.Namespace)
	if !r.permitted(ctx, w, at) {
		return finding{}, nil, false
	}
	secret := &corev1.Secret{}
	err := r.live.Get(kube.WithoutBodies(ctx), types.NamespacedName{Namespace: w.key.Namespace, Name: ref.name}, secret)
	now := r.clock.Now()
	f = finding{reference: ref}
	switch {
	case apierrors.IsNotFound(err):
		f.problem = "its Secret " + ref.name + " is not there"
		return r.sources.missing(w.key, f, now), nil, true
	case err != nil:
		r.failed(w, at, "", err, fmt.Sprintf("reading Secret %s: %v", ref.name, err))
		return finding{}, nil, false
	}
	read, problem := contentOf(w.account, secret, now)
	if problem != "" {
		f.problem = problem
		return r.sources.record(w.key, f, now), nil, true
	}
	f.content, f.expires = read.digest(), read.expires
	return r.sources.record(w.key, f, now), &read, true
}

// put makes one copy what it should be.
func (r *Reconciler) put(ctx context.Context, w *work, d decision, found finding, read *content) {
	at := target(d.namespace)
	if r.holds(w.key, d, found) {
		w.outcome.copied(d.namespace)
		return
	}
	if read == nil {
		// Changed by somebody after it was looked up; that is an event.
		w.unsettled = true
		return
	}
	if !r.permitted(ctx, w, at) {
		return
	}
	err := r.write(ctx, w.key, d, *read)
	foreign := &foreignError{}
	switch {
	case errors.As(err, &foreign):
		r.book.foreign(w.key, copyKey(w.key, d.namespace))
		w.outcome.note(contract.ReasonForeignSecret, d.namespace, foreign.Error())
		w.later(foreignEvery)
	case err != nil:
		r.failed(w, at, d.namespace, err, read.censored(err.Error()))
	default:
		w.outcome.copied(d.namespace)
	}
}

// foreignError says that a Secret of the copy's name is none.
type foreignError struct{ name string }

func (e *foreignError) Error() string {
	return fmt.Sprintf("the Secret %s there was not made by this addon and is left alone; delete or rename it", e.name)
}

// write writes one copy, after reading it if it may not be what is known.
func (r *Reconciler) write(ctx context.Context, account types.NamespacedName, d decision, c content) error {
	secret := copyKey(account, d.namespace)
	switch known, v := r.book.look(secret, r.clock.Now()); known {
	case trusted:
		return r.patch(ctx, account, d, c, v)
	case unread:
		return r.revise(ctx, account, d, c)
	default:
		if !r.targets.synced(d.namespace) && !r.rights.makes(target(d.namespace)) {
			// After a start: what is there has not been seen yet.
			return r.revise(ctx, account, d, c)
		}
		err := r.create(ctx, account, d, c)
		if apierrors.IsAlreadyExists(err) {
			return r.revise(ctx, account, d, c)
		}
		return err
	}
}

// revise reads what is in the copy's place and makes it right.
func (r *Reconciler) revise(ctx context.Context, account types.NamespacedName, d decision, c content) error {
	secret := copyKey(account, d.namespace)
	have := &corev1.Secret{}
	err := r.live.Get(kube.WithoutBodies(ctx), secret, have)
	if apierrors.IsNotFound(err) {
		r.book.gone(secret)
		return r.create(ctx, account, d, c)
	}
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", secret.Name, err)
	}
	if !r.isOurs(have, account) {
		return &foreignError{name: secret.Name}
	}
	now := version{uid: have.UID, resourceVersion: have.ResourceVersion, content: c.digest(), owner: ownerOf(have), labels: have.Labels, annotations: have.Annotations}
	switch {
	case mustBeReplaced(have) || have.DeletionTimestamp != nil:
		return r.replace(ctx, account, d, c, have)
	case isRight(have, account, d.profile, c):
		r.book.wrote(account, secret, now, r.clock.Now())
		return nil
	default:
		return r.patch(ctx, account, d, c, now)
	}
}

// isOurs tells whether a Secret is the account's copy: it says so itself, or it
// is the very one this process wrote, whatever has become of its labels.
func (r *Reconciler) isOurs(have *corev1.Secret, account types.NamespacedName) bool {
	if said, ok := accountOf(have); ok {
		return said == account
	}
	_, v := r.book.look(client.ObjectKeyFromObject(have), r.clock.Now())
	return v.uid == have.UID
}

// replace deletes a copy that cannot be changed, or is being deleted, and makes
// it anew.
func (r *Reconciler) replace(ctx context.Context, account types.NamespacedName, d decision, c content, have *corev1.Secret) error {
	secret := client.ObjectKeyFromObject(have)
	if len(have.Finalizers) > 0 {
		if err := r.release(ctx, secret, have.ResourceVersion); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("taking the finalizers off Secret %s: %w", secret.Name, err)
		}
	}
	if err := r.delete(ctx, secret, have.UID); err != nil {
		return err
	}
	if d.action != publish {
		return nil
	}
	return r.create(ctx, account, d, c)
}

func (r *Reconciler) create(ctx context.Context, account types.NamespacedName, d decision, c content) error {
	if d.action != publish {
		return nil // one that is only kept true is not made anew
	}
	secret := desiredCopy(account, d.namespace, d.profile, c)
	if err := r.writer.Create(kube.WithoutBodies(ctx), secret, client.FieldOwner(ControllerName)); err != nil {
		return fmt.Errorf("creating Secret %s: %w", secret.Name, err)
	}
	log.FromContext(ctx).Info("Made a copy", "secret", client.ObjectKeyFromObject(secret))
	r.wrote(account, c, secret)
	return nil
}

func (r *Reconciler) patch(ctx context.Context, account types.NamespacedName, d decision, c content, v version) error {
	patch, err := copyPatch(v.resourceVersion, v.labels, v.annotations, account, d.profile, c)
	if err != nil {
		return err
	}
	key := copyKey(account, d.namespace)
	secret := &corev1.Secret{ObjectMeta: objectMeta(key)}
	if err := r.writer.Patch(kube.WithoutBodies(ctx), secret, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(ControllerName)); err != nil {
		r.book.doubts(key)
		return fmt.Errorf("patching Secret %s: %w", key.Name, err)
	}
	log.FromContext(ctx).V(1).Info("Patched a copy", "secret", key)
	r.wrote(account, c, secret)
	return nil
}

// wrote remembers what the API server answered, but for what is in it.
func (r *Reconciler) wrote(account types.NamespacedName, c content, secret *corev1.Secret) {
	r.book.wrote(account, client.ObjectKeyFromObject(secret), version{
		uid:             secret.UID,
		resourceVersion: secret.ResourceVersion,
		content:         c.digest(),
		owner:           ownerOf(secret),
		labels:          secret.Labels,
		annotations:     secret.Annotations,
	}, r.clock.Now())
}

// permitted sees to it that the manager has its rights in a place.
func (r *Reconciler) permitted(ctx context.Context, w *work, at place) bool {
	made, err := r.rights.ensure(ctx, at)
	if err != nil {
		namespace := at.namespace
		if at.role == contract.TokenSourceRole {
			namespace = ""
		}
		r.failed(w, at, namespace, err, err.Error())
		return false
	}
	if at.role == contract.TokenTargetRole {
		r.targets.watch(at.namespace, made) //nolint:contextcheck // it outlives this reconciliation
	}
	return true
}

// failed takes note of an error: what is forbidden where rights were just given
// is tried again at once; a refusal is told to people; everything else is only
// tried again. text is what may be said of the error.
func (r *Reconciler) failed(w *work, at place, namespace string, err error, text string) {
	text = withoutTokens(text)
	if wait := r.rights.settling(at); wait > 0 && apierrors.IsForbidden(err) && !isTerminating(err) {
		w.unsettled = true
		w.later(wait)
		return
	}
	if isRefusal(err) {
		w.outcome.note(contract.ReasonCopyFailed, namespace, kube.Shorten(text, maxErrorBytes))
	} else {
		w.unsettled = true
	}
	w.errs = append(w.errs, errors.New(text))
}

// record remembers how the account came out, for the condition.
func (r *Reconciler) record(w *work) {
	switch {
	case w.unsettled:
		// What was so before is still the best there is to say.
	case !w.known && !w.draining:
	case w.account == nil && !slices.ContainsFunc(w.decisions, func(d decision) bool {
		return r.book.hasCopy(copyKey(w.key, d.namespace), r.clock.Now())
	}):
		r.outcomes.forget(w.key)
	default:
		switch {
		case w.draining:
			w.outcome.note(contract.ReasonDraining, "", "")
		case w.held:
			w.outcome.note(contract.ReasonUpstreamSyncerOn, "", "")
		case w.account != nil && w.account.DeletionTimestamp == nil && !w.silent && !slices.ContainsFunc(w.targets, func(t observedTarget) bool { return t.wanted }):
			w.outcome.note(contract.ReasonNoTarget, "", "")
		}
		r.outcomes.set(w.key, w.outcome)
	}
}

// say takes note of what a decision has to say.
func (w *work) say(d decision) {
	if d.reason != "" && w.account != nil {
		w.outcome.note(d.reason, d.namespace, d.why)
	}
}

// isRefusal tells whether an error is an answer of the API server that will be
// the same tomorrow unless somebody acts, or one of ours that says so.
func isRefusal(err error) bool {
	return kube.IsRefusal(err) && !apierrors.IsInternalError(err) || errors.Is(err, errNotOurs)
}

// isTerminating tells whether something is forbidden because the namespace is
// being deleted.
func isTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

func objectMeta(key types.NamespacedName) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
}
