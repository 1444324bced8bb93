package charts

import (
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// patience is how long a test waits for what must happen. It is longer than
// elsewhere because these tests wait for a program to start.
const patience = 2 * apitest.Patience

// settled is how long nothing may be written for it to count as nothing.
const settled = 3 * time.Second

// server is the one hub of this package. Everything that a test leaves on it is in separate
// namespaces and belongs to no cluster any more.
var server = apitest.New(
	apitest.Hub(), apitest.AgentRevision(), apitest.ClusterProfile(), apitest.PlacementDecision(),
	apitest.ManagedServiceAccount(), apitest.ManagedProxyConfiguration(),
)

func TestMain(m *testing.M) {
	apitest.Main(m, server)
	hubtest.RemoveProgram()
}

// installed is a hub with the chart on it, and the manager's client.
type installed struct {
	*ocmtest.Hub
	manager client.Client
}

var installOnce sync.Once

// installedValues are those with which the chart is installed, hostingValues those with which
// the manager may also manage agents on hosting clusters.
const (
	installedValues = "webhookMetadata: [example.com/cost-center]\nagent:\n  allowedRegistries: [" + mirror + "]\n"
	hostingValues   = installedValues + "  hosted: {enabled: true}\n"
)

// oldDigest is that of an image that agents may have.
const oldDigest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

// mirror is from where else the image of agents may be.
const mirror = "mirror.example.com:5000/ocm"

// install installs the chart, unless an earlier test did, on a hub whose own
// ClusterProfile controller is off.
func install(t *testing.T) *installed {
	t.Helper()
	hub := newHub(t, server)
	installOnce.Do(func() {
		hubtest.Install(hub.World, installedValues, hubtest.AllButProgram)
		// Revisions of other versions of the chart.
		for _, image := range []string{"{tag: v1}", "{tag: v2}", "{digest: '" + oldDigest + "'}"} {
			hubtest.Install(hub.World, "image: "+image, hubtest.AgentImageRights)
		}
		hub.MustCreate(&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:cluster-manager-registration:controller"},
			Rules: []rbacv1.PolicyRule{
				{
					APIGroups: []string{
						"cluster.open-cluster-management.io",
					},
					Resources: []string{"managedclusters"},
					Verbs:     []string{"get"},
				},
			},
		})
	})
	return hub
}

func newHub(t *testing.T, server *apitest.Server) *installed {
	t.Helper()
	hub := ocmtest.New(t, server.Config(t))
	hub.Patience = patience
	return &installed{hub, apitest.NewClient(t, server.User(t, hubtest.User), ocmtest.Scheme())}
}

// namespace creates a namespace with objects in it, which the test's end removes.
func (h *installed) namespace(base string, objects ...client.Object) string {
	h.T.Helper()
	name := h.Name(base)
	h.MustCreateIn(name, objects...)
	h.CleanUp(objects...)
	return name
}

// TestOnAHub runs the tests that share one hub one after the other, in parallel with
// TestPoliciesWaitForTheirParameters, which mostly waits: the API server learns of new
// kinds for its policies only every half minute.
func TestOnAHub(t *testing.T) {
	t.Parallel()
	t.Run("the manager finds cluster-proxy", testTheManagerFindsClusterProxy)
	t.Run("installing before cluster-proxy", testInstallingBeforeClusterProxy)
	t.Run("the manager may bind nothing else", testTheManagerMayBindNothingElse)
	t.Run("the manager may write no Role", testTheManagerMayWriteNoRole)
	t.Run("the manager may send clusters only its agents", testTheManagerMaySendClustersOnlyItsAgents)
	t.Run("works of agents stay as they are, and pass at the limits", testWorksOfAgents)
	t.Run("the manager may write no Secret but copies", testTheManagerMayWriteOnlyCopies)
	t.Run("the manager may send consumers only to cluster-proxy", testTheManagerMaySendConsumersOnlyToClusterProxy)
	t.Run("the manager may write only its own decisions", testTheManagerMayWriteOnlyItsDecisions)
	t.Run("the manager may create events only about what it reports on", testTheManagerMayCreateOnlyItsEvents)
	t.Run("the manager may change only its part of an addon", testTheManagerMayChangeOnlyItsPartOfAnAddon)
	t.Run("the manager may approve only its agents' certificates", testTheManagerMayApproveOnlyAgents)
	t.Run("the manager may write only its own ConfigMap", testTheManagerMayWriteOnlyItsConfigMap)
	t.Run("the manager may hold its Lease only for a moment", testTheManagerMayHoldItsLeaseOnlyForAMoment)
	t.Run("a manager leads after a theft", testAManagerLeadsAfterATheft)
	t.Run("the policies are watched", testThePoliciesAreWatched)
	t.Run("the manager's grants cannot be squatted or held", testGrantsCannotBeSquatted)
	t.Run("the end of a grant cannot be delayed", testTheEndOfAGrantCannotBeDelayed)
	t.Run("grants cannot be taken", testGrantsCannotBeTaken)
	t.Run("the manager reads nothing of others", testTheManagerReadsNothingOfOthers)
	t.Run("there is no way around the policies", testNoWayAroundThePolicies)
	t.Run("pods are accepted where only restricted ones are", testPodsAreAcceptedWhereRestricted)
	t.Run("the chart's test", testTheChartsTest)
	t.Run("tokens under the chart's rights and policies", testTokensUnderTheChartsRightsAndPolicies)
	t.Run("only exclusive sets publish", testOnlyExclusiveSets)
	t.Run("decisions under the chart's rights", testDecisionsUnderTheChartsRights)
	t.Run("addon shell", testAddonShell)
	t.Run("configuration of agents", testConfigurationOfAgents)
	t.Run("conditions of a healthy fleet", testConditionsOfAHealthyFleet)
}
