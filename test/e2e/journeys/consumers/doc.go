// Package consumers holds the stories of consumers that others make: Kueue and the
// Knative operator, built from their modules, and set up as docs/consumers.md says. Its
// fleet, called "consumers", has two spokes with cluster-proxy and managed-serviceaccount:
// cluster1 works for Kueue, cluster2 for Knative.
//
// API servers of a fleet cannot reach Services, so the webhooks of both, and Kueue's
// aggregated API, are left out. What Kueue's webhook would set in a Job, a story sets: that
// it begins suspended, and that MultiKueue manages it.
//
// Building them takes long, so "make test" leaves these stories out;
// "make conformance-consumers" runs them.
package consumers
