// Package localcluster holds the story of a hub that is one of its own managed clusters,
// "local-cluster" in the set "default", as OCM's local setup makes it. Its fleet, called
// "localcluster", is the largest of the journeys', so only "make e2e" runs it.
package localcluster
