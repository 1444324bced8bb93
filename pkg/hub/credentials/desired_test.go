package credentials

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

func TestDecide(t *testing.T) {
	type situation struct {
		o observed
		t observedTarget
	}
	good := func(change func(*situation)) situation {
		s := situation{
			o: observed{key: types.NamespacedName{Namespace: "c1", Name: "reader"}, known: true, account: &authv1beta1.ManagedServiceAccount{}},
			t: observedTarget{namespace: "team", wanted: true, selection: Selection{Answer: Yes}, profile: observedProfile{owner: "uid"}, present: true},
		}
		if change != nil {
			change(&s)
		}
		return s
	}
	tests := map[string]struct {
		given  situation
		action action
		reason string
		why    string
	}{
		"all is well: there must be a copy": {given: good(nil), action: publish},
		"the manager drains: it goes, whatever else is so": {
			given: good(func(s *situation) {
				s.o.draining, s.o.known, s.o.held, s.t.selection.Answer = true, false, true, Unknown
			}),
			action: withdraw,
		},
		"no such account: it goes":           {given: good(func(s *situation) { s.o.account = nil }), action: withdraw},
		"the account is going: it goes":      {given: good(func(s *situation) { s.o.account.DeletionTimestamp = ptr.To(metav1.Now()) }), action: withdraw},
		"not named any more: it goes":        {given: good(func(s *situation) { s.t.wanted = false }), action: withdraw},
		"nothing is known of accounts: stay": {given: good(func(s *situation) { s.o.known, s.o.account, s.t.wanted = false, nil, false }), action: leave},
		"nothing is known of accounts, but the rule says no: it goes": {
			given: good(func(s *situation) {
				s.o.known, s.o.account, s.t.selection = false, nil, Selection{Answer: No, Why: "is out"}
			}),
			action: withdraw, reason: "TargetNotEntitled", why: "the cluster is out",
		},
		"the rule says no: it goes": {
			given:  good(func(s *situation) { s.t.selection = Selection{Answer: No, Why: "is out"} }),
			action: withdraw, reason: "TargetNotEntitled", why: "the cluster is out",
		},
		"the rule says no, of a namespace nobody named: it goes without a word": {
			given:  good(func(s *situation) { s.o.silent = true; s.t.selection = Selection{Answer: No, Why: "is out"} }),
			action: withdraw,
		},
		"another manager's profile: it goes": {
			given:  good(func(s *situation) { s.t.profile = observedProfile{why: "has another's"} }),
			action: withdraw, reason: "TargetNotEntitled", why: "the cluster has another's",
		},
		"the rule says no while upstream's syncer is on: it goes": {
			given:  good(func(s *situation) { s.o.held = true; s.t.selection = Selection{Answer: No, Why: "is out"} }),
			action: withdraw, reason: "TargetNotEntitled", why: "the cluster is out",
		},
		"upstream's syncer is on: nothing is written": {given: good(func(s *situation) { s.o.held = true }), action: leave},
		"the rule knows no answer: what is there stays": {
			given:  good(func(s *situation) { s.t.selection = Selection{Why: "is undecided"} }),
			action: maintain, reason: "SelectionUnknown", why: "the cluster is undecided",
		},
		"no profile yet: what is there stays": {
			given:  good(func(s *situation) { s.t.profile = observedProfile{} }),
			action: maintain, reason: "TargetNotEntitled", why: "the cluster's ClusterProfile is not there yet",
		},
		"two of one name: neither": {
			given:  good(func(s *situation) { s.t.rivals = []types.NamespacedName{{Namespace: "c1-x", Name: "y"}} }),
			action: withdraw, reason: "NameCollision", why: "the Secret c1-reader would also be that of account y of cluster c1-x; rename all but one of these accounts",
		},
		"two of one name, and of the other nothing is known: neither": {
			given: good(func(s *situation) {
				s.t.rivals, s.t.selection = []types.NamespacedName{{Namespace: "c1-x", Name: "y"}}, Selection{Why: "is undecided"}
			}),
			action: withdraw, reason: "NameCollision", why: "the Secret c1-reader would also be that of account y of cluster c1-x; rename all but one of these accounts",
		},
		"no namespace could be called so": {
			given:  good(func(s *situation) { s.t.namespace = "Team" }),
			action: leave, reason: "TargetNotEntitled", why: "that is no name of a namespace",
		},
		"no Secret could be called so": {
			given:  good(func(s *situation) { s.o.key.Name = strings.Repeat("a", 251) }),
			action: withdraw, reason: "NameTooLong", why: "the Secret's name would have 254 bytes, and 253 are allowed; name the account shorter",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := decide(test.given.o, test.given.t)
			if got.action != test.action || got.reason != test.reason || got.why != test.why {
				t.Errorf("got %d %q %q, want %d %q %q", got.action, got.reason, got.why, test.action, test.reason, test.why)
			}
		})
	}
}

