package credentials

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

// person is a user outside the hub with kubectl and the plugin, who reaches the user server
// through a proxy.
type person struct {
	t     *testing.T
	dir   string
	proxy *url.URL
}

func newPerson(t *testing.T) person {
	t.Helper()
	p := person{t: t, dir: t.TempDir()}
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", p.dir+"/", "./cmd/kubectl-inventory")
	build.Dir = journeys.Fleet.Root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building kubectl-inventory: %v\n%s", err, out)
	}
	apitest.Must(t, os.Symlink(journeys.Fleet.Kubectl(), filepath.Join(p.dir, "kubectl")))
	content, err := os.ReadFile(journeys.Fleet.Kubeconfig("hub"))
	apitest.Must(t, err)
	apitest.Must(t, os.WriteFile(p.kubeconfig(), content, 0o600))
	through := intoTheHub(t)
	t.Setenv("HTTPS_PROXY", through)
	p.proxy, err = url.Parse(through)
	apitest.Must(t, err)
	t.Setenv("KUBECONFIG", p.kubeconfig())
	t.Setenv("PATH", p.dir+":"+os.Getenv("PATH"))
	return p
}

func (p person) kubeconfig() string { return filepath.Join(p.dir, "config") }

// types runs a command line, and fails if it does not end with the exit code and say the text.
func (p person) types(ctx context.Context, line string, code int, text string) error {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "bash", "-euc", line)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got, err = exit.ExitCode(), nil
	}
	output := stdout.String() + stderr.String()
	p.t.Logf("$ %s\n%s(exit code %d)", line, output, got)
	switch {
	case err != nil:
		return err
	case got != code || !strings.Contains(output, text):
		return fmt.Errorf("exit code %d, want %d and %q:\n%s", got, code, text, output)
	default:
		return journeys.Tokens.Text(line, output)
	}
}

// intoTheHub returns the address of a proxy that connects to the Services of the hub.
func intoTheHub(t *testing.T) string {
	t.Helper()
	proxy := httptest.NewServer(journeys.Fleet.ServiceProxy(fleet.HubName))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// A person writes the contexts of a namespace, and works with a cluster through the tunnel, by
// kubectl and by client-go. A rotated token goes on working; a withdrawn cluster is pruned.
func TestPersonsReachClustersThroughAKubeconfig(t *testing.T) {
	ns, _ := copiedTo(t, "person")
	offers(t, ns, journeys.Cluster1, throughProxy)
	p := newPerson(t)
	says := func(line string, code int, text string) {
		t.Helper()
		apitest.Within(t, journeys.Soon, line, func(ctx context.Context) error { return p.types(ctx, line, code, text) })
	}
	const user = "system:serviceaccount:" + journeys.AgentNS + ":person"
	name := journeys.Cluster1 + "/" + ns + "/person"
	write := "kubectl inventory kubeconfig -n " + ns + " --account person"
	check := "kubectl inventory check-access " + journeys.Cluster1 + " -n " + ns + " --account person --can 'list namespaces'"

	says(write, 0, fmt.Sprintf("Context %q created.", name))
	says("kubectl --context "+name+" auth whoami", 0, user)
	says(check, 1, "the account may not list namespaces")
	journeys.Create(t, journeys.ClientOf(t, journeys.Cluster1), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "person"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: journeys.AgentNS, Name: "person"}},
	})
	says(check, 0, "the cluster knows the account as "+user)
	says("HTTPS_PROXY= "+check, 1, "access.clusterProxy.url")

	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: p.kubeconfig()},
		&clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
	apitest.Must(t, err)
	config.Proxy = http.ProxyURL(p.proxy) // this process has read its environment already
	clientset, err := kubernetes.NewForConfig(config)
	apitest.Must(t, err)
	lists := func(ctx context.Context) error {
		_, err := clientset.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: 1})
		return err
	}
	apitest.Within(t, journeys.Soon, "client-go lists namespaces", lists)
	rotated(t, journeys.Cluster1, "person")
	hasCopy(t, ns, journeys.Cluster1, "person")
	apitest.Within(t, journeys.Soon, "client-go goes on", lists)
	says("kubectl --context "+name+" get namespaces", 0, "kube-system")

	content, err := os.ReadFile(p.kubeconfig())
	apitest.Must(t, err)
	apitest.Must(t, journeys.Tokens.Text("the kubeconfig", string(content)))
	bindings := &clusterv1beta2.ManagedClusterSetBindingList{}
	apitest.Must(t, journeys.Hub(t).List(t.Context(), bindings, client.InNamespace(ns)))
	for i := range bindings.Items {
		apitest.Must(t, journeys.Hub(t).Delete(t.Context(), &bindings.Items[i]))
	}
	journeys.HasNoProfile(t, ns, journeys.Cluster1)
	says("kubectl --context "+name+" get namespaces", 1, "there is no Secret")
	says(write, 0, fmt.Sprintf("Context %q pruned.", name))
	says("kubectl get namespace "+ns, 0, ns) // the person's own context is as it was
}
