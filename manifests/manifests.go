// Package manifests holds what this addon installs on a spoke, in the form one
// would apply by hand. pkg/hub/addon fills in the values that differ per cluster.
//
// The ClusterProperty CRD and the install namespace are shared with other
// components: they are created where missing, and never owned or deleted. The CRD
// is never changed; the namespace gets a label. Everything else belongs to this
// addon alone and is deleted with it. The clean-up Job runs when the addon is being
// removed; its rights and the marker it writes to are installed with the agent,
// because they must exist before it starts.
//
// A fleet is upgraded step by step, so a manager serves clusters with the manifests of
// two revisions: its own, and those of the version before. An AgentRevision names the one it
// is made for. What was released under a number does not change any more. Who changes it
// copies the files as they were to "previous", in place of those there, counts Revision and
// Previous up here and in the chart, and updates the test data of pkg/hub/addon.
package manifests

import (
	"embed"
	"io/fs"
	"maps"
	"path"
	"slices"
)

// The revisions of the manifests that there are.
const (
	Revision = "2"
	Previous = "1"
)

// Spoke is the directory "spoke": one YAML file per concern, each with one or more
// documents. It is the present revision.
//
//go:embed spoke/*.yaml
var Spoke embed.FS

// before is the directory "previous": those files of the previous revision that the
// present one has otherwise.
//
//go:embed previous/*.yaml
var before embed.FS

// File is one file of a revision.
type File struct {
	Name    string
	Content []byte
}

// Of returns the files of a revision in the order of their names. There are none if the
// revision is not known.
func Of(revision string) ([]File, error) {
	var layers []fs.FS
	switch revision {
	case Revision:
		layers = []fs.FS{Spoke}
	case Previous:
		layers = []fs.FS{Spoke, before}
	}
	contents := map[string][]byte{}
	for _, layer := range layers {
		names, err := fs.Glob(layer, "*/*.yaml")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if contents[path.Base(name)], err = fs.ReadFile(layer, name); err != nil {
				return nil, err
			}
		}
	}
	var files []File
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		files = append(files, File{Name: name, Content: contents[name]})
	}
	return files, nil
}
