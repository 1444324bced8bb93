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
	template template

	// common are the values of all clusters without a configuration, and base their
	// renderer.
	common Values
	base   *renderer

	// kept are the renderers used lately, by the JSON of their values.
	kept *lru.Cache
}

func newRenderers(common Values) (*renderers, error) {
	template, err := newTemplate()
	if err != nil {
		return nil, err
	}
	r := &renderers{template: template, common: common, kept: lru.New(keptRenderers)}
	r.base, err = r.of(common)
	return r, err
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
	made, err := newRenderer(r.template, values)
	if err != nil {
		return nil, err
	}
	r.kept.Add(key, made)
	return made, nil
}
