package credentials

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

func TestTokenIsCopiedWhereNamedAndSelected(t *testing.T) {
	s := newScene(t)
	other := s.world.team()
	s.publish(other, s.cluster)

	got := s.copied()
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.team, Name: s.cluster + "-reader",
			Labels: map[string]string{
				"app.kubernetes.io/managed-by":                    "cluster-inventory-addon",
				"inventory.open-cluster-management.io/credential": "true"},
			Annotations: map[string]string{
				"inventory.open-cluster-management.io/source-cluster": s.cluster,
				"inventory.open-cluster-management.io/source-account": "reader",
				"inventory.open-cluster-management.io/expires": s.account.Status.ExpirationTimestamp.UTC().Format(
					time.RFC3339),
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "multicluster.x-k8s.io/v1alpha1",
				Kind: "ClusterProfile", Name: s.cluster, UID: s.profile.UID}},
		},
		Type: "Opaque",
		Data: map[string][]byte{"token": []byte(s.token), "ca.crt": []byte(ocmtest.CA())},
	}
	got.UID, got.ResourceVersion, got.CreationTimestamp, got.ManagedFields = "", "", metav1.Time{}, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
	s.settled()
	s.Stays(quietly, "no copy where none is named", func() string {
		if s.world.copied(other, s.cluster, "reader") != nil {
			return "copied to where it is not named"
		}
		return ""
	})
	s.bound(other, targetRole, false)

	binding := &rbacv1.RoleBinding{}
	if err := s.Get(t.Context(), types.NamespacedName{Namespace: s.team, Name: targetRole}, binding); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: managerNamespace, Name: managerName}},
		binding.Subjects); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
}

func TestForgedProfilesGetNothing(t *testing.T) {
	s := newScene(t)
	// A tenant creates a profile like ours in an unbound namespace, and a user even names that
	// namespace.
	forged := s.world.team()
	profile := ocmtest.OurProfile(forged, s.cluster)
	profile.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: s.profile.UID}}
	s.MustCreate(profile)
	apitest.Edit(s.world, s.account,
		func(a *authv1beta1.ManagedServiceAccount) { a.Annotations[targetAnnotation] = s.team + "," + forged })
	s.says(s.cluster, "False", "TargetNotEntitled",
		"Account reader is not copied in "+forged+": the cluster is not bound there.")
	if s.world.copied(forged, s.cluster, "reader") != nil {
		t.Error("a forged profile got a token")
	}
	s.bound(forged, targetRole, false)
}

func TestAnotherProfileBecomesTheOwner(t *testing.T) {
	s := newScene(t)
	uid := s.copied().UID
	s.MustDelete(s.profile)
	again := s.publish(s.team, s.cluster)
	s.Eventually("the new profile owns the copy", func() string {
		got := s.world.copied(s.team, s.cluster, "reader")
		if got == nil || len(got.OwnerReferences) != 1 || got.OwnerReferences[0].UID != again.UID {
			return "the owner is not the new profile"
		}
		if got.UID != uid {
			t.Fatal("the copy was recreated")
		}
		return ""
	})
}

func TestNames(t *testing.T) {
	t.Run("as long as may be", func(t *testing.T) {
		w := newWorld(t)
		c, team := w.cluster(w.Name("c")), w.team()
		w.publish(team, c)
		w.start()
		name := strings.Repeat("a", 253-len(c)-1)
		w.holds(team, c, name, w.Rotate(w.account(c, name, team)))
	})
	t.Run("too long", func(t *testing.T) {
		w := newWorld(t)
		c, team := w.cluster(w.Name("c")), w.team()
		w.publish(team, c)
		w.start()
		w.account(c, strings.Repeat("a", 253-len(c)), team)
		w.mentions(c, "NameTooLong", "would have 254 bytes, and 253 are allowed")
		w.bound(team, targetRole, false)
	})
	t.Run("of a namespace that can be none", func(t *testing.T) {
		w := newWorld(t)
		c := w.cluster(w.Name("c"))
		w.start()
		w.account(c, "reader", "../kube-system", "*")
		w.says(c, "False", "TargetNotEntitled",
			"Account reader is not copied in *, ../kube-system: that is not a name a namespace can have.")
	})
}

