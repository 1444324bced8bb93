package credentials

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/target"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upstream"
)

// scene is one cluster, published to one team, with one account that is copied
// there.
type scene struct {
	*world
	cluster, team string
	profile       *inventoryv1alpha1.ClusterProfile
	account       *authv1beta1.ManagedServiceAccount
	token         string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{world: newWorld(t)}
	s.cluster = s.world.cluster(s.name("c"))
	s.team = s.world.team()
	s.profile = s.publish(s.team, s.cluster)
	s.start()
	s.account = s.tokenless(s.cluster, "reader", s.team)
	s.token = s.rotate(s.account)
	s.copied()
	return s
}

// copied waits until the copy holds the token.
func (s *scene) copied() *corev1.Secret {
	s.t.Helper()
	return s.holds(s.team, s.cluster, "reader", s.token)
}

func (s *scene) settled() {
	s.t.Helper()
	s.says(s.cluster, "True", "Copied", "Copied: reader to "+s.team+".")
}

// withdrawn waits until the copy, and the rights to it and to its source, are gone.
func (s *scene) withdrawn() {
	s.t.Helper()
	s.lacks(s.team, s.cluster, "reader")
	s.bound(s.team, targetRole, false)
	s.bound(s.cluster, sourceRole, false)
}

func TestATokenIsCopiedToWhereItIsNamedAndSelected(t *testing.T) {
	s := newScene(t)
	other := s.world.team()
	s.publish(other, s.cluster)

	got := s.copied()
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.team, Name: s.cluster + "-reader",
			Labels: map[string]string{"app.kubernetes.io/managed-by": "cluster-inventory-addon", "inventory.open-cluster-management.io/credential": "true"},
			Annotations: map[string]string{
				"inventory.open-cluster-management.io/source-cluster": s.cluster,
				"inventory.open-cluster-management.io/source-account": "reader",
				"inventory.open-cluster-management.io/expires":        s.account.Status.ExpirationTimestamp.UTC().Format(time.RFC3339),
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "multicluster.x-k8s.io/v1alpha1", Kind: "ClusterProfile", Name: s.cluster, UID: s.profile.UID}},
		},
		Type: "Opaque",
		Data: map[string][]byte{"token": []byte(s.token), "ca.crt": []byte(certificate())},
	}
	got.UID, got.ResourceVersion, got.CreationTimestamp, got.ManagedFields = "", "", metav1.Time{}, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
	s.settled()
	s.stays(func() string {
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
	if diff := cmp.Diff([]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: managerNamespace, Name: managerName}}, binding.Subjects); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
}

func TestARotationIsOnePatchPerTarget(t *testing.T) {
	s := newScene(t)
	second := s.world.team()
	s.publish(second, s.cluster)
	edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) {
		a.Annotations[targetAnnotation] = s.team + ", " + second + ","
	})
	s.holds(second, s.cluster, "reader", s.token)
	s.mentions(s.cluster, "Copied", s.team, second)
	s.lookedTwice()
	s.followed(s.team, second)
	for range 3 {
		s.wire.Reset()
		s.token = s.rotate(s.account)
		s.copied()
		s.holds(second, s.cluster, "reader", s.token)
		// The token is read when the account tells of it, and once more when the
		// second it was made in is over; its copies never.
		twice := []string{s.source(), s.source()}
		s.eventually(func() string { return cmp.Diff(twice, s.reads()) })
		s.settle()
		if diff := cmp.Diff(twice, s.reads()); diff != "" {
			t.Errorf("Secrets read (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"PATCH secrets", "PATCH secrets"}, sent(s.wire.Writes())); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	}
}

// The agent makes a Secret that was deleted anew. A look in between takes nothing
// back.
func TestATokenMadeAnewIsCopiedInPlace(t *testing.T) {
	s := newScene(t)
	before := s.copied()
	s.lookedTwice()
	s.wire.Reset()
	s.delete(sourceSecret(s.account, "", ""))
	// The second look comes when it is back.
	back, looks := make(chan struct{}), 0
	s.wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Path != s.source() {
			return apitest.Fault{}
		}
		if looks++; looks == 1 {
			return apitest.Fault{}
		}
		return apitest.Fault{Until: back}
	})
	// Altered, the copy has its source looked for.
	edit(s.world, before.DeepCopy(), func(c *corev1.Secret) { c.Data["token"] = []byte("altered") })
	s.eventually(func() string {
		if len(s.reads()) == 0 {
			return "the source was not looked for"
		}
		return ""
	})
	s.token = s.rotate(s.account)
	close(back)
	if after := s.copied(); after.UID != before.UID {
		t.Error("the copy was taken back and made anew")
	}
}

// lookedTwice waits until the token was read once more after its second was over.
func (s *scene) lookedTwice() {
	s.t.Helper()
	s.eventually(func() string {
		got := slices.DeleteFunc(s.reads(), func(path string) bool { return path != s.source() })
		if len(got) < 2 {
			return fmt.Sprintf("read %d times", len(got))
		}
		return ""
	})
}

// source is the path of the account's Secret.
func (s *scene) source() string { return "/api/v1/namespaces/" + s.cluster + "/secrets/reader" }

// followed waits until the manager sees every change of copies in namespaces.
func (w *world) followed(namespaces ...string) {
	w.t.Helper()
	w.eventually(func() string {
		for _, namespace := range namespaces {
			if !w.creds.followers.Synced(namespace) {
				return namespace + " is not followed"
			}
		}
		return ""
	})
}

// reads are the paths of the Secrets that were read, but for lists and watches.
func (s *scene) reads() []string {
	var paths []string
	for _, call := range s.wire.Calls() {
		if call.Resource == "secrets" && call.Method == http.MethodGet && !call.Query.Has("watch") && !strings.Contains(call.Query.Encode(), "labelSelector") {
			paths = append(paths, call.Path)
		}
	}
	return paths
}

