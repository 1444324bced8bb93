package credentials

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

const upstreamLabel = "authentication.open-cluster-management.io/synced-from"

// upstreamSyncer is managed-serviceaccount's own syncer, with its gate and its behaviour as
// the test plays it.
type upstreamSyncer struct {
	*world
	role *rbacv1.ClusterRole
}

func newUpstreamSyncer(w *world) *upstreamSyncer {
	u := &upstreamSyncer{world: w, role: &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:managed-serviceaccount:addon-manager-clusterprofile"},
	}}
	w.T.Cleanup(func() { _ = client.IgnoreNotFound(w.Delete(context.Background(), u.role.DeepCopy())) })
	return u
}

// on turns the gate on.
func (u *upstreamSyncer) on() {
	u.T.Helper()
	u.MustCreate(u.role.DeepCopy())
}

// off turns the gate off, and returns when that counts: when check finds nothing wrong.
func (u *upstreamSyncer) off(what string, check func() string) {
	u.T.Helper()
	u.MustDelete(u.role.DeepCopy())
	u.Eventually(what, func() string {
		// Stepped repeatedly, since the deletion may not have been seen yet.
		u.syncerTime.Step(time.Second)
		return check()
	})
}

// takes does what upstream does with a Secret that has the name of its copy: it replaces
// data, labels and owners.
func (u *upstreamSyncer) takes(profile *inventoryv1alpha1.ClusterProfile, account, token string) {
	u.T.Helper()
	wanted := ocmtest.UpstreamCopy(profile, account, token)
	apitest.Edit(u.world, wanted.DeepCopy(), func(s *corev1.Secret) {
		s.Data, s.Labels, s.OwnerReferences = wanted.Data, wanted.Labels, wanted.OwnerReferences
	})
}

// in returns the same world for a subtest.
func (w *world) in(t *testing.T) *world {
	same := *w
	same.Hub = w.In(t)
	return &same
}

// ours says what is wrong with a copy that must be this addon's.
func (w *world) ours(team, cluster, account, token string, uid types.UID) func() string {
	return func() string {
		got := w.copied(team, cluster, account)
		switch {
		case got == nil:
			return "there is no Secret"
		case got.UID != uid:
			w.T.Fatalf("the Secret was recreated")
		case got.Labels["inventory.open-cluster-management.io/credential"] != "true":
			return fmt.Sprintf("its labels are %v; condition: %+v", got.Labels, w.condition(cluster))
		case got.Labels[upstreamLabel] != "":
			return "upstream would take it for its own"
		case string(got.Data["token"]) != token:
			return "it holds another token"
		}
		return ""
	}
}

// Secrets that upstream's syncer has left behind become this addon's, without a moment in
// which they are missing, or hold anything but a token of the account.
func TestUpstreamsCopiesAreTakenOverInPlace(t *testing.T) {
	w := newWorld(t)
	u := newUpstreamSyncer(w)
	u.on()
	team := w.team()
	current, rotated := w.cluster(w.Name("current")), w.cluster(w.Name("rotated"))
	secrets, tokens := map[string]*corev1.Secret{}, map[string]string{}
	for _, cluster := range []string{current, rotated} {
		profile := w.publish(team, cluster)
		account := w.Account(cluster, "reader", team)
		tokens[cluster] = w.Rotate(account)
		secrets[cluster] = ocmtest.UpstreamCopy(profile, "reader", tokens[cluster])
		w.MustCreate(secrets[cluster])
		if cluster == rotated { // which upstream does not live to see
			tokens[cluster] = w.Rotate(account)
		}
	}
	w.start()
	w.mentions(current, "UpstreamSyncerOn")
	w.mentions(rotated, "UpstreamSyncerOn")
	w.settle()
	w.wire.Reset()
	u.off("both are this addon's", func() string {
		for cluster, secret := range secrets {
			if missing := w.ours(team, cluster, "reader", tokens[cluster], secret.UID)(); missing != "" {
				return cluster + ": " + missing
			}
		}
		return ""
	})
	w.synced(current)
	w.synced(rotated)
	if diff := cmp.Diff([]string{"PATCH secrets", "PATCH secrets"}, w.wire.Sent("secrets")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	// From now on they are like every other copy.
	account := &authv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: current, Name: "reader"}}
	w.MustGet(account)
	w.holds(team, current, "reader", w.Rotate(account))
	apitest.Edit(w, account, func(a *authv1beta1.ManagedServiceAccount) { delete(a.Labels, syncLabel) })
	w.hasNoCopy(team, current, "reader")
}

