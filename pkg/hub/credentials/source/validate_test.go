package source

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

const (
	syncLabel        = "authentication.open-cluster-management.io/sync-to-clusterprofile"
	targetAnnotation = "inventory.open-cluster-management.io/sync-to-namespaces"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func jwt(payload string) string {
	return "h." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".s"
}

func TestValidate(t *testing.T) {
	account := &authv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a", UID: "uid"}}
	hour := fmt.Sprintf(`{"exp":%d}`, noon.Add(time.Hour).Unix())
	tests := map[string]struct {
		change  func(*corev1.Secret)
		status  *metav1.Time
		problem string
		expires time.Time
	}{
		"good":                           {expires: noon.Add(time.Hour)},
		"the status says an earlier end": {status: ptr.To(metav1.NewTime(noon.Add(time.Minute))), expires: noon.Add(time.Hour)},
		"the status says a later end":    {status: ptr.To(metav1.NewTime(noon.Add(99 * time.Hour))), expires: noon.Add(time.Hour)},
		"more than the two keys":         {change: func(s *corev1.Secret) { s.Data["kubeconfig"] = []byte("x") }, expires: noon.Add(time.Hour)},
		"ends this instant":              {change: token(fmt.Sprintf(`{"exp":%d}`, noon.Unix())), problem: "has expired at 2026-03-04T12:00:00Z"},
		"no label":                       {change: func(s *corev1.Secret) { s.Labels = nil }, problem: "was not created by managed-serviceaccount"},
		"an owner of the same name":      {change: func(s *corev1.Secret) { s.OwnerReferences[0].UID = "other" }, problem: "no owner reference has its UID"},
		"an owner of another kind":       {change: func(s *corev1.Secret) { s.OwnerReferences[0].Kind = "ConfigMap" }, problem: "no owner reference has its UID"},
		"an owner of another group": {change: func(s *corev1.Secret) {
			s.OwnerReferences[0].APIVersion = "authentication.open-cluster-management.io.evil.com/v1"
		}, problem: "no owner reference has its UID"},
		"a service account's token": {change: func(s *corev1.Secret) { s.Type = "kubernetes.io/service-account-token" }, problem: "is of type"},
		"no token":                  {change: func(s *corev1.Secret) { delete(s.Data, "token") }, problem: "holds no token"},
		"an empty token":            {change: func(s *corev1.Secret) { s.Data["token"] = nil }, problem: "holds no token"},
		"an enormous token":         {change: func(s *corev1.Secret) { s.Data["token"] = make([]byte, 16<<10+1) }, problem: "has 16385 bytes, and 16384 are allowed"},
		"no authorities":            {change: func(s *corev1.Secret) { delete(s.Data, "ca.crt") }, problem: "holds no ca.crt"},
		"enormous authorities":      {change: func(s *corev1.Secret) { s.Data["ca.crt"] = make([]byte, 256<<10+1) }, problem: "has 262145 bytes"},
		"authorities that are none": {change: func(s *corev1.Secret) { s.Data["ca.crt"] = []byte("x") }, problem: "is not a list of PEM certificates"},
		"a key among the authorities": {change: func(s *corev1.Secret) {
			s.Data["ca.crt"] = []byte(ocmtest.CA() + strings.ReplaceAll(ocmtest.CA(), "CERTIFICATE", "EC PRIVATE KEY"))
		}, problem: "is not a list of PEM certificates"},
		"a broken key after the authorities":  {change: func(s *corev1.Secret) { s.Data["ca.crt"] = []byte(ocmtest.CA() + "-----BEGIN PRIVATE KEY-----\n") }, problem: "is not a list of PEM certificates"},
		"a broken key before the authorities": {change: func(s *corev1.Secret) { s.Data["ca.crt"] = []byte("-----BEGIN PRIVATE KEY-----\n" + ocmtest.CA()) }, problem: "is not a list of PEM certificates"},
		"two authorities":                     {change: func(s *corev1.Secret) { s.Data["ca.crt"] = []byte(ocmtest.CA() + ocmtest.CA()) }, expires: noon.Add(time.Hour)},
		"text between the authorities": {change: func(s *corev1.Secret) {
			s.Data["ca.crt"] = []byte("a: b\n" + ocmtest.CA() + "\x1b[31m\n" + ocmtest.CA() + "end")
		}, expires: noon.Add(time.Hour)},
		"headers of an authority": {change: func(s *corev1.Secret) {
			s.Data["ca.crt"] = []byte(strings.Replace(ocmtest.CA(), "-----\n", "-----\nX: y\n\n", 1))
		}, expires: noon.Add(time.Hour)},
		"a web token with a line break": {change: func(s *corev1.Secret) {
			s.Data["token"] = []byte(jwt(hour) + "\r\nX-Header: v")
		}, problem: "is not a JSON web token"},
		"a web token with a quote": {change: func(s *corev1.Secret) {
			s.Data["token"] = []byte(`x","y":"` + jwt(hour))
		}, problem: "is not a JSON web token"},
		"no web token":                         {change: func(s *corev1.Secret) { s.Data["token"] = []byte("password") }, problem: "is not a JSON web token"},
		"a web token without signature":        {change: func(s *corev1.Secret) { s.Data["token"] = []byte(strings.TrimSuffix(jwt(hour), "s")) }, problem: "is not a JSON web token"},
		"a web token of no object":             {change: token(`[]`), problem: "is not a JSON web token"},
		"a web token without end":              {change: token(`{}`), problem: "is not a JSON web token"},
		"a web token that ends in words":       {change: token(`{"exp":"tomorrow"}`), problem: "is not a JSON web token"},
		"a web token that ends before 1970":    {change: token(`{"exp":-1}`), problem: "is not a JSON web token"},
		"a web token that ends after all time": {change: token(`{"exp":1e300}`), problem: "is not a JSON web token"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			account := account.DeepCopy()
			account.Status.ExpirationTimestamp = test.status
			secret := ocmtest.TokenSecret(account, jwt(hour), ocmtest.CA())
			if test.change != nil {
				test.change(secret)
			}
			got, problem := validate(account, secret, noon)
			if (problem == "") != (test.problem == "") || !strings.Contains(problem, test.problem) {
				t.Fatalf("problem %q, want %q", problem, test.problem)
			}
			if problem != "" {
				if got.Token != nil || got.CA != nil {
					t.Error("something is to be copied in spite of the problem")
				}
				return
			}
			if text := strings.ReplaceAll(string(got.CA), ocmtest.CA(), ""); text != "" {
				t.Errorf("beside the authorities, %q is to be copied", text)
			}
			if !got.Expires.Equal(test.expires) || len(got.Token) == 0 || len(got.CA) == 0 {
				t.Errorf("expires %s, want %s; %d bytes of token, %d of authorities", got.Expires, test.expires, len(got.Token), len(got.CA))
			}
		})
	}
}

