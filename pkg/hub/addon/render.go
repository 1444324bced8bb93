package addon

import (
	"bytes"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/lru"
	workv1 "open-cluster-management.io/api/work/v1"
)

// renderer renders manifests once per distinct input: those that are equal on all
// clusters once, those of one cluster once per event. The framework asks for all of
// them several times per cluster and event, and encodes them each time.
type renderer struct {
	template template

	// shared are the manifests that are equal on all clusters, by their index in the
	// template; the others are nil.
	shared []*manifest

	// known are the shared manifests as they are in a ManifestWork, by their JSON.
	known map[string]workv1.Manifest

	// recent are the manifests of the clusters that were rendered last, by Values.
	recent *lru.Cache
}

// recentClusters is how many clusters the manifests are kept of. The framework asks
// again for the cluster that it is working on.
const recentClusters = 64

// newRenderer returns a renderer of manifests whose values differ from the given ones
// only in what identifies the cluster.
func newRenderer(t template, common Values) (*renderer, error) {
	one, err := t.encode(common.of("one", "one"))
	if err != nil {
		return nil, err
	}
	another, err := t.encode(common.of("another", "another"))
	if err != nil {
		return nil, err
	}
	r := &renderer{template: t, shared: make([]*manifest, len(t)), known: map[string]workv1.Manifest{}, recent: lru.New(recentClusters)}
	for i := range t {
		if bytes.Equal(one[i].encoded, another[i].encoded) {
			r.shared[i] = one[i]
			r.known[string(one[i].encoded)] = one[i].inWork()
		}
	}
	return r, nil
}

// render returns the manifests of one spoke, in the template's order. They are shared
// between calls and must not be changed.
func (r *renderer) render(v Values) ([]runtime.Object, error) {
	if rendered, ok := r.recent.Get(v); ok {
		return rendered.([]runtime.Object), nil
	}
	rendered := make([]runtime.Object, len(r.template))
	for i, shared := range r.shared {
		if shared != nil {
			rendered[i] = shared
			continue
		}
		own, err := r.template[i : i+1].encode(v)
		if err != nil {
			return nil, err
		}
		rendered[i] = own[0]
	}
	r.recent.Add(v, rendered)
	return rendered, nil
}

// inWork returns a manifest of a ManifestWork in the form in which the framework reads
// it most cheaply, with its identity decoded. If all clusters have the same, it is one
// for all of them.
func (r *renderer) inWork(raw []byte) (workv1.Manifest, error) {
	if known, ok := r.known[string(raw)]; ok {
		return known, nil
	}
	decoded := &unstructured.Unstructured{}
	if err := decoded.UnmarshalJSON(raw); err != nil {
		return workv1.Manifest{}, err
	}
	return newManifest(decoded, raw).inWork(), nil
}

// encode renders the template and encodes what it rendered.
func (t template) encode(v Values) ([]*manifest, error) {
	objects, err := t.render(v)
	if err != nil {
		return nil, err
	}
	manifests := make([]*manifest, 0, len(objects))
	for _, object := range objects {
		encoded, err := object.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("encoding a %s: %w", object.GetKind(), err)
		}
		manifests = append(manifests, newManifest(object, bytes.TrimSpace(encoded)))
	}
	return manifests, nil
}

// manifest is one rendered manifest: what the framework reads of it, and its JSON.
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

// inWork returns the manifest as part of a ManifestWork. Beside the JSON it has an
// object, which says what the manifest is of.
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
