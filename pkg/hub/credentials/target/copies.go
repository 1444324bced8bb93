package target

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// ForeignError says that a Secret that is not a copy has a copy's name.
type ForeignError struct {
	Name string

	// Why a Secret that is labelled as a copy of upstream's syncer is not taken over; empty
	// for any other Secret.
	Why string
}

// Error implements error.
func (e *ForeignError) Error() string {
	if e.Why != "" {
		return fmt.Sprintf("the Secret %s there, labeled as a copy of managed-serviceaccount's own syncer, "+
			"is left alone, because %s; delete it to have it recreated", e.Name, e.Why)
	}
	return fmt.Sprintf("the Secret %s there was not created by this addon and is left alone; delete or rename it", e.Name)
}

// ErrRevoked means that the right to a copy ended before it was written.
var ErrRevoked = errors.New("the account has lost the right to the copy")

// errChanging means that another client changed what this process had just read.
var errChanging = errors.New("another client is changing the Secret")

// IsConflict reports whether a copy was not written because another client changed it first.
func IsConflict(err error) bool { return apierrors.IsConflict(err) || errors.Is(err, errChanging) }

// Copies writes the copies and records its writes in the ledger. Calls about one copy must
// not overlap.
type Copies struct {
	live   client.Reader // bypasses every cache
	writer client.Client
	ledger *Ledger
	clock  clock.PassiveClock
	owner  client.FieldOwner
	brake  kube.Brake[types.NamespacedName] // by copy; repairs, and budgets
}

// NewCopies returns Copies that write as the given field manager. A copy that was written
// kube.WritesAtOnce times in a row is written once in each writeEvery; zero means that none waits.
func NewCopies(
	live client.Reader, writer client.Client, ledger *Ledger, clock clock.PassiveClock, owner client.FieldOwner,
	writeEvery time.Duration,
) *Copies {
	return &Copies{
		live: live, writer: writer, ledger: ledger, clock: clock, owner: owner,
		brake: kube.Brake[types.NamespacedName]{Every: writeEvery},
	}
}

// Contested returns how much longer a copy counts as contested if no client changes it from
// now on; zero means that it is not contested.
func (c *Copies) Contested(account types.NamespacedName, namespace string) time.Duration {
	return c.brake.Contested(Key(account, namespace), c.clock.Now())
}

// unreadVersion stands for the version of a Secret that this process has not read: never
// its own.
const unreadVersion = "unread"

// version returns the version of a copy, as known without reading the Secret.
func (k Known) version() string {
	switch {
	case k.trusted:
		return k.own.resourceVersion
	case k.Present:
		return unreadVersion
	default:
		return ""
	}
}

// CheckBudget returns a *kube.HeldBackError while a copy must not be created or changed, because it has used
// up its budget. Repairs and withdrawals do not wait for that.
func (c *Copies) CheckBudget(account types.NamespacedName, namespace string) error {
	known := c.ledger.Known(account, namespace, c.clock.Now())
	return c.brake.CheckBudget(Key(account, namespace), known.version(), c.clock.Now())
}

// Put brings a copy to its desired state; CheckBudget is the caller's to ask. It patches a trusted copy at once,
// and reads the existing Secret before any other write. A copy of upstream's syncer becomes this addon's in
// place, by one patch. A *ForeignError means that the name is taken, and a *kube.ContestedError that another
// client keeps changing the copy.
func (c *Copies) Put(ctx context.Context, w Want) error {
	known := c.ledger.Known(w.Account, w.Namespace, c.clock.Now())
	switch {
	case known.Holds(w.Token.Digest(), w.Owner):
		return nil // a slow write that the caller did not know of has ended meanwhile
	case known.trusted:
		return c.patch(ctx, w, known.own.resourceVersion, nil)
	}
	// Before the copy is read: a client that changes it all the time must not cost a request each time, either.
	if err := c.brake.Check(w.key(), kube.Rewrite, known.version(), c.clock.Now()); err != nil {
		return err
	}
	have, err := c.read(ctx, w.Account, w.key())
	if err != nil {
		return err
	}
	if have == nil {
		if w.Create && !w.MayCopy() {
			return ErrRevoked
		}
		return c.create(ctx, w)
	}
	switch nextStep(have, c.isCopy(have, w.Account), w) {
	case leaveForeign:
		c.ledger.gone(w.Account, w.key(), c.clock.Now())
		foreign := &ForeignError{Name: w.key().Name}
		if isUpstreams(have) {
			foreign.Why = validateUpstreams(have, w)
		}
		return foreign
	case replace:
		// What is deleted must be allowed to exist again.
		switch {
		case !w.Create:
			return nil
		case !w.MayCopy(), w.Revoked():
			return ErrRevoked
		}
		if err := c.delete(ctx, have, removal{what: kube.Rewrite}); err != nil {
			return err
		}
		return c.create(ctx, w)
	case patch:
		if !c.ledger.isOwn(w.Account, w.key(), have.UID) && !w.MayCopy() {
			return ErrRevoked
		}
		if isUpstreams(have) {
			log.FromContext(ctx).Info("Taking over a copy of upstream's syncer", "secret", w.key())
		}
		return c.patch(ctx, w, have.ResourceVersion, have)
	default:
		c.record(w, have)
		return nil
	}
}

