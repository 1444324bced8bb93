package policies

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

var _ manager.LeaderElectionRunnable = &Watch{}

const (
	// checkEvery is the time between two checks, and recheckAfter that after one that found a
	// problem, so that metrics soon show its end.
	checkEvery   = time.Hour
	recheckAfter = time.Minute

	// Patience is how long a problem must last: the API server enforces a policy only some
	// seconds after it was created.
	Patience = 30 * time.Second

	// pause is the time between two attempts while the API server does not answer, or while the
	// policies are not enforced.
	pause = 2 * time.Second
)

var errNoCheck = errors.New("the API server has not answered in time")

// Watch checks the policies when the manager begins to lead, and again every hour. It is a
// manager.LeaderElectionRunnable.
type Watch struct {
	Checker  *Checker
	Patience time.Duration

	// Report is called for each policy after each check.
	Report func(policy string, enforced bool)
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*Watch) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (w *Watch) Start(ctx context.Context) error {
	var last map[string]string
	for {
		next := recheckAfter
		found, err := w.checkUntilStable(ctx, last)
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Admission policies of the chart cannot be checked")
		}
		w.announce(ctx, last, found, err == nil)
		if last = found; err == nil && isFine(found) {
			next = checkEvery
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next):
		}
	}
}

// announce reports what was found, and logs what has changed.
func (w *Watch) announce(ctx context.Context, last, found map[string]string, all bool) {
	for _, policy := range slices.Sorted(maps.Keys(found)) {
		problem := found[policy]
		w.Report(policy, problem == "")
		if problem != "" && problem != last[policy] {
			log.FromContext(ctx).Error(nil, "An admission policy of the chart is not enforced",
				"policy", policy, "problem", problem)
		}
	}
	if all && isFine(found) && (last == nil || !isFine(last)) {
		log.FromContext(ctx).Info("All admission policies of the chart are enforced", "policies", len(found))
	}
}

// isWorse reports whether something is wrong that was not wrong before.
func isWorse(last, found map[string]string) bool {
	for policy, problem := range found {
		if problem != "" && last[policy] == "" {
			return true
		}
	}
	return false
}

func isFine(found map[string]string) bool { return !isWorse(nil, found) }

// checkUntilStable checks until nothing is wrong that was not wrong before, or patience has ended, and
// returns the last result.
func (w *Watch) checkUntilStable(ctx context.Context, last map[string]string) (found map[string]string, err error) {
	err = errNoCheck
	_ = wait.PollUntilContextTimeout(ctx, pause, w.Patience, true, func(ctx context.Context) (bool, error) {
		now, failed := w.Checker.Check(ctx)
		if ctx.Err() == nil { // otherwise, the check was cut off
			found, err = now, failed
		}
		if err != nil {
			return last != nil, nil //nolint:nilerr // only the first waits for an API server that does not answer
		}
		return !isWorse(last, found), nil
	})
	return found, err
}
