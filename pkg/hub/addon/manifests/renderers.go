package manifests

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/lru"
)

// keptRenderers is how many renderers are kept: a fleet needs one for each different
// configuration. Beyond that, an event of a cluster costs a few milliseconds more, and
// memory stays bounded.
const keptRenderers = 256

// Renderers has one renderer for all clusters with equal values.
type Renderers struct {
	templates templates

	// kept are the renderers used lately, by the JSON of their values.
	kept *lru.Cache
}

// NewRenderers returns renderers of all manifest revisions.
func NewRenderers() (*Renderers, error) {
	templates, err := newTemplates()
	if err != nil {
		return nil, err
	}
	return &Renderers{templates: templates, kept: lru.New(keptRenderers)}, nil
}

// Render returns the manifests of one cluster, and of one installation on it, from values that
// have nothing of a particular cluster. They are shared between calls and must not be changed.
func (r *Renderers) Render(values Values, cluster, addonUID string) ([]runtime.Object, error) {
	renderer, err := r.of(values)
	if err != nil {
		return nil, err
	}
	return renderer.render(cluster, addonUID)
}

// Held returns the deployed manifests and the matching clean-up Job, but never the former
// alone: the framework would conclude that an addon without a Job needs no clean-up. It
// returns nothing if there is no agent.
func (r *Renderers) Held(there Deployed, addonUID string) ([]runtime.Object, error) {
	return there.manifests(r.templates, addonUID)
}

// of returns the renderer of values that have nothing of a particular cluster.
func (r *Renderers) of(values Values) (*renderer, error) {
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
