package credentials

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	toolscache "k8s.io/client-go/tools/cache"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// targets runs one informer per target namespace, of the metadata of the copies
// in it: what is altered or deleted there is repaired, and what is left over is
// found. It holds nothing of a token.
type targets struct {
	client metadata.Interface
	book   *book

	// touched is told of accounts whose copies changed, emptied of a namespace that
	// a copy has left or whose copies have been counted.
	touched func(account types.NamespacedName)
	emptied func(namespace string)

	mu      sync.Mutex
	ctx     context.Context // while this process leads
	running map[string]*watch
}

// watch is the informer of one namespace.
type watch struct {
	cancel context.CancelFunc
	ended  chan struct{}
	synced chan struct{} // closed when it is
}

func newTargets(client metadata.Interface, book *book, touched func(types.NamespacedName), emptied func(string)) *targets {
	return &targets{client: client, book: book, touched: touched, emptied: emptied, running: map[string]*watch{}}
}

// start lets informers run until the context ends.
func (t *targets) start(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ctx = ctx
}

// watch has a namespace watched. anew starts over a watch that may have been
// refused, and would wait long before it asks again.
func (t *targets) watch(namespace string, anew bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.running[namespace]
	if t.ctx == nil || t.ctx.Err() != nil || before != nil && !anew {
		return
	}
	if before != nil {
		before.cancel()
	}
	ctx, cancel := context.WithCancel(t.ctx)
	now := &watch{cancel: cancel, ended: make(chan struct{}), synced: make(chan struct{})}
	t.running[namespace] = now
	go func() {
		defer close(now.ended)
		if before != nil {
			<-before.ended
		}
		t.run(ctx, namespace, now)
	}()
}

// stop ends the watch of a namespace.
func (t *targets) stop(namespace string) {
	t.mu.Lock()
	found := t.running[namespace]
	delete(t.running, namespace)
	t.mu.Unlock()
	if found != nil {
		found.cancel()
		<-found.ended
	}
}

// synced tells whether all copies of a namespace are in the book.
func (t *targets) synced(namespace string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.running[namespace]
	if found == nil {
		return false
	}
	select {
	case <-found.synced:
		return true
	default:
		return false
	}
}

// wait ends when every informer has, after the context of start.
func (t *targets) wait() {
	t.mu.Lock()
	all := t.running
	t.running = map[string]*watch{}
	t.mu.Unlock()
	for _, w := range all {
		w.cancel()
		<-w.ended
	}
}

// permission is how often a namespace is asked for its copies until that is
// allowed. An informer refused once would wait a second and longer.
var permission = wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.5, Steps: 12, Cap: time.Second}

var secrets = corev1.SchemeGroupVersion.WithResource("secrets")

func (t *targets) run(ctx context.Context, namespace string, w *watch) {
	selector := labels.SelectorFromSet(copyLabels()).String()
	backoff := permission
	for {
		_, err := t.client.Resource(secrets).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1})
		if err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(backoff.Step(), permission.Duration)):
		}
	}
	informer := metadatainformer.NewFilteredMetadataInformer(t.client, secrets, namespace, 0, toolscache.Indexers{}, func(options *metav1.ListOptions) {
		options.LabelSelector = selector
	}).Informer()
	if err := informer.SetTransform(trimCopy); err != nil {
		return // it has not been started
	}
	handled, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { t.tell(t.book.see, obj) },
		UpdateFunc: func(_, obj any) { t.tell(t.book.see, obj) },
		DeleteFunc: func(obj any) {
			if lost, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = lost.Obj
			}
			t.tell(t.book.vanish, obj)
			t.emptied(namespace)
		},
	})
	if err != nil {
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	if toolscache.WaitForCacheSync(ctx.Done(), handled.HasSynced) {
		t.count(informer, namespace)
		close(w.synced)
		t.emptied(namespace)
	}
	<-ended
}

// count drops from the book what an earlier informer saw and this one does not.
func (t *targets) count(informer toolscache.SharedIndexInformer, namespace string) {
	there := map[types.NamespacedName]struct{}{}
	for _, obj := range informer.GetStore().List() {
		if meta, ok := obj.(*metav1.PartialObjectMetadata); ok {
			there[types.NamespacedName{Namespace: meta.Namespace, Name: meta.Name}] = struct{}{}
		}
	}
	for _, account := range t.book.keepOnly(namespace, there) {
		t.touched(account)
	}
}

func (t *targets) tell(note func(*metav1.PartialObjectMetadata) []types.NamespacedName, obj any) {
	meta, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	for _, account := range note(meta) {
		t.touched(account)
	}
}

// trimCopy keeps of a copy's metadata what tells whose it is and whether it
// changed.
func trimCopy(in any) (any, error) {
	meta, ok := in.(*metav1.PartialObjectMetadata)
	if !ok {
		return in, nil
	}
	full := meta.ObjectMeta
	annotations := map[string]string{}
	for _, key := range []string{contract.AnnotationSourceCluster, contract.AnnotationSourceAccount} {
		annotations[key] = full.Annotations[key]
	}
	meta.ObjectMeta = metav1.ObjectMeta{
		Namespace: full.Namespace, Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion,
		DeletionTimestamp: full.DeletionTimestamp, Finalizers: full.Finalizers,
		Labels: copyLabels(), Annotations: annotations,
	}
	return meta, nil
}
