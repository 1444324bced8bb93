package credentials

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// After the manager's token was stolen, an admin types what docs/security.md says: the token
// ends, a manager leads again, nothing is lost, and every command shows what it is for.
func TestAStolenTokenEndsAsTheGuideSays(t *testing.T) {
	journeys.WithAccess(t)
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns := journeys.Sandbox(t, "theft", journeys.Cluster1)
	account(t, journeys.Cluster1, "stolen", ns)
	before := hasCopy(t, ns, journeys.Cluster1, "stolen")
	profile := journeys.HasProfile(t, ns, journeys.Cluster1)
	thief := managerByToken(t)
	apitest.Must(t, asks(t.Context(), thief))

	admin := journeys.Newcomer(t)
	variables := ""
	for _, command := range theftCommands(t) {
		if strings.HasPrefix(command, "NS=") {
			variables = "NS=" + journeys.ManagerNS + "\nCHART=charts/cluster-inventory\n"
			continue
		}
		t.Logf("$ %s", command)
		said, err := admin.Type(t.Context(), variables+strings.ReplaceAll(command, " CHART ", " $CHART "), "")
		apitest.Must(t, err)
		for resource, shown := range map[string]string{
			"get lease ":                      "leaseDurationSeconds: ",
			"get configmap ":                  "", // direct access is not configured
			"get clusterprofiles ":            throughProxy,
			"cluster-inventory:token-source":  journeys.Cluster1,
			"cluster-inventory:token-target":  ns,
			"get manifestwork ":               "addon-cluster-inventory-deploy-0",
			"get secret ":                     ns,
			"delete serviceaccount ":          "deleted",
			"helm upgrade cluster-inventory ": "STATUS: deployed",
			"rollout restart ":                "restarted",
		} {
			if strings.Contains(command, resource) && !strings.Contains(said, shown) {
				t.Errorf("%s: it does not say %q, but:\n%s", command, shown, said)
			}
		}
	}

	apitest.Within(t, journeys.Soon, "the stolen token is refused", func(ctx context.Context) error {
		if err := asks(ctx, thief); !apierrors.IsUnauthorized(err) {
			return errors.Join(errors.New("the answer is"), err)
		}
		return nil
	})
	// Its Lease is valid for as long as the policy allows: a minute at most.
	apitest.Within(t, journeys.Eventually, "a manager leads", func(ctx context.Context) error {
		return journeys.Leads(ctx, t)
	})
	journeys.Sets(t, journeys.Cluster1, "theft.example", "after")
	journeys.Shows(t, ns, journeys.Cluster1, "theft.example", "after")
	if now := journeys.HasProfile(t, ns, journeys.Cluster1); now.UID != profile.UID {
		t.Error("the profile is another one")
	}
	if after := hasCopy(t, ns, journeys.Cluster1, "stolen"); after.UID != before.UID {
		t.Error("the copy of the account's token is another one")
	}
}

// theftCommands are the commands of the section, in order, each with its continuation lines.
func theftCommands(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(journeys.Fleet.Root, "docs", "security.md"))
	apitest.Must(t, err)
	_, section, _ := strings.Cut(string(page), "\n### After a theft\n")
	section, _, _ = strings.Cut(section, "\n#")
	var commands []string
	for line := range strings.Lines(strings.ReplaceAll(section, "\\\n    ", "")) {
		if command, isCode := strings.CutPrefix(line, "    "); isCode && !strings.HasPrefix(command, "#") {
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	if len(commands) < 11 {
		t.Fatalf("the section has only these commands: %q", commands)
	}
	return commands
}

// managerByToken is a client with a token of the manager's service account.
func managerByToken(t *testing.T) client.Client {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: journeys.ManagerNS, Name: "cluster-inventory-manager",
	}}
	request := &authenticationv1.TokenRequest{}
	apitest.Must(t, journeys.Hub(t).SubResource("token").Create(t.Context(), account, request))
	cfg, err := journeys.Fleet.Hub()
	apitest.Must(t, err)
	cfg = rest.AnonymousClientConfig(cfg)
	cfg.BearerToken = request.Status.Token
	manager, err := client.New(cfg, client.Options{})
	apitest.Must(t, err)
	return manager
}

// asks has the API server say who a client is.
func asks(ctx context.Context, c client.Client) error {
	return c.Create(ctx, &authenticationv1.SelfSubjectReview{})
}
