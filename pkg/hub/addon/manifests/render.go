package manifests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/lru"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/ownwork"
)

// Placeholders that the renderer replaces by the values of a cluster. They cannot be part
// of a name or UID.
const (
	anyValue    = "{any " // begins each of them
	anyCluster  = anyValue + "cluster}"
	anyAddonUID = anyValue + "addon UID}"

	// anyHostedNamespace is that of an agent on a hosting cluster.
	anyHostedNamespace = anyValue + "hosted namespace}"
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

// renderer renders and encodes the manifests once and, for each cluster, only replaces what
// identifies it. The framework requests all of them several times per cluster and event,
// and encodes them each time.
type renderer struct{ manifests []*manifest }

// newRenderer returns a renderer of manifests whose values differ from the given ones only
// in what identifies the cluster.
func newRenderer(t template, common Values) (*renderer, error) {
	objects, err := t.render(common.of(anyCluster, anyAddonUID))
	if err != nil {
		return nil, err
	}
	r := &renderer{}
	for _, object := range objects {
		encoded, err := object.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("encoding a %s: %w", object.GetKind(), err)
		}
		r.manifests = append(r.manifests, newManifest(object, bytes.TrimSpace(encoded)))
	}
	return r, nil
}

// render returns the manifests of one cluster, in the template's order. They are shared
// between calls and must not be changed.
func (r *renderer) render(cluster, addonUID string) ([]runtime.Object, error) {
	rendered := make([]runtime.Object, 0, len(r.manifests))
	for _, common := range r.manifests {
		m, err := common.of(cluster, addonUID)
		if err != nil {
			return nil, err
		}
		rendered = append(rendered, m)
	}
	return rendered, nil
}

// manifest is one rendered manifest: the fields that the framework reads, and its JSON.
type manifest struct {
	metav1.PartialObjectMetadata
	encoded []byte
}

var _ runtime.CacheableObject = &manifest{}

func newManifest(object *unstructured.Unstructured, encoded []byte) *manifest {
	m := &manifest{encoded: encoded}
	m.SetGroupVersionKind(object.GroupVersionKind())
	m.Name, m.Namespace = object.GetName(), object.GetNamespace()
	m.Labels, m.Annotations = object.GetLabels(), object.GetAnnotations()
	return m
}

// of returns the manifest of one cluster; itself if all clusters have the same.
func (m *manifest) of(cluster, addonUID string) (*manifest, error) {
	if !bytes.Contains(m.encoded, []byte(anyValue)) {
		return m, nil
	}
	changed := &manifest{PartialObjectMetadata: m.PartialObjectMetadata, encoded: m.encoded}
	namespace := ownwork.HostedNamespace(cluster)
	for placeholder, value := range map[string]string{
		anyCluster: cluster, anyAddonUID: addonUID, anyHostedNamespace: namespace,
	} {
		quoted, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		text := quoted[1 : len(quoted)-1] // without the quotes
		changed.encoded = bytes.ReplaceAll(changed.encoded, []byte(placeholder), text)
	}
	for _, field := range []*string{&changed.Name, &changed.Namespace} {
		*field = strings.ReplaceAll(*field, anyHostedNamespace, namespace)
	}
	return changed, nil
}

// inWork returns the manifest as part of a ManifestWork. Besides the JSON it has an object,
// which identifies the manifest.
func (m *manifest) inWork() workv1.Manifest {
	identity := &metav1.PartialObjectMetadata{TypeMeta: m.TypeMeta}
	identity.Name, identity.Namespace = m.Name, m.Namespace
	return workv1.Manifest{RawExtension: runtime.RawExtension{Raw: m.encoded, Object: identity}}
}

// CacheEncode writes the JSON. No other encoding is supported.
func (m *manifest) CacheEncode(id runtime.Identifier, _ func(runtime.Object, io.Writer) error, w io.Writer) error {
	if id != unstructured.UnstructuredJSONScheme.Identifier() {
		return fmt.Errorf("the manifest of %s %s is encoded as JSON, not as %s", m.Kind, m.Name, id)
	}
	_, err := w.Write(m.encoded)
	return err
}

// GetObject implements runtime.CacheableObject.
func (m *manifest) GetObject() runtime.Object { return m }

// DeepCopyObject implements runtime.Object. The JSON is never changed, so copies share
// it.
func (m *manifest) DeepCopyObject() runtime.Object {
	return &manifest{PartialObjectMetadata: *m.DeepCopy(), encoded: m.encoded}
}