// The agent makes two tokens within a second when its cache is behind; its status
// then says the same of both.
func TestASecondTokenOfTheSameSecondFollows(t *testing.T) {
	s := newScene(t)
	s.lookedTwice()
	second, looks := newToken(time.Now().Add(time.Hour)), 0
	s.wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Path == s.source() {
			if looks++; looks == 2 {
				s.store(s.account, second, certificate())
			}
		}
		return apitest.Fault{}
	})
	s.rotate(s.account)
	s.token = second
	s.copied()
}

// settle waits until nothing has been written for a while.
func (w *world) settle() {
	w.t.Helper()
	writes, since := len(w.wire.Writes()), time.Now()
	w.eventually(func() string {
		if now := len(w.wire.Writes()); now != writes {
			writes, since = now, time.Now()
		}
		if time.Since(since) < quietly/2 {
			return "still writing"
		}
		return ""
	})
}

func TestWhatDoesNotConcernTheTokenWritesNothing(t *testing.T) {
	s := newScene(t)
	s.settled()
	s.settle()
	s.lookedTwice()
	s.followed(s.team)
	s.wire.Reset()
	for i := range 20 {
		editStatus(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) {
			a.Status.Conditions = []metav1.Condition{{Type: "TokenReported", Status: "False", Reason: "TokenReportFailed", Message: fmt.Sprint(i), LastTransitionTime: metav1.Now()}}
		})
		edit(s.world, s.profile, func(p *inventoryv1alpha1.ClusterProfile) { p.Annotations = map[string]string{"touched": fmt.Sprint(i)} })
		s.creds.enqueuePair(types.NamespacedName{Namespace: s.team, Name: s.cluster})
		s.creds.enqueueEverything()
		s.creds.enqueueGrants()
		if err := s.creds.enqueueStatuses(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.quiet()
	for _, call := range s.wire.Calls() {
		if call.Resource == "secrets" && !call.Query.Has("watch") {
			t.Errorf("%s %s", call.Method, call.Path)
		}
	}
}

func TestARestartWithNothingChangedWritesNothing(t *testing.T) {
	s := newScene(t)
	s.settled()
	s.settle()
	s.wire.Reset()
	s.start()
	s.followed(s.team)
	s.eventually(func() string {
		if !s.creds.allReconciled() {
			return "the manager has not looked at everything"
		}
		return ""
	})
	s.quiet()
	s.wire.Reset()
	s.token = s.rotate(s.account)
	s.copied()
}

func TestWhatIsPositivelyNotSoTakesTheCopyBack(t *testing.T) {
	for name, take := range map[string]func(s *scene){
		"the label is taken off": func(s *scene) {
			edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { delete(a.Labels, syncLabel) })
		},
		"the label says otherwise": func(s *scene) {
			edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { a.Labels[syncLabel] = "false" })
		},
		"another namespace is named": func(s *scene) {
			edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { a.Annotations[targetAnnotation] = "elsewhere" })
		},
		"no namespace is named": func(s *scene) {
			edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { a.Annotations = nil })
		},
		"the account is deleted": func(s *scene) { s.delete(s.account) },
		"the rule says no": func(s *scene) {
			s.rule.say(s.team, s.cluster, selection.Result{Answer: selection.No, Why: "is not bound there"})
		},
		"the token is taken back": func(s *scene) {
			editStatus(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { a.Status.TokenSecretRef = nil })
		},
		"the status says the token expired": func(s *scene) { s.report(s.account, "reader", time.Now().Add(-time.Second)) },
		"the status names another Secret":   func(s *scene) { s.report(s.account, "other", time.Now().Add(time.Hour)) },
		"the profile is another manager's": func(s *scene) {
			s.delete(s.profile)
			other := profileOf(s.team, s.cluster)
			other.Spec.ClusterManager.Name = "somebody-else"
			s.create(other)
			s.lacks(s.team, s.cluster, "reader")
		},
		"the account is deleted but held by a finalizer": func(s *scene) {
			edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { a.Finalizers = []string{"example.com/hold"} })
			s.delete(s.account)
		},
		"the profile is deleted but held by a finalizer": func(s *scene) {
			edit(s.world, s.profile, func(p *inventoryv1alpha1.ClusterProfile) { p.Finalizers = []string{"example.com/hold"} })
			s.delete(s.profile)
			s.lacks(s.team, s.cluster, "reader")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			// Whoever wants to keep the copy holds it too.
			edit(s.world, s.copied(), func(c *corev1.Secret) { c.Finalizers = []string{"example.com/keep"} })
			take(s)
			s.withdrawn()
		})
	}
}

func TestWhatIsUnknownLeavesTheCopyAndMakesNone(t *testing.T) {
	s := newScene(t)
	another := s.world.team()
	s.create(profileOf(another, s.cluster))
	s.rule.say(another, s.cluster, selection.Result{Why: "is not decided for yet"})
	s.rule.say(s.team, s.cluster, selection.Result{Why: "is not decided for yet"})
	edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { a.Annotations[targetAnnotation] = s.team + "," + another })
	s.mentions(s.cluster, "SelectionUnknown", "Account reader is left as it is in", another, s.team, "the cluster is not decided for yet")

	// What is there is kept true.
	s.token = s.rotate(s.account)
	s.copied()
	s.stays(func() string {
		if s.world.copied(another, s.cluster, "reader") != nil {
			return "a copy was made though nothing is known"
		}
		return ""
	})
	s.bound(another, targetRole, false)

	// An error is no answer either.
	s.delete(s.copied())
	s.stays(func() string {
		if s.world.copied(s.team, s.cluster, "reader") != nil {
			return "a copy was made anew though nothing is known"
		}
		return ""
	})
	s.rule.say(s.team, s.cluster, selection.Result{Answer: selection.Yes})
	s.copied()
}

