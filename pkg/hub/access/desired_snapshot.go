package access

import (
	"time"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// everyCluster stands for all clusters where names of clusters are announced.
const everyCluster = ""

// requeueMost bounds how far ahead a certificate's expiry is queued. It may be decades, or
// centuries, away.
const requeueMost = 24 * time.Hour

// sharedFacts are the facts about the objects that concern all clusters.
type sharedFacts struct {
	proxy proxyFacts

	// entries describe how clusters are reached directly, by cluster.
	entries map[string]directEntry

	// Why the entries, and the facts that are read cluster by cluster, are unknown; empty
	// if they are known.
	entriesUnknown, addonsUnknown, clustersUnknown string

	// stable is true if everything is known, or remains unknown until a user acts.
	stable bool
}

// snapshot is the resolved state that all clusters share.
type snapshot struct {
	sharedFacts
	endpoint endpoint
}

// resolve computes what all clusters share, and what follows from the certificates.
func resolve(o ClusterProxyOptions, facts sharedFacts, now time.Time) (*snapshot, rotation) {
	next, plan := &snapshot{sharedFacts: facts}, rotation{}
	if o.Enabled {
		next.endpoint, plan = desiredEndpoint(o, facts.proxy, now)
	}
	return next, plan
}

// changedClusters returns the clusters whose access has changed; only everyCluster if the
// shared state changed.
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

// requeueAfter returns when to resolve again although nothing changed: when the last write
// should have been seen (zero: it has), or when a certificate expires (zero: none does).
// Zero means never.
func requeueAfter(unseen time.Duration, expiry, now time.Time) time.Duration {
	if expiry.IsZero() {
		return unseen
	}
	// A certificate is valid up to and including that second.
	return kube.Sooner(unseen, min(max(expiry.Sub(now), 0), requeueMost)+time.Second)
}
