package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Types of changes.
const (
	created = "created"
	changed = "changed"
	deleted = "deleted"
)

// change is what the watcher saw of one object.
type change struct {
	at       time.Time
	what     string // created, changed or deleted
	resource string // with its group
	key      string // namespace/name
	content  string // the object as JSON
	// version orders the changes of all kinds: the resource version after the change.
	version uint64
	// lost is true if the object went with its CRD. replaced is true if it was lost and came
	// again, and if this is how it came.
	lost, replaced bool
}

func (c change) String() string { return c.what + " " + c.resource + " " + c.key }

// watchedKinds are what the manager writes on a hub, and what consumers see.
var watchedKinds = []schema.GroupVersionResource{
	{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "clusterprofiles"},
	{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "placementdecisions"},
	{Version: "v1", Resource: "secrets"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	{Group: "addon.open-cluster-management.io", Version: "v1beta1", Resource: "managedclusteraddons"},
	{Group: "work.open-cluster-management.io", Version: "v1", Resource: "manifestworks"},
}

// watcher sees every change of the watched kinds in some namespaces, past the proxy and as
// another client. It is safe for concurrent use.
type watcher struct {
	namespaces []string

	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured // by resource and key
	texts   map[string]string                     // their normal form, if it has been asked for since they changed
	changes []change
	newest  uint64 // the largest version
}

// newWatcher returns a watcher that has seen what exists.
func newWatcher(
	ctx context.Context, cfg *rest.Config, kinds []schema.GroupVersionResource, namespaces []string,
) (*watcher, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	w := &watcher{namespaces: namespaces, objects: map[string]*unstructured.Unstructured{}, texts: map[string]string{}}
	var synced []cache.InformerSynced
	for _, kind := range kinds {
		informer := dynamicinformer.NewFilteredDynamicInformer(client, kind, "", 0, nil, nil).Informer()
		resource := kind.GroupResource().String()
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { w.saw(created, resource, obj) },
			UpdateFunc: func(_, obj any) { w.saw(changed, resource, obj) },
			DeleteFunc: func(obj any) { w.saw(deleted, resource, obj) },
		})
		if err != nil {
			return nil, err
		}
		synced = append(synced, registration.HasSynced)
		go informer.RunWithContext(ctx)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil, fmt.Errorf("watching the hub: %w", context.Cause(ctx))
	}
	return w, nil
}

func (w *watcher) saw(what, resource string, obj any) {
	last, isMissed := obj.(cache.DeletedFinalStateUnknown)
	if isMissed {
		obj = last.Obj
	}
	object, ok := obj.(*unstructured.Unstructured)
	if !ok || !slices.Contains(w.namespaces, object.GetNamespace()) {
		return
	}
	key := object.GetNamespace() + "/" + object.GetName()
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		version = 0 // impossible for etcd's
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if isMissed {
		version = w.newest // a list has shown it; the object's version is that from before
	}
	w.newest = max(w.newest, version)
	id := resource + " " + key
	before := w.objects[id]
	delete(w.texts, id)
	switch {
	case what == deleted:
		delete(w.objects, id)
	case before != nil && before.GetUID() == object.GetUID() && before.GetResourceVersion() == object.GetResourceVersion():
		return // listed again
	case what == changed && before != nil && before.GetUID() != object.GetUID():
		// It was deleted and created again between two looks.
		w.changes = append(w.changes, change{
			at: time.Now(), what: deleted, resource: resource, key: key, version: version,
		})
		what = created
		fallthrough
	default:
		w.objects[id] = object
	}
	w.changes = append(w.changes, change{
		at: time.Now(), what: what, resource: resource, key: key, content: contentOf(object), version: version,
	})
}

// contentOf returns an object as JSON.
func contentOf(object *unstructured.Unstructured) string {
	content, err := json.Marshal(object.Object)
	if err != nil {
		return err.Error() // impossible for what was JSON
	}
	return string(content)
}

// has reports whether the objects of a kind that were seen are the same as those of a list.
func (w *watcher) has(resource string, list []unstructured.Unstructured) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := 0
	for id := range w.objects {
		if strings.HasPrefix(id, resource+" ") {
			seen++
		}
	}
	for _, object := range list {
		if !slices.Contains(w.namespaces, object.GetNamespace()) {
			continue
		}
		seen--
		last := w.objects[resource+" "+object.GetNamespace()+"/"+object.GetName()]
		if last == nil || last.GetUID() != object.GetUID() || last.GetResourceVersion() != object.GetResourceVersion() {
			return false
		}
	}
	return seen == 0
}

// objectsOf returns the objects of a kind, which must not be changed, in no particular order.
func (w *watcher) objectsOf(resource string) []*unstructured.Unstructured {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []*unstructured.Unstructured
	for id, object := range w.objects {
		if strings.HasPrefix(id, resource+" ") {
			all = append(all, object)
		}
	}
	return all
}

// seen returns what was seen since the first n changes.
func (w *watcher) seen(n int) []change {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.changes[n:])
}

// mark returns the number of changes so far.
func (w *watcher) mark() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.changes)
}

// forget empties the record of changes.
func (w *watcher) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes = nil
}

// restart begins the record of changes with what exists, as if it had just been created: profiles first, on which
// the other objects depend.
func (w *watcher) restart() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes = nil
	for id, object := range w.objects {
		resource, key, _ := strings.Cut(id, " ")
		c := change{at: time.Now(), what: created, resource: resource, key: key, content: contentOf(object)}
		if resource != profiles {
			c.version = 1 // earlier than anything that follows
		}
		w.changes = append(w.changes, c)
	}
}

// state returns the objects that exist, in a form that is equal after equal stories. Tokens are replaced by their
// names.
func (w *watcher) state(tokens map[string]string) map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := map[string]string{}
	for id, object := range w.objects {
		text, has := w.texts[id]
		if !has {
			text = normal(object.Object)
			w.texts[id] = text
		}
		if strings.HasPrefix(id, secrets+" ") {
			text = withNames(text, tokens)
		}
		state[id] = text
	}
	return state
}

// isEmpty reports whether no object exists.
func (w *watcher) isEmpty() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.objects) == 0
}

// ownersExist reports whether the profiles that own copies exist. States do not show this, because they
// leave identities out. What is being deleted does not count.
func (w *watcher) ownersExist() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, object := range w.objects {
		if !strings.HasPrefix(id, secrets+" ") || object.GetDeletionTimestamp() != nil {
			continue
		}
		for _, owner := range object.GetOwnerReferences() {
			profile := w.objects[profiles+" "+object.GetNamespace()+"/"+owner.Name]
			if owner.Kind == "ClusterProfile" && (profile == nil || profile.GetUID() != owner.UID) {
				return false
			}
		}
	}
	return true
}

// namespaceOf returns the namespace of a key.
func namespaceOf(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return namespace
}