func TestTransientErrorsOfTheAccountsAgentTakeNothingBack(t *testing.T) {
	s := newScene(t)
	editStatus(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) {
		a.Status.Conditions = []metav1.Condition{{Type: "TokenReported", Status: "False", Reason: "TokenReportFailed", LastTransitionTime: metav1.Now()}}
	})
	before := s.copied()
	s.stays(func() string {
		if got := s.world.copied(s.team, s.cluster, "reader"); got == nil || got.UID != before.UID {
			return "the copy was taken back"
		}
		return ""
	})
}

func TestACopyIsRepaired(t *testing.T) {
	for name, harm := range map[string]func(s *scene, c *corev1.Secret){
		"deleted": func(s *scene, c *corev1.Secret) { s.delete(c) },
		"another token": func(s *scene, c *corev1.Secret) {
			edit(s.world, c, func(c *corev1.Secret) { c.Data["token"] = []byte("x") })
		},
		"a key more": func(s *scene, c *corev1.Secret) {
			edit(s.world, c, func(c *corev1.Secret) { c.Data["more"] = []byte("x") })
		},
		"no data":  func(s *scene, c *corev1.Secret) { edit(s.world, c, func(c *corev1.Secret) { c.Data = nil }) },
		"no owner": func(s *scene, c *corev1.Secret) { edit(s.world, c, func(c *corev1.Secret) { c.OwnerReferences = nil }) },
		"another expiry": func(s *scene, c *corev1.Secret) {
			edit(s.world, c, func(c *corev1.Secret) {
				c.Annotations["inventory.open-cluster-management.io/expires"] = "2099-01-01T00:00:00Z"
			})
		},
		"no labels": func(s *scene, c *corev1.Secret) {
			edit(s.world, c, func(c *corev1.Secret) { c.Labels = nil; c.Data = nil })
		},
		"another source": func(s *scene, c *corev1.Secret) {
			edit(s.world, c, func(c *corev1.Secret) { c.Annotations["inventory.open-cluster-management.io/source-account"] = "x" })
		},
		"no annotations": func(s *scene, c *corev1.Secret) { edit(s.world, c, func(c *corev1.Secret) { c.Annotations = nil }) },
		"immutable": func(s *scene, c *corev1.Secret) {
			edit(s.world, c, func(c *corev1.Secret) { c.Immutable = ptr.To(true); c.Data["token"] = []byte("x") })
		},
		"immutable and held": func(s *scene, c *corev1.Secret) {
			edit(s.world, c, func(c *corev1.Secret) {
				c.Immutable = ptr.To(true)
				c.Data = nil
				c.Finalizers = []string{"example.com/keep"}
			})
		},
		"deleted but held": func(s *scene, c *corev1.Secret) {
			edit(s.world, c, func(c *corev1.Secret) { c.Finalizers = []string{"example.com/keep"} })
			s.delete(c)
		},
		"another type in its place": func(s *scene, c *corev1.Secret) {
			// While nobody looks, so that it stands there at the start.
			s.stop()
			s.delete(c)
			s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, Labels: c.Labels, Annotations: c.Annotations}, Type: "example.com/other", Data: c.Data})
			s.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			c := s.copied()
			want := c.DeepCopy()
			harm(s, c)
			s.eventually(func() string {
				got := s.world.copied(s.team, s.cluster, "reader")
				if got == nil {
					return "it is gone"
				}
				return cmp.Diff(want, got, cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "ResourceVersion", "CreationTimestamp", "ManagedFields", "Generation"))
			})
			s.settled()
			s.wire.Reset()
			s.quiet()
		})
	}
}

func TestOthersLabelsOnACopyStay(t *testing.T) {
	s := newScene(t)
	edit(s.world, s.copied(), func(c *corev1.Secret) { c.Labels["theirs"] = "x"; c.Annotations["theirs"] = "y" })
	s.token = s.rotate(s.account)
	got := s.copied()
	if got.Labels["theirs"] != "x" || got.Annotations["theirs"] != "y" {
		t.Errorf("labels %v, annotations %v", got.Labels, got.Annotations)
	}
}

func TestAnotherProfileBecomesTheOwner(t *testing.T) {
	s := newScene(t)
	uid := s.copied().UID
	s.delete(s.profile)
	again := s.publish(s.team, s.cluster)
	s.eventually(func() string {
		got := s.world.copied(s.team, s.cluster, "reader")
		if got == nil || len(got.OwnerReferences) != 1 || got.OwnerReferences[0].UID != again.UID {
			return "the owner is not the new profile"
		}
		if got.UID != uid {
			t.Fatal("the copy was made anew")
		}
		return ""
	})
}

func TestForgedProfilesGetNothing(t *testing.T) {
	s := newScene(t)
	// A tenant makes a profile like ours in an unbound namespace, and somebody even
	// names that namespace.
	forged := s.world.team()
	profile := profileOf(forged, s.cluster)
	profile.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: s.profile.UID}}
	s.create(profile)
	edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { a.Annotations[targetAnnotation] = s.team + "," + forged })
	s.says(s.cluster, "False", "TargetNotEntitled", "Account reader is not copied in "+forged+": the cluster is not bound there. Copied: reader to "+s.team+".")
	if s.world.copied(forged, s.cluster, "reader") != nil {
		t.Error("a forged profile got a token")
	}
	s.bound(forged, targetRole, false)
}