func token(payload string) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.Data["token"] = []byte(jwt(payload)) }
}

func TestRefusal(t *testing.T) {
	for name, test := range map[string]struct {
		ref     Reference
		problem string
	}{
		"good":                       {ref: Reference{name: "a", expires: noon.Add(time.Second)}},
		"no end is said":             {ref: Reference{name: "a"}},
		"ended":                      {ref: Reference{name: "a", expires: noon}, problem: "has expired at"},
		"nothing is named":           {problem: "names no Secret"},
		"another Secret":             {ref: Reference{name: "b"}, problem: "names a Secret that is not its own"},
		"a Secret somewhere else":    {ref: Reference{name: "../x/a"}, problem: "names a Secret that is not its own"},
		"a name that does not print": {ref: Reference{name: "\x1b[31m"}, problem: "names a Secret that is not its own"},
	} {
		t.Run(name, func(t *testing.T) {
			refusal := test.ref.Refusal("a", noon)
			got := refusal.Problem
			if (got == "") != (test.problem == "") || !strings.Contains(got, test.problem) || strings.Contains(got, "\x1b") {
				t.Errorf("got %q, want %q", got, test.problem)
			}
			// Only time changes a finding that depends on time.
			if again, passes := !refusal.Next.IsZero(), name == "ended"; again != passes {
				t.Errorf("it is validated again at %s", refusal.Next)
			}
		})
	}
}