func TestJudgeProfile(t *testing.T) {
	profile := func(change func(*inventoryv1alpha1.ClusterProfile)) *inventoryv1alpha1.ClusterProfile {
		p := profileOf("team", "c1")
		p.UID = "uid"
		if change != nil {
			change(p)
		}
		return p
	}
	tests := map[string]struct {
		profile *inventoryv1alpha1.ClusterProfile
		want    observedProfile
	}{
		"none":                          {},
		"ours":                          {profile: profile(nil), want: observedProfile{owner: "uid", name: "c1"}},
		"not marked yet":                {profile: profile(func(p *inventoryv1alpha1.ClusterProfile) { delete(p.Labels, "app.kubernetes.io/managed-by") })},
		"labelled as another cluster's": {profile: profile(func(p *inventoryv1alpha1.ClusterProfile) { p.Labels["open-cluster-management.io/cluster-name"] = "c2" })},
		"another manager's": {
			profile: profile(func(p *inventoryv1alpha1.ClusterProfile) { p.Spec.ClusterManager.Name = "gke" }),
			want:    observedProfile{why: `has a ClusterProfile of cluster manager "gke" in its place`},
		},
		"going, and held": {
			profile: profile(func(p *inventoryv1alpha1.ClusterProfile) {
				p.DeletionTimestamp, p.Finalizers = ptr.To(metav1.Now()), []string{"a/b", "c/d"}
			}),
			want: observedProfile{why: "has a ClusterProfile there that is being deleted and held by finalizers a/b, c/d"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := judgeProfile(test.profile, "c1"); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestAccountOf(t *testing.T) {
	secret := func(change func(*corev1.Secret)) *corev1.Secret {
		s := desiredCopy(types.NamespacedName{Namespace: "a", Name: "b-c"}, "team", observedProfile{}, content{})
		change(s)
		return s
	}
	for name, test := range map[string]struct {
		secret *corev1.Secret
		want   bool
	}{
		"a copy":                       {secret(func(*corev1.Secret) {}), true},
		"of another name":              {secret(func(s *corev1.Secret) { s.Name = "x" }), false},
		"without the mark":             {secret(func(s *corev1.Secret) { delete(s.Labels, "app.kubernetes.io/managed-by") }), false},
		"not labelled a credential":    {secret(func(s *corev1.Secret) { s.Labels["inventory.open-cluster-management.io/credential"] = "false" }), false},
		"without cluster":              {secret(func(s *corev1.Secret) { delete(s.Annotations, "inventory.open-cluster-management.io/source-cluster") }), false},
		"without account":              {secret(func(s *corev1.Secret) { delete(s.Annotations, "inventory.open-cluster-management.io/source-account") }), false},
		"of another that is called so": {secret(func(s *corev1.Secret) { s.Annotations["inventory.open-cluster-management.io/source-cluster"] = "z" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			account, ok := accountOf(test.secret)
			if ok != test.want || ok && account != (types.NamespacedName{Namespace: "a", Name: "b-c"}) {
				t.Errorf("got %v, %t", account, ok)
			}
		})
	}
	// Two accounts of one name are told apart by what the copy says.
	other := desiredCopy(types.NamespacedName{Namespace: "a-b", Name: "c"}, "team", observedProfile{}, content{})
	if account, ok := accountOf(other); !ok || account.Namespace != "a-b" || other.Name != "a-b-c" {
		t.Errorf("got %v, %t", account, ok)
	}
}

func TestNamedNamespaces(t *testing.T) {
	for list, want := range map[string][]string{
		"":                   nil,
		" , ,":               nil,
		"b, a ,b,\tc\n":      {"a", "b", "c"},
		"team-a,team-b":      {"team-a", "team-b"},
		"../kube-system , *": {"*", "../kube-system"},
	} {
		account := &authv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{targetAnnotation: list}}}
		got, named := namedNamespaces(account)
		if diff := cmp.Diff(want, got); diff != "" || !named {
			t.Errorf("%q: named is %t (-want +got):\n%s", list, named, diff)
		}
	}
	if _, named := namedNamespaces(&authv1beta1.ManagedServiceAccount{}); named {
		t.Error("an account without the annotation names nothing")
	}
}

func TestCopyPatch(t *testing.T) {
	c := content{token: []byte("t"), ca: []byte("c"), expires: time.Unix(0, 0)}
	got, err := copyPatch("7", map[string]string{"theirs": "x", "app.kubernetes.io/managed-by": "them"}, nil, types.NamespacedName{Namespace: "c1", Name: "a"}, observedProfile{owner: "uid", name: "c1"}, c)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"op":"replace","path":"/metadata/resourceVersion","value":"7"},` +
		`{"op":"add","path":"/data","value":{"ca.crt":"Yw==","token":"dA=="}},` +
		`{"op":"add","path":"/metadata/labels","value":{"app.kubernetes.io/managed-by":"cluster-inventory-addon","inventory.open-cluster-management.io/credential":"true","theirs":"x"}},` +
		`{"op":"add","path":"/metadata/annotations","value":{"inventory.open-cluster-management.io/expires":"1970-01-01T00:00:00Z","inventory.open-cluster-management.io/source-account":"a","inventory.open-cluster-management.io/source-cluster":"c1"}},` +
		`{"op":"add","path":"/metadata/ownerReferences","value":[{"apiVersion":"multicluster.x-k8s.io/v1alpha1","kind":"ClusterProfile","name":"c1","uid":"uid"}]}]`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
}
