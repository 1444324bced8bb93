package inventoryctl

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/golden"
)

// offers gives a profile an access provider.
func offers(name, server string) func(*inventoryv1alpha1.ClusterProfile) {
	return func(p *inventoryv1alpha1.ClusterProfile) {
		p.Status.Properties = []inventoryv1alpha1.Property{{Name: "tier", Value: name}}
		p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{
			Name: "open-cluster-management",
			Cluster: clientcmdv1.Cluster{
				Server: server, CertificateAuthorityData: []byte("ca of " + name),
				Extensions: []clientcmdv1.NamedExtension{{
					Name:      "client.authentication.k8s.io/exec",
					Extension: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"clusterName": %q}`, name)},
				}},
			},
		}}
	}
}

// writesContexts writes the contexts of a namespace, and follows what is published there.
func writesContexts(t *testing.T, h *hub, admin *reader) {
	t.Helper()
	h.MustCreate(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "people"}})
	for _, name := range []string{"gold", "iron", "zinc"} {
		h.profile("people", name, offers(name, "https://proxy:9092/"+name))
	}
	h.profile("people", "none", func(*inventoryv1alpha1.ClusterProfile) {})
	h.Placement("people", "metal", "iron", "zinc", "elsewhere")
	path := filepath.Join(t.TempDir(), "config")
	command := func(args ...string) ran {
		t.Helper()
		return admin.run(append([]string{"kubeconfig", "-n", "people", "--account", "reporter", "--output", path}, args...)...)
	}
	contexts := func() string {
		t.Helper()
		config, err := clientcmd.LoadFromFile(path)
		apitest.Must(t, err)
		var names []string
		for _, name := range []string{"gold", "iron", "zinc", "none"} {
			if _, ok := config.Contexts[name+"/people/reporter"]; ok {
				names = append(names, name)
			}
		}
		if len(config.Contexts) != len(names) {
			t.Errorf("contexts: %v", config.Contexts)
		}
		return strings.Join(names, " ")
	}
	for _, step := range []struct {
		args       []string
		want       string // contexts
		code       int
		says, errs string
	}{
		{[]string{"gold"}, "gold", ExitOK, `Context "gold/people/reporter" created.`, ""},
		{[]string{"none"}, "gold", ExitMissing, "", `cluster none: its ClusterProfile has no access provider`},
		{[]string{"--from-placement", "people/metal"}, "gold iron zinc", ExitOK, "2 (2 created)", ""},
		{[]string{"--where", "tier=*n*"}, "gold iron zinc", ExitOK, "2 (unchanged)", ""},
		{[]string{"--where", "tier=nothing"}, "gold iron zinc", ExitOK, "", "No ClusterProfiles in namespace people are chosen."},
		{nil, "gold iron zinc", ExitOK, "3 (unchanged)", "No context was written for cluster none"},
	} {
		got := command(step.args...)
		if now := contexts(); got.code != step.code || now != step.want ||
			!strings.Contains(got.stdout, step.says) || !strings.Contains(got.stderr, step.errs) {
			t.Errorf("%v: want %+v, contexts are %q: %s", step.args, step, now, got)
		}
	}

	self, err := os.Executable()
	apitest.Must(t, err)
	raw, err := clientcmd.LoadFromFile(admin.kubeconfig)
	apitest.Must(t, err)
	known := []string{self, "/kubectl-inventory", admin.kubeconfig, "/hub.kubeconfig"}
	for _, cluster := range raw.Clusters {
		known = append(known, cluster.Server, "https://hub")
	}
	got := admin.run("kubeconfig", "gold", "-n", "people", "--account", "reporter", "--output", "-")
	golden.Check(t, "kubeconfig_gold", strings.NewReplacer(known...).Replace(got.String()))

	apitest.Must(t, h.Delete(t.Context(), ocmtest.OurProfile("people", "iron")))
	if got := command("iron"); got.code != ExitMissing || contexts() != "gold zinc" ||
		!strings.Contains(got.stdout, `Context "iron/people/reporter" pruned.`) ||
		!strings.Contains(got.stderr, "cluster iron: it has no ClusterProfile there") {
		t.Errorf("a withdrawn cluster: %s", got)
	}
	for want, args := range map[string][]string{
		"there is no Placement people/no-such": {"--from-placement", "people/no-such"},
		"is a directory":                       {"--output", t.TempDir()},
	} {
		if got := command(args...); got.code != ExitFailed || got.stdout != "" || strings.Count(got.stderr, "\n") != 1 ||
			!strings.Contains(got.stderr, want) || contexts() != "gold zinc" {
			t.Errorf("want one line with %q: %s", want, got)
		}
	}
	givesTokens(t, h, admin)
}

// givesTokens runs the exec plugin as a client does.
func givesTokens(t *testing.T, h *hub, admin *reader) {
	t.Helper()
	credential := func(cluster string) ran {
		t.Setenv("KUBERNETES_EXEC_INFO", fmt.Sprintf(`{"apiVersion": "client.authentication.k8s.io/v1",
			"kind": "ExecCredential", "spec": {"cluster": {"config": {"clusterName": %q}}}}`, cluster))
		streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
		code := run(t.Context(), []string{
			"credential", "--managed-serviceaccount=reporter", "--namespace=people", "--kubeconfig=" + admin.kubeconfig,
		}, streams, func() time.Time { return then })
		return ran{code, stdout.String(), stderr.String()}
	}
	token := func(subject string) []byte {
		payload := fmt.Sprintf(`{"sub": %q, "exp": %d}`, subject, then.Add(time.Hour).Unix())
		return []byte("e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".signature")
	}
	right := token("system:serviceaccount:agents:reporter")
	h.MustCreate(
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "people", Name: "gold-reporter"}, Data: map[string][]byte{"token": right},
		},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "people", Name: "zinc-reporter"},
			Data:       map[string][]byte{"token": token("system:serviceaccount:agents:other")},
		})
	if got := credential("gold"); got.code != ExitOK || got.stderr != "" || !strings.Contains(got.stdout, string(right)) {
		t.Errorf("the account's token: %s", got)
	}
	for cluster, want := range map[string]ran{
		"iron":   {code: 5, stderr: "there is no Secret people/iron-reporter"},
		"zinc":   {code: 7, stderr: "Secret people/zinc-reporter is not used"},
		"../no/": {code: 3, stderr: "is not the name of a cluster"},
	} {
		got := credential(cluster)
		if got.code != want.code || got.stdout != "" || !strings.Contains(got.stderr, want.stderr) ||
			strings.Count(got.stderr, "\n") != 1 || strings.Contains(got.stderr, "signature") {
			t.Errorf("%s: want one line with %q and code %d: %s", cluster, want.stderr, want.code, got)
		}
	}
}