func TestTrimAccountKeepsWhatIsRead(t *testing.T) {
	account := &authv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: "c1", Name: "a", UID: "uid", ResourceVersion: "7", Finalizers: []string{"x"},
		Labels:      map[string]string{syncLabel: "true", "other": "x"},
		Annotations: map[string]string{targetAnnotation: "team", "other": "x"},
	}}
	account.Status.TokenSecretRef = &authv1beta1.SecretRef{Name: "a", LastRefreshTimestamp: metav1.NewTime(noon)}
	account.Status.ExpirationTimestamp = ptr.To(metav1.NewTime(noon))
	account.Status.Conditions = []metav1.Condition{{Type: "x"}}
	trimmed := trimAccount(account.DeepCopy())
	if ReferenceOf(trimmed) != ReferenceOf(account) || !IsLabelled(trimmed) || accountChanged(account.DeepCopy(), func() *authv1beta1.ManagedServiceAccount {
		trimmed := trimmed.DeepCopy()
		trimmed.Annotations["other"] = "x"
		return trimmed
	}()) {
		t.Errorf("what is read was cut off: %+v", trimmed)
	}
	if len(trimmed.Labels) != 1 || len(trimmed.Annotations) != 1 || trimmed.Status.Conditions != nil || trimmed.Finalizers != nil {
		t.Errorf("what is not read was kept: %+v", trimmed)
	}
}

// A spoke may name what it likes in an account's status.
func TestTrimAccountBoundsTheStatus(t *testing.T) {
	account := &authv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a"}}
	account.Status.TokenSecretRef = &authv1beta1.SecretRef{
		Name: "a" + strings.Repeat("x", 1<<20), LastRefreshTimestamp: metav1.NewTime(noon),
	}
	ref := ReferenceOf(trimAccount(account))
	if len(ref.name) > maxNameBytes || !ref.refreshed.Equal(noon) {
		t.Errorf("%d bytes of the name are kept; the time is %s", len(ref.name), ref.refreshed)
	}
	if refusal := ref.Refusal("a", noon); !strings.Contains(refusal.Problem, "not its own") {
		t.Errorf("got %q", refusal.Problem)
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
		got := NamedNamespaces(account)
		if diff := cmp.Diff(Named{Namespaces: want, Is: true}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", list, diff)
		}
	}
	if got := NamedNamespaces(&authv1beta1.ManagedServiceAccount{}); got.Is {
		t.Error("an account without the annotation names nothing")
	}
}

// An annotation may have a quarter of a megabyte.
func TestFirstNamespacesCount(t *testing.T) {
	var list []string
	for i := range 58_000 {
		list = append(list, fmt.Sprintf("n%d", 58_000-i))
	}
	account := &authv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		targetAnnotation: strings.Join(list, ", ") + "," + list[0],
	}}}
	want := Named{Namespaces: slices.Sorted(slices.Values(list[:500])), More: 57_500, Is: true}
	if diff := cmp.Diff(want, NamedNamespaces(account)); diff != "" {
		t.Errorf("named (-want +got):\n%s", diff)
	}
	for range 2 { // an informer may trim an object twice
		account = trimAccount(account)
		if diff := cmp.Diff(want, NamedNamespaces(account)); diff != "" {
			t.Errorf("named, as cached (-want +got):\n%s", diff)
		}
	}
	if size := len(account.Annotations[targetAnnotation]); size > 500*8 {
		t.Errorf("%d bytes of it are cached", size)
	}
}

func TestInvalidNamespaceNameIsShortened(t *testing.T) {
	account := &authv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		targetAnnotation: strings.Repeat("n", 1000) + ",a\x1b[2J",
	}}}
	want := Named{Namespaces: []string{`a\x1b[2J`, strings.Repeat("n", 77) + "..."}, Is: true}
	if diff := cmp.Diff(want, NamedNamespaces(account)); diff != "" {
		t.Errorf("named (-want +got):\n%s", diff)
	}
}