// Withdraw deletes an account's copy in a namespace, if there is or may be one. It deletes
// a trusted copy at once; any other is read for its UID and finalizers. yield leaves alone
// a copy that upstream's syncer has taken over, which is checked then. withdrawn is true if
// a copy was deleted.
func (c *Copies) Withdraw(
	ctx context.Context, account types.NamespacedName, namespace string, yield bool,
) (withdrawn bool, err error) {
	key := Key(account, namespace)
	known := c.ledger.Known(account, namespace, c.clock.Now())
	if !known.Present {
		return false, nil
	}
	if known.trusted && !known.held && !yield {
		own := known.own
		err := c.deleteUID(ctx, key, removal{what: kube.Remove, uid: own.uid, version: own.resourceVersion})
		if !apierrors.IsConflict(err) {
			return err == nil, err
		}
		// Most likely, another copy has this name.
	}
	if !known.trusted {
		if err := c.brake.Check(key, kube.Remove, known.version(), c.clock.Now()); err != nil {
			return false, err
		}
	}
	have, err := c.read(ctx, account, key)
	if err != nil {
		return false, err
	}
	if have == nil {
		return false, nil
	}
	if !c.isCopy(have, account) || yield && isUpstreams(have) {
		c.ledger.gone(account, key, c.clock.Now())
		return false, nil
	}
	// Upstream may take it over at any moment.
	return true, c.delete(ctx, have, removal{what: kube.Remove, exactly: yield})
}

// Collected records that Kubernetes' garbage collector deletes an account's copy in a namespace.
func (c *Copies) Collected(account types.NamespacedName, namespace string) {
	c.ledger.gone(account, Key(account, namespace), c.clock.Now())
}

// read returns the Secret with the name of an account's copy, or nil.
func (c *Copies) read(ctx context.Context, account, key types.NamespacedName) (*corev1.Secret, error) {
	have := &corev1.Secret{}
	err := c.live.Get(kube.WithoutBodies(ctx), key, have)
	switch {
	case apierrors.IsNotFound(err):
		c.ledger.gone(account, key, c.clock.Now())
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading Secret %s: %w", key.Name, err)
	default:
		return have, nil
	}
}

// isCopy reports whether a Secret is the account's copy: by its labels and annotations or, if these are
// missing, because this process or an earlier manager wrote it. Another client may have removed every mark
// and the record of who wrote it. The chart's policy then lets the manager write it no more, so it is
// reported like any other client's Secret.
func (c *Copies) isCopy(have *corev1.Secret, account types.NamespacedName) bool {
	if source, ok := SourceOf(have); ok {
		return source == account
	}
	return hasMark(have, string(c.owner)) && c.ledger.isOwn(account, client.ObjectKeyFromObject(have), have.UID) ||
		isUnmarked(have, account, string(c.owner))
}

// removal is the deletion of a copy.
type removal struct {
	what    kube.Write
	uid     types.UID
	version string // as it was read or written last
	exactly bool   // no other version may be deleted
}

