package target

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// Followers watches the metadata of the copies in each target namespace, and records it in
// the ledger. It holds nothing of a token.
type Followers struct {
	client client.WithWatch
	ledger *Ledger

	// touched is called for accounts whose copies changed, emptied for a namespace that
	// lost a copy or whose copies have become known.
	touched func(account types.NamespacedName)
	emptied func(namespace string)

	ctx   context.Context // of all followers, until Stop
	stop  context.CancelFunc
	group sync.WaitGroup

	mu      sync.Mutex
	running map[string]*following
}

// following is the follower of one namespace.
type following struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed when it has ended
	synced chan struct{} // closed when all copies of the namespace are in the ledger
}

// NewFollowers returns Followers that follow nothing yet, and nothing after the context has ended.
func NewFollowers(
	ctx context.Context, c client.WithWatch, ledger *Ledger, touched func(types.NamespacedName), emptied func(string),
) *Followers {
	f := &Followers{client: c, ledger: ledger, touched: touched, emptied: emptied, running: map[string]*following{}}
	f.ctx, f.stop = context.WithCancel(ctx)
	return f
}

// Follow follows a namespace. restart restarts a follower that may have been refused and
// would wait long before it retries.
func (f *Followers) Follow(namespace string, restart bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.running[namespace]
	if f.ctx.Err() != nil || before != nil && !restart {
		return
	}
	if before != nil {
		before.cancel()
	}
	ctx, cancel := context.WithCancel(f.ctx)
	now := &following{cancel: cancel, ended: make(chan struct{}), synced: make(chan struct{})}
	f.running[namespace] = now
	f.group.Go(func() {
		defer close(now.ended)
		if before != nil {
			<-before.ended
		}
		if f.waitForPermission(ctx, namespace) == nil {
			f.run(ctx, namespace, now.synced)
		}
	})
}

// Unfollow stops following a namespace, and returns when it has stopped.
func (f *Followers) Unfollow(namespace string) {
	f.mu.Lock()
	found := f.running[namespace]
	delete(f.running, namespace)
	f.mu.Unlock()
	if found != nil {
		found.cancel()
		<-found.ended
		f.ledger.unfollowed(namespace)
	}
}

// Lost forgets the copies of a namespace that does not exist. Its follower may not have
// shown their deletion: it may have lost its rights with the namespace.
func (f *Followers) Lost(namespace string) {
	f.Unfollow(namespace)
	for _, account := range f.ledger.lost(namespace) {
		f.touched(account)
	}
}

// Synced reports whether all copies in a namespace are in the ledger.
func (f *Followers) Synced(namespace string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.running[namespace]
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

// Empty reports whether a namespace is known to hold no copies.
func (f *Followers) Empty(namespace string) bool {
	return f.Synced(namespace) && f.ledger.Count(namespace) == 0
}

// Stop ends every follower, and returns when all have ended.
func (f *Followers) Stop() {
	f.mu.Lock()
	f.stop() // none starts from now on
	clear(f.running)
	f.mu.Unlock()
	f.group.Wait()
}

// permissionBackoff is how often a namespace's copies are requested until that is allowed.
// A refused follower would wait for a second or longer.
var permissionBackoff = wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.5, Steps: 12, Cap: time.Second}

var secretKind = corev1.SchemeGroupVersion.WithKind("Secret")

// waitForPermission returns when the namespace's copies may be listed, or fails when the context ends.
func (f *Followers) waitForPermission(ctx context.Context, namespace string) error {
	one := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels(Labels()), client.Limit(1)}
	return permissionBackoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		// Annotations may contain what the Secret holds.
		err := f.client.List(kube.WithoutBodies(ctx), kube.PartialList(secretKind), one...)
		return err == nil, nil
	})
}

// run follows a namespace until the context ends.
func (f *Followers) run(ctx context.Context, namespace string, synced chan<- struct{}) {
	var follower *watch.Follower
	follower = watch.NewFollower(f.client, watch.Follow{
		Object: kube.Partial(secretKind),
		List:   kube.PartialList(secretKind),
		Select: []client.ListOption{client.InNamespace(namespace), client.MatchingLabels(Labels())},
		Trim:   kube.Trimmed(trimCopy),
		Changed: func(before, after client.Object) {
			if after == nil {
				f.record(f.ledger.Vanish, before)
				f.emptied(namespace)
				return
			}
			f.record(f.ledger.See, after)
		},
		Synced: func() {
			// An earlier follower may have shown copies that are gone. The ledger is read first, so that a copy
			// that arrives meanwhile does not count as gone.
			for _, meta := range f.ledger.SeenIn(namespace) {
				if follower.Get(client.ObjectKeyFromObject(meta).String()) == nil {
					f.record(f.ledger.Vanish, meta)
				}
			}
			close(synced)
			f.emptied(namespace)
		},
	})
	follower.Run(ctx)
}

func (f *Followers) record(update func(*metav1.PartialObjectMetadata) []types.NamespacedName, obj client.Object) {
	meta, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	for _, account := range update(meta) {
		f.touched(account)
	}
}

// trimCopy keeps the metadata of a copy that identifies it and shows changes. Any user who
// may write Secrets in the namespace may label any number of them as copies: of those that
// are none it keeps only the name.
func trimCopy(meta *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	full := meta.ObjectMeta
	meta.ObjectMeta = metav1.ObjectMeta{
		Namespace: full.Namespace, Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion,
		DeletionTimestamp: full.DeletionTimestamp, Labels: Labels(),
	}
	if len(full.Finalizers) > 0 {
		meta.Finalizers = []string{heldBySome}
	}
	// These are no longer than the name of the Secret that they match.
	if source, ok := SourceOf(&full); ok {
		meta.Annotations = map[string]string{
			contract.AnnotationSourceCluster: source.Namespace, contract.AnnotationSourceAccount: source.Name,
		}
	}
	return meta
}

// heldBySome stands for all finalizers of a copy.
const heldBySome = "held"
