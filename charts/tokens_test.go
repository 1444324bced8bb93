package charts

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	wire    *apitest.Wire
	program *hubtest.Manager
	log     string // of managers that were stopped

	set, cluster string
	account      *authv1beta1.ManagedServiceAccount
	token        string
	tokens       []string // all so far
}

func newCopying(t *testing.T) *copying {
	t.Helper()
	wire := &apitest.Wire{}
	c := &copying{installed: install(t), wire: wire, user: wire.Proxy(t, server.User(t, hubtest.User))}
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
	c.rotate()
}

// rotate gives the account another token.
func (c *copying) rotate() {
	c.T.Helper()
	c.token = c.Rotate(c.account)
	c.tokens = append(c.tokens, c.token)
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

	// Unbound, the token is withdrawn at once, although a finalizer holds the profile.
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

	// It is created again.
	c.MustCreate(ocmtest.Addon(c.cluster))
	c.eventually(true, c.copyIn(team))

	// An account that names no namespace is copied nowhere, or wherever its cluster is
	// published.
	held := c.holdWhatIsDeleted(team)
	c.MustMerge(c.account, `{"metadata":{"annotations":null}}`)
	c.eventuallyWithdrawn(team)
	held()
	c.start("--credentials-require-target=false")
	c.eventually(true, c.copyIn(team))
	c.eventually(false, c.copyIn(unbound))

	// A user deletes the CRD of the set bindings, and restores it with them.
	profile, copied := ocmtest.OurProfile(team, c.cluster), c.copyIn(team)
	c.MustGet(profile)
	c.MustGet(copied)
	restore := c.Backup(&clusterv1beta2.ManagedClusterSetBindingList{})
	server.Reinstall(c.World, "managedclustersetbindings.cluster.open-cluster-management.io", apitest.Hub())
	restore()
	c.rotate()
	c.Eventually("the copy follows", func() string {
		now := c.copyIn(team)
		if !c.Find(now) || string(now.Data["token"]) != c.token {
			return "it has another token"
		}
		if now.UID != copied.UID {
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

// holdWhatIsDeleted puts a finalizer on the copy in a namespace when the manager has decided
// to delete it and has seen none, so that the whole Secret is the answer to the DELETE. The
// returned function checks that this is what happened.
func (c *copying) holdWhatIsDeleted(namespace string) (check func()) {
	c.T.Helper()
	var held atomic.Bool
	c.wire.Fail(func(call apitest.Call) apitest.Fault {
		isDelete := call.Method == http.MethodDelete && call.Resource == "secrets" && call.Mentions(namespace)
		if isDelete && held.CompareAndSwap(false, true) {
			hold := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/hold"]}}`))
			if err := c.Patch(c.T.Context(), c.copyIn(namespace), hold); err != nil {
				c.T.Error(err)
			}
		}
		return apitest.Fault{}
	})
	return func() {
		c.T.Helper()
		c.wire.Fail(nil)
		released := slices.ContainsFunc(c.wire.Writes("secrets"), func(call apitest.Call) bool {
			return call.Method == http.MethodPatch && call.Mentions(namespace) &&
				strings.Contains(call.Body, `"finalizers":null`)
		})
		if !released {
			c.T.Error("no deletion of the copy was answered with the copy: nothing held it")
		}
	}
}

// checkSecrecy looks for every token in all that the manager logged at the highest
// verbosity: as text, in base64 and in the dumps that client-go makes of binary
// bodies.
func (c *copying) checkSecrecy() {
	c.T.Helper()
	deletions := regexp.MustCompile(`verb="DELETE" url="[^"]*/secrets/` + regexp.QuoteMeta(c.cluster) + `-reader"`)
	if !strings.Contains(c.log, "Response Body") || !deletions.MatchString(c.log) {
		c.T.Fatal("the manager logs too little for this to prove anything")
	}
	for _, token := range c.tokens {
		tail := []byte(token[len(token)-24:])
		forms := map[string]string{
			"text":   string(tail),
			"base64": base64.StdEncoding.EncodeToString([]byte(token))[40:80],
		}
		// A dump's lines have two groups of eight bytes; any six lie within one group
		// at one of these offsets.
		for i := range len(tail) - 6 {
			forms[fmt.Sprintf("hex, from %d", i)] = fmt.Sprintf("% x", tail[i:i+6])
		}
		for as, form := range forms {
			if strings.Contains(c.log, form) {
				c.T.Errorf("the manager's log contains a token as %s", as)
			}
		}
	}
}
