package credentials

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// holdSecrets holds back every write of a Secret in a namespace, as a slow webhook
// would, until release is called. writes returns how many.
func (w *world) holdSecrets(namespace string) (release func(), writes func() int) {
	w.T.Helper()
	released := make(chan struct{})
	holds := func(call apitest.Call) bool {
		return call.IsWrite() && strings.Contains(call.Path, "/namespaces/"+namespace+"/secrets")
	}
	w.wire.Fail(func(call apitest.Call) apitest.Fault {
		if holds(call) {
			return apitest.Fault{Until: released}
		}
		return apitest.Fault{}
	})
	writes = func() int {
		n := 0
		for _, call := range w.wire.Writes() {
			if holds(call) {
				n++
			}
		}
		return n
	}
	return func() { close(released) }, writes
}

func TestSlowTargetNamespaceDelaysNoOther(t *testing.T) {
	const clusters, inFlight = 12, 8
	w := newWorld(t)
	slow, team := w.team(), w.team()
	release, writes := w.holdSecrets(slow)
	w.opts.WorkersPerNamespace = inFlight
	w.start()
	tokens := map[string]string{}
	for i := range clusters {
		cluster := w.cluster(w.Name(fmt.Sprintf("c%d", i)))
		w.publish(slow, cluster)
		w.publish(team, cluster)
		tokens[cluster] = w.Rotate(w.Account(cluster, "reader", slow, team))
	}
	for cluster, token := range tokens {
		w.holds(team, cluster, "reader", token)
	}
	w.Eventually("the slow namespace has what it may have in flight", func() string {
		if n := writes(); n < inFlight {
			return fmt.Sprintf("%d writes are held", n)
		}
		return ""
	})
	for cluster := range tokens {
		w.rule.say(team, cluster, selection.Result{Answer: selection.No, Why: "is not bound there"})
	}
	for cluster := range tokens {
		w.hasNoCopy(team, cluster, "reader")
	}
	if n := writes(); n != inFlight {
		t.Errorf("%d writes were sent to the slow namespace, want %d", n, inFlight)
	}
	release()
	for cluster, token := range tokens {
		w.holds(slow, cluster, "reader", token)
	}
}

func TestUnbindingArrivesBeforeThePairsTurn(t *testing.T) {
	s := newScene(t)
	s.rule.mu.Lock()
	pair := types.NamespacedName{Namespace: s.team, Name: s.cluster}
	s.rule.answers[pair] = selection.Result{Answer: selection.No, Why: "is not bound there"}
	touched := s.rule.touched
	s.rule.mu.Unlock()
	touched(pair)
	s.withdrawn()
}