func TestNothingForeignIsTouched(t *testing.T) {
	for name, theirs := range map[string]*corev1.Secret{
		"without labels":  {},
		"with the mark":   {ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/managed-by": "cluster-inventory-addon"}}},
		"with our labels": {ObjectMeta: metav1.ObjectMeta{Labels: target.Labels()}},
		"with our labels, naming another account": {ObjectMeta: metav1.ObjectMeta{Labels: target.Labels(), Annotations: map[string]string{
			"inventory.open-cluster-management.io/source-cluster": "x", "inventory.open-cluster-management.io/source-account": "y"}}},
		"immutable": {Immutable: ptr.To(true)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			team := s.world.team()
			theirs = theirs.DeepCopy()
			theirs.Namespace, theirs.Name, theirs.Data = team, s.cluster+"-reader", map[string][]byte{"token": []byte("theirs")}
			s.create(theirs)
			s.publish(team, s.cluster)
			edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { a.Annotations[targetAnnotation] = s.team + "," + team })
			s.says(s.cluster, "False", "ForeignSecret", "Account reader is not copied in "+team+": the Secret "+s.cluster+"-reader there was not made by this addon and is left alone; delete or rename it. Copied: reader to "+s.team+".")
			s.token = s.rotate(s.account)
			s.copied()
			edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { delete(a.Labels, syncLabel) })
			s.lacks(s.team, s.cluster, "reader")
			s.bound(team, targetRole, false)
			got := s.world.copied(team, s.cluster, "reader")
			if diff := cmp.Diff(theirs, got, cmpopts.IgnoreFields(corev1.Secret{}, "TypeMeta")); diff != "" {
				t.Errorf("their Secret (-before +after):\n%s", diff)
			}
		})
	}
}

func TestAForeignSecretThatGoesMakesRoom(t *testing.T) {
	s := newScene(t)
	team := s.world.team()
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: s.cluster + "-reader"}}
	s.create(theirs)
	s.publish(team, s.cluster)
	edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { a.Annotations[targetAnnotation] = s.team + "," + team })
	s.mentions(s.cluster, "ForeignSecret", team)
	s.delete(theirs)
	s.creds.enqueuePair(types.NamespacedName{Namespace: team, Name: s.cluster}) // as the next look does
	s.holds(team, s.cluster, "reader", s.token)
}

func TestNamesThatCollideArePublishedNeverWhereTheyDo(t *testing.T) {
	w := newWorld(t)
	base := w.name("c")
	short, long := w.cluster(base), w.cluster(base+"-x")
	both, one := w.team(), w.team()
	for _, team := range []string{both, one} {
		w.publish(team, short)
	}
	w.publish(both, long)
	w.start()
	first := w.account(short, "x-reader", both, one)
	token := w.rotate(first)
	w.holds(both, short, "x-reader", token)
	w.holds(one, short, "x-reader", token)

	second := w.account(long, "reader", both)
	w.lacks(both, long, "reader")
	name := base + "-x-reader"
	w.says(short, "False", "NameCollision", "Account x-reader is not copied in "+both+": the Secret "+name+" would also be that of account reader of cluster "+long+"; rename all but one of these accounts. Copied: x-reader to "+one+".")
	w.says(long, "False", "NameCollision", "Account reader is not copied in "+both+": the Secret "+name+" would also be that of account x-reader of cluster "+short+"; rename all but one of these accounts.")
	w.rotate(first)
	w.rotate(second)
	// The same after a restart, whichever comes first.
	w.start()
	w.stays(func() string {
		if w.copied(both, long, "reader") != nil {
			return "one of two accounts was published"
		}
		return ""
	})
	// One gives way.
	edit(w, first, func(a *authv1beta1.ManagedServiceAccount) { a.Annotations[targetAnnotation] = one })
	token = w.rotate(second)
	w.holds(both, long, "reader", token)
	w.says(long, "True", "Copied", "Copied: reader to "+both+".")
}

func TestWhoIsNotEntitledCollidesWithNobody(t *testing.T) {
	w := newWorld(t)
	base := w.name("c")
	short, long := w.cluster(base), w.cluster(base+"-x")
	team := w.team()
	w.publish(team, short)
	w.start()
	w.account(long, "reader", team)
	w.mentions(long, "TargetNotEntitled", team)
	first := w.account(short, "x-reader", team)
	w.holds(team, short, "x-reader", w.rotate(first))
}

func TestBadSourcesAreRefused(t *testing.T) {
	hour := time.Now().Add(time.Hour)
	for name, test := range map[string]struct {
		source func(w *world, account *authv1beta1.ManagedServiceAccount)
		says   string
	}{
		"no token yet": {func(*world, *authv1beta1.ManagedServiceAccount) {}, "its status names no Secret"},
		"another Secret": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			secret := sourceSecret(a, newToken(hour), certificate())
			secret.Name = "admin"
			w.create(secret)
			w.report(a, "admin", hour)
		}, "a Secret that is not its own"},
		"no Secret": {func(w *world, a *authv1beta1.ManagedServiceAccount) { w.report(a, a.Name, hour) }, "is not there"},
		"empty token": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			w.store(a, "", certificate())
			w.report(a, a.Name, hour)
		}, "holds no token"},
		"no authorities": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			w.store(a, newToken(hour), "")
			w.report(a, a.Name, hour)
		}, "holds no ca.crt"},
		"a private key": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			w.store(a, newToken(hour), certificate()+"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
			w.report(a, a.Name, hour)
		}, "is not a list of PEM certificates"},
		"no token at all": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			w.store(a, "password", certificate())
			w.report(a, a.Name, hour)
		}, "is not a JSON web token"},
		"expired": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			w.store(a, newToken(time.Now().Add(-time.Minute)), certificate())
			w.report(a, a.Name, hour)
		}, "has expired at"},
		"oversize": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			w.store(a, newToken(hour)+strings.Repeat("A", 16<<10), certificate())
			w.report(a, a.Name, hour)
		}, "and 16384 are allowed"},
		"another's Secret": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			other := a.DeepCopy()
			other.UID = "another"
			w.store(other, newToken(hour), certificate())
			w.report(a, a.Name, hour)
		}, "no owner reference has its UID"},
		"not managed-serviceaccount's": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			secret := sourceSecret(a, newToken(hour), certificate())
			secret.Labels = nil
			w.create(secret)
			w.report(a, a.Name, hour)
		}, "is not labelled"},
		"another type": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			secret := sourceSecret(a, newToken(hour), certificate())
			secret.Type = "example.com/other"
			w.create(secret)
			w.report(a, a.Name, hour)
		}, "is of type"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c, team := w.cluster(w.name("c")), w.team()
			w.publish(team, c)
			w.start()
			account := w.tokenless(c, "reader", team)
			test.source(w, account)
			w.mentions(c, "InvalidSource", "Account reader is not copied: ", test.says)
			w.stays(func() string {
				if w.copied(team, c, "reader") != nil {
					return "it was copied"
				}
				return ""
			})
			// Mended, it is copied.
			if err := w.Delete(t.Context(), sourceSecret(account, "", "")); err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			w.holds(team, c, "reader", w.rotate(account))
		})
	}
}

