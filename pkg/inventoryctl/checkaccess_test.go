package inventoryctl

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// checksAccess tests the connection to a cluster, a real API server, and others that end
// early.
func checksAccess(t *testing.T, h *hub, admin *reader) {
	t.Helper()
	const namespace = "wayfarers"
	spoke := hubServer.Config(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "walker"}}
	h.MustCreate(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, account,
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "walker"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "walker"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "walker"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "walker"}},
		})
	request := &authenticationv1.TokenRequest{}
	apitest.Must(t, h.SubResource("token").Create(t.Context(), account, request))
	token := request.Status.Token
	// The second server answers like cluster-proxy's user server without an agent.
	down := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "proxy to anp-proxy-server failed because No agent available", http.StatusBadGateway)
	}))
	t.Cleanup(down.Close)
	downCA := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: down.Certificate().Raw})
	for name, test := range map[string]struct {
		server string
		ca     []byte
		copied string // the token; none if empty
		can    string
		code   int
		want   []string
		last   string // hop
	}{
		"through": {spoke.Host, spoke.CAData, token, "list pods in " + namespace, ExitOK,
			[]string{"the cluster knows the account as system:serviceaccount:" + namespace + ":walker", "the account may list pods in"}, "rights"},
		"without-rights": {spoke.Host, spoke.CAData, token, "list secrets", ExitMissing,
			[]string{"the account may not list secrets in all namespaces"}, "rights"},
		"rejected": {spoke.Host, spoke.CAData, token[:len(token)-8] + "AAAAAAAA", "", ExitMissing,
			[]string{"the cluster rejects the token (401)", "kubectl get managedserviceaccount walker -n rejected"}, "authentication"},
		"uncopied": {spoke.Host, spoke.CAData, "", "", ExitMissing,
			[]string{"there is no Secret " + namespace + "/uncopied-walker", "(exit code 5)"}, "token"},
		"down": {down.URL, downCA, token, "", ExitMissing,
			[]string{"the server answers 502: proxy to anp-proxy-server failed", "kubectl get managedclusteraddon cluster-proxy -n down"}, "tunnel"},
		"unverified": {down.URL, spoke.CAData, token, "", ExitMissing,
			[]string{"the published CA does not verify 127.0.0.1"}, "TLS"},
		"closed": {"https://127.0.0.1:1", downCA, token, "", ExitMissing, []string{"no connection to 127.0.0.1:1"}, "connection"},
		"inside": {"https://cluster-proxy-addon-user.open-cluster-management-addon.invalid.:9092/inside", downCA, token, "", ExitMissing,
			[]string{"resolves only inside the hub", "access.clusterProxy.url"}, "name"},
		"plain": {"http://127.0.0.1:1", downCA, token, "", ExitMissing, []string{"is not encrypted"}, "profile"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hub{h.In(t)}
			h.profile(namespace, name, func(p *inventoryv1alpha1.ClusterProfile) {
				offers(name, test.server)(p)
				p.Status.AccessProviders[0].Cluster.CertificateAuthorityData = test.ca
			})
			if test.copied != "" {
				h.MustCreate(&corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-walker"},
					Data:       map[string][]byte{"token": []byte(test.copied)},
				})
			}
			args := []string{"check-access", name, "-n", namespace, "--account", "walker"}
			if test.can != "" {
				args = append(args, "--can", test.can)
			}
			got := admin.run(args...)
			for _, want := range test.want {
				if !strings.Contains(got.stdout, want) {
					t.Errorf("it does not say %q", want)
				}
			}
			lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
			if last := lines[len(lines)-1]; got.code != test.code || got.stderr != "" || !strings.Contains(last, " "+test.last+" ") {
				t.Errorf("want code %d, and %s as the last hop", test.code, test.last)
			}
			if strings.Contains(got.String(), token[:len(token)-8]) {
				t.Error("it shows the token")
			}
			if t.Failed() {
				t.Log(got)
			}
		})
	}
	if got := admin.run("check-access", "no-such", "-n", namespace, "--account", "walker", "-o", "json"); got.code != ExitMissing ||
		!strings.Contains(got.stdout, `"there is no ClusterProfile"`) {
		t.Errorf("no profile: %s", got)
	}
}