func TestAccountWithoutNamespaces(t *testing.T) {
	unnamed := func(w *world, cluster string) *authv1beta1.ManagedServiceAccount {
		account := w.account(cluster, "reader")
		apitest.Edit(w, account, func(a *authv1beta1.ManagedServiceAccount) { a.Annotations = nil })
		return account
	}
	t.Run("gets an event", func(t *testing.T) {
		w := newWorld(t)
		c, team := w.cluster(w.Name("c")), w.team()
		w.publish(team, c)
		w.start()
		unnamed(w, c)
		w.says(c, "False", "NoTarget", "Account reader is copied nowhere: name the namespaces, for instance with the annotation inventory.open-cluster-management.io/sync-to-namespaces=team-a,team-b.")
		w.bound(c, sourceRole, false)
	})
	t.Run("is copied everywhere if namespaces need not be named", func(t *testing.T) {
		w := newWorld(t)
		w.opts.RequireTarget = false
		c, team, second := w.cluster(w.Name("c")), w.team(), w.team()
		w.publish(team, c)
		w.start()
		account := unnamed(w, c)
		token := w.Rotate(account)
		w.holds(team, c, "reader", token)
		w.publish(second, c)
		w.holds(second, c, "reader", token)
		// A forged profile gets nothing, and causes no message.
		forged := w.team()
		w.MustCreate(ocmtest.OurProfile(forged, c))
		w.Stays(quietly, "no copy for a forged profile", func() string {
			if w.copied(forged, c, "reader") != nil {
				return "a forged profile got a token"
			}
			return ""
		})
		w.synced(c)
		// An account that names namespaces is copied only there.
		apitest.Edit(w, account,
			func(a *authv1beta1.ManagedServiceAccount) { a.Annotations = map[string]string{targetAnnotation: team} })
		w.hasNoCopy(second, c, "reader")
		apitest.Edit(w, account,
			func(a *authv1beta1.ManagedServiceAccount) { a.Annotations = map[string]string{targetAnnotation: ""} })
		w.hasNoCopy(team, c, "reader")
	})
}

// collision is two accounts of different clusters whose copies would have one name.
type collision struct {
	*world
	short, long string // clusters
	both, one   string // namespaces
	name        string // of the Secret
}

func newCollision(t *testing.T) *collision {
	t.Helper()
	w := newWorld(t)
	base := w.Name("c")
	c := &collision{
		world: w, short: w.cluster(base), long: w.cluster(base + "-x"),
		both: w.team(), one: w.team(), name: base + "-x-reader",
	}
	for _, team := range []string{c.both, c.one} {
		w.publish(team, c.short)
	}
	w.publish(c.both, c.long)
	return c
}

func TestNameCollisionKeepsTheExistingCopy(t *testing.T) {
	c := newCollision(t)
	c.start()
	first := c.account(c.short, "x-reader", c.both, c.one)
	token := c.Rotate(first)
	uid := c.holds(c.both, c.short, "x-reader", token).UID
	c.holds(c.one, c.short, "x-reader", token)

	second := c.account(c.long, "reader", c.both)
	refused := "Account reader is not copied in " + c.both + ": the Secret " + c.name +
		" there is the copy of account x-reader of cluster " + c.short + "; rename one of these accounts."
	c.says(c.long, "False", "NameCollision", refused)
	c.synced(c.short)
	// So it does after a rotation, and after a restart.
	token = c.Rotate(first)
	c.Rotate(second)
	c.holds(c.both, c.short, "x-reader", token)
	c.start()
	c.says(c.long, "False", "NameCollision", refused)
	c.synced(c.short)
	if got := c.holds(c.both, c.short, "x-reader", token).UID; got != uid {
		t.Errorf("the copy is another one: UID %s, want %s", got, uid)
	}
	// It is also repaired when another client deletes it.
	c.followed(c.both)
	c.MustDelete(c.copied(c.both, c.short, "x-reader"))
	c.holds(c.both, c.short, "x-reader", token)
	c.says(c.long, "False", "NameCollision", refused)

	// It gives way.
	apitest.Edit(c, first, func(a *authv1beta1.ManagedServiceAccount) { a.Annotations[targetAnnotation] = c.one })
	c.holds(c.both, c.long, "reader", c.Rotate(second))
	c.synced(c.long)
}