// ahead is a clock that may be put forward. Time passes by it as it does.
type ahead struct{ by atomic.Int64 }

func (a *ahead) Now() time.Time { return time.Now().Add(time.Duration(a.by.Load())) }

func (a *ahead) Since(t time.Time) time.Duration { return a.Now().Sub(t) }

func TestATokenThatExpiresIsTakenBack(t *testing.T) {
	const validity = 10 * time.Minute
	s, now := newScene(t), &ahead{}
	s.opts.Clock = now
	s.start()
	expires := now.Now().Add(validity)
	s.token = newToken(expires)
	s.store(s.account, s.token, certificate())
	s.report(s.account, "reader", expires.Add(time.Hour))
	s.copied()
	now.by.Store(int64(validity - time.Second))
	s.creds.enqueuePair(types.NamespacedName{Namespace: s.team, Name: s.cluster})
	s.lacks(s.team, s.cluster, "reader")
	s.mentions(s.cluster, "InvalidSource", "has expired")
	s.token = s.rotate(s.account)
	s.copied()
}

func TestTheCheckFindsWhatNoStatusSays(t *testing.T) {
	scene := func(t *testing.T) *scene {
		s := newScene(t)
		s.opts.CheckEvery = 300 * time.Millisecond
		s.start()
		return s
	}
	t.Run("a token rotated twice in a second", func(t *testing.T) {
		s := scene(t)
		s.token = newToken(time.Now().Add(time.Hour))
		s.store(s.account, s.token, certificate())
		s.copied()
	})
	t.Run("a Secret that was deleted", func(t *testing.T) {
		s := scene(t)
		s.delete(sourceSecret(s.account, "", ""))
		s.lacks(s.team, s.cluster, "reader")
		s.says(s.cluster, "False", "InvalidSource", "Account reader is not copied: its Secret reader is not there.")
		// Looking again writes nothing.
		s.bound(s.team, targetRole, false)
		s.settle()
		s.wire.Reset()
		s.quiet()
		s.store(s.account, s.token, certificate())
		s.copied()
	})
	t.Run("a Secret that is another's now", func(t *testing.T) {
		s := scene(t)
		other := s.account.DeepCopy()
		other.UID = "another"
		s.store(other, s.token, certificate())
		s.lacks(s.team, s.cluster, "reader")
		s.mentions(s.cluster, "InvalidSource", "no owner reference has its UID")
	})
	t.Run("nothing", func(t *testing.T) {
		s := scene(t)
		s.settled()
		s.settle()
		s.wire.Reset()
		s.lookedTwice()
		s.quiet()
	})
}

func TestNames(t *testing.T) {
	t.Run("as long as may be", func(t *testing.T) {
		w := newWorld(t)
		c, team := w.cluster(w.name("c")), w.team()
		w.publish(team, c)
		w.start()
		name := strings.Repeat("a", 253-len(c)-1)
		w.holds(team, c, name, w.rotate(w.account(c, name, team)))
	})
	t.Run("too long", func(t *testing.T) {
		w := newWorld(t)
		c, team := w.cluster(w.name("c")), w.team()
		w.publish(team, c)
		w.start()
		w.account(c, strings.Repeat("a", 253-len(c)), team)
		w.mentions(c, "NameTooLong", "would have 254 bytes, and 253 are allowed")
		w.bound(team, targetRole, false)
	})
	t.Run("of a namespace that can be none", func(t *testing.T) {
		w := newWorld(t)
		c := w.cluster(w.name("c"))
		w.start()
		w.account(c, "reader", "../kube-system", "*")
		w.says(c, "False", "TargetNotEntitled", "Account reader is not copied in *, ../kube-system: that is not a name a namespace can have.")
	})
}

func TestAnAccountThatNamesNothing(t *testing.T) {
	unnamed := func(w *world, cluster string) *authv1beta1.ManagedServiceAccount {
		account := w.account(cluster, "reader")
		edit(w, account, func(a *authv1beta1.ManagedServiceAccount) { a.Annotations = nil })
		return account
	}
	t.Run("is told so", func(t *testing.T) {
		w := newWorld(t)
		c, team := w.cluster(w.name("c")), w.team()
		w.publish(team, c)
		w.start()
		unnamed(w, c)
		w.says(c, "False", "NoTarget", "Account reader is copied nowhere: name the namespaces, for instance with the annotation inventory.open-cluster-management.io/sync-to-namespaces=team-a,team-b.")
		w.bound(c, sourceRole, false)
	})
	t.Run("goes everywhere if it need not", func(t *testing.T) {
		w := newWorld(t)
		w.opts.RequireTarget = false
		c, team, second := w.cluster(w.name("c")), w.team(), w.team()
		w.publish(team, c)
		w.start()
		account := unnamed(w, c)
		token := w.rotate(account)
		w.holds(team, c, "reader", token)
		w.publish(second, c)
		w.holds(second, c, "reader", token)
		// A forged profile gets nothing, and makes no noise.
		forged := w.team()
		w.create(profileOf(forged, c))
		w.stays(func() string {
			if w.copied(forged, c, "reader") != nil {
				return "a forged profile got a token"
			}
			return ""
		})
		w.says(c, "True", "Copied", "Copied: reader to "+min(team, second)+", "+max(team, second)+".")
		// One that names namespaces goes there only.
		edit(w, account, func(a *authv1beta1.ManagedServiceAccount) { a.Annotations = map[string]string{targetAnnotation: team} })
		w.lacks(second, c, "reader")
		edit(w, account, func(a *authv1beta1.ManagedServiceAccount) { a.Annotations = map[string]string{targetAnnotation: ""} })
		w.lacks(team, c, "reader")
	})
}

