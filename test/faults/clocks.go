package faults

import (
	"testing"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

// Faults of clocks, from start to end. None of them has a target.
const (
	// The manager's clock is wrong by clockError.
	clockAhead  proxy.Kind = "clock-ahead"
	clockBehind proxy.Kind = "clock-behind"
	// All times that the manager reads on the hub are wrong by clockError.
	timestampsAhead  proxy.Kind = "timestamps-ahead"
	timestampsBehind proxy.Kind = "timestamps-behind"
)

var (
	ofClocks     = []proxy.Kind{clockAhead, clockBehind}
	ofTimestamps = []proxy.Kind{timestampsAhead, timestampsBehind}
)

// clockStories are those in which the manager's clock is wrong. The manager is another program then.
var clockStories = []string{"bind", "rotate", "place", "move", "slices", "replace"}

// clockError is much longer than what the manager waits for, and not as long as tokens are valid.
const clockError = time.Hour

// wrongClock is the patch that makes a manager whose controllers have a clock that is wrong.
const wrongClock = "clock"

// clockVersion returns this tree's manager, or what runs instead while clocks are wrong.
func (l *lane) clockVersion(tb testing.TB, kind proxy.Kind) version {
	tb.Helper()
	switch kind {
	case clockAhead:
		return version{program: patched(tb, wrongClock), env: []string{"CLOCK_AHEAD=" + clockError.String()}}
	case clockBehind:
		return version{program: patched(tb, wrongClock), env: []string{"CLOCK_AHEAD=-" + clockError.String()}}
	case timestampsAhead:
		return version{program: l.program, shift: clockError}
	case timestampsBehind:
		return version{program: l.program, shift: -clockError}
	default:
		return version{program: l.program}
	}
}
