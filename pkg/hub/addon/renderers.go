package addon

import (
	"encoding/json"

	"k8s.io/utils/lru"
)

// keptRenderers is how many renderers are kept: a fleet needs one for each different
// configuration. Beyond that, an event of a cluster costs a few milliseconds more, and
// memory stays bounded.
const keptRenderers = 256

// renderers has one renderer for all clusters with equal values.
type renderers struct {
	templates templates

	// kept are the renderers used lately, by the JSON of their values.
	kept *lru.Cache
}

func newRenderers() (*renderers, error) {
	templates, err := newTemplates()
	if err != nil {
		return nil, err
	}
	return &renderers{templates: templates, kept: lru.New(keptRenderers)}, nil
}

// of returns the renderer of values that have nothing of a particular cluster.
func (r *renderers) of(values Values) (*renderer, error) {
	encoded, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	key := string(encoded)
	if kept, ok := r.kept.Get(key); ok {
		return kept.(*renderer), nil
	}
	made, err := newRenderer(r.templates.of(values), values)
	if err != nil {
		return nil, err
	}
	r.kept.Add(key, made)
	return made, nil
}
