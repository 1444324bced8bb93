package inventory

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// held holds back every write of a profile in one namespace, as a slow webhook
// would, until it is released.
type held struct {
	wire      *apitest.Wire
	namespace string
	release   func()
}

func hold(t *testing.T, wire *apitest.Wire, namespace string) *held {
	t.Helper()
	released := make(chan struct{})
	h := &held{wire: wire, namespace: namespace, release: sync.OnceFunc(func() { close(released) })}
	t.Cleanup(h.release)
	wire.Fail(func(call apitest.Call) apitest.Fault {
		if h.holds(call) {
			return apitest.Fault{Until: released}
		}
		return apitest.Fault{}
	})
	return h
}

func (h *held) holds(call apitest.Call) bool {
	return call.IsWrite() && strings.HasPrefix(call.Resource, "clusterprofiles") &&
		strings.Contains(call.Path, "/namespaces/"+h.namespace+"/")
}

// writes returns how many writes are or were held back.
func (h *held) writes() int {
	n := 0
	for _, call := range h.wire.Writes() {
		if h.holds(call) {
			n++
		}
	}
	return n
}

func TestSlowNamespaceDelaysNoOther(t *testing.T) {
	const members, inFlight = 60, 8
	w := newWorld(t, wiredHub.Config(t))
	t.Cleanup(func() { clearHub(w) })
	wire := &apitest.Wire{}
	many, few := w.ExclusiveSet("many"), w.ExclusiveSet("few")
	for i := range members {
		w.Cluster(fmt.Sprintf("member%d", i), ocmtest.InSet(many.Name))
	}
	edited := w.Cluster("edited", ocmtest.InSet(few.Name), ocmtest.Claim("x", "1"))
	detached := w.Cluster("detached", ocmtest.InSet(few.Name))
	slow, bound, unbound := w.Namespace("slow", nil), w.Namespace("bound", nil), w.Namespace("unbound", nil)
	w.Bind(bound, few.Name)
	binding := w.Bind(unbound, few.Name)
	startManager(t, wire.Tap(asManager(t, wiredHub, w)), Options{Guard: allowed, WorkersPerNamespace: inFlight})
	for _, cluster := range []string{edited.Name, detached.Name} {
		w.exists(bound, cluster, true)
		w.exists(unbound, cluster, true)
	}

	webhook := hold(t, wire, slow)
	w.Bind(slow, many.Name)
	w.Eventually("the slow namespace has what it may have in flight", func() string {
		if n := webhook.writes(); n < inFlight {
			return fmt.Sprintf("%d writes are held", n)
		}
		return ""
	})

	w.MustDelete(binding)
	w.exists(unbound, edited.Name, false)
	w.exists(unbound, detached.Name, false)

	w.MustDelete(ocmtest.Addon(detached.Name))
	w.exists(bound, detached.Name, false)

	apitest.EditStatus(w, edited, func(c *clusterv1.ManagedCluster) {
		c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{ocmtest.Claim("x", "2")}
	})
	w.Eventually("the edit arrives", func() string {
		if got := w.Profile(bound, edited.Name).Status.Properties[0].Value; got != "2" {
			return "property x is " + got
		}
		return ""
	})
	fresh := w.Namespace("fresh", nil)
	w.Bind(fresh, few.Name)
	w.exists(fresh, edited.Name, true)

	if got := webhook.writes(); got != inFlight {
		t.Errorf("%d writes were sent to the slow namespace, want %d", got, inFlight)
	}
	webhook.release()
	for i := range members {
		w.exists(slow, w.Name(fmt.Sprintf("member%d", i)), true)
	}
}
