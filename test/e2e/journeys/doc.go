// Package journeys holds what the user stories on a real fleet share: a hub and spokes with
// real control planes and a real Open Cluster Management, the addon installed from its
// chart, manager and agents running as their own service accounts. Each test of the
// packages below is one story; it restores what it changes, except that those of departure end
// with an unusable spoke.
//
// Each of these packages has a fleet of its own, named after the package, so that they run
// in parallel; KEEP_FLEET=1 leaves the fleets running.
package journeys
