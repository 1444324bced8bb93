package target

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// ForeignError says that a Secret that is no copy stands in a copy's place.
type ForeignError struct{ Name string }

// Error implements error.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("the Secret %s there was not made by this addon and is left alone; delete or rename it", e.Name)
}

// ErrRevoked means that the right to a copy ended before it was written.
var ErrRevoked = errors.New("the account has lost the right to the copy")

// errChanging means that somebody else changed what this process had just read.
var errChanging = errors.New("the Secret is being changed by somebody else")

// Copies writes the copies and records in the ledger what it wrote. Calls about
// one copy must not overlap.
type Copies struct {
	live   client.Reader // past every cache
	writer client.Client
	ledger *Ledger
	clock  clock.PassiveClock
	owner  client.FieldOwner
}

// NewCopies returns one that writes as the given field manager.
func NewCopies(
	live client.Reader, writer client.Client, ledger *Ledger, clock clock.PassiveClock, owner client.FieldOwner,
) *Copies {
	return &Copies{live: live, writer: writer, ledger: ledger, clock: clock, owner: owner}
}

// Put makes a copy what it should be. It patches a copy that is trusted at once,
// and reads what is there before any other write. A *ForeignError means that the
// place is taken.
func (c *Copies) Put(ctx context.Context, w Want) error {
	known, own := c.ledger.look(w.Account, w.key(), c.clock.Now())
	if known == trusted {
		return c.patch(ctx, w, own.resourceVersion, nil)
	}
	have, err := c.read(ctx, w.Account, w.key())
	if err != nil {
		return err
	}
	if have == nil {
		return c.create(ctx, w)
	}
	switch nextStep(have, c.isCopy(have, w.Account), w) {
	case leaveForeign:
		c.ledger.gone(w.Account, w.key(), c.clock.Now())
		return &ForeignError{Name: w.key().Name}
	case replace:
		if w.isRevoked() {
			return ErrRevoked
		}
		if err := c.delete(ctx, have); err != nil {
			return err
		}
		return c.create(ctx, w)
	case patch:
		return c.patch(ctx, w, have.ResourceVersion, have.Data)
	default:
		c.wrote(w, have)
		return nil
	}
}

// Withdraw deletes an account's copy in a namespace, if there is or may be one. A
// copy that is trusted is deleted at once; any other is read for its UID and
// finalizers. withdrawn is true when a copy was deleted.
func (c *Copies) Withdraw(
	ctx context.Context, account types.NamespacedName, namespace string,
) (withdrawn bool, err error) {
	key := Key(account, namespace)
	known, own := c.ledger.look(account, key, c.clock.Now())
	if known == absent {
		return false, nil
	}
	if known == trusted && !c.ledger.held(key) {
		err := c.deleteUID(ctx, key, own.uid)
		if !apierrors.IsConflict(err) {
			return err == nil, err
		}
		// Another copy stands there, most likely.
	}
	have, err := c.read(ctx, account, key)
	if err != nil {
		return false, err
	}
	if have == nil {
		return false, nil
	}
	if !c.isCopy(have, account) {
		c.ledger.gone(account, key, c.clock.Now())
		return false, nil
	}
	return true, c.delete(ctx, have)
}

// read returns what is in the place of an account's copy, or nil.
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

// isCopy reports whether a Secret is the account's copy: it says so itself, or it
// is the very one this process wrote, whatever has become of its labels.
func (c *Copies) isCopy(have *corev1.Secret, account types.NamespacedName) bool {
	if source, ok := SourceOf(have); ok {
		return source == account
	}
	return c.ledger.isOwn(account, client.ObjectKeyFromObject(have), have.UID)
}

// delete deletes a copy that was just read, whatever its finalizers.
func (c *Copies) delete(ctx context.Context, have *corev1.Secret) error {
	key := client.ObjectKeyFromObject(have)
	if len(have.Finalizers) > 0 {
		if err := c.release(ctx, have); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing the finalizers of Secret %s: %w", key.Name, err)
		}
	}
	err := c.deleteUID(ctx, key, have.UID)
	if apierrors.IsConflict(err) {
		c.ledger.doubts(key)
		return fmt.Errorf("deleting Secret %s: %w", key.Name, errChanging)
	}
	return err
}

// release removes all finalizers of a copy.
func (c *Copies) release(ctx context.Context, have *corev1.Secret) error {
	patch, err := releasePatch(have.ResourceVersion)
	if err != nil {
		return err
	}
	secret := emptySecret(client.ObjectKeyFromObject(have))
	return c.writer.Patch(kube.WithoutBodies(ctx), secret, client.RawPatch(types.MergePatchType, patch), c.owner)
}

// deleteUID deletes the Secret of this UID, if it is still there. The API server
// answers with the Secret, and its token, if a finalizer holds it.
func (c *Copies) deleteUID(ctx context.Context, key types.NamespacedName, uid types.UID) error {
	err := c.writer.Delete(kube.WithoutBodies(ctx), emptySecret(key), client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Secret %s: %w", key.Name, err)
	}
	c.ledger.deleted(key, uid, c.clock.Now())
	return nil
}

// create makes a copy where a read found none, if that is wanted.
func (c *Copies) create(ctx context.Context, w Want) error {
	switch {
	case !w.Create:
		return nil
	case w.isRevoked():
		return ErrRevoked
	}
	secret := DesiredCopy(w)
	err := c.writer.Create(kube.WithoutBodies(ctx), secret, c.owner)
	if apierrors.IsAlreadyExists(err) {
		err = errChanging
	}
	if err != nil {
		if !kube.IsRefusal(err) && !apierrors.IsNotFound(err) {
			c.ledger.mayHaveWritten(w.Account, w.key(), c.clock.Now())
		}
		return fmt.Errorf("creating Secret %s: %w", secret.Name, err)
	}
	log.FromContext(ctx).Info("Made a copy", "secret", w.key())
	c.wrote(w, secret)
	return nil
}

// patch changes a copy that is at a version and holds the given data; nil is what
// this process wrote.
func (c *Copies) patch(ctx context.Context, w Want, resourceVersion string, have map[string][]byte) error {
	if w.isRevoked() {
		return ErrRevoked
	}
	patch, err := copyPatch(resourceVersion, have, w)
	if err != nil {
		return err
	}
	secret := emptySecret(w.key())
	err = c.writer.Patch(kube.WithoutBodies(ctx), secret, client.RawPatch(types.MergePatchType, patch), c.owner)
	if err != nil {
		c.ledger.doubts(w.key())
		return fmt.Errorf("patching Secret %s: %w", secret.Name, err)
	}
	log.FromContext(ctx).V(1).Info("Patched a copy", "secret", w.key())
	c.wrote(w, secret)
	return nil
}

// wrote records the version that the API server answered with, but no content.
func (c *Copies) wrote(w Want, secret *corev1.Secret) {
	c.ledger.wrote(w.Account, w.key(), version{
		uid: secret.UID, resourceVersion: secret.ResourceVersion, digest: w.Content.Digest, owner: ownerOf(secret),
	}, c.clock.Now())
}

func emptySecret(key types.NamespacedName) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}
