// Package consumers holds the stories of other projects' consumers: Kueue and the Knative
// operator, built from their modules and set up as docs/kueue.md and docs/knative.md say. Its fleet,
// called "consumers", has two spokes with cluster-proxy and managed-serviceaccount:
// cluster1 is for Kueue, cluster2 for Knative.
//
// Kueue's webhooks are called, but its aggregated API cannot be reached in a fleet and is
// left out; so is Knative's webhook.
//
// Building them takes long, so "make test" leaves these stories out;
// "make conformance-consumers" runs them.
package consumers
