package credentials

import (
	"time"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/report"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// phaseResult is the result of one phase.
type phaseResult struct {
	problems []report.Problem
	again    time.Duration

	// errs are returned from the reconciliation that finds them, and not again before the
	// next attempt.
	errs []error

	// failing is true if something failed that is retried by itself, contested if another client
	// keeps changing an object.
	failing, contested bool

	// undecided is true if something is about to be retried: there is nothing new to report
	// yet.
	undecided bool

	// lost is true if the namespace does not exist.
	lost bool

	// conflict is true if another client changed the object first. What limits repairs then
	// is kube.Brake.
	conflict bool
}

func (r phaseResult) ok() bool { return !r.failed() && !r.undecided && !r.lost }

// refused reports whether something failed that stays so until a user acts.
func (r phaseResult) refused() bool { return r.failing && !r.undecided }

// failed reports whether an attempt must not be repeated at once.
func (r phaseResult) failed() bool { return r.failing || r.contested }

func join(results ...phaseResult) phaseResult {
	var all phaseResult
	for _, r := range results {
		all.problems = append(all.problems, r.problems...)
		all.again = kube.Sooner(all.again, r.again)
		all.errs = append(all.errs, r.errs...)
		all.failing = all.failing || r.failing
		all.contested = all.contested || r.contested
		all.undecided = all.undecided || r.undecided
	}
	return all
}
