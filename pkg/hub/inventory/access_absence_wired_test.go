package inventory

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	testingclock "k8s.io/utils/clock/testing"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// A consumer such as Argo CD forgets a cluster whose access provider is gone, even for a
// moment. So every prerequisite of the provider may be replaced without a write of a
// profile.
func TestMomentaryReplacementWritesNothing(t *testing.T) {
	w, now := newTimedWorld(t)
	t.Cleanup(func() {
		if t.Failed() {
			wiredHub.Install(t, apitest.ManagedProxyConfiguration())
		}
	})
	for name, replaced := range map[string]struct{ take, give func(w *accessWorld) }{
		"the Secret": {
			take: func(w *accessWorld) { w.MustDelete(servingSecret(nil, nil)) },
			give: func(w *accessWorld) { w.MustCreate(servingSecret(w.leaf(w.ca), []byte(servingKey))) },
		},
		"the Service": {
			take: func(w *accessWorld) { w.MustDelete(userService()) },
			give: func(w *accessWorld) { w.MustCreate(userService()) },
		},
		"the configuration": {
			take: func(w *accessWorld) { w.MustDelete(configuration("cluster-proxy")) },
			give: func(w *accessWorld) { w.MustCreate(configuration("cluster-proxy")) },
		},
		"the API": {
			take: (*accessWorld).uninstallConfigurations,
			give: (*accessWorld).installConfigurations,
		},
		"the addon": {
			take: func(w *accessWorld) { w.MustDelete(proxyAddon(w.c1.Name)) },
			give: func(w *accessWorld) { w.MustCreate(proxyAddon(w.c1.Name)) },
		},
		"the addon, held by a finalizer": {
			take: func(w *accessWorld) {
				apitest.Edit(w, proxyAddon(w.c1.Name), func(a *addonv1beta1.ManagedClusterAddOn) {
					a.Finalizers = []string{"example.com/test"}
				})
				w.MustDelete(proxyAddon(w.c1.Name))
			},
			give: func(w *accessWorld) {
				apitest.Edit(w, proxyAddon(w.c1.Name), func(a *addonv1beta1.ManagedClusterAddOn) { a.Finalizers = nil })
				w.EventuallyGone(proxyAddon(w.c1.Name))
				w.MustCreate(proxyAddon(w.c1.Name))
			},
		},
		"the Deployment that shows the gate": {
			take: func(w *accessWorld) { w.MustDelete(proxyManager("false")) },
			give: func(w *accessWorld) { w.MustCreate(proxyManager("false")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			for range 2 { // each absence starts over
				replaced.take(w)
				w.marker()
				now.Step(8 * time.Second)
				w.marker()
				replaced.give(w)
				w.marker()
			}
			for range 4 {
				now.Step(5 * time.Second)
				w.marker()
			}
			w.reached(w.c1, throughProxy(w.ca.PEM(), w.c1.Name))
			w.allInPlace(w.c1)
			var markers []string
			for range 10 {
				markers = append(markers, "PATCH clusterprofiles/status")
			}
			w.wrote(markers...)
		})
	}
}

// While cluster-proxy writes the entries itself they are not ours, even if its
// Deployment is replaced.
func TestReplacedGateStaysOn(t *testing.T) {
	w, now := newTimedWorld(t)
	apitest.Edit(w, proxyManager("false"), func(d *appsv1.Deployment) { d.Spec = proxyManager("true").Spec })
	left := `Access provider "open-cluster-management" is left as it is: cluster-proxy writes it itself, ` +
		"because Deployment proxy/cluster-proxy-addon-manager has the feature gate for it on; " +
		"turn that off to let this addon write it."
	w.unavailable(w.c1, left)
	w.MustDelete(userService())
	w.forget()
	w.MustDelete(proxyManager("true"))
	w.marker()
	now.Step(8 * time.Second)
	w.marker()
	w.MustCreate(proxyManager("true"))
	w.marker()
	now.Step(time.Minute)
	w.marker()
	w.unavailable(w.c1, left)
	w.MustDelete(proxyManager("true"))
	w.reachedLater(now, w.c1) // without the Service there is nothing to publish
}

// After a start nothing is known about earlier objects: a missing one may have existed a
// moment before.
func TestAbsenceAtTheStartIsWithdrawnOnceItLasted(t *testing.T) {
	for name, missing := range map[string]struct{ take, give func(w *accessWorld) }{
		"the Secret": {
			take: func(w *accessWorld) { w.MustDelete(servingSecret(nil, nil)) },
			give: func(w *accessWorld) { w.MustCreate(servingSecret(w.leaf(w.ca), []byte(servingKey))) },
		},
		"the addon": {
			take: func(w *accessWorld) { w.MustDelete(proxyAddon(w.c1.Name)) },
			give: func(w *accessWorld) { w.MustCreate(proxyAddon(w.c1.Name)) },
		},
		"everything": {
			take: func(w *accessWorld) {
				w.MustDelete(servingSecret(nil, nil), userService(), configuration("cluster-proxy"),
					proxyAddon(w.c1.Name), proxyManager("false"))
			},
			give: func(w *accessWorld) {
				w.MustCreate(servingSecret(w.leaf(w.ca), []byte(servingKey)), userService(), configuration("cluster-proxy"),
					proxyAddon(w.c1.Name), proxyManager("false"))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := newTimedWorld(t)
			w.stop()
			missing.take(w)
			w.forget()
			now := testingclock.NewFakeClock(time.Now())
			w.start(now)
			w.marker()
			now.Step(8 * time.Second)
			w.marker()
			missing.give(w)
			w.marker()
			now.Step(time.Minute)
			w.marker()
			w.wrote("PATCH clusterprofiles/status", "PATCH clusterprofiles/status",
				"PATCH clusterprofiles/status", "PATCH clusterprofiles/status") // the markers
			w.reached(w.c1, throughProxy(w.ca.PEM(), w.c1.Name))

			w.stop()
			missing.take(w)
			w.start(now)
			w.marker()
			w.forget()
			w.reachedLater(now, w.c1)
			w.wrote("PATCH clusterprofiles/status")
		})
	}
}
