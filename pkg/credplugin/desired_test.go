package credplugin

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// codeAndText makes an error comparable; its text is checked by a part of it.
func codeAndText(t *testing.T, err error, part string) int {
	t.Helper()
	failure, ok := errors.AsType[*Failure](err)
	if !ok {
		t.Fatalf("error = %v, want a Failure", err)
	}
	if !strings.Contains(failure.Text, part) || strings.ContainsAny(failure.Text, "\n\x1b") {
		t.Errorf("text = %q, want one line with %q", failure.Text, part)
	}
	return failure.Code
}

func request(config string) string {
	return `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false,"cluster":{"server":"https://x","config":` + config + `}}}`
}

func TestWantedAccount(t *testing.T) {
	for name, request := range map[string]string{
		"the cluster the profile names":                  request(`{"clusterName":"cluster1"}`),
		"more than the name in the extension is ignored": request(`{"clusterName":"cluster1","token":"x"}`),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := wantedAccount(request, "argocd")
			if err != nil {
				t.Fatal(err)
			}
			if want := (account{cluster: "cluster1", name: "argocd"}); got != want || got.secret() != "cluster1-argocd" {
				t.Errorf("account = %v with Secret %q, want %v", got, got.secret(), want)
			}
		})
	}
}

func TestWantedAccountRefuses(t *testing.T) {
	for name, test := range map[string]struct{ request, want string }{
		"a call by hand":  {"", "clients run this program"},
		"what is no JSON": {"{", "cannot be parsed"},
		"another kind":    {`{"kind":"Pod","apiVersion":"v1"}`, `is a "Pod"`},
		"the beta version": {
			`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","spec":{"cluster":{"config":{"clusterName":"c"}}}}`,
			"set execConfig.apiVersion to client.authentication.k8s.io/v1",
		},
		"no cluster information": {
			`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{}}`,
			"set execConfig.provideClusterInfo to true",
		},
		"a profile without the extension": {
			`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"cluster":{"server":"https://x"}}}`,
			`no extension "client.authentication.k8s.io/exec" with a "clusterName"`,
		},
		"an extension of nothing":       {request(`null`), "no extension"},
		"an extension without the name": {request(`{}`), "no extension"},
		"an extension that is a list":   {request(`["cluster1"]`), "cannot be parsed"},
		"a name that is a number":       {request(`{"clusterName":1}`), "is not a string"},
		"an empty name":                 {request(`{"clusterName":""}`), "not the name of a cluster"},
		"a name with a path in it": {
			request(`{"clusterName":"../../kube-system/secrets/x"}`), "not the name of a cluster",
		},
		"a name with a slash":            {request(`{"clusterName":"a/b"}`), `"a/b"`},
		"a name with an escape sequence": {request(`{"clusterName":"a\u001b[2Jb"}`), "not the name of a cluster"},
		"a name too long to be anyone's": {
			request(`{"clusterName":"` + strings.Repeat("a", 300) + `"}`), strings.Repeat("a", 80) + `..."`,
		},
		"a name too long with the account's": {
			request(`{"clusterName":"` + strings.Repeat("a", 250) + `"}`), "not the name of a cluster",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := wantedAccount(test.request, "argocd")
			if code := codeAndText(t, err, test.want); code != ExitExecInfo {
				t.Errorf("code = %d, want %d", code, ExitExecInfo)
			}
		})
	}
}

// jwt is an unsigned token with the given claims.
func jwt(claims string) string {
	return "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".signature"
}

func copyOf(token string, annotations map[string]string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a-b-c", Annotations: annotations},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{"token": []byte(token)},
	}
}

func source(cluster, account string) map[string]string {
	return map[string]string{
		"inventory.open-cluster-management.io/source-cluster": cluster,
		"inventory.open-cluster-management.io/source-account": account,
	}
}

