package journeys

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/consumers"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/guide"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

// BuildConsumers builds the images of the example consumers' Pods, once: the consumers' own, and
// the addon's, which has the plugin.
var BuildConsumers = sync.OnceValue(func() error {
	ctx := context.Background()
	return errors.Join(consumers.BuildImage(ctx, Fleet, os.Stderr), Fleet.BuildImage(ctx, os.Stderr))
})

// Reader is a user in the root of the repository, with kubectl, its plugin, Helm and the
// contexts that kind makes.
type Reader struct{ guide.Shell }

// Newcomer returns a reader whose current context is the hub.
func Newcomer(t *testing.T) Reader {
	t.Helper()
	bin := t.TempDir()
	helm, err := fleet.HelmPath(t.Context(), os.Stderr)
	apitest.Must(t, err)
	apitest.Must(t, os.Symlink(helm, filepath.Join(bin, "helm")))
	apitest.Must(t, os.Symlink(Fleet.Kubectl(), filepath.Join(bin, "kubectl")))
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", bin+"/", "./cmd/kubectl-inventory")
	build.Dir = Fleet.Root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building kubectl-inventory: %v\n%s", err, out)
	}
	all := api.NewConfig()
	for _, cluster := range []string{fleet.HubName, Cluster1, Cluster2} {
		one, err := clientcmd.LoadFromFile(Fleet.Kubeconfig(cluster))
		apitest.Must(t, err)
		name := "kind-" + cluster
		all.Clusters[name] = one.Clusters[cluster]
		all.AuthInfos[name] = one.AuthInfos[cluster]
		all.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	}
	all.CurrentContext = "kind-" + fleet.HubName
	file := filepath.Join(t.TempDir(), "config")
	apitest.Must(t, clientcmd.WriteToFile(*all, file))
	return Reader{guide.Shell{Bin: bin, Kubeconfig: file, Dir: Fleet.Root}}
}

// logIn is the quick start's command that runs a program of the team.
const logIn = "kubectl apply -f docs/quickstart/login.yaml"

// readLog is the quick start's command for the log of its Job.
const readLog = "kubectl logs -n my-team job/first-login"

// Prints returns what a command prints. A log is read where the fleet keeps it, since its
// nodes serve none.
func (r Reader) Prints(t *testing.T, line string) (string, error) {
	t.Helper()
	if words := strings.Fields(line); !slices.Contains(words, "logs") {
		return r.Type(t.Context(), line, "")
	} else if line != readLog {
		return "", fmt.Errorf("%s: whose log is that?", line)
	}
	pods := &corev1.PodList{}
	selected := client.MatchingLabels{"batch.kubernetes.io/job-name": "first-login"}
	if err := Hub(t).List(t.Context(), pods, client.InNamespace("my-team"), selected); err != nil {
		return "", err
	}
	if len(pods.Items) != 1 {
		return "", fmt.Errorf("the Job has %d Pods", len(pods.Items))
	}
	if status := pods.Items[0].Status.ContainerStatuses; len(status) != 1 || status[0].RestartCount != 0 {
		return "", fmt.Errorf("it did not log in at once: %+v", status)
	}
	log := filepath.Join(Fleet.LogDir(), fleet.HubName, "pods", "my-team_"+pods.Items[0].Name+"_lister.log")
	content, err := os.ReadFile(log)
	return string(content), err
}

// QuickStart is how a hub differs from that of docs/quickstart.md.
type QuickStart struct {
	// Besides takes from what a command has printed the lines that the page only describes. It
	// is an error if they are not there. Nil if there are none.
	Besides func(command, printed string) (string, error)
	// LoggedIn is called when the program has logged in, before it is removed.
	LoggedIn func(Reader)
}

// Follow types the commands of docs/quickstart.md, which print what that page shows, from a hub
// without the addon to a program that logs in, and back. Only the two commands for kind are
// left out.
func (q QuickStart) Follow(t *testing.T) {
	t.Helper()
	hub := Hub(t)
	Uninstalled(t)
	apitest.Must(t, BuildConsumers())
	reader := Newcomer(t)
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, line := range []string{
			"kubectl delete --ignore-not-found -f docs/quickstart/accounts.yaml -f docs/quickstart/team.yaml",
			"kubectl --context kind-cluster1 delete --ignore-not-found -f docs/quickstart/property.yaml",
			"helm uninstall cluster-inventory --ignore-not-found -n open-cluster-management-cluster-inventory --timeout 15m",
		} {
			_, err := reader.Type(context.Background(), line, "")
			t.Logf("$ %s: %v", line, err)
		}
	})
	page, err := os.ReadFile(filepath.Join(Fleet.Root, "docs", "quickstart.md"))
	apitest.Must(t, err)
	var leftOut, typed []string
	for _, exchange := range guide.Transcript(string(page)) {
		t.Logf("$ %s", exchange.Command)
		if strings.HasPrefix(exchange.Command, "make ") || strings.Contains(exchange.Command, "kind load ") {
			leftOut = append(leftOut, exchange.Command)
			continue
		}
		typed = append(typed, exchange.Command)
		if exchange.Command == logIn {
			mayLogIn(t)
		}
		q.take(t, reader, exchange)
		if exchange.Command == readLog && q.LoggedIn != nil {
			q.LoggedIn(reader)
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

// mayLogIn waits until the team's program has what it needs to log in to each cluster. A reader, who is
// slower than the test, finds that it does; the program lists other clusters as skipped.
func mayLogIn(t *testing.T) {
	t.Helper()
	const team, account = "my-team", "my-consumer"
	hub := Hub(t)
	for _, cluster := range []string{Cluster1, Cluster2} {
		apitest.Within(t, Eventually, "the team's token for "+cluster, func(ctx context.Context) error {
			return hub.Get(ctx, client.ObjectKey{Namespace: team, Name: cluster + "-" + account}, &corev1.Secret{})
		})
		Allowed(t, cluster, AgentNS, account, authorizationv1.ResourceAttributes{Verb: "list", Resource: "namespaces"})
	}
	Allowed(t, fleet.HubName, team, account,
		authorizationv1.ResourceAttributes{Namespace: team, Verb: "get", Resource: "secrets"})
}

// kubeVersion is Kubernetes' own, which is not the page's if OTHER_KUBE is set.
var kubeVersion = regexp.MustCompile(`\bv1\.\d+\.\d+\b`)

// take types one command; one that only looks is typed until it prints what the page shows.
func (q QuickStart) take(t *testing.T, reader Reader, exchange guide.Exchange) {
	t.Helper()
	once := func() error {
		printed, err := reader.Prints(t, exchange.Command)
		if err == nil && q.Besides != nil {
			printed, err = q.Besides(exchange.Command, printed)
		}
		if err != nil {
			return err
		}
		shown := exchange.Output
		if os.Getenv("OTHER_KUBE") != "" { //nolint:forbidigo // who runs the stories says so
			shown, printed = kubeVersion.ReplaceAllString(shown, "VERSION"), kubeVersion.ReplaceAllString(printed, "VERSION")
		}
		return guide.Shows(shown, printed)
	}
	if words := strings.Fields(exchange.Command); words[1] == "get" || words[1] == "inventory" {
		apitest.Within(t, Eventually, exchange.Command, func(context.Context) error { return once() })
	} else {
		apitest.Must(t, once())
	}
}
