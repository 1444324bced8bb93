// Package journeys holds user stories told on a real fleet: a hub and three
// spokes with real control planes and a real Open Cluster Management, the addon
// installed from its chart, manager and agents running as their own service
// accounts. Each test is one story; what it touches it puts back, except that
// the last spoke, cluster3, is the one that may be lost.
//
// The fleet is called "journeys"; KEEP_FLEET=1 leaves it running. The one story
// that takes as long as a token lives is in the folder expiry, with a fleet of
// its own, and is told meanwhile.
package journeys
