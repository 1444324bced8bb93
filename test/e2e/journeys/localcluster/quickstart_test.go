package localcluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

// besides is, by what a command of the quick start begins with, how the rows begin that it
// prints for the hub in addition to what the page shows.
var besides = map[string][]string{
	"kubectl get managedclusteraddons -A": {"local-cluster cluster-inventory True False False"},
	"kubectl inventory list -n my-team":   {"local-cluster v1.35.4 Healthy open-cluster-management <none> <none>"},
	"kubectl logs -n my-team": {
		"cp-creds: there is no Secret my-team/local-cluster-my-consumer ",
		`{"profile":"my-team/local-cluster","skipped":"this program has no account on the cluster: `,
	},
}

// On a hub that has joined itself, the quick start works as written, with the row more that it
// describes: the agent runs on the hub, and the team's program skips the hub, on which it has
// no account. With an account, it logs in there, too. Removal leaves nothing on the hub that
// is the agent's, and the hub goes on managing itself.
func TestQuickStartOnAHubThatManagesItself(t *testing.T) {
	journeys.WithAccess(t)
	journeys.QuickStart{
		Besides:  withoutTheHub,
		LoggedIn: func(reader journeys.Reader) { logsInToTheHub(t, reader) },
	}.Follow(t)

	hub := journeys.Hub(t)
	for _, object := range []client.Object{
		journeys.AddonOf(fleet.LocalCluster),
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: journeys.AgentNS, Name: "cluster-inventory-agent"}},
	} {
		apitest.Within(t, journeys.Soon, "what the agent was on the hub goes", func(ctx context.Context) error {
			return journeys.Gone(ctx, hub, object)
		})
	}
	claims := &clusterv1alpha1.ClusterClaimList{}
	apitest.Must(t, hub.List(t.Context(), claims, client.MatchingLabels{journeys.MarkLabel: journeys.MarkValue}))
	if len(claims.Items) > 0 {
		t.Errorf("the agent's claims stay on the hub: %v", claims.Items)
	}
	managed := &clusterv1.ManagedCluster{}
	apitest.Must(t, hub.Get(t.Context(), client.ObjectKey{Name: fleet.LocalCluster}, managed))
	if managed.DeletionTimestamp != nil || managed.Labels["cluster.open-cluster-management.io/clusterset"] != "default" {
		t.Errorf("the hub is no longer its own managed cluster: %+v", managed.ObjectMeta)
	}
}

// withoutTheHub removes the rows for the hub, which must be as expected.
func withoutTheHub(command, printed string) (string, error) {
	var rest, rows []string
	for _, line := range strings.SplitAfter(printed, "\n") {
		if strings.Contains(line, fleet.LocalCluster) {
			rows = append(rows, strings.Join(strings.Fields(line), " "))
		} else {
			rest = append(rest, line)
		}
	}
	for begin, want := range besides {
		if !strings.HasPrefix(command, begin) {
			continue
		}
		if !slices.EqualFunc(rows, want, strings.HasPrefix) {
			return "", fmt.Errorf("of the hub it prints %q: want %q", rows, want)
		}
	}
	return strings.Join(rest, ""), nil
}

// logsInToTheHub gives the program an account on the hub as well, and runs it again.
func logsInToTheHub(t *testing.T, reader journeys.Reader) {
	t.Helper()
	const onTheHub = "sed s/cluster1/" + fleet.LocalCluster + "/ docs/quickstart/accounts.yaml | kubectl "
	t.Cleanup(func() {
		if _, err := reader.Type(context.Background(), onTheHub+"delete --ignore-not-found -f -", ""); err != nil {
			t.Error(err)
		}
	})
	for _, line := range []string{
		onTheHub + "apply -f -",
		"kubectl delete -f docs/quickstart/login.yaml",
		"kubectl wait -n " + fleet.LocalCluster + " manifestwork/my-consumer-rights --for=condition=Applied --timeout=1m",
	} {
		t.Logf("$ %s", line)
		_, err := reader.Type(t.Context(), line, "")
		apitest.Must(t, err)
	}
	apitest.Within(t, journeys.Soon, "a copy of the hub's token", func(ctx context.Context) error {
		_, err := reader.Type(ctx, "kubectl get secret -n my-team "+fleet.LocalCluster+"-my-consumer", "")
		return err
	})
	for _, line := range []string{
		"kubectl apply -f docs/quickstart/login.yaml",
		"kubectl wait -n my-team job/first-login --for=condition=Complete --timeout=3m",
	} {
		_, err := reader.Type(t.Context(), line, "")
		apitest.Must(t, err)
	}
	said, err := reader.Prints(t, "kubectl logs -n my-team job/first-login")
	apitest.Must(t, err)
	// Only the hub has the namespace of the team.
	for line := range strings.Lines(said) {
		ofTheHub := strings.HasPrefix(line, `{"profile":"my-team/`+fleet.LocalCluster+`","namespaces":[`)
		if ofTheHub != strings.Contains(line, `"my-team"`) {
			t.Errorf("it says %s", line)
		}
	}
	if strings.Count(said, "\n") != 3 || strings.Contains(said, "skipped") {
		t.Errorf("with an account on the hub it says\n%s", said)
	}
}
