package decide

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
)

func TestExplainNamesAnInstallNamespaceThatIsIgnored(t *testing.T) {
	const usual, mine = "open-cluster-management-agent-addon", "my-agents"
	for name, test := range map[string]struct{ wanted, used, want string }{
		"none is asked for":                  {used: mine},
		"clusteradm's default":               {wanted: usual, used: mine},
		"the one in use":                     {wanted: mine, used: mine},
		"the agent is nowhere yet":           {wanted: mine},
		"another than the one in use: named": {wanted: mine, used: usual, want: "; its spec.installNamespace my-agents is ignored: the agent is in namespace open-cluster-management-agent-addon (agent.installNamespace)"},
	} {
		t.Run(name, func(t *testing.T) {
			addon := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
				Namespace: "cluster1", Name: "cluster-inventory",
				Annotations: map[string]string{"addon.open-cluster-management.io/v1alpha1-install-namespace": test.wanted},
			}}
			addon.Status.Namespace = test.used
			said := ""
			explained := ExplainPair(PairFacts{
				Namespace: "team", Cluster: "cluster1", Facts: rule.Facts{Addon: addon},
			}, time.Now())
			for _, step := range explained.Steps {
				if step.Name == "addon" {
					said = step.Text
				}
			}
			if want := "the cluster has the addon cluster-inventory" + test.want; said != want {
				t.Errorf("it says %q, want %q", said, want)
			}
		})
	}
}
