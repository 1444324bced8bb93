package report

import (
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
)

func TestEveryOutcomeCountsOnce(t *testing.T) {
	tests := map[Kind]metrics.Pair{
		Withheld:  {Withheld: "NotPlaced"},
		InPlace:   {State: "Synced"},
		Undecided: {State: "SelectionUnknown"},
		Doubtful:  {State: "SelectionUnknown"},
		Foreign:   {State: "ForeignProfile"},
		LeftAlone: {State: "LeftAlone"},
		Failed:    {State: "WriteFailed"},
	}
	for kind, want := range tests {
		if got := countedAs(Outcome{Kind: kind, Reason: "NotPlaced"}, true); got != want {
			t.Errorf("kind %d counts as %+v, want %+v", kind, got, want)
		}
		if got := countedAs(Outcome{Kind: kind}, false); got != (metrics.Pair{}) {
			t.Errorf("without an outcome: %+v", got)
		}
	}
}
