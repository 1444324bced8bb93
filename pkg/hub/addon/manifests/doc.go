// Package manifests turns values into what is deployed on a spoke. templates are decoded once
// for each manifest revision (desired.go), each distinct set of values is rendered once for
// all clusters (render.go), and a hosted agent's manifests are split between two
// clusters (desired_hosting.go).
//
// It also reads what is deployed already (deployed.go) from ManifestWorks in the form in which
// they are cached (trim_work.go). While the configuration is unknown, these manifests stay as
// they are, with the clean-up Job that belongs to them (desired_held.go). A rollout continues
// when a ManifestWork is available, which desired_rules.go defines.
//
// It reads and writes nothing on a hub.
package manifests
