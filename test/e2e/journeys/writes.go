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
// servers' own request metrics, so they include the writes of every client.
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

// Settled waits until nothing is written for a while, and returns the counts. Counts only
// grow, so one look before that while and one after it see every write; each look costs the
// API servers a page of metrics.
func Settled(t *testing.T, resources ...string) map[string]int {
	t.Helper()
	last := Counts(t, resources...)
	apitest.Within(t, Eventually, "the fleet settles", func(ctx context.Context) error {
		select {
		case <-time.After(Quiet):
		case <-ctx.Done():
			return ctx.Err()
		}
		before := last
		last = countsNow(ctx, t, resources...)
		if diff := Since(before, last); len(diff) > 0 {
			return fmt.Errorf("written in the last %s: %v", Quiet, diff)
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

// Observed returns what was written since the counts, when a program that has just started
// has had its time to write.
func Observed(t *testing.T, before map[string]int, resources ...string) map[string]int {
	t.Helper()
	<-time.After(RestartObservation)
	return Since(before, Counts(t, resources...))
}
