package grants

import (
	"context"
	"errors"

	rbacv1 "k8s.io/api/rbac/v1"
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

	// Empty reports whether a namespace is known to hold no copies.
	Empty(namespace string) bool

	// Lost is called for a namespace that does not exist, and so holds no copies.
	Lost(namespace string)
}

// Reconcile repairs one RoleBinding that an account needs, and removes one that no account
// needs any more, in a target namespace only when every copy there is gone. The request is the
// RoleBinding. A contested one is reconciled again when it may be written, and one that the cache does not
// show yet when that is overdue: another client may have deleted it before its creation was recorded.
func (g *Grants) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	err := g.keep(ctx, Of(req.NamespacedName))
	if contention := (&kube.ContestedError{}); errors.As(err, &contention) {
		return reconcile.Result{RequeueAfter: contention.Wait}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	current, err := kube.Get(ctx, g.reader, req.NamespacedName, &rbacv1.RoleBinding{})
	if err != nil {
		return reconcile.Result{}, err
	}
	left := g.written.Wait(req.NamespacedName, kube.ObjectOrNil(current), g.clock.Now())
	return reconcile.Result{RequeueAfter: left}, nil
}

// keep ensures, removes or leaves a RoleBinding.
func (g *Grants) keep(ctx context.Context, grant Grant) error {
	current, err := kube.Get(ctx, g.reader, grant.Key(), &rbacv1.RoleBinding{})
	if err != nil {
		return err
	}
	switch {
	case g.isClaimed(grant, need):
		if err := g.Ensure(ctx, grant); !kube.IsNamespaceMissing(err) {
			return err
		}
		return nil // its claimants will find that out
	case current == nil:
		if grant.IsTarget() {
			g.Copies.Unfollow(grant.Namespace)
		}
		g.forget(grant)
		return nil
	}
	if grant.IsTarget() {
		if empty, err := g.isEmpty(ctx, grant, current); err != nil || !empty {
			return err
		}
	}
	if !g.AllReconciled() {
		return nil // every RoleBinding is enqueued afterwards
	}
	return g.remove(ctx, grant, current)
}

// isEmpty reports whether a target namespace is known to hold no copies, or nothing can be
// done about its copies. An event announces that change.
func (g *Grants) isEmpty(ctx context.Context, grant Grant, current *rbacv1.RoleBinding) (bool, error) {
	switch err := g.repairIdle(ctx, grant, current); {
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
	g.Copies.Follow(grant.Namespace, false)
	return g.Copies.Empty(grant.Namespace), nil
}

// IsRefusal reports whether an error will recur until a user acts.
func IsRefusal(err error) bool { return kube.IsRefusal(err) || errors.Is(err, ErrNotOurs) }