func TestLeftoversAreFoundAfterARestart(t *testing.T) {
	for name, change := range map[string]func(s *scene){
		"of an account that went": func(s *scene) { s.delete(s.account) },
		"of an account that is off": func(s *scene) {
			edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { a.Labels = nil })
		},
		"of a rule that says no": func(s *scene) {
			s.rule.answers[types.NamespacedName{Namespace: s.team, Name: s.cluster}] = selection.Result{Answer: selection.No, Why: "is out"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.settled()
			s.stop()
			change(s)
			s.start()
			s.withdrawn()
		})
	}
}

func TestRoleBindingsThatNobodyNeedsGo(t *testing.T) {
	for name, change := range map[string]func(*rbacv1.RoleBinding){
		"one of the manager's":         func(*rbacv1.RoleBinding) {},
		"one that is for another":      func(b *rbacv1.RoleBinding) { b.Subjects[0].Namespace = "elsewhere" },
		"one forged, to another role":  func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "view" },
		"one forged, to read a source": func(b *rbacv1.RoleBinding) { b.Name, b.RoleRef.Name = sourceRole, "view" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			team := w.team()
			binding := &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: targetRole, Labels: target.Labels()},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: targetRole},
				Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: managerNamespace, Name: managerName}},
			}
			change(binding)
			w.create(binding)
			w.start()
			w.bound(team, binding.Name, false)
		})
	}
}

func TestRightsComeBack(t *testing.T) {
	s := newScene(t)
	for _, at := range []types.NamespacedName{{Namespace: s.team, Name: targetRole}, {Namespace: s.cluster, Name: sourceRole}} {
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}}
		s.delete(binding)
		s.bound(at.Namespace, at.Name, true)
		edit(s.world, binding, func(b *rbacv1.RoleBinding) { b.Subjects = nil })
		s.eventually(func() string {
			if err := s.Get(t.Context(), at, binding); err != nil {
				return err.Error()
			}
			if len(binding.Subjects) != 1 {
				return "the subject is not back"
			}
			return ""
		})
	}
	s.token = s.rotate(s.account)
	s.copied()
	edit(s.world, s.copied(), func(c *corev1.Secret) { c.Data["token"] = []byte("x") })
	s.copied()
}

// Who may edit RoleBindings must not be able to keep a copy by it.
func TestARoleBindingThatIsNoLongerOursKeepsNoCopy(t *testing.T) {
	s := newScene(t)
	s.settled()
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: s.team, Name: targetRole}}
	edit(s.world, binding, func(b *rbacv1.RoleBinding) { b.Labels = nil })
	s.eventually(func() string {
		if err := s.mgr.GetCache().Get(t.Context(), client.ObjectKeyFromObject(binding), &rbacv1.RoleBinding{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the manager still takes it for its own: %v", err)
		}
		return ""
	})
	s.rule.say(s.team, s.cluster, selection.Result{Answer: selection.No, Why: "is out"})
	s.lacks(s.team, s.cluster, "reader")
	s.says(s.cluster, "False", "TargetNotEntitled", "Account reader is not copied in "+s.team+": the cluster is out.")
	s.delete(binding)
}

// A manager that runs as another service account than the one before finds what
// that one left.
func TestLeftoversOfAnotherServiceAccountAreFound(t *testing.T) {
	s := newScene(t)
	s.settled()
	s.stop()
	edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { a.Labels = nil })
	for _, at := range []types.NamespacedName{{Namespace: s.team, Name: targetRole}, {Namespace: s.cluster, Name: sourceRole}} {
		edit(s.world, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}}, func(b *rbacv1.RoleBinding) {
			b.Subjects[0].Namespace = "elsewhere"
		})
	}
	s.start()
	s.withdrawn()
}

func TestAnothersRoleBindingIsReported(t *testing.T) {
	w := newWorld(t)
	c, team := w.cluster(w.name("c")), w.team()
	w.publish(team, c)
	theirs := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: targetRole},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}
	w.create(theirs)
	w.start()
	w.account(c, "reader", team)
	w.mentions(c, "CopyFailed", "is not this addon's", "delete RoleBinding "+targetRole)
	w.delete(theirs)
	w.mentions(c, "Copied", team)
}

func TestAMissingClusterRoleIsReported(t *testing.T) {
	w := newWorldOn(t, apitest.Start(t, apitest.Hub(), apitest.ClusterProfile(), apitest.ManagedServiceAccount()))
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: targetRole}}
	w.delete(role)
	c, team := w.cluster(w.name("c")), w.team()
	w.publish(team, c)
	w.start()
	account := w.account(c, "reader", team)
	w.mentions(c, "CopyFailed", "Account reader could not be copied or withdrawn in "+team, "forbidden")
	w.create(managerRights()[1])
	w.holds(team, c, "reader", w.rotate(account))
	w.mentions(c, "Copied", team)
}

func TestANamespaceThatIsGoing(t *testing.T) {
	w := newWorld(t)
	c, team, other := w.cluster(w.name("c")), w.team(), w.team()
	w.publish(team, c)
	w.publish(other, c)
	w.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}})
	w.start()
	account := w.account(c, "reader", team, other)
	w.holds(other, c, "reader", w.rotate(account))
	w.mentions(c, "CopyFailed", "Account reader could not be copied or withdrawn in "+team, "being terminated", "Copied: reader to "+other)
}

