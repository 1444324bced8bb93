package grants

import (
	"context"
	"errors"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Copies knows the copies in target namespaces.
type Copies interface {
	// Follow watches a namespace's copies; restart if its rights are new.
	Follow(namespace string, restart bool)

	// Unfollow ends that.
	Unfollow(namespace string)

	// Synced reports whether all copies in a namespace are known.
	Synced(namespace string) bool

	// Count returns how many copies there are, or may be, in a namespace.
	Count(namespace string) int

	// Lost is called for a namespace that does not exist, and so holds no copies.
	Lost(namespace string)
}

// Reconciler removes a RoleBinding that no account needs any more, in a target namespace
// only when every copy there is gone, and repairs one that is needed. The request is the
// RoleBinding.
type Reconciler struct {
	// Reader reads RoleBindings from caches.
	Reader client.Reader

	Grants *Grants
	Copies Copies

	// AllReconciled reports whether every account has claimed what it needs, so that
	// unclaimed grants are not needed.
	AllReconciled func() bool
}

// Reconcile reconciles one RoleBinding. A contested one is reconciled again when it may be
// written.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	err := r.keep(ctx, Of(req.NamespacedName))
	if fight := (&kube.ContestedError{}); errors.As(err, &fight) {
		return reconcile.Result{RequeueAfter: fight.Wait}, nil
	}
	return reconcile.Result{}, err
}

// keep ensures, removes or leaves a RoleBinding.
func (r *Reconciler) keep(ctx context.Context, grant Grant) error {
	current, err := kube.Get(ctx, r.Reader, grant.Key(), &rbacv1.RoleBinding{})
	if err != nil {
		return err
	}
	switch {
	case r.Grants.isClaimed(grant, need):
		return r.ensure(ctx, grant)
	case current == nil:
		if grant.IsTarget() {
			r.Copies.Unfollow(grant.Namespace)
		}
		r.Grants.forget(grant)
		return nil
	case r.Grants.isClaimed(grant, keep):
		return nil // the end of that enqueues it
	}
	if grant.IsTarget() {
		if empty, err := r.isEmpty(ctx, grant, current); err != nil || !empty {
			return err
		}
	}
	if !r.AllReconciled() {
		return nil // every RoleBinding is enqueued afterwards
	}
	return r.Grants.remove(ctx, grant, current)
}

// ensure maintains a needed RoleBinding. In a namespace that does not exist none is needed:
// its claimants will find that out.
func (r *Reconciler) ensure(ctx context.Context, grant Grant) error {
	made, err := r.Grants.Ensure(ctx, grant)
	switch {
	case kube.IsNamespaceMissing(err):
		if grant.IsTarget() {
			r.Copies.Lost(grant.Namespace)
		}
		return nil
	case grant.IsTarget() && err == nil:
		r.Copies.Follow(grant.Namespace, made)
	}
	return err
}

// isEmpty reports whether a target namespace is known to hold no copies, or nothing can be
// done about its copies. An event announces that change.
func (r *Reconciler) isEmpty(ctx context.Context, grant Grant, current *rbacv1.RoleBinding) (bool, error) {
	switch err := r.Grants.repairIdle(ctx, grant, current); {
	case err != nil && IsRefusal(err):
		// The RoleBinding grants another right, or has another subject, and cannot be
		// changed, for instance where no set is bound. Its copies cannot be reached; they
		// will be deleted with their profiles.
		log.FromContext(ctx).Info("Cannot list the copies of a namespace",
			"namespace", grant.Namespace, "reason", err.Error())
		return true, nil
	case err != nil:
		return false, err
	}
	r.Copies.Follow(grant.Namespace, false)
	return r.Copies.Synced(grant.Namespace) && r.Copies.Count(grant.Namespace) == 0, nil
}

// IsRefusal reports whether an error will recur until a user acts.
func IsRefusal(err error) bool { return kube.IsRefusal(err) || errors.Is(err, ErrNotOurs) }
