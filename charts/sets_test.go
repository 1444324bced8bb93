package charts

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// testOnlyExclusiveSets: root on a spoke labels its cluster into a set that selects by labels,
// and so its profile before the tenant who binds that set. Once only exclusive sets publish,
// profile and token are withdrawn there, and nowhere else.
func testOnlyExclusiveSets(t *testing.T) {
	c := newCopying(t)
	team, other := c.Namespace("team", nil), c.Namespace("other", nil)
	labelled := c.Set("labelled", clusterv1beta2.ManagedClusterSelector{
		SelectorType:  clusterv1beta2.LabelSelector,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/team": c.Name("other")}},
	})
	c.CleanUp(labelled, c.Bind(team, c.set), c.Bind(other, labelled.Name))
	c.start()
	c.join(team, other)
	own, chosen := ocmtest.OurProfile(team, c.cluster), ocmtest.OurProfile(other, c.cluster)
	c.CleanUp(own, chosen)
	c.eventually(true, own, c.copyIn(team))
	c.eventually(false, chosen)

	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: c.cluster}}
	apitest.Edit(c, cluster, func(cluster *clusterv1.ManagedCluster) { cluster.Labels["example.com/team"] = c.Name("other") })
	c.eventually(true, chosen, c.copyIn(other))

	kept := c.copyIn(team)
	c.MustGet(own)
	c.MustGet(kept)
	c.start("--exclusive-sets-only")
	c.eventually(false, chosen, c.copyIn(other))
	c.EventuallyAddonCondition(c.cluster, "ProfilesSynced", "True", "Synced",
		"Every ClusterProfile that this cluster should have is up to date.")
	for _, object := range []client.Object{own, kept} {
		before := object.GetUID()
		if c.MustGet(object); object.GetUID() != before {
			t.Errorf("%T in %s was deleted and recreated", object, team)
		}
	}
}