func TestCredentialFrom(t *testing.T) {
	token := jwt(`{"sub":"system:serviceaccount:open-cluster-management-agent-addon:c","exp":1795266000}`) // at 13:00
	for name, test := range map[string]struct {
		secret   *corev1.Secret
		maxCache time.Duration
		want     credential
	}{
		"a token valid for long is asked for again after the cache's time": {
			secret: copyOf(token, source("a-b", "c")), maxCache: 5 * time.Minute,
			want: credential{token: token, expires: now.Add(5 * time.Minute)},
		},
		"a token that ends before that is asked for again a little earlier than it ends": {
			secret: copyOf(token, source("a-b", "c")), maxCache: 2 * time.Hour,
			want: credential{token: token, expires: now.Add(time.Hour - 30*time.Second)},
		},
		"a copy that does not say where it is from is taken": {
			secret: copyOf(token, nil), maxCache: time.Minute,
			want: credential{token: token, expires: now.Add(time.Minute)},
		},
		"the annotation counts where the token does not say": {
			secret: copyOf("opaque", map[string]string{"inventory.open-cluster-management.io/expires": "2026-11-21T12:03:00Z"}), maxCache: 5 * time.Minute,
			want: credential{token: "opaque", expires: now.Add(150 * time.Second)},
		},
		"the token counts where both say": {
			secret: copyOf(token, map[string]string{"inventory.open-cluster-management.io/expires": "2026-11-21T11:00:00Z"}), maxCache: 5 * time.Minute,
			want: credential{token: token, expires: now.Add(5 * time.Minute)},
		},
		"a token of which no end is known is asked for again after the cache's time": {
			secret: copyOf("not.a.jwt", map[string]string{"inventory.open-cluster-management.io/expires": "soon"}), maxCache: time.Minute,
			want: credential{token: "not.a.jwt", expires: now.Add(time.Minute)},
		},
		"a line's end after the token does not matter": {
			secret: copyOf("opaque\n", nil), maxCache: time.Minute,
			want: credential{token: "opaque", expires: now.Add(time.Minute)},
		},
		"a token of no service account is not compared": {
			secret: copyOf(jwt(`{"sub":"jane"}`), nil), maxCache: time.Minute,
			want: credential{token: jwt(`{"sub":"jane"}`), expires: now.Add(time.Minute)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := credentialFrom(test.secret, account{cluster: "a-b", name: "c"}, now, test.maxCache)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(credential{}), cmp.Comparer(time.Time.Equal)); diff != "" {
				t.Errorf("credential (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCredentialFromRefuses(t *testing.T) {
	hubs := copyOf(jwt(`{"sub":"system:serviceaccount:team:c"}`), nil)
	hubs.Type = corev1.SecretTypeServiceAccountToken
	for name, test := range map[string]struct {
		secret *corev1.Secret
		code   int
		want   string
	}{
		"no token": {
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a-b-c"}}, ExitUnusable,
			`its key "token" is missing or empty; the events of the ClusterProfile team/a-b or of the namespace's ` +
				`ManagedClusterSetBindings say why (kubectl events -n team)`,
		},
		"an empty token":            {copyOf(" \n", nil), ExitUnusable, "missing or empty"},
		"two lines":                 {copyOf("canary\r\nX-Other: 1", nil), ExitUnusable, "no token has"},
		"more than a header takes":  {copyOf(strings.Repeat("canary", 20000), nil), ExitUnusable, "too long"},
		"a token of the hub itself": {hubs, ExitUnusable, "a service account of the hub"},
		"the copy of an account with the same name": {
			copyOf(jwt(`{"x":"canary"}`), source("a", "b-c")), ExitUnusable, `a/b-c, and a-b/c is wanted`,
		},
		"a copy that says half": {
			copyOf("canary", map[string]string{"inventory.open-cluster-management.io/source-cluster": "a"}), ExitUnusable,
			"is wanted",
		},
		"the token of another account": {
			copyOf(jwt(`{"sub":"system:serviceaccount:open-cluster-management-agent-addon:b-c"}`), nil), ExitUnusable,
			"its token is for system:serviceaccount:open-cluster-management-agent-addon:b-c",
		},
		"a subject that plays with the terminal": {
			copyOf(jwt(`{"sub":"system:serviceaccount:\u001b[2J\nns:x"}`), nil), ExitUnusable, "its token is for",
		},
		"a token that ends now": {
			copyOf(jwt(`{"exp":1795262400}`), nil), ExitExpired, "expired at 2026-11-21T12:00:00Z",
		},
		"a copy that says that it ended": {
			copyOf("canary", map[string]string{"inventory.open-cluster-management.io/expires": "2026-11-21T11:59:59Z"}),
			ExitExpired, "no newer one",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := credentialFrom(test.secret, account{cluster: "a-b", name: "c"}, now, time.Minute)
			if code := codeAndText(t, err, test.want); code != test.code {
				t.Errorf("code = %d, want %d", code, test.code)
			}
			if strings.Contains(err.Error(), "cluster-inventory") {
				t.Errorf("%q sends a consumer to a namespace that it may not read", err)
			}
			if got != (credential{}) || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "eyJ") {
				t.Errorf("got %v and %q, want nothing of the token", got, err)
			}
		})
	}
}

func TestAskAgain(t *testing.T) {
	for name, test := range map[string]struct {
		left, maxCache, want time.Duration
	}{
		"long before the end":                        {time.Hour, 5 * time.Minute, 5 * time.Minute},
		"the end is nearer than the cache's time":    {3 * time.Minute, 5 * time.Minute, 150 * time.Second},
		"near the end not at once":                   {33 * time.Second, 5 * time.Minute, 5 * time.Second},
		"within the skew not at once":                {20 * time.Second, 5 * time.Minute, 5 * time.Second},
		"never after the end":                        {2 * time.Second, 5 * time.Minute, 2 * time.Second},
		"within the skew not after the cache's time": {20 * time.Second, time.Second, time.Second},
		"just before the skew begins the cache's time": {
			31 * time.Second, time.Second - time.Millisecond, time.Second - time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := askAgain(now.Add(test.left), now, test.maxCache).Sub(now); got != test.want {
				t.Errorf("asks again after %s, want %s", got, test.want)
			}
		})
	}
}
