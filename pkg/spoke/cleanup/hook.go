package cleanup

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// Hook is the Job's side of the clean-up. It runs before the addon is removed.
type Hook struct {
	// Client reads from the API server, not from a cache.
	Client client.Client

	// InstallNamespace is the namespace of the agent and of the marker.
	InstallNamespace string

	// Addon is the UID of the ManagedClusterAddOn that is being removed.
	Addon types.UID

	// AgentTimeout limits the wait for the running agent's acknowledgement. After it, no
	// agent is running or reachable, and the claims are deleted anyway.
	AgentTimeout time.Duration

	// Clock provides the time between attempts.
	Clock clock.Clock
}

const (
	// pollInterval is the pause between two attempts of the hook.
	pollInterval = 200 * time.Millisecond

	// deletionTimeout limits each of at most two attempts to delete the claims. Together with the
	// wait for the agent they stay within the Job's deadline.
	deletionTimeout = 45 * time.Second

	// retryPause is the pause before the second attempt if no agent acknowledged: an agent that stops
	// late may have created another claim.
	retryPause = 2 * time.Second
)

var errClaimsLeft = errors.New("marked ClusterClaims still exist, or were recreated by an agent that did not stop")

// Run stops the agent and deletes the claims. It returns nil once no claim of this
// addon is left.
func (h *Hook) Run(ctx context.Context) error {
	stopped := h.stopAgent(ctx)
	if err := h.deleteClaims(ctx); err != nil || stopped {
		return err
	}
	select {
	case <-h.Clock.After(retryPause):
	case <-ctx.Done():
	}
	return h.deleteClaims(ctx)
}

// stopAgent tells the agent to stop and reports whether it acknowledged in time. If not,
// there is probably no agent; one that runs nevertheless recreates its claims, which makes
// the hook fail.
func (h *Hook) stopAgent(ctx context.Context) bool {
	logger := log.FromContext(ctx)
	if err := h.retry(ctx, h.AgentTimeout, h.request); err != nil {
		logger.Info("Continuing although no agent acknowledged that it stopped",
			"timeout", h.AgentTimeout, "reason", err.Error())
		return false
	}
	logger.Info("The agent has stopped publishing")
	return true
}

// request writes the request to the marker, which exists because it is shipped with
// the agent, and returns nil once the agent has acknowledged.
func (h *Hook) request(ctx context.Context) error {
	marker, err := read(ctx, h.Client, h.InstallNamespace)
	switch {
	case err != nil:
		return fmt.Errorf("reading the marker: %w", err)
	case marker == nil:
		return fmt.Errorf("reading the marker: there is no ConfigMap %s", MarkerKey(h.InstallNamespace))
	case acknowledged(marker, h.Addon):
		return nil
	}
	if !addressed(marker, h.Addon) {
		patch := client.MergeFromWithOptions(marker, client.MergeFromWithOptimisticLock{})
		if err := h.Client.Patch(ctx, withRequest(marker, h.Addon), patch); err != nil {
			return fmt.Errorf("writing the marker: %w", err)
		}
	}
	return errors.New("the agent has not acknowledged the request in the marker")
}

// deleteClaims deletes the marked claims until none is left.
func (h *Hook) deleteClaims(ctx context.Context) error {
	return h.retry(ctx, deletionTimeout, func(ctx context.Context) error {
		claims := &clusterv1alpha1.ClusterClaimList{}
		err := h.Client.List(ctx, claims, client.MatchingLabels{contract.LabelManagedBy: contract.ManagedBy})
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listing ClusterClaims: %w", err)
		}
		if len(claims.Items) == 0 {
			return nil
		}
		for i := range claims.Items {
			claim := &claims.Items[i]
			err := h.Client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion})
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting ClusterClaim %s: %w", claim.Name, err)
			}
			log.FromContext(ctx).V(1).Info("Deleted ClusterClaim", "claim", claim.Name)
		}
		return errClaimsLeft
	})
}

// retry repeats an attempt until it succeeds or the timeout expires, and returns
// the last error. The timeout also cancels an attempt that hangs.
func (h *Hook) retry(ctx context.Context, timeout time.Duration, attempt func(context.Context) error) error {
	deadline := h.Clock.Now().Add(timeout)
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last error
	for {
		err := attempt(limited)
		if err == nil {
			return nil
		}
		// The error of a canceled attempt is less useful than the one before.
		if last == nil || limited.Err() == nil {
			last = err
		}
		select {
		case <-limited.Done():
			return last
		case <-h.Clock.After(pollInterval):
			if !h.Clock.Now().Before(deadline) {
				return last
			}
		}
	}
}
