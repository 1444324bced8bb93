package inventory

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
)

func TestDirectAccessFollowsTheAdministrator(t *testing.T) {
	w, now := newTimedWorld(t)
	published := w.ca.PEM()
	const notPublished = `Access provider "direct" is not published: `
	spoke := certtest.NewCA(t, "spoke", time.Now().Add(time.Hour))
	indented := strings.ReplaceAll(strings.TrimSpace(string(spoke.PEM())), "\n", "\n  ")
	text := "server: https://c2.example.com:6443\ncertificateAuthority: |\n  " + indented + "\n"
	direct := providerOf("direct", "https://c2.example.com:6443", spoke.PEM(), w.c2.Name)
	here := directConfigMap("direct", map[string]string{w.c2.Name: text})
	w.MustCreate(here)
	w.reached(w.c2, direct)
	w.wrote("PATCH clusterprofiles/status")
	w.MustCreate(proxyAddon(w.c2.Name))
	w.reached(w.c2, throughProxy(published, w.c2.Name), direct)
	w.MustDelete(proxyAddon(w.c2.Name))
	w.reachedLater(now, w.c2, direct)

	twice := directConfigMap("twice", map[string]string{w.c2.Name: text, w.c1.Name: "fromManagedCluster: true"})
	w.MustCreate(twice)
	w.reached(w.c2)
	w.unavailable(w.c2, notPublished+`more than one ConfigMap has it: hub/direct, hub/twice.`)
	w.announced(w.c2, notPublished+`more than one ConfigMap has it: hub/direct, hub/twice.`)
	w.unavailable(w.c1, notPublished+`the ManagedCluster has no spec.managedClusterClientConfigs, `+
		`as ConfigMap hub/twice wants it.`)

	apitest.Edit(w, w.c1, func(c *clusterv1.ManagedCluster) {
		c.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{
			{URL: "http://insecure", CABundle: spoke.PEM()},
			{URL: "https://unverified"},
		}
	})
	w.unavailable(w.c1, notPublished+`no entry of the ManagedCluster's spec.managedClusterClientConfigs `+
		`has both an https URL and a usable caBundle, as ConfigMap hub/twice wants it.`)
	apitest.Edit(w, w.c1, func(c *clusterv1.ManagedCluster) {
		c.Spec.ManagedClusterClientConfigs = append(c.Spec.ManagedClusterClientConfigs,
			clusterv1.ClientConfig{URL: "https://c1.example.com", CABundle: spoke.PEM()})
	})
	w.reached(w.c1, throughProxy(published, w.c1.Name),
		providerOf("direct", "https://c1.example.com", spoke.PEM(), w.c1.Name))
	w.allInPlace(w.c1)

	apitest.Edit(w, here, func(m *corev1.ConfigMap) { m.Data[w.c2.Name] = "server: http://c2.example.com" })
	w.MustDelete(twice)
	w.reached(w.c1, throughProxy(published, w.c1.Name))
	w.unavailable(w.c2, notPublished+`what ConfigMap hub/direct has under "`+w.c2.Name+`" `+
		`needs server and certificateAuthority, or fromManagedCluster: true.`)
	w.MustDelete(here)
	w.allInPlace(w.c2)
	w.reached(w.c2)
	w.marker()
}
