package hub

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// profileCRD is the CRD of ClusterProfiles.
const profileCRD = "clusterprofiles.multicluster.x-k8s.io"

// quietly is how long a copy must stay as it is.
const quietly = 2 * time.Second

// TestRevocationDoesNotNeedProfiles: while the hub serves everything but ClusterProfiles in
// v1alpha1, teams that lose a cluster lose its token. Others keep their copies.
func TestRevocationDoesNotNeedProfiles(t *testing.T) {
	server := apitest.Start(t, apitest.Hub(), apitest.AgentRevision(), apitest.ClusterProfileInTwoVersions(),
		apitest.PlacementDecision(), apitest.ManagedServiceAccount(), apitest.ManagedProxyConfiguration())
	hub := ocmtest.New(t, server.Config(t))
	hubtest.Install(hub.World, "", hubtest.AllButProgram)
	hub.MustCreate(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:cluster-manager-registration:controller"},
		Rules: []rbacv1.PolicyRule{{ // its own ClusterProfile controller is off
			APIGroups: []string{"cluster.open-cluster-management.io"}, Resources: []string{"managedclusters"},
			Verbs: []string{"get"},
		}},
	})
	for name, test := range map[string]struct {
		away, back func(u *withoutProfiles)

		// restart is true if the manager restarts in the meantime.
		restart bool

		// visible is true if the manager still knows the profiles, so that a team that has
		// the cluster gets rotated tokens.
		visible bool
	}{
		"its CRD is deleted": {
			away: func(u *withoutProfiles) {
				u.MustDelete(u.crd())
				u.EventuallyGone(u.crd())
				u.EventuallyAddonCondition(u.cluster, "ProfilesSynced", "False", "ClusterProfileAPIMissing",
					"The hub does not serve ClusterProfiles: the CustomResourceDefinition "+profileCRD+" is missing.")
			},
			back: func(u *withoutProfiles) { server.Install(u.T, apitest.ClusterProfileInTwoVersions()) },
		},
		"v1alpha1 is not served": {
			away:    func(u *withoutProfiles) { u.serve(false) },
			back:    func(u *withoutProfiles) { u.serve(true) },
			visible: true,
		},
		"v1alpha1 is not served, and the manager restarts": {
			away:    func(u *withoutProfiles) { u.serve(false) },
			back:    func(u *withoutProfiles) { u.serve(true) },
			restart: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := newWithoutProfiles(t, server)
			test.away(u)
			if test.restart {
				u.manager.Stop()
				u.start()
			}
			u.wire.Reset()
			first := u.token
			u.token = u.Rotate(u.account)
			if test.visible {
				u.holds(u.bound, u.token)
			}
			for team, revoke := range u.revocations {
				revoke()
				u.EventuallyGone(u.copyIn(team))
			}
			if test.visible {
				u.wire.Reset() // until then, teams had the cluster
			}
			u.token = u.Rotate(u.account)
			if test.visible {
				u.holds(u.bound, u.token)
			} else {
				u.Stays(quietly, "the copy stays as it is", func() string { return u.differs(u.bound, first) })
			}
			for _, call := range u.wire.Writes("secrets") {
				allowed := call.Method == http.MethodDelete
				if call.Mentions(u.bound) {
					allowed = test.visible && call.Method == http.MethodPatch
				}
				if !allowed {
					t.Errorf("a copy was written: %s", call)
				}
			}

			test.back(u)
			u.holds(u.bound, u.token)
			for team := range u.revocations {
				if u.Find(u.copyIn(team)) {
					t.Errorf("%s has the token again", team)
				}
			}
		})
	}
}

// withoutProfiles is a hub on which the manager copies the token of one account to several teams.
type withoutProfiles struct {
	*ocmtest.Hub
	user    *rest.Config // the manager
	wire    *apitest.Wire
	manager *hubtest.Manager
	cluster string
	account *authv1beta1.ManagedServiceAccount
	token   string

	bound string // the team that keeps the cluster

	// revocations take the token away from the other teams.
	revocations map[string]func()
}

