package faults

import (
	"testing"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// On a busy machine, the response to a story's write may come long after its effect has begun.
func TestAStepMayHaveAnEffectSinceTheOneBefore(t *testing.T) {
	w := newWorld(&ocmtest.Hub{World: &apitest.World{T: t}})
	w.patience = time.Minute
	began := time.Now()
	w.came = began
	w.step("first", func() bool { return true })
	written := time.Now() // what causes the next effect
	w.step("second", func() bool { return true })
	if len(w.steps) != 2 || !w.steps[0].Equal(began) || w.steps[1].Before(began) || w.steps[1].After(written) {
		t.Errorf("began %s, then wrote %s: %v", began, written, w.steps)
	}
}
