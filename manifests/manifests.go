// Package manifests holds what this addon ships to a spoke, as one would apply
// it by hand but for the values that differ per cluster; pkg/hub/addon puts these in.
//
// The ClusterProperty CRD and the install namespace are shared with whoever else
// needs them: they are created where missing, and never owned or deleted. The CRD
// is never changed; the namespace gets a label.
// Everything else is this addon's alone and goes when the addon goes. The clean-up
// Job runs once, when the addon is being removed; its rights and the marker it
// sets are shipped with the agent, because they must be there before it starts.
package manifests

import "embed"

// Spoke is the directory "spoke" with one YAML file per concern, each holding
// one or more documents.
//
//go:embed spoke/*.yaml
var Spoke embed.FS
