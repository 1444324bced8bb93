// Package manifests holds what this addon installs on a spoke, in a form that could be
// applied by hand. pkg/hub/addon fills in the values that differ per cluster.
//
// The ClusterProperty CRD and the install namespace are shared with other components: they
// are created if missing, and never owned or deleted. The CRD is never changed; the
// namespace gets a label. Everything else belongs to this addon alone and is deleted with
// it. The clean-up Job runs while the addon is being removed. Its rights and its marker are
// installed with the agent, because they must exist before the Job starts.
//
// A fleet is upgraded step by step, so a manager supports the manifests of two revisions:
// its own, and the previous version's. An AgentRevision names the one it is made for. A
// released revision never changes. To change the manifests, copy the present files over
// those in "previous", increment Revision and Previous here and in the chart, and update
// the test data of pkg/hub/addon.
package manifests

import (
	"embed"
	"io/fs"
	"maps"
	"path"
	"slices"
)

// The supported revisions of the manifests.
const (
	Revision = "2"
	Previous = "1"
)

// Spoke is the directory "spoke", the present revision: one YAML file per concern, each
// with one or more documents.
//
//go:embed spoke/*.yaml
var Spoke embed.FS

// before is the directory "previous": the files of the previous revision that differ from
// the present one's.
//
//go:embed previous/*.yaml
var before embed.FS

// File is one file of a revision.
type File struct {
	Name    string
	Content []byte
}

// Of returns the files of a revision, ordered by name; none if the revision is unknown.
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