// Users who may write Secrets in a namespace may label them as upstream's, and upstream wrote
// for accounts that are not entitled there. A Secret that is not certainly a copy that this
// addon would have created stays as it is, and its owner learns why.
func TestSecretThatOnlyLooksLikeUpstreamsStays(t *testing.T) {
	hour := time.Now().Add(time.Hour)
	tests := map[string]struct {
		change func(s *corev1.Secret, cluster string)
		why    string
	}{
		"forged": {func(s *corev1.Secret, _ string) { s.Data["token"] = []byte("theirs") },
			"its token is not of this account"},
		"another-accounts": {func(s *corev1.Secret, c string) {
			s.Data["token"] = []byte(ocmtest.TokenOf(c, "other", hour))
		}, "its token is not of this account"},
		"another-clusters": {func(s *corev1.Secret, _ string) {
			s.Data["token"] = []byte(ocmtest.TokenOf("x", "reader", hour))
		}, "its token is not of this account"},
		"of-a-profile-long-gone": {func(s *corev1.Secret, _ string) { s.OwnerReferences[0].UID = "gone" },
			"its one owner is not the cluster's ClusterProfile"},
		"owned-by-another-too": {func(s *corev1.Secret, _ string) {
			s.OwnerReferences = append(s.OwnerReferences,
				metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"})
		}, "its one owner is not the cluster's ClusterProfile"},
		"held": {func(s *corev1.Secret, _ string) { s.Finalizers = []string{"example.com/hold"} },
			"finalizers hold it: example.com/hold"},
		"immutable": {func(s *corev1.Secret, _ string) { s.Immutable = ptr.To(true) }, "it is immutable"},
		"of-another-type": {func(s *corev1.Secret, _ string) { s.Type = "example.com/other" },
			`it is of type "example.com/other"`},
		"with-more": {func(s *corev1.Secret, _ string) { s.Data["password"] = []byte("x") },
			"it holds something else than a token and its CA"},
		"managed": {func(s *corev1.Secret, _ string) { s.Labels["app.kubernetes.io/managed-by"] = "Helm" },
			`"Helm" manages it`},
		"not-labelled-so": {func(s *corev1.Secret, _ string) { s.Labels[upstreamLabel] = "another" },
			"was not created by this addon"},
	}
	w := newWorld(t)
	team := w.team()
	secrets, tokens := map[string]*corev1.Secret{}, map[string]string{}
	for name, test := range tests {
		cluster := w.cluster(w.Name(name))
		profile := w.publish(team, cluster)
		tokens[name] = w.Rotate(w.Account(cluster, "reader", team))
		secret := ocmtest.UpstreamCopy(profile, "reader", tokens[name])
		test.change(secret, cluster)
		w.MustCreate(secret)
		secrets[name] = secret
	}
	w.start()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			cluster := w.Name(name)
			w.mentions(cluster, "ForeignSecret", cluster+"-reader", team, test.why)
			got := w.copied(team, cluster, "reader")
			if diff := cmp.Diff(secrets[name], got, cmpopts.IgnoreFields(corev1.Secret{}, "TypeMeta")); diff != "" {
				t.Errorf("the Secret (-before +after):\n%s", diff)
			}
			apitest.Edit(w, secrets[name], func(s *corev1.Secret) { s.Finalizers = nil })
			w.MustDelete(secrets[name])
			w.creds.enqueuePair(types.NamespacedName{Namespace: team, Name: cluster}) // as the next look does
			w.holds(team, cluster, "reader", tokens[name])
			w.synced(cluster)
		})
	}
}