// delete deletes a copy that was just read, regardless of its finalizers.
func (c *Copies) delete(ctx context.Context, have *corev1.Secret, r removal) error {
	key := client.ObjectKeyFromObject(have)
	r.uid, r.version = have.UID, have.ResourceVersion
	if len(have.Finalizers) > 0 {
		released := map[string]any{"metadata": map[string]any{"finalizers": nil}}
		if _, err := c.patchAt(ctx, key, have.ResourceVersion, released); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing the finalizers of Secret %s: %w", key.Name, err)
		}
		r.exactly = false // that was another version
	}
	err := c.deleteUID(ctx, key, r)
	if apierrors.IsConflict(err) {
		c.brake.Lost(key, r.what, r.version, c.clock.Now())
		c.ledger.doubts(key)
		return fmt.Errorf("deleting Secret %s: %w", key.Name, errChanging)
	}
	return err
}

// deleteUID deletes the Secret with a UID, if it still exists. The API server responds with
// the Secret, and its token, if a finalizer holds it.
func (c *Copies) deleteUID(ctx context.Context, key types.NamespacedName, r removal) error {
	only := client.Preconditions{UID: &r.uid}
	if r.exactly {
		only.ResourceVersion = &r.version
	}
	err := c.writer.Delete(kube.WithoutBodies(ctx), emptySecret(key), only)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Secret %s: %w", key.Name, err)
	}
	c.brake.Wrote(key, r.what, r.version, "", c.clock.Now())
	c.ledger.deleted(key, r.uid, c.clock.Now())
	return nil
}

// create creates a copy if a read found none and the caller wants one.
func (c *Copies) create(ctx context.Context, w Want) error {
	switch {
	case !w.Create:
		return nil
	case w.Revoked():
		return ErrRevoked
	}
	secret := DesiredCopy(w)
	err := c.writer.Create(kube.WithoutBodies(ctx), secret, c.owner)
	if apierrors.IsAlreadyExists(err) {
		c.brake.Lost(w.key(), kube.Rewrite, "", c.clock.Now())
		err = errChanging
	}
	if err != nil {
		if !kube.IsRefusal(err) && !apierrors.IsNotFound(err) {
			c.ledger.mayHaveWritten(w.Account, w.key(), c.clock.Now())
		}
		return fmt.Errorf("creating Secret %s: %w", secret.Name, err)
	}
	log.FromContext(ctx).Info("Created a copy", "secret", w.key())
	c.wrote(w, "", secret)
	return nil
}

// patch changes a copy at a version; have is nil if it is what this process wrote.
func (c *Copies) patch(ctx context.Context, w Want, resourceVersion string, have *corev1.Secret) error {
	if w.Revoked() {
		return ErrRevoked
	}
	secret, err := c.patchAt(ctx, w.key(), resourceVersion, copyPatch(have, w))
	if err != nil {
		if apierrors.IsConflict(err) {
			c.brake.Lost(w.key(), kube.Rewrite, resourceVersion, c.clock.Now())
		}
		c.ledger.doubts(w.key())
		return fmt.Errorf("patching Secret %s: %w", w.key().Name, err)
	}
	log.FromContext(ctx).V(1).Info("Patched a copy", "secret", w.key())
	c.wrote(w, resourceVersion, secret)
	return nil
}

// patchAt patches fields of a Secret that is still at a version, and returns it as it is then.
func (c *Copies) patchAt(
	ctx context.Context, key types.NamespacedName, resourceVersion string, fields map[string]any,
) (*corev1.Secret, error) {
	patch, err := kube.MergePatch(resourceVersion, fields)
	if err != nil {
		return nil, err
	}
	secret := emptySecret(key)
	return secret, c.writer.Patch(kube.WithoutBodies(ctx), secret, patch, c.owner)
}

// wrote records a write that brought a copy from a version to the one in the API server's
// response.
func (c *Copies) wrote(w Want, before string, secret *corev1.Secret) {
	c.brake.Wrote(w.key(), kube.Rewrite, before, secret.ResourceVersion, c.clock.Now())
	c.record(w, secret)
}

// record stores the version of a copy in its desired state, but no content.
func (c *Copies) record(w Want, secret *corev1.Secret) {
	c.ledger.wrote(w.Account, w.key(), version{
		uid: secret.UID, resourceVersion: secret.ResourceVersion, digest: w.Token.Digest(), owner: ownerOf(secret),
	}, c.clock.Now())
}

func emptySecret(key types.NamespacedName) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}
