package inventory

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	testingclock "k8s.io/utils/clock/testing"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

func TestProfileIsCreatedWithItsProviderInTwoWrites(t *testing.T) {
	w := newAccessWorld(t)
	// The first reads of the Secret fail, so profiles have to wait for it.
	asked := 0
	w.wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Resource != "secrets" {
			return apitest.Fault{}
		}
		if asked++; asked > 4 {
			return apitest.Fault{}
		}
		return apitest.Fault{Status: http.StatusServiceUnavailable, Reason: "ServiceUnavailable"}
	})
	w.start(testingclock.NewFakeClock(time.Now())) // profiles wait for some seconds only
	published := w.ca.PEM()
	for _, c := range []*clusterv1.ManagedCluster{w.c1, w.c2, w.marked} {
		w.allInPlace(c)
	}
	w.reached(w.c1, throughProxy(published, w.c1.Name))
	w.reached(w.c2)
	w.remembers(published)
	var profiles []string
	for _, call := range w.wire.Writes("clusterprofiles", "clusterprofiles/status") {
		if call.Mentions(w.c1.Name) {
			profiles = append(profiles, call.Method+" "+call.Resource)
		}
	}
	if diff := cmp.Diff([]string{"POST clusterprofiles", "PATCH clusterprofiles/status"}, profiles); diff != "" {
		t.Errorf("writes of one profile (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"POST configmaps"}, w.wire.Sent("configmaps")); diff != "" {
		t.Errorf("writes of what is remembered (-want +got):\n%s", diff)
	}
}

func TestAClusterGetsClusterProxyAndLosesIt(t *testing.T) {
	w, now := newTimedWorld(t)
	w.MustCreate(proxyAddon(w.c2.Name))
	w.reached(w.c2, throughProxy(w.ca.PEM(), w.c2.Name))
	w.wrote("PATCH clusterprofiles/status")
	// An addon that is being deleted does not count.
	apitest.Edit(w, proxyAddon(w.c2.Name), func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Finalizers = []string{"example.com/test"}
	})
	w.MustDelete(proxyAddon(w.c2.Name))
	w.reachedLater(now, w.c2)
	apitest.Edit(w, proxyAddon(w.c2.Name), func(a *addonv1beta1.ManagedClusterAddOn) { a.Finalizers = nil })
	w.marker()
	w.wrote("PATCH clusterprofiles/status", "PATCH clusterprofiles/status")
}

// TestProviderIsWithdrawnWithItsPrerequisites removes the prerequisites of cluster-proxy's
// access provider, one at a time: a changed one counts at once, a missing one after a while.
func TestProviderIsWithdrawnWithItsPrerequisites(t *testing.T) {
	w, now := newTimedWorld(t)
	t.Cleanup(func() {
		if t.Failed() {
			wiredHub.Install(t, apitest.ManagedProxyConfiguration())
		}
	})
	for name, ground := range map[string]struct {
		take, give func(w *accessWorld)
		gone       bool
		message    string
	}{
		"the certificate": {
			take:    func(w *accessWorld) { w.setChain([]byte("no certificate")) },
			give:    func(w *accessWorld) { w.setChain(w.leaf(w.ca)) },
			message: "Secret proxy/cluster-proxy-user-serving-cert has no certificate in tls.crt",
		},
		"the Secret": {
			take:    func(w *accessWorld) { w.MustDelete(servingSecret(nil, nil)) },
			give:    func(w *accessWorld) { w.MustCreate(servingSecret(w.leaf(w.ca), []byte(servingKey))) },
			gone:    true,
			message: "Secret proxy/cluster-proxy-user-serving-cert is missing",
		},
		"the Service": {
			take:    func(w *accessWorld) { w.MustDelete(userService()) },
			give:    func(w *accessWorld) { w.MustCreate(userService()) },
			gone:    true,
			message: "Service proxy/cluster-proxy-addon-user is missing (enableServiceProxy of cluster-proxy's chart)",
		},
		"the user server's configuration": {
			take: func(w *accessWorld) {
				apitest.Edit(w, configuration("cluster-proxy"), func(c *unstructured.Unstructured) {
					unstructured.RemoveNestedField(c.Object, "spec", "userServer")
				})
			},
			give: func(w *accessWorld) {
				apitest.Edit(w, configuration("cluster-proxy"), func(c *unstructured.Unstructured) {
					_ = unstructured.SetNestedMap(c.Object, map[string]any{}, "spec", "userServer")
				})
			},
			message: `ManagedProxyConfiguration "cluster-proxy" has no spec.userServer (userServer.enabled of cluster-proxy's chart)`,
		},
		"the one configuration of two": {
			take: func(w *accessWorld) { w.MustDelete(configuration("cluster-proxy")) },
			give: func(w *accessWorld) { w.MustCreate(configuration("cluster-proxy")) },
			gone: true,
			message: `there is no ManagedProxyConfiguration "cluster-proxy", only others (another), ` +
				"which are not looked at",
		},
		"the API": {
			take:    (*accessWorld).uninstallConfigurations,
			give:    (*accessWorld).installConfigurations,
			gone:    true,
			message: "the hub serves no ManagedProxyConfiguration: cluster-proxy is not installed on it",
		},
	} {
		t.Run("without "+name, func(t *testing.T) {
			w := w.in(t)
			w.forget()
			ground.take(w)
			if ground.gone {
				w.marker()
				w.wrote("PATCH clusterprofiles/status") // the marker
				w.reachedLater(now, w.c1)
			}
			w.reached(w.c1)
			w.wrote("PATCH clusterprofiles/status")
			w.unavailable(w.c1, `Access provider "open-cluster-management" is not published: `+ground.message+".")
			w.allInPlace(w.c2)
			ground.give(w)
			w.reached(w.c1, throughProxy(w.ca.PEM(), w.c1.Name))
			w.allInPlace(w.c1)
		})
	}
}

