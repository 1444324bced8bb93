package credentials

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/guide"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

// Whoever types the commands of docs/quickstart.md sees what that page shows, from a hub
// without the addon to a program that logs in, and back. Only the two commands for kind are
// left out, and the log is read where the fleet keeps it, since its nodes serve none. The
// name of this file puts the story first, when there is no addon to be removed yet.
func TestQuickStartWorksAsWritten(t *testing.T) {
	journeys.WithAccess(t)
	hub := journeys.Hub(t)
	journeys.Uninstalled(t)
	apitest.Must(t, journeys.Fleet.BuildImage(t.Context(), os.Stderr))
	apitest.Must(t, buildConsumers())
	reader := newcomer(t)
	t.Cleanup(func() {
		if t.Failed() {
			_, err := reader.Type(context.Background(), "kubectl delete --ignore-not-found -f docs/quickstart/accounts.yaml -f docs/quickstart/team.yaml", "")
			t.Logf("the team is removed: %v", err)
			_, err = reader.Type(context.Background(), "helm uninstall cluster-inventory --ignore-not-found "+
				"-n open-cluster-management-cluster-inventory --timeout 15m", "")
			t.Logf("the addon is removed: %v", err)
		}
	})
	page, err := os.ReadFile(filepath.Join(journeys.Fleet.Root, "docs", "quickstart.md"))
	apitest.Must(t, err)
	var leftOut, typed []string
	for _, exchange := range guide.Transcript(string(page)) {
		t.Logf("$ %s", exchange.Command)
		if strings.HasPrefix(exchange.Command, "make ") || strings.Contains(exchange.Command, "kind load ") {
			leftOut = append(leftOut, exchange.Command)
			continue
		}
		typed = append(typed, exchange.Command)
		once := func() error {
			printed, err := reader.prints(t, exchange.Command)
			if err != nil {
				return err
			}
			return guide.Shows(exchange.Output, printed)
		}
		if words := strings.Fields(exchange.Command); words[1] == "get" || words[1] == "inventory" {
			apitest.Within(t, journeys.Eventually, exchange.Command, func(context.Context) error { return once() })
		} else {
			apitest.Must(t, once())
		}
	}
	if len(leftOut) != 2 || len(typed) < 11 {
		t.Errorf("of the page's commands, %q were left out and %q typed", leftOut, typed)
	}
	profiles := &inventoryv1alpha1.ClusterProfileList{}
	if err := hub.List(t.Context(), profiles, client.InNamespace("my-team")); err != nil || len(profiles.Items) > 0 {
		t.Errorf("the team still sees %d clusters (%v)", len(profiles.Items), err)
	}
}

// reader is somebody in the root of the repository, with kubectl, its plugin, Helm and the
// contexts that kind makes.
type reader struct{ guide.Shell }

func newcomer(t *testing.T) reader {
	t.Helper()
	bin := t.TempDir()
	helm, err := fleet.HelmPath(t.Context(), os.Stderr)
	apitest.Must(t, err)
	apitest.Must(t, os.Symlink(helm, filepath.Join(bin, "helm")))
	apitest.Must(t, os.Symlink(journeys.Fleet.Kubectl(), filepath.Join(bin, "kubectl")))
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", bin+"/", "./cmd/kubectl-inventory")
	build.Dir = journeys.Fleet.Root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building kubectl-inventory: %v\n%s", err, out)
	}
	all := api.NewConfig()
	for _, cluster := range []string{fleet.HubName, journeys.Cluster1, journeys.Cluster2} {
		one, err := clientcmd.LoadFromFile(journeys.Fleet.Kubeconfig(cluster))
		apitest.Must(t, err)
		name := "kind-" + cluster
		all.Clusters[name] = one.Clusters[cluster]
		all.AuthInfos[name] = one.AuthInfos[cluster]
		all.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	}
	all.CurrentContext = "kind-" + fleet.HubName
	file := filepath.Join(t.TempDir(), "config")
	apitest.Must(t, clientcmd.WriteToFile(*all, file))
	return reader{guide.Shell{Bin: bin, Kubeconfig: file, Dir: journeys.Fleet.Root}}
}

// prints returns what a command prints.
func (r reader) prints(t *testing.T, line string) (string, error) {
	t.Helper()
	if words := strings.Fields(line); !slices.Contains(words, "logs") {
		return r.Type(t.Context(), line, "")
	} else if line != "kubectl logs -n my-team job/first-login" {
		return "", fmt.Errorf("%s: whose log is that?", line)
	}
	pods := &corev1.PodList{}
	selected := client.MatchingLabels{"batch.kubernetes.io/job-name": "first-login"}
	if err := journeys.Hub(t).List(t.Context(), pods, client.InNamespace("my-team"), selected); err != nil {
		return "", err
	}
	if len(pods.Items) != 1 {
		return "", fmt.Errorf("the Job has %d Pods", len(pods.Items))
	}
	if status := pods.Items[0].Status.ContainerStatuses; len(status) != 1 || status[0].RestartCount != 0 {
		return "", fmt.Errorf("it did not log in at once: %+v", status)
	}
	log := filepath.Join(journeys.Fleet.LogDir(), fleet.HubName, "pods", "my-team_"+pods.Items[0].Name+"_lister.log")
	content, err := os.ReadFile(log)
	return string(content), err
}