// Upstream copies to every namespace with a profile. Where this addon's rule does not
// entitle the account, the Secret stays; it must not be taken over.
func TestUpstreamsCopyWhereTheAccountIsNotEntitledStays(t *testing.T) {
	w := newWorld(t)
	c, named, unnamed, unbound := w.cluster(w.Name("c")), w.team(), w.team(), w.team()
	account := w.Account(c, "reader", named, unbound)
	token := w.Rotate(account)
	secrets := map[string]*corev1.Secret{}
	for _, namespace := range []string{named, unnamed, unbound} {
		secrets[namespace] = ocmtest.UpstreamCopy(w.publish(namespace, c), "reader", token)
		w.MustCreate(secrets[namespace])
	}
	w.rule.say(unbound, c, selection.Result{Answer: selection.No, Why: "is not bound there"})
	w.start()
	w.Eventually("the copy that may be taken over is", w.ours(named, c, "reader", token, secrets[named].UID))
	w.says(c, "False", "TargetNotEntitled", "Account reader is not copied in "+unbound+": the cluster is not bound there.")
	for _, namespace := range []string{unnamed, unbound} {
		if diff := cmp.Diff(secrets[namespace], w.copied(namespace, c, "reader"),
			cmpopts.IgnoreFields(corev1.Secret{}, "TypeMeta")); diff != "" {
			t.Errorf("the Secret in %s (-before +after):\n%s", namespace, diff)
		}
		w.bound(namespace, targetRole, false)
	}
}

// Upstream's gate is turned on and off while the manager runs. Each takes over from the
// other, in place.
func TestUpstreamsSyncerTurnedOnAndOff(t *testing.T) {
	s := newScene(t)
	u := newUpstreamSyncer(s.world)
	uid := s.copied().UID
	for range 3 {
		u.on()
		s.mentions(s.cluster, "UpstreamSyncerOn")
		s.token = s.Rotate(s.account)
		u.takes(s.profile, "reader", s.token)
		s.settle()
		s.wire.Reset()
		s.token = s.Rotate(s.account)
		u.takes(s.profile, "reader", s.token)
		s.wire.Quiet(s.T, quietly, "while upstream copies")
		u.off("the copy is this addon's again", s.ours(s.team, s.cluster, "reader", s.token, uid))
		s.synced(s.cluster)
	}
	// A gate that flaps faster than that counts changes nothing.
	u.on()
	s.mentions(s.cluster, "UpstreamSyncerOn")
	s.settle()
	s.wire.Reset()
	for range 5 {
		s.MustDelete(u.role.DeepCopy())
		u.on()
	}
	s.wire.Quiet(s.T, quietly, "while the gate flaps")
}

// Copies that upstream has taken over are upstream's as long as its gate is on: going back
// and removing this addon loses no token.
func TestCopyTakenOverByUpstreamIsNotWithdrawn(t *testing.T) {
	s := newScene(t)
	u := newUpstreamSyncer(s.world)
	taken, kept := s.team, s.world.team()
	s.publish(kept, s.cluster)
	apitest.Edit(s.world, s.account,
		func(a *authv1beta1.ManagedServiceAccount) { a.Annotations[targetAnnotation] = taken + "," + kept })
	s.holds(kept, s.cluster, "reader", s.token)
	s.settled()
	u.on()
	s.mentions(s.cluster, "UpstreamSyncerOn")
	u.takes(s.profile, "reader", s.token)
	before := s.world.copied(taken, s.cluster, "reader")
	for _, team := range []string{taken, kept} {
		s.rule.say(team, s.cluster, selection.Result{Answer: selection.No, Why: "is out of the inventory"})
	}
	s.hasNoCopy(kept, s.cluster, "reader") // it is still this addon's
	s.bound(taken, targetRole, false)
	if diff := cmp.Diff(before, s.world.copied(taken, s.cluster, "reader")); diff != "" {
		t.Errorf("upstream's Secret (-before +after):\n%s", diff)
	}
}

// OCM's own controller creates profiles without our labels. Copies are created for them,
// too: its gate is not that of the tokens.
func TestTokenIsCopiedForAProfileOfOCMsController(t *testing.T) {
	w := newWorld(t)
	c, team := w.cluster(w.Name("c")), w.team()
	profile := ocmtest.OurProfile(team, c)
	profile.Labels = map[string]string{
		"x-k8s.io/cluster-manager": "open-cluster-management", "open-cluster-management.io/cluster-name": c}
	w.MustCreate(profile)
	w.rule.say(team, c, selection.Result{Answer: selection.Yes})
	w.start()
	got := w.holds(team, c, "reader", w.Rotate(w.Account(c, "reader", team)))
	owned := slices.ContainsFunc(got.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == profile.UID })
	if !owned {
		t.Errorf("its owners are %v", got.OwnerReferences)
	}
	w.synced(c)
}
