package access

import "time"

// everyCluster stands for all clusters where names of clusters are announced.
const everyCluster = ""

// requeueMost bounds how far ahead a certificate's end is put into the queue. Ends
// may be decades, or centuries, away.
const requeueMost = 24 * time.Hour

// sharedFacts are what is known of the objects that concern all clusters.
type sharedFacts struct {
	proxy proxyFacts

	// entries say how clusters are reached directly.
	entries map[string]directEntry

	// Why the entries, and what is read cluster by cluster, are not known; empty
	// when they are.
	entriesUnknown, addonsUnknown, clustersUnknown string

	// stable is true when everything is known, or stays unknown unless somebody
	// acts.
	stable bool
}

// snapshot is what all clusters share, resolved.
type snapshot struct {
	endpoint endpoint
	entries  map[string]directEntry // by cluster

	// Why the entries, and what is read cluster by cluster, are not known; empty
	// when they are.
	entriesUnknown, addonsUnknown, clustersUnknown string
}

// resolve decides what all clusters share, and what follows from the certificates.
func resolve(o ClusterProxyOptions, facts sharedFacts, now time.Time) (*snapshot, rotation) {
	next := &snapshot{
		entries:         facts.entries,
		entriesUnknown:  facts.entriesUnknown,
		addonsUnknown:   facts.addonsUnknown,
		clustersUnknown: facts.clustersUnknown,
	}
	if !o.Enabled {
		return next, rotation{}
	}
	var plan rotation
	next.endpoint, plan = desiredEndpoint(o, facts.proxy, now)
	return next, plan
}

// changedClusters are the clusters that are reached in another way than before;
// everyCluster alone if what all share changed.
func changedClusters(last, next *snapshot) []string {
	if !last.endpoint.equal(next.endpoint) || last.addonsUnknown != next.addonsUnknown ||
		last.entriesUnknown != next.entriesUnknown || last.clustersUnknown != next.clustersUnknown {
		return []string{everyCluster}
	}
	var changed []string
	for cluster := range last.entries {
		if _, still := next.entries[cluster]; !still {
			changed = append(changed, cluster)
		}
	}
	for cluster, entry := range next.entries {
		if before, ok := last.entries[cluster]; !ok || before != entry {
			changed = append(changed, cluster)
		}
	}
	return changed
}

// requeueAfter is when to resolve again although nothing changed: when the last
// write should have been seen (zero: it has), or when a certificate expires (zero:
// none does). Zero means never.
func requeueAfter(unseen time.Duration, expiry, now time.Time) time.Duration {
	after := unseen
	if !expiry.IsZero() {
		// A certificate is good up to and including that second.
		end := min(max(expiry.Sub(now), 0), requeueMost) + time.Second
		if after == 0 || end < after {
			after = end
		}
	}
	return after
}
