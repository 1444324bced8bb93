package charts

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// copying is a hub on which the manager copies the token of one account of one
// cluster, with the rights and under the policies of the chart.
type copying struct {
	*installed
	user    *rest.Config // the manager
	program *hubtest.Manager
	log     string // of managers that were stopped

	set, cluster string
	account      *authv1beta1.ManagedServiceAccount
	token        string
}

func newCopying(t *testing.T) *copying {
	t.Helper()
	c := &copying{installed: install(t), user: server.User(t, hubtest.User)}
	// While the CRDs of a hub with profiles are new, a manager that starts waits for a
	// minute before missing objects count as missing.
	c.Patience = 2 * time.Minute
	set := c.ExclusiveSet("set")
	c.CleanUp(set)
	c.set = set.Name
	return c
}

// start replaces the running manager, which is killed.
func (c *copying) start(args ...string) {
	c.T.Helper()
	c.stop()
	c.program = hubtest.Start(c.T, c.user, append([]string{"-v=10"}, args...)...)
}

func (c *copying) stop() {
	c.T.Helper()
	if c.program == nil {
		return
	}
	c.program.Stop()
	c.log += c.program.Log()
	c.program = nil
}

// join creates the cluster, and its account whose token should be copied to the namespaces.
func (c *copying) join(targets ...string) {
	c.T.Helper()
	cluster := c.Cluster("cluster1", ocmtest.InSet(c.set))
	c.cluster = cluster.Name
	c.account = c.Account(c.cluster, "reader", targets...)
	c.CleanUp(cluster, ocmtest.Addon(c.cluster), c.account)
	c.token = c.Rotate(c.account)
}

// copyIn returns the copy of the token in a namespace.
func (c *copying) copyIn(namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: c.cluster + "-reader"}}
}

// eventually waits until objects exist or not, and shows the addon's conditions
// if they do not get there.
func (c *copying) eventually(want bool, objects ...client.Object) {
	c.T.Helper()
	for _, object := range objects {
		name := object.GetNamespace() + "/" + object.GetName()
		c.Eventually(fmt.Sprintf("%T %s exists: %t", object, name, want), func() string {
			if c.Find(object) == want {
				return ""
			}
			addon := ocmtest.Addon(c.cluster)
			c.Find(addon)
			return fmt.Sprintf("it does: %t; conditions of the addon: %+v", !want, addon.Status.Conditions)
		})
	}
}

// eventuallyWithdrawn waits until neither the copy nor the rights to make it are
// left.
func (c *copying) eventuallyWithdrawn(team string) {
	c.T.Helper()
	binding := func(namespace, name string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	c.eventually(false, c.copyIn(team), binding(team, tokenTarget), binding(c.cluster, tokenSource))
}

// testTokensUnderTheChartsRightsAndPolicies runs the manager as installed: real
// rule, real rights, real policies.
func testTokensUnderTheChartsRightsAndPolicies(t *testing.T) {
	c := newCopying(t)
	team, unbound := c.Namespace("team", nil), c.Namespace("unbound", nil)
	c.start()
	bound := c.Bind(team, c.set)
	c.join(team, unbound)
	profile := ocmtest.OurProfile(team, c.cluster)
	c.CleanUp(profile)
	c.eventually(true, c.copyIn(team), profile)

	// A tenant forges the manager's profile where no set is bound.
	forged := ocmtest.OurProfile(unbound, c.cluster)
	forged.Spec.DisplayName = c.cluster
	forged.Finalizers = []string{"example.com/hold"}
	c.MustCreate(forged)
	c.CleanUp(forged)

	// Unbound, the token goes at once, although somebody holds the profile.
	c.MustMerge(profile, `{"metadata":{"finalizers":["example.com/hold"]}}`)
	c.MustDelete(bound)
	c.eventuallyWithdrawn(team)
	c.Eventually("the profile is being deleted", func() string {
		if c.MustGet(profile); profile.DeletionTimestamp == nil {
			return "it is not: it may wait for what refers to it"
		}
		return ""
	})

	// Bound again, but the profile is still being deleted: no token for that.
	bound = c.Bind(team, c.set)
	c.CleanUp(bound)
	c.Stays(settled, "there is no copy", func() string {
		for _, namespace := range []string{team, unbound} {
			if c.Find(c.copyIn(namespace)) {
				return "a copy in " + namespace
			}
		}
		return ""
	})
	c.MustMerge(profile, `{"metadata":{"finalizers":null}}`)
	c.eventually(true, c.copyIn(team))

	// The cluster leaves while the manager is away.
	c.stop()
	c.MustDelete(ocmtest.Addon(c.cluster))
	c.start()
	c.eventuallyWithdrawn(team)

	// It comes back.
	c.MustCreate(ocmtest.Addon(c.cluster))
	c.eventually(true, c.copyIn(team))

	// An account that names no namespace goes nowhere, or wherever its cluster is
	// published.
	c.MustMerge(c.account, `{"metadata":{"annotations":null}}`)
	c.eventuallyWithdrawn(team)
	c.start("--credentials-require-target=false")
	c.eventually(true, c.copyIn(team))
	c.eventually(false, c.copyIn(unbound))

	// Somebody deletes the CRD of the set bindings, and restores it with them.
	profile, held := ocmtest.OurProfile(team, c.cluster), c.copyIn(team)
	c.MustGet(profile)
	c.MustGet(held)
	restore := c.Backup(&clusterv1beta2.ManagedClusterSetBindingList{})
	server.Reinstall(c.World, "managedclustersetbindings.cluster.open-cluster-management.io", apitest.Hub())
	restore()
	c.token = c.Rotate(c.account)
	c.Eventually("the copy follows", func() string {
		now := c.copyIn(team)
		if !c.Find(now) || string(now.Data["token"]) != c.token {
			return "it has another token"
		}
		if now.UID != held.UID {
			t.Fatal("the copy was deleted and recreated")
		}
		return ""
	})
	if now := ocmtest.OurProfile(team, c.cluster); !c.Find(now) || now.UID != profile.UID {
		t.Error("the profile was deleted")
	}

	// The administrator drains.
	c.start("--credentials-mode=draining")
	c.eventuallyWithdrawn(team)
	c.eventually(true, ocmtest.OurProfile(team, c.cluster))
	c.stop()
	c.checkSecrecy()
}

// checkSecrecy looks for the token in all that the manager logged at the highest
// verbosity: as text, in base64 and in the dumps that client-go makes of binary
// bodies.
func (c *copying) checkSecrecy() {
	c.T.Helper()
	if !strings.Contains(c.log, "Response Body") || !strings.Contains(c.log, c.cluster+"-reader") {
		c.T.Fatal("the manager logs too little for this to prove anything")
	}
	tail := []byte(c.token[len(c.token)-24:])
	forms := map[string]string{
		"text":   string(tail),
		"base64": base64.StdEncoding.EncodeToString([]byte(c.token))[40:80],
	}
	// A dump's lines have two groups of eight bytes; any six lie within one group
	// at one of these offsets.
	for i := range len(tail) - 6 {
		forms[fmt.Sprintf("hex, from %d", i)] = fmt.Sprintf("% x", tail[i:i+6])
	}
	for as, form := range forms {
		if strings.Contains(c.log, form) {
			c.T.Errorf("the manager's log contains the token as %s", as)
		}
	}
}
