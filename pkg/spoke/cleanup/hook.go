package cleanup

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// Hook is the side of the Job that runs before the addon goes.
type Hook struct {
	// Client reads from the API server, not from a cache.
	Client client.Client

	// InstallNamespace is where the agent runs, and the marker is.
	InstallNamespace string

	// Addon is the UID of the ManagedClusterAddOn that is being removed.
	Addon types.UID

	// AgentTimeout is how long it is tried to reach the running agent, until it
	// acknowledges. When it passes there is none, or none that can be reached,
	// and the claims go all the same.
	AgentTimeout time.Duration

	// Timeout is how long the claims are tried to be deleted, each of at most two
	// times.
	Timeout time.Duration

	// Settle is the pause after which the hook looks again when no agent
	// acknowledged: one that stops late may have made another claim.
	Settle time.Duration

	// Clock is the time that passes between attempts.
	Clock clock.Clock
}

// pollInterval is how often the hook looks for what it waits for.
const pollInterval = 200 * time.Millisecond

var (
	errNoAnswer   = errors.New("the marker is written but not answered")
	errClaimsLeft = errors.New("marked ClusterClaims are still there, or made anew by an agent that did not stop")
)

// Run stops the agent and deletes the claims. It returns nil when no claim of
// this addon is left.
func (h *Hook) Run(ctx context.Context) error {
	stopped := h.stopAgent(ctx)
	if err := h.deleteClaims(ctx); err != nil || stopped {
		return err
	}
	select {
	case <-h.Clock.After(h.Settle):
	case <-ctx.Done():
	}
	return h.deleteClaims(ctx)
}

// stopAgent tells the agent to stop and says whether it acknowledged in time. If
// not, there may be no agent; one that is there after all makes its claims anew, and
// so keeps the hook from succeeding.
func (h *Hook) stopAgent(ctx context.Context) bool {
	logger := log.FromContext(ctx)
	if err := h.retry(ctx, h.AgentTimeout, h.request); err != nil {
		logger.Info("No agent acknowledged that it stopped; going on", "timeout", h.AgentTimeout, "reason", err.Error())
		return false
	}
	logger.Info("The agent has stopped publishing")
	return true
}

// request puts the request into the marker, which is shipped with the agent, and
// returns nil once it is acknowledged.
func (h *Hook) request(ctx context.Context) error {
	marker := &corev1.ConfigMap{}
	if err := h.Client.Get(ctx, MarkerKey(h.InstallNamespace), marker); err != nil {
		return fmt.Errorf("reading the marker: %w", err)
	}
	if acknowledged(marker, h.Addon) {
		return nil
	}
	if !addressed(marker, h.Addon) {
		err := h.Client.Patch(ctx, withRequest(marker, h.Addon), client.MergeFromWithOptions(marker, client.MergeFromWithOptimisticLock{}))
		if err != nil {
			return fmt.Errorf("writing the marker: %w", err)
		}
	}
	return errNoAnswer
}

// deleteClaims deletes marked claims until none is left.
func (h *Hook) deleteClaims(ctx context.Context) error {
	return h.retry(ctx, h.Timeout, func(ctx context.Context) error {
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
			if err := h.deleteClaim(ctx, &claims.Items[i]); err != nil {
				return err
			}
		}
		return errClaimsLeft
	})
}

func (h *Hook) deleteClaim(ctx context.Context, claim *clusterv1alpha1.ClusterClaim) error {
	err := h.Client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ClusterClaim %s: %w", claim.Name, err)
	}
	log.FromContext(ctx).V(1).Info("ClusterClaim deleted", "claim", claim.Name)
	return nil
}

// retry repeats an attempt until it succeeds or the timeout passes, and returns
// the last error. An attempt that hangs is cut short by the timeout.
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
		// One cut short by the deadline says less than the one before.
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
