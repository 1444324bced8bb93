package node

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// objects watches exactly the Secrets and ConfigMaps that pods of this node name, with one watch per
// object, as a kubelet does. Changes arrive at once, and nothing else in the cluster is read.
type objects struct {
	client kubernetes.Interface

	mu      sync.Mutex
	watched map[objectKey]*watched
}

type objectKey struct {
	namespace string
	ref       objectRef
}

type watched struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
	users    int
}

func newObjects(client kubernetes.Interface) *objects {
	return &objects{client: client, watched: map[objectKey]*watched{}}
}

// subscription is one pod's interest in its objects.
type subscription struct {
	objects   *objects
	namespace string
	handlers  map[objectRef]cache.ResourceEventHandlerRegistration
}

// subscribe calls changed, which must not block, whenever one of the objects appears, changes or
// goes. The context bounds the watches.
func (o *objects) subscribe(
	ctx context.Context, namespace string, refs []objectRef, changed func(),
) (*subscription, error) {
	sub := &subscription{
		objects:   o,
		namespace: namespace,
		handlers:  map[objectRef]cache.ResourceEventHandlerRegistration{},
	}
	for _, ref := range refs {
		handler, err := o.join(ctx, objectKey{namespace, ref}, cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { changed() },
			UpdateFunc: func(any, any) { changed() },
			DeleteFunc: func(any) { changed() },
		})
		if err != nil {
			sub.close()
			return nil, err
		}
		sub.handlers[ref] = handler
	}
	return sub, nil
}

func (o *objects) join(
	ctx context.Context, key objectKey, handler cache.ResourceEventHandler,
) (cache.ResourceEventHandlerRegistration, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.watched[key]
	if w == nil {
		ctx, stop := context.WithCancel(ctx)
		w = &watched{informer: o.informer(key), stop: stop}
		o.watched[key] = w
		go w.informer.RunWithContext(ctx)
	}
	w.users++
	return w.informer.AddEventHandler(handler)
}

func (o *objects) informer(key objectKey) cache.SharedIndexInformer {
	resource, example := "secrets", runtime.Object(&corev1.Secret{})
	if key.ref.kind == kindConfigMap {
		resource, example = "configmaps", &corev1.ConfigMap{}
	}
	only := fields.OneTermEqualSelector("metadata.name", key.ref.name)
	lw := cache.NewListWatchFromClient(o.client.CoreV1().RESTClient(), resource, key.namespace, only)
	return cache.NewSharedIndexInformer(lw, example, 0, nil)
}

func (o *objects) leave(key objectKey, handler cache.ResourceEventHandlerRegistration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.watched[key]
	_ = w.informer.RemoveEventHandler(handler)
	if w.users--; w.users == 0 {
		w.stop()
		delete(o.watched, key)
	}
}

// synced waits until it is known whether each object exists. It returns false if ctx ends first.
func (s *subscription) synced(ctx context.Context) bool {
	for _, handler := range s.handlers {
		if !cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
			return false
		}
	}
	return true
}

// get returns a subscribed object's content.
func (s *subscription) get(ref objectRef) (map[string][]byte, bool) {
	s.objects.mu.Lock()
	w := s.objects.watched[objectKey{s.namespace, ref}]
	s.objects.mu.Unlock()
	if w == nil {
		return nil, false
	}
	object, found, err := w.informer.GetStore().GetByKey(s.namespace + "/" + ref.name)
	if err != nil || !found {
		return nil, false
	}
	return content(object), true
}

func (s *subscription) close() {
	for ref, handler := range s.handlers {
		s.objects.leave(objectKey{s.namespace, ref}, handler)
	}
}

// content returns the keys of a Secret or ConfigMap.
func content(object any) map[string][]byte {
	switch o := object.(type) {
	case *corev1.Secret:
		return o.Data
	case *corev1.ConfigMap:
		data := map[string][]byte{}
		for key, value := range o.Data {
			data[key] = []byte(value)
		}
		for key, value := range o.BinaryData {
			data[key] = value
		}
		return data
	default:
		return nil
	}
}