// No controller counts quotas here, so the answer is made up.
func TestAQuotaIsReported(t *testing.T) {
	w := newWorld(t)
	c, team, other := w.cluster(w.name("c")), w.team(), w.team()
	w.publish(team, c)
	w.publish(other, c)
	w.wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Method == http.MethodPost && call.Resource == "secrets" && strings.Contains(call.Path, team) {
			return apitest.Fault{Status: http.StatusForbidden, Reason: "Forbidden", Message: "exceeded quota: few, requested: count/secrets=1, used: 5, limited: 5"}
		}
		return apitest.Fault{}
	})
	w.start()
	account := w.account(c, "reader", team, other)
	token := w.rotate(account)
	w.holds(other, c, "reader", token)
	w.says(c, "False", "CopyFailed", "Account reader could not be copied or withdrawn in "+team+": creating Secret "+c+"-reader: exceeded quota: few, requested: count/secrets=1, used: 5, limited: 5. Copied: reader to "+other+".")
	w.wire.Fail(nil)
	w.holds(team, c, "reader", token)
	w.mentions(c, "Copied", team, other)
}

// TestARevocationDoesNotWaitForFirstCopies takes one copy back while many others are
// still to be made.
func TestARevocationDoesNotWaitForFirstCopies(t *testing.T) {
	s := newScene(t)
	s.stop()
	// A few are made, and then all workers are at it, until the manager has heard
	// that one is to be taken back.
	const few, many = 20, 2 * (20 + workers)
	for i := range many {
		c := s.world.cluster(s.name(fmt.Sprintf("d%d", i)))
		s.publish(s.team, c)
		s.world.account(c, "reader", s.team)
	}
	var posts atomic.Int64
	heard := make(chan struct{})
	s.wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Method == http.MethodPost && call.Resource == "secrets" && posts.Add(1) > few {
			return apitest.Fault{Until: heard}
		}
		return apitest.Fault{}
	})
	s.start()
	s.eventually(func() string {
		if posts.Load() < few+workers {
			return "there are idle workers"
		}
		return ""
	})
	edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { delete(a.Labels, syncLabel) })
	s.eventually(func() string {
		if account, known, err := s.creds.accounts.Get(t.Context(), client.ObjectKeyFromObject(s.account)); err != nil || !known || account != nil {
			return fmt.Sprintf("the manager has not heard of it: %t, %v", known, err)
		}
		return ""
	})
	close(heard)
	s.lacks(s.team, s.cluster, "reader")
	s.eventually(func() string {
		if got := s.creds.ledger.Count(s.team); got != many {
			return fmt.Sprintf("%d copies of %d", got, many)
		}
		return ""
	})
	calls := s.wire.Writes("secrets")
	before := slices.IndexFunc(calls, func(call apitest.Call) bool { return call.Method == http.MethodDelete })
	t.Logf("withdrawn after %d of %d writes", before, len(calls))
	if before > few+workers+few {
		t.Errorf("withdrawn after %d of %d writes", before, len(calls))
	}
}

func TestADraining(t *testing.T) {
	s := newScene(t)
	s.settled()
	s.stop()
	disabled := s.opts
	disabled.Mode = ModeDisabled
	_, err := Add(t.Context(), s.mgr, disabled)
	if err == nil || !strings.Contains(err.Error(), s.team) || !strings.Contains(err.Error(), "set the mode to draining") {
		t.Errorf("disabled with a copy about: %v", err)
	}
	s.opts.Mode = ModeDraining
	s.start()
	s.withdrawn()
	s.says(s.cluster, "False", "Draining", "Copies of tokens are being removed, and none are made: the manager runs with credentials.mode=draining.")
	s.rotate(s.account)
	s.stays(func() string {
		if s.world.copied(s.team, s.cluster, "reader") != nil {
			return "a copy was made"
		}
		return ""
	})
	s.stop()
	if _, err := Add(t.Context(), s.mgr, disabled); err != nil {
		t.Errorf("disabled with nothing about: %v", err)
	}
}

func TestUpstreamsSyncerIsLeftToItself(t *testing.T) {
	s := newScene(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:managed-serviceaccount:addon-manager-clusterprofile"}}
	s.create(role)
	t.Cleanup(func() { _ = client.IgnoreNotFound(s.Delete(t.Context(), role.DeepCopy())) })
	s.mentions(s.cluster, "UpstreamSyncerOn", role.Name, "credentials.upstreamSyncer=off")
	s.settle()
	s.wire.Reset()
	old := s.token
	s.token = s.rotate(s.account)
	s.quiet()
	if string(s.world.copied(s.team, s.cluster, "reader").Data["token"]) != old {
		t.Error("the copy was changed")
	}
	// What must go goes all the same.
	second := s.world.team()
	s.publish(second, s.cluster)
	s.syncer = upstream.OverrideOff
	s.start()
	s.copied()
	s.syncer = upstream.OverrideNone
	s.start()
	s.mentions(s.cluster, "UpstreamSyncerOn")
	edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { delete(a.Labels, syncLabel) })
	s.lacks(s.team, s.cluster, "reader")
	edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { a.Labels = map[string]string{syncLabel: "true"} })
	s.mentions(s.cluster, "UpstreamSyncerOn")
	s.delete(role)
	s.copied()
	s.settled()
}