func TestOthersEntriesStayAfterOurs(t *testing.T) {
	w := newReachedWorld(t)
	published := w.ca.PEM()
	theirs := inventoryv1alpha1.AccessProvider{
		Name: "gke", Cluster: clientcmdv1.Cluster{Server: "https://gke", ProxyURL: "http://p"},
	}
	foreign := inventoryv1alpha1.AccessProvider{
		Name: "direct", Cluster: clientcmdv1.Cluster{Server: "https://somewhere", TLSServerName: "else"},
	}
	apitest.EditStatus(w, w.Profile(w.ns, w.c1.Name), func(p *inventoryv1alpha1.ClusterProfile) {
		others := []inventoryv1alpha1.AccessProvider{theirs, foreign}
		p.Status.AccessProviders = append(others, p.Status.AccessProviders...)
	})
	w.reached(w.c1, throughProxy(published, w.c1.Name), theirs, foreign)
	w.wrote("PATCH clusterprofiles/status")
	apitest.EditStatus(w, w.Profile(w.ns, w.c1.Name), func(p *inventoryv1alpha1.ClusterProfile) {
		cluster := &p.Status.AccessProviders[0].Cluster
		cluster.Server, cluster.CertificateAuthorityData = "https://attacker", nil
	})
	w.reached(w.c1, throughProxy(published, w.c1.Name), theirs, foreign)
	apitest.EditStatus(w, w.Profile(w.ns, w.c1.Name), func(p *inventoryv1alpha1.ClusterProfile) {
		p.Status.AccessProviders = p.Status.AccessProviders[:1]
	})
	w.marker()
}

func TestClusterProxysEntriesBelongToItWhileItsGateIsOn(t *testing.T) {
	w := newReachedWorld(t)
	upstream := proxyManager("false")
	turn := func(gate string) {
		apitest.Edit(w, upstream, func(d *appsv1.Deployment) { d.Spec = proxyManager(gate).Spec })
	}
	turn("true")
	w.unavailable(w.c1, `Access provider "open-cluster-management" is left as it is: cluster-proxy writes it itself, `+
		"because Deployment proxy/cluster-proxy-addon-manager has the feature gate for it on; "+
		"turn that off to let this addon write it.")
	theirs := throughProxy([]byte("THEIRS"), w.c1.Name)
	apitest.EditStatus(w, w.Profile(w.ns, w.c1.Name), func(p *inventoryv1alpha1.ClusterProfile) {
		p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{theirs}
	})
	apitest.EditStatus(w, w.Profile(w.ns, w.c2.Name), func(p *inventoryv1alpha1.ClusterProfile) {
		p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{throughProxy([]byte("THEIRS"), w.c2.Name)}
	})
	w.marker()
	w.wrote("PATCH clusterprofiles/status")
	w.reached(w.c1, theirs)

	turn("false")
	w.reached(w.c1, throughProxy(w.ca.PEM(), w.c1.Name))
	w.reached(w.c2)
	w.allInPlace(w.c1)
	w.wrote("PATCH clusterprofiles/status", "PATCH clusterprofiles/status")
}

func TestWithoutRightsOnTheSecretEntriesStayAndProfilesAreCreated(t *testing.T) {
	w := newReachedWorld(t)
	published := w.ca.PEM()
	w.stop()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: proxyNamespace, Name: "manager"}}
	var before []rbacv1.PolicyRule
	apitest.Edit(w, role, func(r *rbacv1.Role) { before, r.Rules = r.Rules, append(r.Rules[:1:1], r.Rules[2]) })
	w.mayReadCertificate(w.user, false)
	w.forget()
	w.start(nil)
	c3 := w.Cluster("c3", ocmtest.InSet(w.set.Name))
	w.MustCreate(proxyAddon(c3.Name))
	const why = `Access provider "open-cluster-management" is left as it is: ` +
		"Secret proxy/cluster-proxy-user-serving-cert may not be read by the manager: its rights are missing."
	w.unavailable(c3, why)
	w.unavailable(w.c1, why)
	w.reached(w.c1, throughProxy(published, w.c1.Name))
	w.reached(c3)
	w.wrote("POST clusterprofiles", "PATCH clusterprofiles/status")

	apitest.Edit(w, role, func(r *rbacv1.Role) { r.Rules = before })
	w.reached(c3, throughProxy(published, c3.Name))
	w.allInPlace(w.c1)
	w.wrote("PATCH clusterprofiles/status")
}
