package credentials

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// book says where copies are, and which of them are known to hold what was
// written. It joins what the informers of the target namespaces have seen, which
// is metadata only, with what this process has read or written, of which it
// keeps a digest. A copy whose version is none of ours must be read.
type book struct {
	mu          sync.Mutex
	records     map[types.NamespacedName]*record                           // by the Secret
	byAccount   map[types.NamespacedName]map[types.NamespacedName]struct{} // Secrets by account
	byCluster   map[string]map[types.NamespacedName]struct{}               // accounts by cluster
	byNamespace map[string]map[types.NamespacedName]struct{}               // Secrets by namespace
}

type record struct {
	account types.NamespacedName

	// seen is what the informer has; nil: nothing.
	seen *metav1.PartialObjectMetadata

	// verified is what this process knows to be there.
	verified version
	at       time.Time

	// deleted is the UID of the copy that this process deleted last.
	deleted types.UID

	// foreign is true when a Secret that is no copy was found in its place.
	foreign bool
}

// version is one version of a copy. Without a resourceVersion, the copy has been
// changed by somebody, or deleted.
type version struct {
	uid             types.UID
	resourceVersion string
	content         digest
	owner           types.UID // of the profile

	labels, annotations map[string]string
}

// verdict is what the book says of one Secret.
type verdict int

const (
	// absent: there is none.
	absent verdict = iota
	// trusted: it is what was verified.
	trusted
	// unread: something is there, or may be, that must be read.
	unread
)

func newBook() *book {
	return &book{
		records:     map[types.NamespacedName]*record{},
		byAccount:   map[types.NamespacedName]map[types.NamespacedName]struct{}{},
		byCluster:   map[string]map[types.NamespacedName]struct{}{},
		byNamespace: map[string]map[types.NamespacedName]struct{}{},
	}
}

// look returns what is known of a Secret, the version to rely on if it is
// trusted, and the UID of the copy that may be there.
func (b *book) look(secret types.NamespacedName, now time.Time) (verdict, version) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.records[secret]
	if r == nil {
		return absent, version{}
	}
	return r.judge(now), r.verified
}

func (r *record) judge(now time.Time) verdict {
	fresh := now.Sub(r.at) < kube.StaleAfter
	switch {
	case r.foreign:
		return unread
	case r.deleted != "" && (r.seen == nil || r.seen.UID == r.deleted && fresh && !isHeld(r.seen)):
		return absent
	case r.verified.uid == "" && r.seen == nil:
		return absent
	case r.verified.resourceVersion == "" || r.deleted != "":
		return unread
	case r.seen == nil && !fresh:
		return unread // never seen, so perhaps deleted while nobody watched
	case r.seen != nil && newer(r.seen.ResourceVersion, r.verified.resourceVersion):
		return unread
	default:
		return trusted
	}
}

// isHeld tells whether a copy stays when it is deleted.
func isHeld(meta *metav1.PartialObjectMetadata) bool { return len(meta.Finalizers) > 0 }

func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order > 0
}

// present tells whether there is, or may be, a copy.
func (r *record) present(now time.Time) bool {
	return !r.foreign && r.judge(now) != absent
}

// hasCopy tells whether a Secret is, or may be, a copy.
func (b *book) hasCopy(secret types.NamespacedName, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.records[secret]
	return r != nil && r.present(now)
}

// identities returns the UIDs under which a copy may be there, and whether any of
// them is held by finalizers.
func (b *book) identities(secret types.NamespacedName) (uids []types.UID, seen *metav1.PartialObjectMetadata) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.records[secret]
	if r == nil {
		return nil, nil
	}
	if r.seen != nil && (r.seen.UID != r.deleted || isHeld(r.seen)) {
		uids, seen = append(uids, r.seen.UID), r.seen
	}
	if r.verified.uid != "" && (seen == nil || seen.UID != r.verified.uid) {
		uids = append(uids, r.verified.uid)
	}
	return uids, seen
}

// wrote records what this process wrote, or found right.
func (b *book) wrote(account, secret types.NamespacedName, v version, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.record(account, secret)
	r.verified, r.at, r.deleted, r.foreign = v, now, "", false
}

// deleted records that this process deleted the copy of a UID.
func (b *book) deleted(secret types.NamespacedName, uid types.UID, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.records[secret]
	if r == nil {
		return
	}
	r.verified, r.at, r.deleted, r.foreign = version{}, now, uid, false
	b.tidy(secret)
}

// doubts records that a Secret is not what it was thought to be.
func (b *book) doubts(secret types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.records[secret]; r != nil {
		r.verified.resourceVersion = ""
	}
}

// gone records that a read found no Secret.
func (b *book) gone(secret types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.records[secret]; r != nil {
		r.verified, r.foreign = version{}, false
		if r.seen != nil {
			r.deleted = r.seen.UID
		}
		b.tidy(secret)
	}
}

// foreign records that a read found a Secret that is no copy.
func (b *book) foreign(account, secret types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.record(account, secret)
	r.verified, r.deleted, r.foreign = version{}, "", true
}

// forget drops that a foreign Secret stands in an account's way.
func (b *book) forget(secret types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.records[secret]; r != nil && r.foreign {
		r.foreign = false
		b.tidy(secret)
	}
}

