package target

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/bearer"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Ledger records where copies are, and which of them are known to hold what was written. It
// joins what the followers of target namespaces show, which is only metadata, with what
// this process read or wrote. It is safe for concurrent use.
type Ledger struct {
	mu          sync.Mutex
	states      map[types.NamespacedName]*copyState                       // by the copy
	byAccount   kube.SetIndex[types.NamespacedName, types.NamespacedName] // copies by account
	byCluster   kube.SetIndex[string, types.NamespacedName]               // accounts by cluster
	byNamespace kube.SetIndex[string, types.NamespacedName]               // copies by namespace
	shown       map[string]string                                         // last resource version, by followed namespace
}

// copyState is what is known about one copy.
type copyState struct {
	account types.NamespacedName

	seen *metav1.PartialObjectMetadata // by the follower; nil if it shows none

	own version   // what this process wrote, or read and found in its desired state
	at  time.Time // when it last wrote, read or deleted

	deleted types.UID // of the copy that this process deleted last
	unsure  bool      // a request whose response was lost may have created a copy
}

// version is one version of a copy. Without a resourceVersion, the copy with that UID has
// been changed by another client, or deleted.
type version struct {
	uid             types.UID
	resourceVersion string
	digest          bearer.Digest
	owner           types.UID // of the profile
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{
		states:      map[types.NamespacedName]*copyState{},
		byAccount:   kube.SetIndex[types.NamespacedName, types.NamespacedName]{},
		byCluster:   kube.SetIndex[string, types.NamespacedName]{},
		byNamespace: kube.SetIndex[string, types.NamespacedName]{},
		shown:       map[string]string{},
	}
}

// Known is what the ledger knows about one copy at one moment. The zero value means that
// there is none.
type Known struct {
	// Present is true if there is, or may be, a copy.
	Present bool

	trusted bool    // it is what this process wrote or read; otherwise it must be read
	own     version // if it is trusted
	held    bool    // followers show finalizers that keep it when it is deleted
}

// Holds reports whether the copy is known to hold the content and to belong to
// the owner, which may be unknown.
func (k Known) Holds(content bearer.Digest, owner Owner) bool {
	return k.trusted && k.own.digest == content && (owner.UID == "" || k.own.owner == owner.UID)
}

// Known returns what is known about an account's copy in a namespace. The copy of another account
// whose copies have the same name is not the account's to withdraw or change.
func (l *Ledger) Known(account types.NamespacedName, namespace string, now time.Time) Known {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.states[Key(account, namespace)]
	if s == nil || s.account != account {
		return Known{}
	}
	return s.known(now)
}

func (s *copyState) known(now time.Time) Known {
	recent := now.Sub(s.at) < kube.StaleAfter
	absent, unread := Known{}, Known{Present: true}
	switch {
	case s.unsure:
		return unread
	case s.deleted != "" && (s.seen == nil || s.seen.UID == s.deleted && recent && !isHeld(s.seen)):
		return absent
	case s.own.uid == "" && s.seen == nil:
		return absent
	case s.own.resourceVersion == "" || s.deleted != "":
		return unread
	case s.seen == nil && !recent:
		return unread // never seen, so perhaps deleted while unwatched
	case s.seen != nil && kube.IsNewer(s.seen.ResourceVersion, s.own.resourceVersion):
		return unread
	case s.seen != nil && s.seen.ResourceVersion != s.own.resourceVersion && !recent:
		return unread // never seen, so perhaps lost because the hub was restored from a backup
	default:
		return Known{Present: true, trusted: true, own: s.own, held: s.isHeld()}
	}
}

// isHeld reports whether a follower shows finalizers that keep a copy when it is deleted.
func (s *copyState) isHeld() bool { return s.seen != nil && isHeld(s.seen) }

func isHeld(meta *metav1.PartialObjectMetadata) bool { return len(meta.Finalizers) > 0 }

// wrote records what this process wrote, or read and found in its desired state. Another client may have changed
// or deleted it meanwhile: the follower has then shown that already, and shows nothing more.
func (l *Ledger) wrote(account, secret types.NamespacedName, v version, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state(account, secret)
	if last := l.shown[secret.Namespace]; last != "" && !kube.IsNewer(v.resourceVersion, last) && !s.shows(v) {
		v.resourceVersion = ""
	}
	s.own, s.at, s.deleted, s.unsure = v, now, "", false
}

// shows reports whether a follower shows a version, or a later one.
func (s *copyState) shows(v version) bool {
	return s.seen != nil && !kube.IsNewer(v.resourceVersion, s.seen.ResourceVersion)
}

// mayHaveWritten records that a failed request may have created a copy.
func (l *Ledger) mayHaveWritten(account, secret types.NamespacedName, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.states[secret]; s != nil && s.account != account {
		return // the name is known to be another's
	}
	s := l.state(account, secret)
	s.at, s.unsure = now, true
}

// deleted records that this process deleted the copy with a UID.
func (l *Ledger) deleted(secret types.NamespacedName, uid types.UID, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.states[secret]; s != nil {
		s.own, s.at, s.deleted, s.unsure = version{}, now, uid, false
		l.tidy(secret)
	}
}

// doubts records that a copy is not at its supposed version.
func (l *Ledger) doubts(secret types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.states[secret]; s != nil {
		s.own.resourceVersion = ""
	}
}

