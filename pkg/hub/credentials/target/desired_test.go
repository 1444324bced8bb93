package target

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/bearer"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

func TestSourceOf(t *testing.T) {
	secret := func(change func(*corev1.Secret)) *corev1.Secret {
		s := DesiredCopy(Want{Account: types.NamespacedName{Namespace: "a", Name: "b-c"}, Namespace: "team"})
		change(s)
		return s
	}
	for name, test := range map[string]struct {
		secret *corev1.Secret
		want   bool
	}{
		"a copy":          {secret(func(*corev1.Secret) {}), true},
		"of another name": {secret(func(s *corev1.Secret) { s.Name = "x" }), false},
		"without the mark": {secret(func(s *corev1.Secret) { delete(s.Labels, "app.kubernetes.io/managed-by") }),
			false},
		"not labelled a credential": {secret(func(s *corev1.Secret) {
			s.Labels["inventory.open-cluster-management.io/credential"] = "false"
		}), false},
		"without cluster": {secret(func(s *corev1.Secret) {
			delete(s.Annotations, "inventory.open-cluster-management.io/source-cluster")
		}), false},
		"without account": {secret(func(s *corev1.Secret) {
			delete(s.Annotations, "inventory.open-cluster-management.io/source-account")
		}), false},
		"of another that is called so": {secret(func(s *corev1.Secret) {
			s.Annotations["inventory.open-cluster-management.io/source-cluster"] = "z"
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			account, ok := SourceOf(test.secret)
			if ok != test.want || ok && account != (types.NamespacedName{Namespace: "a", Name: "b-c"}) {
				t.Errorf("got %v, %t", account, ok)
			}
		})
	}
	// The copy's annotations distinguish two accounts of one name.
	other := DesiredCopy(Want{Account: types.NamespacedName{Namespace: "a-b", Name: "c"}, Namespace: "team"})
	if account, ok := SourceOf(other); !ok || account.Namespace != "a-b" || other.Name != "a-b-c" {
		t.Errorf("got %v, %t", account, ok)
	}
}

func TestIsUnmarked(t *testing.T) {
	account := types.NamespacedName{Namespace: "c1", Name: "a"}
	for name, test := range map[string]struct {
		change func(*corev1.Secret)
		want   bool
	}{
		"no marks": {func(*corev1.Secret) {}, true},
		"also written by another client": {func(s *corev1.Secret) {
			s.ManagedFields = append(s.ManagedFields, metav1.ManagedFieldsEntry{Manager: "kubectl"})
		}, true},
		"never written by this addon": {func(s *corev1.Secret) { s.ManagedFields[0].Manager = "kubectl" }, false},
		"no record of who wrote it":   {func(s *corev1.Secret) { s.ManagedFields = nil }, false},
		"another name":                {func(s *corev1.Secret) { s.Name = "x" }, false},
		"of another cluster":          {func(s *corev1.Secret) { s.OwnerReferences[0].Name = "c1-a" }, false},
		"no owner":                    {func(s *corev1.Secret) { s.OwnerReferences = nil }, false},
		"another kind of owner":       {func(s *corev1.Secret) { s.OwnerReferences[0].Kind = "Deployment" }, false},
		"another client's, too": {func(s *corev1.Secret) {
			s.OwnerReferences = append(s.OwnerReferences, metav1.OwnerReference{Kind: "Deployment", Name: "x"})
		}, false},
		"upstream's": {func(s *corev1.Secret) {
			s.Labels = map[string]string{"authentication.open-cluster-management.io/synced-from": s.Name}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := DesiredCopy(Want{Account: account, Namespace: "team", Owner: Owner{UID: "uid", Name: "c1"}})
			s.Labels, s.Annotations = nil, nil
			s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "hub.credentials"}}
			test.change(s)
			if got := isUnmarked(s, account, "hub.credentials"); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestCopyPatch(t *testing.T) {
	w := Want{
		Account: types.NamespacedName{Namespace: "c1", Name: "a"}, Namespace: "team", Owner: Owner{UID: "uid", Name: "c1"},
		Token: bearer.Token{Token: []byte("t"), CA: []byte("c"), Expires: time.Unix(0, 0)},
	}
	const (
		annotations = `"annotations":{"inventory.open-cluster-management.io/expires":"1970-01-01T00:00:00Z",` +
			`"inventory.open-cluster-management.io/source-account":"a","inventory.open-cluster-management.io/source-cluster":"c1"}`
		labels = `"labels":{"app.kubernetes.io/managed-by":"cluster-inventory-addon","inventory.open-cluster-management.io/credential":"true"}`
		owners = `"ownerReferences":[{"apiVersion":"multicluster.x-k8s.io/v1alpha1","kind":"ClusterProfile","name":"c1","uid":"uid"}]`
	)
	unowned := w
	unowned.Owner = Owner{}
	holding := func(data map[string][]byte) *corev1.Secret { return &corev1.Secret{Data: data} }
	for name, test := range map[string]struct {
		want  Want
		have  *corev1.Secret
		patch string
	}{
		"what this process wrote": {
			want: w,
			patch: `{"data":{"ca.crt":"Yw==","token":"dA=="},"metadata":{` + annotations +
				`,` + labels + `,` + owners + `,"resourceVersion":"7"}}`,
		},
		"other keys are removed": {
			want: w, have: holding(map[string][]byte{"token": []byte("x"), "more": []byte("y")}),
			patch: `{"data":{"ca.crt":"Yw==","more":null,"token":"dA=="},"metadata":{` +
				annotations + `,` + labels + `,` + owners + `,"resourceVersion":"7"}}`,
		},
		"upstream's label is removed": {
			want: w, have: upstreams(w),
			patch: `{"data":{"ca.crt":"Yw==","token":"dA=="},"metadata":{` + annotations + `,` +
				`"labels":{"app.kubernetes.io/managed-by":"cluster-inventory-addon","authentication.open-cluster-management.io/synced-from":null,` +
				`"inventory.open-cluster-management.io/credential":"true"},` + owners + `,"resourceVersion":"7"}}`,
		},
		"the owner of an unknown profile stays": {
			want: unowned,
			patch: `{"data":{"ca.crt":"Yw==","token":"dA=="},"metadata":{` +
				annotations + `,` + labels + `,"resourceVersion":"7"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			patch, err := kube.MergePatch("7", copyPatch(test.have, test.want))
			if err != nil {
				t.Fatal(err)
			}
			got, err := patch.Data(nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.patch, string(got)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNextStep(t *testing.T) {
	w := Want{
		Account: types.NamespacedName{Namespace: "c1", Name: "a"}, Namespace: "team", Owner: Owner{UID: "uid", Name: "c1"},
		Token: bearer.Token{Token: []byte("t"), CA: []byte("c"), Expires: time.Unix(0, 0)},
	}
	for name, test := range map[string]struct {
		change  func(*corev1.Secret)
		foreign bool
		unowned bool
		want    step
	}{
		"as it should be":       {want: keep},
		"with labels of others": {change: func(s *corev1.Secret) { s.Labels["theirs"] = "x" }, want: keep},
		"with another owner": {change: func(s *corev1.Secret) { s.OwnerReferences[0].UID = "x" },
			want: patch},
		"with another owner, of no known owner": {change: func(s *corev1.Secret) { s.OwnerReferences[0].UID = "x" },
			unowned: true, want: keep},
		"with another token": {change: func(s *corev1.Secret) { s.Data["token"] = []byte("x") },
			want: patch},
		"with another key": {change: func(s *corev1.Secret) { s.Data["more"] = []byte("x") },
			want: patch},
		"with another expiry": {change: func(s *corev1.Secret) {
			s.Annotations["inventory.open-cluster-management.io/expires"] = "x"
		}, want: patch},
		"immutable":       {change: func(s *corev1.Secret) { s.Immutable = ptr.To(true) }, want: replace},
		"not immutable":   {change: func(s *corev1.Secret) { s.Immutable = ptr.To(false) }, want: keep},
		"of another type": {change: func(s *corev1.Secret) { s.Type = "example.com/other" }, want: replace},
		"being deleted":   {change: func(s *corev1.Secret) { s.DeletionTimestamp = ptr.To(metav1.Now()) }, want: replace},
		"with upstream's label": {change: func(s *corev1.Secret) {
			s.Labels["authentication.open-cluster-management.io/synced-from"] = "c1-a"
		}, want: patch},
		"foreign": {foreign: true, want: leaveForeign},
	} {
		t.Run(name, func(t *testing.T) {
			have, want := DesiredCopy(w), w
			if test.change != nil {
				test.change(have)
			}
			if test.unowned {
				want.Owner = Owner{}
			}
			if got := nextStep(have, !test.foreign, want); got != test.want {
				t.Errorf("got step %d, want %d", got, test.want)
			}
		})
	}
}
