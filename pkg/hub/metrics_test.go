package hub

import (
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
)

// scrape reads metrics with a token, or none, believing any certificate unless it is given
// a CA. No answer is code 0.
func scrape(t *testing.T, url, token string, ca []byte) (code int, text string) {
	t.Helper()
	trust := rest.TLSClientConfig{Insecure: len(ca) == 0, CAData: ca}
	as, err := rest.HTTPClientFor(&rest.Config{BearerToken: token, TLSClientConfig: trust})
	apitest.Must(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", http.NoBody)
	apitest.Must(t, err)
	resp, err := as.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

// tokenOf creates a ServiceAccount in the namespace "default" and returns a token of it.
func tokenOf(w *apitest.World, name string) string {
	w.T.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	w.MustCreate(account)
	w.CleanUp(account)
	request := &authenticationv1.TokenRequest{}
	apitest.Must(w.T, w.SubResource("token").Create(w.T.Context(), account, request))
	return request.Status.Token
}

func TestHubDecidesWhoReadsMetrics(t *testing.T) {
	server := hub
	w := apitest.NewWorld(t, server.Config(t), ocmtest.Scheme())
	hubtest.Install(w, "metrics: {readers: [{namespace: default, name: reader}]}", hubtest.Rights)
	reader, other := tokenOf(w, "reader"), tokenOf(w, "other")
	// The manager acts with the rights that the chart gives it.
	manager := server.User(t, hubtest.User)
	start := func(more ...string) (address string, stop func()) {
		address = freeAddress(t)
		program := hubtest.Start(t, manager, append(more, "-v=10", "--metrics-bind-address="+address)...)
		return address, func() {
			t.Helper()
			program.Stop()
			signature := reader[strings.LastIndex(reader, ".")+1:] // it is in no other text
			if !strings.Contains(program.Log(), "tokenreviews") && len(more) == 0 {
				t.Error("at this verbosity, the log does not mention the reviews")
			}
			if strings.Contains(program.Log(), signature) {
				t.Error("the token of who reads the metrics is in the log")
			}
		}
	}
	served := func(url, token string, ca []byte) {
		t.Helper()
		w.Eventually("the metrics of "+url, func() string {
			code, text := scrape(t, url, token, ca)
			if code != http.StatusOK || !strings.Contains(text, "\ncluster_inventory_build_info{") ||
				!strings.Contains(text, "\ncluster_inventory_profiles{state=\"Synced\"} 0") {
				return text[:min(len(text), 300)]
			}
			return ""
		})
	}

	address, stop := start()
	served("https://"+address, reader, nil)
	for who, want := range map[string]int{
		"": http.StatusUnauthorized, "x.y.z": http.StatusUnauthorized, other: http.StatusForbidden,
	} {
		if code, text := scrape(t, "https://"+address, who, nil); code != want ||
			strings.Contains(text, "cluster_inventory") {
			t.Errorf("got %d %s, want %d", code, text, want)
		}
	}
	// Strangers cannot make the manager ask the hub as often as they like, and keep no
	// reader out.
	codes := map[int]int{}
	for i := range 40 {
		code, _ := scrape(t, "https://"+address, fmt.Sprintf("x.y.z%d", i), nil)
		codes[code]++
	}
	if codes[http.StatusTooManyRequests] == 0 || codes[http.StatusOK] > 0 {
		t.Errorf("answers to strangers, by code: %v", codes)
	}
	served("https://"+address, reader, nil)
	if code, text := scrape(t, "http://"+address, reader, nil); code == http.StatusOK ||
		strings.Contains(text, "cluster_inventory") {
		t.Errorf("in plain text: %d %s", code, text)
	}
	stop()

	// To make the server verifiable, give it a certificate.
	ca := certtest.NewCA(t, "metrics", time.Now().Add(time.Hour))
	dir := t.TempDir()
	serving := certtest.Issue(t, ca, x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	apitest.Must(t, os.WriteFile(filepath.Join(dir, "tls.crt"), serving.PEM(), 0o600))
	apitest.Must(t, os.WriteFile(filepath.Join(dir, "tls.key"), serving.KeyPEM(t), 0o600))
	address, stop = start("--metrics-cert-dir=" + dir)
	served("https://"+address, reader, ca.PEM())
	stop()

	address, stop = start("--metrics-secure=false")
	served("http://"+address, "", nil)
	stop()
}

// TestAgentsAreCounted: the manager that leads counts what agents report, and what they make up as
// one.
func TestAgentsAreCounted(t *testing.T) {
	h := ocmtest.New(t, hub.Config(t))
	address := freeAddress(t)
	hubtest.Start(t, hub.Config(t), "--metrics-bind-address="+address, "--metrics-secure=false")
	cluster := h.Cluster("counted", nil)
	reports := func(reason string) {
		apitest.EditStatus(h, ocmtest.Addon(cluster.Name), func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.Conditions = []metav1.Condition{ocmtest.Condition("PropertiesPublished", "False", reason, "m")}
		})
	}
	for reason, label := range map[string]string{"HubKubeconfigInvalid": "HubKubeconfigInvalid", "MadeUp": "Other"} {
		reports(reason)
		want := fmt.Sprintf(
			"\ncluster_inventory_addons{condition=\"PropertiesPublished\",reason=%q,status=\"False\"} 1\n", label)
		h.Eventually(want, func() string {
			code, text := scrape(t, "http://"+address, "", nil)
			if code != http.StatusOK || !strings.Contains(text, want) || strings.Contains(text, "MadeUp") {
				return fmt.Sprintf("code %d", code)
			}
			return ""
		})
	}
}

// TestWrongTokensKeepNoKnownReaderOut: a token that was permitted before is reviewed,
// however many wrong ones come, and as long as the hub permits it.
func TestWrongTokensKeepNoKnownReaderOut(t *testing.T) {
	w := apitest.NewWorld(t, hub.Config(t), ocmtest.Scheme())
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: w.Name("reads-metrics")},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}
	w.MustCreate(role)
	w.CleanUp(role)
	grant := func(name string) (token string, binding *rbacv1.ClusterRoleBinding) {
		name = w.Name(name)
		token = tokenOf(w, name)
		binding = &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: name}},
		}
		w.MustCreate(binding)
		w.CleanUp(binding)
		return token, binding
	}
	client, err := rest.HTTPClientFor(hub.Config(t))
	apitest.Must(t, err)
	now := clocktesting.NewFakePassiveClock(time.Now())
	reviewer, err := newReviewer(hub.Config(t), client, now)
	apitest.Must(t, err)
	read := func(token string) int {
		t.Helper()
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
		req.Header.Set("Authorization", "Bearer "+token)
		code, err := reviewer.review(req)
		apitest.Must(t, err)
		return code
	}
	// flood sends wrong tokens once permissions that were cached are no longer used.
	flood := func(later time.Duration) {
		t.Helper()
		now.SetTime(now.Now().Add(later))
		codes := map[int]int{}
		for i := range 40 {
			codes[read(fmt.Sprintf("x.y.z%d", i))]++
		}
		want := map[int]int{http.StatusUnauthorized: 10, http.StatusTooManyRequests: 30}
		if diff := cmp.Diff(want, codes); diff != "" {
			t.Errorf("responses to wrong tokens, by code (-want +got):\n%s", diff)
		}
	}
	expect := func(who, token string, want int) {
		t.Helper()
		if code := read(token); code != want {
			t.Errorf("%s got %d, want %d", who, code, want)
		}
	}
	known, binding := grant("known")
	late, _ := grant("late")
	w.Eventually("a first reading", func() string {
		now.SetTime(now.Now().Add(time.Minute))
		if code := read(known); code != http.StatusOK {
			return http.StatusText(code)
		}
		return ""
	})
	flood(2 * time.Minute)
	expect("a token that was never permitted", late, http.StatusTooManyRequests)
	expect("a known token", known, http.StatusOK)
	flood(23 * time.Hour)
	expect("a token permitted 23 hours ago", known, http.StatusOK)
	flood(25 * time.Hour)
	expect("a token last permitted 25 hours ago", known, http.StatusTooManyRequests)

	now.SetTime(now.Now().Add(time.Minute))
	expect("the same token without wrong ones", known, http.StatusOK)
	w.MustDelete(binding)
	w.Eventually("the end of a permission", func() string {
		flood(2 * time.Minute)
		if code := read(known); code != http.StatusForbidden {
			return http.StatusText(code)
		}
		return ""
	})
	expect("a refused token", known, http.StatusTooManyRequests)
}