func TestTheConditionIsThereFromTheFirstAccountOn(t *testing.T) {
	s := newScene(t)
	without := s.world.cluster(s.name("d"))
	s.settled()
	s.delete(s.account)
	s.says(s.cluster, "True", "NoAccounts", "No ManagedServiceAccount of the cluster is labelled authentication.open-cluster-management.io/sync-to-clusterprofile=true.")
	s.account = s.world.account(s.cluster, "reader", s.team)
	s.settled()
	// Somebody takes it away.
	addon := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster, Name: "cluster-inventory"}}
	editStatus(s.world, addon, func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.Conditions = []metav1.Condition{{Type: "Available", Status: "True", Reason: "R", LastTransitionTime: metav1.Now()}}
	})
	s.settled()
	if got := s.condition(without); got.Type != "" {
		t.Errorf("a cluster without accounts says %+v", got)
	}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(addon), addon); err != nil || len(addon.Status.Conditions) != 2 {
		t.Errorf("others' conditions: %+v, %v", addon.Status.Conditions, err)
	}
}

func TestAccountsThatAreServedLate(t *testing.T) {
	srv := apitest.Start(t, apitest.Hub(), apitest.ClusterProfile())
	w := newWorldOn(t, srv)
	c, team := w.cluster(w.name("c")), w.team()
	profile := w.publish(team, c)
	// A copy from an earlier time: whether its account is there cannot be told.
	left := leftover(c, team, profile)
	w.create(left, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: targetRole, Labels: target.Labels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: targetRole},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: managerNamespace, Name: managerName}},
	})
	w.start()
	w.eventually(func() string {
		if !w.creds.followers.Synced(team) {
			return "the namespace has not been looked into"
		}
		return ""
	})
	w.stays(func() string {
		if w.copied(team, c, "reader") == nil {
			return "a copy was deleted though nothing is known of its account"
		}
		return ""
	})
	srv.Install(t, apitest.ManagedServiceAccount())
	w.lacks(team, c, "reader") // now it is known that there is none
	account := w.account(c, "reader", team)
	token := w.rotate(account)
	w.holds(team, c, "reader", token)
}

func TestARevocationBeforeTheAccountsAreServed(t *testing.T) {
	srv := apitest.Start(t, apitest.Hub(), apitest.ClusterProfile())
	w := newWorldOn(t, srv)
	c, team := w.cluster(w.name("c")), w.team()
	profile := w.publish(team, c)
	left := leftover(c, team, profile)
	w.create(left, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: targetRole, Labels: target.Labels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: targetRole},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: managerNamespace, Name: managerName}},
	})
	w.start()
	w.rule.say(team, c, selection.Result{Answer: selection.No, Why: "is out"})
	w.lacks(team, c, "reader")
}

// TestNoTokenIsSaid looks for every token of a busy time in everything that is
// told to people.
func TestNoTokenIsSaid(t *testing.T) {
	s := newScene(t)
	tokens := []string{s.token}
	for range 3 {
		s.token = s.rotate(s.account)
		tokens = append(tokens, s.token)
		s.copied()
	}
	s.wire.Fail(func(c apitest.Call) apitest.Fault {
		if c.IsWrite() && c.Resource == "secrets" {
			return apitest.Fault{Status: 403, Reason: "Forbidden", Message: "a webhook does not like " + base64.StdEncoding.EncodeToString([]byte(s.token))}
		}
		return apitest.Fault{}
	})
	s.token = newToken(time.Now().Add(time.Hour))
	tokens = append(tokens, s.token)
	s.store(s.account, s.token, certificate())
	s.report(s.account, "reader", time.Now().Add(time.Hour))
	s.mentions(s.cluster, "CopyFailed", "it quotes the token")
	s.wire.Fail(nil)
	s.copied()
	s.settled()
	for _, call := range s.wire.Calls() {
		if call.Resource == "secrets" {
			continue
		}
		for _, token := range tokens {
			if strings.Contains(call.Body, token[40:80]) || strings.Contains(call.Body, base64.StdEncoding.EncodeToString([]byte(token))[40:80]) {
				t.Errorf("%s %s holds a token", call.Method, call.Path)
			}
		}
	}
}

func TestARefusedWithdrawalQuotesNoToken(t *testing.T) {
	s := newScene(t)
	s.settled()
	s.wire.Fail(func(c apitest.Call) apitest.Fault {
		if c.Method == http.MethodDelete && c.Resource == "secrets" {
			return apitest.Fault{Status: 403, Reason: "Forbidden", Message: "a webhook keeps what holds " + s.token}
		}
		return apitest.Fault{}
	})
	s.rule.say(s.team, s.cluster, selection.Result{Answer: selection.No, Why: "is out"})
	s.mentions(s.cluster, "TargetNotEntitled", "a webhook keeps what holds (left out)")
	s.wire.Fail(nil)
	s.withdrawn()
}

// TestEveryWriteMayFail makes each write fail once, in the ways it can, and lets
// the manager come to where it should be.
func TestEveryWriteMayFail(t *testing.T) {
	faults := map[string]apitest.Fault{
		"a conflict":     {Status: 409, Reason: "Conflict", Message: "conflict"},
		"a lost answer":  {Err: fmt.Errorf("connection reset"), AfterServer: true},
		"a lost request": {Err: fmt.Errorf("connection reset")},
		"forbidden":      {Status: 403, Reason: "Forbidden", Message: "forbidden"},
		"unavailable":    {Status: 503, Reason: "ServiceUnavailable", Message: "unavailable"},
	}
	for name, fault := range faults {
		for n := 1; n <= 6; n++ {
			t.Run(fmt.Sprintf("%s, write %d", name, n), func(t *testing.T) {
				w := newWorld(t)
				c, team := w.cluster(w.name("c")), w.team()
				w.publish(team, c)
				w.wire.FailNthWrite(n, fault)
				w.start()
				account := w.account(c, "reader", team)
				w.mentions(c, "Copied", team)
				w.holds(team, c, "reader", w.rotate(account))
				edit(w, account, func(a *authv1beta1.ManagedServiceAccount) { delete(a.Labels, syncLabel) })
				w.lacks(team, c, "reader")
				w.bound(team, targetRole, false)
				w.bound(c, sourceRole, false)
			})
		}
	}
}
