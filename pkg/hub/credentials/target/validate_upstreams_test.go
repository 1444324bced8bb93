package target

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/bearer"
)

const upstreamLabel = "authentication.open-cluster-management.io/synced-from"

// upstreams is what upstream's syncer writes in a copy's place.
func upstreams(w Want) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Namespace, Name: Name(w.Account), Labels: map[string]string{upstreamLabel: Name(w.Account)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "multicluster.x-k8s.io/v1alpha1", Kind: "ClusterProfile", Name: w.Owner.Name, UID: w.Owner.UID,
				Controller: ptr.To(true),
			}},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{"token": w.Token.Token, "ca.crt": w.Token.CA},
	}
}

// issued is a token that was issued to a ServiceAccount.
func issued(uid, id string) []byte {
	const claims = `{"iss":"https://spoke","sub":"a","jti":%q,"kubernetes.io":{"serviceaccount":{"uid":%q}}}`
	return []byte("h." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, claims, id, uid)) + ".s")
}

func TestUpstreamsCopyIsTakenOver(t *testing.T) {
	wanted := Want{
		Account: types.NamespacedName{Namespace: "c1", Name: "a"}, Namespace: "team", Owner: Owner{UID: "uid", Name: "c1"},
		Token:  bearer.Token{Token: issued("u", "2"), CA: []byte("c"), Expires: time.Unix(0, 0)},
		Create: true,
	}
	for name, test := range map[string]struct {
		secret func(*corev1.Secret)
		want   func(*Want)
		step   step
		why    string // it stays
	}{
		"as upstream writes it":    {step: patch},
		"with an earlier token":    {secret: func(s *corev1.Secret) { s.Data["token"] = issued("u", "1") }, step: patch},
		"with another CA":          {secret: func(s *corev1.Secret) { s.Data["ca.crt"] = []byte("c0") }, step: patch},
		"with labels of others":    {secret: func(s *corev1.Secret) { s.Labels["theirs"] = "x" }, step: patch},
		"with annotations of ours": {secret: func(s *corev1.Secret) { s.Annotations = wanted.annotations() }, step: patch},
		"with our mark": {secret: func(s *corev1.Secret) {
			s.Labels["app.kubernetes.io/managed-by"] = "cluster-inventory-addon"
		}, step: patch},
		"of a later API version": {secret: func(s *corev1.Secret) {
			s.OwnerReferences[0].APIVersion = "multicluster.x-k8s.io/v1alpha2"
		}, step: patch},
		"another account's token": {secret: func(s *corev1.Secret) { s.Data["token"] = issued("v", "1") },
			why: "its token is not of this account"},
		"no token can be verified": {want: func(w *Want) { w.Token.Token = []byte("t") }, why: "its token is not of this account"},
		"no token": {secret: func(s *corev1.Secret) { delete(s.Data, "token") },
			why: "something else than a token and its CA"},
		"no CA": {secret: func(s *corev1.Secret) { s.Data["ca.crt"] = nil },
			why: "something else than a token and its CA"},
		"a key more": {secret: func(s *corev1.Secret) { s.Data["password"] = []byte("x") },
			why: "something else than a token and its CA"},
		"of another type": {secret: func(s *corev1.Secret) { s.Type = "kubernetes.io/basic-auth" },
			why: `of type "kubernetes.io/basic-auth"`},
		"immutable": {secret: func(s *corev1.Secret) { s.Immutable = ptr.To(true) }, why: "it is immutable"},
		"being deleted": {secret: func(s *corev1.Secret) { s.DeletionTimestamp = ptr.To(metav1.Now()) },
			why: "being deleted"},
		"held": {secret: func(s *corev1.Secret) { s.Finalizers = []string{"a/b", "c/d"} },
			why: "finalizers hold it: a/b, c/d"},
		"managed by another client": {secret: func(s *corev1.Secret) { s.Labels["app.kubernetes.io/managed-by"] = "Helm" },
			why: `"Helm" manages it`},
		"without an owner":   {secret: func(s *corev1.Secret) { s.OwnerReferences = nil }, why: "one owner"},
		"of another profile": {secret: func(s *corev1.Secret) { s.OwnerReferences[0].UID = "x" }, why: "one owner"},
		"of another kind": {secret: func(s *corev1.Secret) { s.OwnerReferences[0].Kind = "ConfigMap" },
			why: "one owner"},
		"of another group": {secret: func(s *corev1.Secret) { s.OwnerReferences[0].APIVersion = "example.com/v1" },
			why: "one owner"},
		"of one owner more": {secret: func(s *corev1.Secret) {
			s.OwnerReferences = append(s.OwnerReferences, s.OwnerReferences[0])
		}, why: "one owner"},
		"unknown if entitled":      {want: func(w *Want) { w.Create = false }, why: "not known to be published there"},
		"the profile is not known": {want: func(w *Want) { w.Owner = Owner{} }, why: "not known to be published there"},
		"labelled as another copy": {secret: func(s *corev1.Secret) { s.Labels[upstreamLabel] = "c1-b" }, why: "-"},
		"without upstream's label": {secret: func(s *corev1.Secret) { s.Labels = nil }, why: "-"},
		"labelled, and nothing more": {secret: func(s *corev1.Secret) { s.OwnerReferences, s.Data = nil, nil },
			why: "one owner"},
	} {
		t.Run(name, func(t *testing.T) {
			w := wanted
			have := upstreams(w)
			if test.secret != nil {
				test.secret(have)
			}
			if test.want != nil {
				test.want(&w)
			}
			if test.why != "" {
				test.step = leaveForeign
			}
			if got := nextStep(have, false, w); got != test.step {
				t.Errorf("got step %d, want %d", got, test.step)
			}
			if isPlain := test.why == "-"; isUpstreams(have) == isPlain {
				t.Errorf("it says that it is upstream's: %t", !isPlain)
			} else if why := validateUpstreams(have, w); !isPlain &&
				!strings.Contains(why, test.why) || test.why == "" && why != "" {
				t.Errorf("it stays because %q, want %q", why, test.why)
			}
		})
	}
}

// A Secret that this addon has created is not a copy of upstream's, however it is labelled.
func TestOurCopyIsNotUpstreams(t *testing.T) {
	ours := DesiredCopy(Want{Account: types.NamespacedName{Namespace: "c1", Name: "a"}, Namespace: "team"})
	ours.Labels[upstreamLabel] = ours.Name
	if isUpstreams(ours) {
		t.Error("it counts as upstream's")
	}
}
