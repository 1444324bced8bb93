package journeys

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// AddonResources are what the addon writes to, on hub and spoke. The counts come from the API
// servers' own request metrics, so nobody's write escapes them.
var AddonResources = []string{"clusterprofiles", "clusterclaims", "manifestworks", "managedclusteraddons"}

// RestartObservation is how long after a restart writes are looked for: longer
// than every sync that follows a start.
const RestartObservation = 10 * time.Second

// Counts are the writes so far, keyed "cluster: VERB resource".
func Counts(t *testing.T, resources ...string) map[string]int {
	t.Helper()
	return countsNow(t.Context(), t, resources...)
}

func countsNow(ctx context.Context, t *testing.T, resources ...string) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, cluster := range []string{"hub", Cluster1, Cluster2} {
		found, err := Fleet.Writes(ctx, cluster, resources...)
		apitest.Must(t, err)
		for request, n := range found {
			all[cluster+": "+request] += n
		}
	}
	return all
}

// Since is what was written between two counts.
func Since(before, after map[string]int) map[string]int {
	diff := map[string]int{}
	for request, n := range after {
		if n != before[request] {
			diff[request] = n - before[request]
		}
	}
	return diff
}

// Settled waits until nothing is written for a while, and returns the counts.
func Settled(t *testing.T, resources ...string) map[string]int {
	t.Helper()
	last, from := Counts(t, resources...), time.Now()
	apitest.Within(t, Eventually, "the fleet settles", func(ctx context.Context) error {
		now := countsNow(ctx, t, resources...)
		if diff := Since(last, now); len(diff) > 0 {
			last, from = now, time.Now()
			return fmt.Errorf("just written: %v", diff)
		}
		if calm := time.Since(from); calm < Quiet {
			return fmt.Errorf("calm for %s only", calm)
		}
		return nil
	})
	return last
}

// Wrote compares what was written since with what had to be, once all is calm.
func Wrote(t *testing.T, before map[string]int, want map[string]int, resources ...string) {
	t.Helper()
	if diff := cmp.Diff(want, Since(before, Settled(t, resources...))); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// NoWrites is an error when the addon's resources were written to since the counts.
func NoWrites(t *testing.T, before map[string]int) func(context.Context) error {
	return func(ctx context.Context) error {
		if diff := Since(before, countsNow(ctx, t, AddonResources...)); len(diff) > 0 {
			return fmt.Errorf("written: %v", diff)
		}
		return nil
	}
}
