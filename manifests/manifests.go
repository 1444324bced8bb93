// Package manifests holds what this addon installs on a spoke, in the form one
// would apply by hand. pkg/hub/addon fills in the values that differ per cluster.
//
// The ClusterProperty CRD and the install namespace are shared with other
// components: they are created where missing, and never owned or deleted. The CRD
// is never changed; the namespace gets a label. Everything else belongs to this
// addon alone and is deleted with it. The clean-up Job runs when the addon is being
// removed; its rights and the marker it writes to are installed with the agent,
// because they must exist before it starts.
package manifests

import "embed"

// Spoke is the directory "spoke": one YAML file per concern, each with one or more
// documents.
//
//go:embed spoke/*.yaml
var Spoke embed.FS