// After a restart, the follower of the namespace shows the copy only when its account has just been observed
// without it.
func TestNameCollisionKeepsACopyThatIsSeenLate(t *testing.T) {
	c := newCollision(t)
	c.start()
	first := c.account(c.short, "x-reader", c.both, c.one)
	before := c.holds(c.both, c.short, "x-reader", c.Rotate(first))
	c.account(c.long, "reader", c.both)
	c.mentions(c.long, "NameCollision", c.name)
	c.synced(c.short)
	c.stop()

	observed, seen := make(chan struct{}), make(chan struct{})
	c.wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Method == http.MethodGet && strings.HasSuffix(call.Path, "/namespaces/"+c.both+"/secrets") {
			return apitest.Fault{Until: observed}
		}
		return apitest.Fault{}
	})
	var once sync.Once
	c.rule.asked = func(pair types.NamespacedName) {
		switch pair {
		case types.NamespacedName{Namespace: c.both, Name: c.short}:
			once.Do(func() { close(observed) })
			<-seen
		case types.NamespacedName{Namespace: c.both, Name: c.long}:
			<-seen // the other account is observed first
		}
	}
	c.start()
	c.Eventually("the copy is seen", func() string {
		if c.seenVersion(client.ObjectKeyFromObject(before)) == "" {
			return "the ledger does not have it"
		}
		return ""
	})
	close(seen)
	c.mentions(c.long, "NameCollision", c.name)
	c.synced(c.short)
	if got := c.copied(c.both, c.short, "x-reader"); got == nil || got.UID != before.UID {
		t.Errorf("the copy was deleted; there is now %v", got != nil)
	}
}

func TestNameCollisionWithoutACopyCreatesNone(t *testing.T) {
	c := newCollision(t)
	first := c.account(c.short, "x-reader", c.both, c.one)
	second := c.account(c.long, "reader", c.both)
	c.start()
	c.says(c.short, "False", "NameCollision", "Account x-reader is not copied in "+c.both+": the Secret "+c.name+" would also be that of account reader of cluster "+c.long+"; rename all but one of these accounts.")
	c.says(c.long, "False", "NameCollision", "Account reader is not copied in "+c.both+": the Secret "+c.name+" would also be that of account x-reader of cluster "+c.short+"; rename all but one of these accounts.")
	c.Rotate(first)
	// A restart changes nothing, in any order in which the accounts are read.
	c.start()
	c.Stays(quietly, "no copy of either account", func() string {
		if c.copied(c.both, c.long, "reader") != nil {
			return "one of two accounts was published"
		}
		return ""
	})
	// One gives way.
	apitest.Edit(c, first, func(a *authv1beta1.ManagedServiceAccount) { a.Annotations[targetAnnotation] = c.one })
	c.holds(c.both, c.long, "reader", c.Rotate(second))
	c.synced(c.long)
}

func TestUnentitledAccountCollidesWithNone(t *testing.T) {
	w := newWorld(t)
	base := w.Name("c")
	short, long := w.cluster(base), w.cluster(base+"-x")
	team := w.team()
	w.publish(team, short)
	w.start()
	w.account(long, "reader", team)
	w.mentions(long, "TargetNotEntitled", team)
	first := w.account(short, "x-reader", team)
	w.holds(team, short, "x-reader", w.Rotate(first))
}

// TestTheOwnerOfAFirstCopyExists replaces a profile at the last moment before its first copy: the
// copy must not get an owner that is gone, or Kubernetes would collect it as garbage.
func TestTheOwnerOfAFirstCopyExists(t *testing.T) {
	w := newWorld(t)
	cluster, team := w.cluster(w.Name("c")), w.team()
	before := w.publish(team, cluster)
	now := ocmtest.OurProfile(team, cluster)
	w.wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Method == http.MethodPost && call.Resource == "rolebindings" && call.Mentions(team) && now.UID == "" {
			w.MustDelete(before)
			w.MustCreate(now)
		}
		return apitest.Fault{}
	})
	w.start()
	account := w.Account(cluster, "reader", team)
	secret := w.holds(team, cluster, "reader", w.Rotate(account))
	if len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].UID != now.UID {
		t.Errorf("the copy belongs to %+v, and the profile is %s", secret.OwnerReferences, now.UID)
	}
	w.synced(cluster)
	if diff := cmp.Diff([]string{"POST secrets"}, w.wire.Sent("secrets")); diff != "" {
		t.Errorf("writes of copies (-want +got):\n%s", diff)
	}
}
