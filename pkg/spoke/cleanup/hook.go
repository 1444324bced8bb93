package cleanup

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
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

	// AgentTimeout is how long the running agent has to acknowledge. When it
	// passes there is no agent, or one that cannot be reached, and the claims go all the same.
	AgentTimeout time.Duration

	// Timeout is how long each of the other two steps, writing the marker and
	// deleting the claims, is tried.
	Timeout time.Duration

	// Settle is the pause after which the hook looks again when no agent
	// acknowledged: one that stops late may have made another claim.
	Settle time.Duration
}

// pollInterval is how often the hook looks for what it waits for.
const pollInterval = 200 * time.Millisecond

var errClaimsLeft = errors.New("marked ClusterClaims are still there")

// Run stops the agent and deletes the claims. It returns nil when no claim of
// this addon is left.
func (h *Hook) Run(ctx context.Context) error {
	reachable, err := h.request(ctx)
	if err != nil {
		return err
	}
	acknowledged := reachable && h.awaitAgent(ctx)
	if err := h.deleteClaims(ctx); err != nil || acknowledged {
		return err
	}
	select {
	case <-time.After(h.Settle):
	case <-ctx.Done():
	}
	return h.deleteClaims(ctx)
}

// request writes the marker. It returns false when the install namespace is
// going or gone, so that no agent can be told, nor starts again.
func (h *Hook) request(ctx context.Context) (bool, error) {
	reachable := true
	err := h.retry(ctx, func(ctx context.Context) error {
		err := h.writeMarker(ctx)
		if namespaceGoes(err) {
			reachable = false
			return nil
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("writing ConfigMap %s: %w", MarkerKey(h.InstallNamespace), err)
	}
	return reachable, nil
}

func (h *Hook) writeMarker(ctx context.Context) error {
	key := MarkerKey(h.InstallNamespace)
	marker := &corev1.ConfigMap{}
	err := h.Client.Get(ctx, key, marker)
	if apierrors.IsNotFound(err) {
		marker.ObjectMeta = metav1.ObjectMeta{
			Namespace: key.Namespace,
			Name:      key.Name,
			Labels:    map[string]string{contract.LabelManagedBy: contract.ManagedBy},
		}
		return h.Client.Create(ctx, withRequest(marker, h.Addon))
	}
	if err != nil || addressed(marker, h.Addon) {
		return err
	}
	return h.Client.Patch(ctx, withRequest(marker, h.Addon), client.MergeFromWithOptions(marker, client.MergeFromWithOptimisticLock{}))
}

// namespaceGoes says whether a write failed because its namespace is gone or
// terminating.
func namespaceGoes(err error) bool {
	var status apierrors.APIStatus
	if apierrors.IsNotFound(err) && errors.As(err, &status) {
		details := status.Status().Details
		return details != nil && details.Kind == "namespaces"
	}
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// awaitAgent says whether the agent acknowledged in time.
func (h *Hook) awaitAgent(ctx context.Context) bool {
	logger := log.FromContext(ctx)
	err := wait.PollUntilContextTimeout(ctx, pollInterval, h.AgentTimeout, true, func(ctx context.Context) (bool, error) {
		marker := &corev1.ConfigMap{}
		if err := h.Client.Get(ctx, MarkerKey(h.InstallNamespace), marker); err != nil {
			logger.V(1).Info("The marker cannot be read", "reason", err.Error())
			return false, nil
		}
		return acknowledged(marker, h.Addon), nil
	})
	if err != nil {
		logger.Info("No agent acknowledged in time", "timeout", h.AgentTimeout)
		return false
	}
	logger.Info("The agent has stopped publishing")
	return true
}

// deleteClaims deletes marked claims until none is left.
func (h *Hook) deleteClaims(ctx context.Context) error {
	return h.retry(ctx, func(ctx context.Context) error {
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
// the last error.
func (h *Hook) retry(ctx context.Context, attempt func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, h.Timeout, true, func(ctx context.Context) (bool, error) {
		if err := attempt(ctx); err != nil {
			// An attempt cut short by the deadline says less than the one before.
			if last == nil || ctx.Err() == nil {
				last = err
			}
			return false, nil
		}
		return true, nil
	})
	if err != nil && last != nil {
		return last
	}
	return err
}