// see takes note of a copy an informer shows, and returns the accounts to look
// at: none when it is what this process wrote.
func (b *book) see(meta *metav1.PartialObjectMetadata) []types.NamespacedName {
	secret := types.NamespacedName{Namespace: meta.Namespace, Name: meta.Name}
	account, ok := accountOf(meta)
	if !ok {
		// It may have been a copy until somebody changed it.
		return b.vanish(meta)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.records[secret]
	known := r != nil && r.account == account && !r.foreign &&
		(r.verified.resourceVersion != "" && !newer(meta.ResourceVersion, r.verified.resourceVersion) || r.deleted == meta.UID && !isHeld(meta))
	if known && r.seen != nil && isHeld(r.seen) && !isHeld(meta) {
		known = false // it counted as there until now
	}
	var touched []types.NamespacedName
	if r != nil && r.account != account {
		touched = append(touched, r.account)
	}
	r = b.record(account, secret)
	r.seen, r.foreign = meta, false
	if known {
		return nil
	}
	return append(touched, account)
}

// vanish takes note that an informer no longer shows a copy.
func (b *book) vanish(meta *metav1.PartialObjectMetadata) []types.NamespacedName {
	secret := types.NamespacedName{Namespace: meta.Namespace, Name: meta.Name}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.records[secret]
	if r == nil {
		return nil
	}
	account := r.account
	held := r.seen != nil && isHeld(r.seen)
	if r.seen != nil && r.seen.UID == meta.UID {
		r.seen = nil
	}
	if r.deleted == meta.UID {
		b.tidy(secret)
		if held {
			return []types.NamespacedName{account} // it counted as there until now
		}
		return nil
	}
	if r.verified.uid == meta.UID {
		// Deleted, or no longer labelled: only a read can tell.
		r.verified.resourceVersion = ""
	}
	b.tidy(secret)
	return []types.NamespacedName{account}
}

// keepOnly forgets what informers saw in a namespace but for the given Secrets,
// and returns the accounts to look at.
func (b *book) keepOnly(namespace string, there map[types.NamespacedName]struct{}) []types.NamespacedName {
	b.mu.Lock()
	var lost []*metav1.PartialObjectMetadata
	for secret := range b.byNamespace[namespace] {
		if _, ok := there[secret]; !ok && b.records[secret].seen != nil {
			lost = append(lost, b.records[secret].seen)
		}
	}
	b.mu.Unlock()
	var accounts []types.NamespacedName
	for _, meta := range lost {
		accounts = append(accounts, b.vanish(meta)...)
	}
	return accounts
}

// copiesIn counts the copies that are, or may be, in a namespace; one that an
// informer still shows counts.
func (b *book) copiesIn(namespace string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	count := 0
	for secret := range b.byNamespace[namespace] {
		if r := b.records[secret]; r.seen != nil || r.verified.uid != "" {
			count++
		}
	}
	return count
}

// namespacesOf returns where copies of an account are or may be.
func (b *book) namespacesOf(account types.NamespacedName) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var namespaces []string
	for secret := range b.byAccount[account] {
		namespaces = append(namespaces, secret.Namespace)
	}
	return namespaces
}

// accountsOf returns the accounts of a cluster that have copies.
func (b *book) accountsOf(cluster string) []types.NamespacedName {
	b.mu.Lock()
	defer b.mu.Unlock()
	return members(b.byCluster[cluster])
}

// all returns every account that has copies.
func (b *book) all() []types.NamespacedName {
	b.mu.Lock()
	defer b.mu.Unlock()
	return members(b.byAccount)
}

// record returns the record of a Secret as one of the account. The lock is held.
func (b *book) record(account, secret types.NamespacedName) *record {
	r := b.records[secret]
	if r != nil && r.account == account {
		return r
	}
	if r != nil {
		b.drop(secret)
	}
	r = &record{account: account}
	b.records[secret] = r
	insert(b.byAccount, account, secret)
	insert(b.byCluster, account.Namespace, account)
	insert(b.byNamespace, secret.Namespace, secret)
	return r
}

// tidy drops a record that says nothing. The lock is held.
func (b *book) tidy(secret types.NamespacedName) {
	if r := b.records[secret]; r.seen == nil && r.verified.uid == "" && !r.foreign {
		b.drop(secret)
	}
}

func (b *book) drop(secret types.NamespacedName) {
	account := b.records[secret].account
	delete(b.records, secret)
	remove(b.byNamespace, secret.Namespace, secret)
	if remove(b.byAccount, account, secret) {
		remove(b.byCluster, account.Namespace, account)
	}
}

// insert adds a member to the set of a key.
func insert[K, M comparable](index map[K]map[M]struct{}, key K, member M) {
	if index[key] == nil {
		index[key] = map[M]struct{}{}
	}
	index[key][member] = struct{}{}
}

// remove takes a member out of the set of a key, and tells whether the set is
// empty now.
func remove[K, M comparable](index map[K]map[M]struct{}, key K, member M) (empty bool) {
	delete(index[key], member)
	if len(index[key]) > 0 {
		return false
	}
	delete(index, key)
	return true
}

// members lists a set.
func members[M comparable, V any](set map[M]V) []M {
	list := make([]M, 0, len(set))
	for member := range set {
		list = append(list, member)
	}
	return list
}
