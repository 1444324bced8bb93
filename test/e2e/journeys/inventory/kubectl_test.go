package inventory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// plugin is kubectl with kubectl-inventory on its path.
type plugin struct{ dir string }

// newPlugin builds the program as "make build" does.
func newPlugin(t *testing.T) plugin {
	t.Helper()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", dir+"/", "./cmd/kubectl-inventory")
	build.Dir = journeys.Fleet.Root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building kubectl-inventory: %v\n%s", err, out)
	}
	apitest.Must(t, os.Symlink(journeys.Fleet.Kubectl(), filepath.Join(dir, "kubectl")))
	return plugin{dir}
}

// run runs a command line, which starts with kubectl, and returns its output and exit code.
func (p plugin) run(t *testing.T, line string) (stdout string, code int) {
	t.Helper()
	var out, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "bash", "-euc", line)
	cmd.Env = append(os.Environ(),
		"PATH="+p.dir+":"+os.Getenv("PATH"), "KUBECONFIG="+journeys.Fleet.Kubeconfig("hub"), "HOME="+p.dir)
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code, err = exit.ExitCode(), nil
	}
	apitest.Must(t, err)
	t.Logf("$ %s\n%s%s(exit code %d)", line, out.String(), stderr.String(), code)
	return out.String(), code
}

// says waits until a command ends with an exit code and prints the texts.
func (p plugin) says(t *testing.T, line string, code int, texts ...string) string {
	t.Helper()
	var last string
	apitest.Within(t, journeys.Soon, line, func(context.Context) error {
		out, got := p.run(t, line)
		last = out
		if got != code {
			return fmt.Errorf("exit code %d, want %d:\n%s", got, code, out)
		}
		for _, text := range texts {
			if !strings.Contains(out, text) {
				return fmt.Errorf("it does not say %q:\n%s", text, out)
			}
		}
		return nil
	})
	return last
}

// A user misses a cluster, asks kubectl inventory why, and runs the command that it
// names; a property is followed from the spoke; a tenant sees what it may see.
func TestPluginExplainsWhatIsMissing(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1, journeys.Cluster2)
	ns := journeys.Sandbox(t, "plugin", journeys.Cluster1)
	journeys.HasProfile(t, ns, journeys.Cluster1)
	p := newPlugin(t)
	explain := fmt.Sprintf("kubectl inventory explain %s -n %s", journeys.Cluster1, ns)

	p.says(t, explain, 0, "done", "not configured")
	p.says(t, "kubectl inventory matrix -n "+ns, 0, "published", "not selected")

	journeys.Sets(t, journeys.Cluster1, "plugin.example", "seen")
	journeys.Shows(t, ns, journeys.Cluster1, "plugin.example", "seen")
	p.says(t, "kubectl inventory list -L plugin.example -n "+ns, 0, "PLUGIN.EXAMPLE", "seen", "Healthy")
	property := fmt.Sprintf("kubectl inventory explain %s plugin.example -n %s", journeys.Cluster1, ns)
	p.says(t, property, 0, `the ManagedCluster has the claim, with the value "seen"`)
	journeys.Unsets(t, journeys.Cluster1, "plugin.example")
	p.says(t, property, 1, "the ManagedCluster has no such claim")

	// The binding stops publishing; the named command fixes that.
	binding := bindingOf(t, ns)
	p.run(t, fmt.Sprintf("kubectl label managedclustersetbinding %s -n %s %s=false", binding, ns, journeys.Publish))
	journeys.HasNoProfile(t, ns, journeys.Cluster1)
	out, code := p.run(t, explain+" -o json")
	if code != 1 {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	p.run(t, fixOf(t, out, "binding"))
	journeys.HasProfile(t, ns, journeys.Cluster1)
	p.says(t, explain, 0)

	// A tenant reads its own namespace, and no more.
	tenant := " --as=journey-tenant -n " + ns
	mayRead(t, ns, "journey-tenant")
	p.says(t, "kubectl inventory explain "+journeys.Cluster1+tenant, 0, "not visible to you", "the ClusterProfile exists")
	p.says(t, "kubectl inventory list"+tenant, 0, journeys.Cluster1)
	p.says(t, "kubectl inventory list -A --as=journey-tenant", 2)

	p.says(t, "kubectl inventory diff -n "+ns, 0)
	if out, code := p.run(t, "kubectl inventory doctor -o json"); code == 2 ||
		!strings.Contains(out, "ClusterProfile API") {
		t.Errorf("doctor: exit code %d:\n%s", code, out)
	}
}

// bindingOf is the name of the one binding in a namespace.
func bindingOf(t *testing.T, namespace string) string {
	t.Helper()
	list := &clusterv1beta2.ManagedClusterSetBindingList{}
	apitest.Must(t, journeys.Hub(t).List(t.Context(), list, client.InNamespace(namespace)))
	if len(list.Items) != 1 {
		t.Fatalf("%d bindings in %s", len(list.Items), namespace)
	}
	return list.Items[0].Name
}

// fixOf returns the command that an explanation names for the first missing step.
func fixOf(t *testing.T, explanation, step string) string {
	t.Helper()
	var e struct {
		Steps []struct{ Name, State, Fix string }
	}
	apitest.Must(t, json.Unmarshal([]byte(explanation), &e))
	for _, s := range e.Steps {
		if s.State == "missing" {
			if s.Name != step || !strings.HasPrefix(s.Fix, "kubectl ") {
				t.Fatalf("the first missing step is %+v, want %s", s, step)
			}
			return s.Fix
		}
	}
	t.Fatalf("nothing is missing:\n%s", explanation)
	return ""
}

// mayRead lets a user read the profiles and bindings of a namespace.
func mayRead(t *testing.T, namespace, user string) {
	t.Helper()
	const name = "journey-tenant"
	journeys.Create(t, journeys.Hub(t), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"multicluster.x-k8s.io"},
				Resources: []string{"clusterprofiles"}, Verbs: []string{"get", "list"}},
			{
				APIGroups: []string{"cluster.open-cluster-management.io"}, Resources: []string{"managedclustersetbindings"},
				Verbs: []string{"list"},
			},
		},
	})
	journeys.Create(t, journeys.Hub(t), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	})
}
