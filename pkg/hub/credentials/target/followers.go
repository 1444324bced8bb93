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

	mu      sync.Mutex
	ctx     context.Context // while this process leads
	running map[string]*following
}

// following is the follower of one namespace.
type following struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed when it has ended
	synced chan struct{} // closed when all copies of the namespace are in the ledger
}

// NewFollowers returns Followers that follow nothing before Start.
func NewFollowers(
	c client.WithWatch, ledger *Ledger, touched func(types.NamespacedName), emptied func(string),
) *Followers {
	return &Followers{client: c, ledger: ledger, touched: touched, emptied: emptied, running: map[string]*following{}}
}

// Start lets followers run until the context ends.
func (f *Followers) Start(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ctx = ctx
}

// Follow follows a namespace. restart restarts a follower that may have been refused and
// would wait long before it retries.
func (f *Followers) Follow(namespace string, restart bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.running[namespace]
	if f.ctx == nil || f.ctx.Err() != nil || before != nil && !restart {
		return
	}
	if before != nil {
		before.cancel()
	}
	ctx, cancel := context.WithCancel(f.ctx)
	now := &following{cancel: cancel, ended: make(chan struct{}), synced: make(chan struct{})}
	f.running[namespace] = now
	go func() {
		defer close(now.ended)
		if before != nil {
			<-before.ended
		}
		if f.waitForPermission(ctx, namespace) {
			f.run(ctx, namespace, now.synced)
		}
	}()
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

// Wait returns when every follower has ended, after the context of Start has.
func (f *Followers) Wait() {
	f.mu.Lock()
	all := f.running
	f.running = map[string]*following{}
	f.mu.Unlock()
	for _, each := range all {
		each.cancel()
		<-each.ended
	}
}

// permissionBackoff is how often a namespace's copies are requested until that is allowed.
// A refused follower would wait for a second or longer.
var permissionBackoff = wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.5, Steps: 12, Cap: time.Second}

var secretKind = corev1.SchemeGroupVersion.WithKind("Secret")

// waitForPermission returns true when the namespace's copies may be listed, and false if
// the context ends before.
func (f *Followers) waitForPermission(ctx context.Context, namespace string) bool {
	backoff := permissionBackoff
	one := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels(Labels()), client.Limit(1)}
	for {
		// Annotations may contain what the Secret holds.
		err := f.client.List(kube.WithoutBodies(ctx), kube.PartialList(secretKind), one...)
		if err == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(max(backoff.Step(), permissionBackoff.Duration)):
		}
	}
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
				f.tell(f.ledger.Vanish, before)
				f.emptied(namespace)
				return
			}
			f.tell(f.ledger.See, after)
		},
		Synced: func() {
			f.dropUnseen(namespace, follower)
			close(synced)
			f.emptied(namespace)
		},
	})
	follower.Run(ctx)
}

// dropUnseen removes from the ledger what an earlier follower showed and this one does not.
// It reads the ledger first, so that a copy that arrives meanwhile does not count as gone.
func (f *Followers) dropUnseen(namespace string, follower *watch.Follower) {
	seen := f.ledger.seenIn(namespace)
	shown := map[types.NamespacedName]struct{}{}
	for _, obj := range follower.Objects() {
		shown[client.ObjectKeyFromObject(obj)] = struct{}{}
	}
	for _, meta := range seen {
		if _, ok := shown[client.ObjectKeyFromObject(meta)]; !ok {
			f.tell(f.ledger.Vanish, meta)
		}
	}
}

func (f *Followers) tell(record func(*metav1.PartialObjectMetadata) []types.NamespacedName, obj client.Object) {
	meta, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	for _, account := range record(meta) {
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
