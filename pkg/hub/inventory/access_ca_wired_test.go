package inventory

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
)

func TestRenewedCertificateOfTheSameCAWritesNothing(t *testing.T) {
	w := newReachedWorld(t)
	w.setChain(w.leaf(w.ca))
	w.marker()
	w.wrote("PATCH clusterprofiles/status")
}

func TestNewCAIsAddedToTheOldOneWithOneWrite(t *testing.T) {
	w := newReachedWorld(t)
	published := certtest.ByAge(w.ca, w.next)
	w.setChain(w.leaf(w.next))
	w.reached(w.c1, throughProxy(published, w.c1.Name))
	w.remembers(published)
	w.marker()
	if got := len(w.wire.Writes("clusterprofiles/status")); got != 2 {
		t.Errorf("%d patches of profiles, want one and the marker", got)
	}
	if diff := cmp.Diff([]string{"PATCH configmaps"}, w.wire.Sent("configmaps")); diff != "" {
		t.Errorf("writes of what is remembered (-want +got):\n%s", diff)
	}
}

func TestARestartBetweenTwoCAsWritesNothing(t *testing.T) {
	w, published := newRotatedWorld(t)
	w.stop()
	w.forget()
	w.start(nil)
	// The new manager has read everything when it acts on events after its start.
	late := w.Cluster("late", ocmtest.InSet(w.set.Name))
	w.allInPlace(late)
	for _, call := range w.wire.Writes() {
		if call.Resource != "events" && !call.Mentions(late.Name) {
			t.Errorf("wrote %s %s: %s", call.Method, call.Path, call.Body)
		}
	}
	w.reached(w.c1, throughProxy(published, w.c1.Name))
}

func TestAdministratorCanForgetTheOldCAAtOnce(t *testing.T) {
	w, _ := newRotatedWorld(t)
	published := w.next.PEM()
	w.MustDelete(remembered())
	w.reached(w.c1, throughProxy(published, w.c1.Name))
	w.remembers(published)
}

func TestACAIsWithdrawnWhenItExpires(t *testing.T) {
	w := newAccessWorld(t)
	now := testingclock.NewFakeClock(time.Now())
	brief := certtest.NewCA(t, "brief", now.Now().Add(30*time.Minute))
	w.setChain(w.leaf(w.next))
	w.start(now)
	w.settle(w.next.PEM())
	w.setChain(certtest.Chain(certtest.NewLeaf(t, brief, proxyHost), brief))
	published := certtest.ByAge(w.next, brief)
	w.reached(w.c1, throughProxy(published, w.c1.Name))
	w.remembers(published)
	w.marker()
	now.SetTime(brief.Certificate.NotAfter)
	w.setChain(w.leaf(w.next))
	w.marker()
	w.reached(w.c1, throughProxy(published, w.c1.Name))
	w.Eventually("the expired CA is withdrawn", func() string {
		// Stepped repeatedly, since the manager may only now be setting its timer.
		if now.Since(brief.Certificate.NotAfter) < time.Hour {
			now.Step(time.Minute)
		}
		want := []inventoryv1alpha1.AccessProvider{throughProxy(w.next.PEM(), w.c1.Name)}
		return cmp.Diff(want, w.Profile(w.ns, w.c1.Name).Status.AccessProviders)
	})
}