func newWithoutProfiles(t *testing.T, server *apitest.Server) *withoutProfiles {
	t.Helper()
	u := &withoutProfiles{Hub: ocmtest.New(t, server.Config(t)), wire: &apitest.Wire{}}
	u.user = u.wire.Proxy(t, server.User(t, hubtest.User))
	// On a hub whose CRDs are new, a manager that cannot see profiles waits for a minute
	// before missing objects count as missing.
	u.Patience = 3 * time.Minute
	u.bound = u.Namespace("bound", nil)
	unbound, unlabelled := u.Namespace("unbound", nil), u.Namespace("unlabelled", nil)
	unplaced, unnamed := u.Namespace("unplaced", nil), u.Namespace("unnamed", nil)

	all := u.ExclusiveSet("all").Name
	some := u.Set("some", clusterv1beta2.ManagedClusterSelector{
		SelectorType:  clusterv1beta2.LabelSelector,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
	}).Name
	labels := ocmtest.InSet(all)
	labels["env"] = "prod"
	cluster := u.Cluster("c", labels)
	u.cluster = cluster.Name
	for _, team := range []string{u.bound, unplaced, unnamed} {
		u.Bind(team, all)
	}
	binding := u.Bind(unbound, all)
	u.Bind(unlabelled, some)
	placement, decision := u.Placement(unplaced, "view", u.cluster)
	u.account = u.Account(u.cluster, "reader", u.bound, unbound, unlabelled, unplaced, unnamed)
	u.token = u.Rotate(u.account)

	u.revocations = map[string]func(){
		unbound:    func() { u.MustDelete(binding) },
		unlabelled: func() { apitest.Edit(u, cluster, func(c *clusterv1.ManagedCluster) { c.Labels["env"] = "test" }) },
		unplaced:   func() { u.Decide(placement, decision) },
		unnamed: func() {
			apitest.Edit(u, u.account, func(a *authv1beta1.ManagedServiceAccount) {
				a.Annotations["inventory.open-cluster-management.io/sync-to-namespaces"] =
					strings.Join([]string{u.bound, unbound, unlabelled, unplaced}, ",")
			})
		},
	}
	u.start()
	u.holds(u.bound, u.token)
	for team := range u.revocations {
		u.holds(team, u.token)
	}
	return u
}

func (u *withoutProfiles) start() {
	u.T.Helper()
	u.manager = hubtest.Start(u.T, u.user)
}

func (u *withoutProfiles) crd() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: profileCRD}}
}

// serve makes the hub serve v1alpha1 of ClusterProfiles, or not.
func (u *withoutProfiles) serve(served bool) {
	u.T.Helper()
	apitest.Edit(u, u.crd(), func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			if version := &crd.Spec.Versions[i]; version.Name == inventoryv1alpha1.Version {
				version.Served = served
			}
		}
	})
	u.Eventually(fmt.Sprintf("v1alpha1 is served: %t", served), func() string {
		err := u.List(u.T.Context(), &inventoryv1alpha1.ClusterProfileList{})
		if (err == nil) != served {
			return fmt.Sprintf("listing ClusterProfiles: %v", err)
		}
		return ""
	})
}

// copyIn is the copy of the token in a namespace.
func (u *withoutProfiles) copyIn(team string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: u.cluster + "-reader"}}
}

// differs says how the copy in a namespace differs from one of a token.
func (u *withoutProfiles) differs(team, token string) string {
	found := u.copyIn(team)
	switch {
	case !u.Find(found):
		return "there is none"
	case string(found.Data["token"]) != token:
		return "it holds another token"
	default:
		return ""
	}
}

// holds waits until there is a copy of a token in a namespace.
func (u *withoutProfiles) holds(team, token string) {
	u.T.Helper()
	u.Eventually("the copy in "+team, func() string { return u.differs(team, token) })
}