// gone records that a read found no copy of the account.
func (l *Ledger) gone(account, secret types.NamespacedName, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.states[secret]; s != nil && s.account == account {
		s.own, s.at, s.unsure = version{}, now, false
		if s.seen != nil {
			s.deleted = s.seen.UID
		}
		l.tidy(secret)
	}
}

// isOwn reports whether a UID is that of the account's copy that this process wrote or read
// last, even if the copy has changed since.
func (l *Ledger) isOwn(account, secret types.NamespacedName, uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.states[secret]
	return s != nil && s.account == account && s.own.uid == uid
}

// See records a copy that a follower shows, and returns the accounts to reconcile: none if
// it is what this process wrote.
func (l *Ledger) See(meta *metav1.PartialObjectMetadata) []types.NamespacedName {
	secret := types.NamespacedName{Namespace: meta.Namespace, Name: meta.Name}
	account, ok := SourceOf(meta)
	if !ok {
		return l.Vanish(meta) // it may have been a copy until another client changed it
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown[meta.Namespace] = meta.ResourceVersion
	s := l.states[secret]
	if s != nil && s.seen != nil && kube.IsNewer(s.seen.ResourceVersion, meta.ResourceVersion) {
		s.own = version{} // the hub was restored from a backup, which may not have what was written
	}
	touched := []types.NamespacedName{account}
	switch {
	case s == nil:
	case s.account != account:
		touched = append(touched, s.account)
	case s.expects(meta) && (isHeld(meta) || !s.isHeld()): // one that is no longer held counted as present until now
		touched = nil
	}
	l.state(account, secret).seen = meta
	return touched
}

// expects reports whether a copy is shown as this process left it.
func (s *copyState) expects(meta *metav1.PartialObjectMetadata) bool {
	isWritten := s.own.resourceVersion != "" && !kube.IsNewer(meta.ResourceVersion, s.own.resourceVersion)
	return isWritten || s.deleted == meta.UID && !isHeld(meta)
}

// Vanish records that a follower no longer shows a copy, and returns the accounts
// to reconcile.
func (l *Ledger) Vanish(meta *metav1.PartialObjectMetadata) []types.NamespacedName {
	secret := types.NamespacedName{Namespace: meta.Namespace, Name: meta.Name}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown[meta.Namespace] = meta.ResourceVersion
	s := l.states[secret]
	if s == nil {
		return nil
	}
	isExpected := s.deleted == meta.UID && !s.isHeld() // a held one counted as present until now
	if s.seen != nil && s.seen.UID == meta.UID {
		s.seen = nil
	}
	if s.own.uid == meta.UID {
		// Deleted, or no longer labelled: only a read can tell which.
		s.own.resourceVersion = ""
	}
	l.tidy(secret)
	if isExpected {
		return nil
	}
	return []types.NamespacedName{s.account}
}

// lost drops all copies of a namespace, and returns their accounts.
func (l *Ledger) lost(namespace string) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	var accounts []types.NamespacedName
	for _, secret := range l.byNamespace.Members(namespace) {
		accounts = append(accounts, l.states[secret].account)
		l.drop(secret)
	}
	return accounts
}

// unfollowed records that no follower shows the copies of a namespace any more.
func (l *Ledger) unfollowed(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.shown, namespace)
}

// SeenIn returns the copies that followers showed in a namespace.
func (l *Ledger) SeenIn(namespace string) []*metav1.PartialObjectMetadata {
	l.mu.Lock()
	defer l.mu.Unlock()
	var seen []*metav1.PartialObjectMetadata
	for secret := range l.byNamespace[namespace] {
		if meta := l.states[secret].seen; meta != nil {
			seen = append(seen, meta)
		}
	}
	return seen
}

// Count returns how many copies are, or may be, in a namespace. A copy that a follower
// still shows counts.
func (l *Ledger) Count(namespace string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byNamespace[namespace])
}

// NamespacesOf returns the namespaces where copies of an account are or may be.
func (l *Ledger) NamespacesOf(account types.NamespacedName) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var namespaces []string
	for secret := range l.byAccount[account] {
		namespaces = append(namespaces, secret.Namespace)
	}
	return namespaces
}

// AccountsOf returns the accounts of a cluster that have copies.
func (l *Ledger) AccountsOf(cluster string) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byCluster.Members(cluster)
}

// Accounts returns every account that has copies.
func (l *Ledger) Accounts() []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byAccount.Keys()
}

// state returns the state of a copy as one of the account. It requires the lock.
func (l *Ledger) state(account, secret types.NamespacedName) *copyState {
	s := l.states[secret]
	if s != nil && s.account == account {
		return s
	}
	if s != nil {
		l.drop(secret)
	}
	s = &copyState{account: account}
	l.states[secret] = s
	l.byAccount.Insert(account, secret)
	l.byCluster.Insert(account.Namespace, account)
	l.byNamespace.Insert(secret.Namespace, secret)
	return s
}

// tidy drops an empty state. It requires the lock.
func (l *Ledger) tidy(secret types.NamespacedName) {
	if s := l.states[secret]; s.seen == nil && s.own.uid == "" && !s.unsure {
		l.drop(secret)
	}
}

func (l *Ledger) drop(secret types.NamespacedName) {
	account := l.states[secret].account
	delete(l.states, secret)
	l.byNamespace.Delete(secret.Namespace, secret)
	if l.byAccount.Delete(account, secret) {
		l.byCluster.Delete(account.Namespace, account)
	}
}
