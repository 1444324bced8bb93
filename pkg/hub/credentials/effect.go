package credentials

import (
	"time"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/report"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// effect is the result of one phase.
type effect struct {
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

func (e effect) ok() bool { return !e.failed() && !e.undecided && !e.lost }

// refused reports whether something failed that stays so until a user acts.
func (e effect) refused() bool { return e.failing && !e.undecided }

// failed reports whether an attempt must not be repeated at once.
func (e effect) failed() bool { return e.failing || e.contested }

func join(effects ...effect) effect {
	var all effect
	for _, e := range effects {
		all.problems = append(all.problems, e.problems...)
		all.again = kube.Sooner(all.again, e.again)
		all.errs = append(all.errs, e.errs...)
		all.failing = all.failing || e.failing
		all.contested = all.contested || e.contested
		all.undecided = all.undecided || e.undecided
	}
	return all
}
