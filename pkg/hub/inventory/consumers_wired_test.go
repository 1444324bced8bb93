package inventory

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/consumers"
)

// watchForConsumers validates every version of the namespace's profiles until the test ends,
// which must then have found no problem.
func (w *accessWorld) watchForConsumers(t *testing.T) *consumers.Watch {
	t.Helper()
	c, err := client.NewWithWatch(wiredHub.Config(t), client.Options{Scheme: ocmtest.Scheme()})
	apitest.Must(t, err)
	watch, err := consumers.Follow(context.WithoutCancel(t.Context()), c, w.ns)
	apitest.Must(t, err)
	t.Cleanup(func() {
		watch.Stop()
		if err := watch.Problems(); err != nil {
			t.Errorf("a version of a profile breaks a consumer:\n%v", err)
		}
	})
	return watch
}

// Whatever happens to the sources of a profile, no version of it breaks a consumer.
func TestNoVersionOfAProfileBreaksAConsumer(t *testing.T) {
	w := newAccessWorld(t)
	watch, now := w.watchForConsumers(t), testingclock.NewFakeClock(time.Now())
	w.start(now)
	w.settle(w.ca.PEM())
	now.Step(time.Minute)
	w.marker()
	published := w.ca.PEM()
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"the certificate's Secret is recreated", func() {
			w.MustDelete(servingSecret(nil, nil))
			w.marker()
			now.Step(8 * time.Second)
			w.MustCreate(servingSecret(w.leaf(w.ca), []byte(servingKey)))
		}},
		{"the certificate is renewed", func() { w.setChain(w.leaf(w.ca)) }},
		{"another CA issues the certificate", func() {
			w.setChain(w.leaf(w.next))
			published = certtest.ByAge(w.ca, w.next)
		}},
		{"the Service and the addon are recreated", func() {
			w.MustDelete(userService(), proxyAddon(w.c1.Name))
			w.marker()
			w.MustCreate(userService(), proxyAddon(w.c1.Name))
		}},
		{"cluster-proxy is reinstalled", func() {
			w.MustDelete(proxyManager("false"), configuration("cluster-proxy"))
			w.marker()
			w.MustCreate(proxyManager("false"), configuration("cluster-proxy"))
		}},
		{"cluster-proxy writes the entries for a while", func() {
			gate := func(value string) {
				apitest.Edit(w, proxyManager("false"), func(d *appsv1.Deployment) { d.Spec = proxyManager(value).Spec })
				w.marker()
			}
			gate("true")
			gate("false")
		}},
		{"the manager restarts", func() {
			w.stop()
			w.start(now)
		}},
		{"the manager restarts while the certificate is missing", func() {
			w.stop()
			w.MustDelete(servingSecret(nil, nil))
			w.start(now)
			w.marker()
			w.MustCreate(servingSecret(w.leaf(w.next), []byte(servingKey)))
		}},
		{"the cluster becomes unhealthy, and says other things", func() {
			apitest.EditStatus(w, w.c1, func(c *clusterv1.ManagedCluster) {
				c.Status.Conditions[2] = ocmtest.Condition(clusterv1.ManagedClusterConditionAvailable, "Unknown", "Lost", "")
				c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{ocmtest.Claim("a", "1")}
			})
		}},
		{"the addon's own health changes", func() {
			apitest.EditStatus(w, ocmtest.Addon(w.c1.Name), func(a *addonv1beta1.ManagedClusterAddOn) {
				a.Status.Conditions = append(a.Status.Conditions, ocmtest.Condition("Available", "False", "R", ""))
			})
		}},
	} {
		t.Log(step.name)
		step.do()
		w.marker()
		now.Step(20 * time.Second)
		w.marker()
		w.reached(w.c1, throughProxy(published, w.c1.Name))
	}
	for _, cluster := range []*clusterv1.ManagedCluster{w.c1, w.c2, w.marked} {
		w.Eventually("the last version of "+cluster.Name+" is validated", func() string {
			if !watch.Saw(w.Profile(w.ns, cluster.Name)) {
				return "it is not"
			}
			return ""
		})
	}
}

// A test that cannot fail proves nothing: a momentarily missing entry is found.
func TestMomentarilyMissingEntryIsFound(t *testing.T) {
	w := newReachedWorld(t)
	c, err := client.NewWithWatch(wiredHub.Config(t), client.Options{Scheme: ocmtest.Scheme()})
	apitest.Must(t, err)
	watch, err := consumers.Follow(context.WithoutCancel(t.Context()), c, w.ns)
	apitest.Must(t, err)
	t.Cleanup(watch.Stop)
	apitest.EditStatus(w, w.Profile(w.ns, w.c1.Name), func(p *consumers.Profile) { p.Status.AccessProviders = nil })
	w.reached(w.c1, throughProxy(w.ca.PEM(), w.c1.Name))
	w.Eventually("it is found", func() string {
		if watch.Problems() == nil {
			return "there is no problem"
		}
		return ""
	})
}
