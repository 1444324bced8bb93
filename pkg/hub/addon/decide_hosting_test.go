package addon

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

const hostingAnnotation = "addon.open-cluster-management.io/hosting-cluster-name"

func TestAHostedAgentHasANamespaceOfItsOwn(t *testing.T) {
	if got := hostedNamespace("c1"); got != "cluster-inventory-c1" {
		t.Errorf("namespace %q", got)
	}
	long := strings.Repeat("c", 62)
	one, another := hostedNamespace(long+"1"), hostedNamespace(long+"2")
	if one == another {
		t.Errorf("two clusters share the namespace %s", one)
	}
	for _, name := range []string{one, another} {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

func TestJudgeHost(t *testing.T) {
	for name, test := range map[string]struct {
		annotation string
		deployed   bool
		runs       string
		refusal    string // part of the message; empty means none
	}{
		"on its own cluster":        {},
		"and it does":               {deployed: true},
		"on a host":                 {annotation: "h1"},
		"and it does run there":     {annotation: "h1", deployed: true, runs: "h1"},
		"on itself as host":         {annotation: "c1", refusal: "own name"},
		"it would move to a host":   {annotation: "h1", deployed: true, refusal: `"h1", but the agent runs on cluster c1`},
		"it would move home":        {deployed: true, runs: "h1", refusal: `"", but the agent runs on cluster h1`},
		"it would move to another":  {annotation: "h2", deployed: true, runs: "h1", refusal: `"h2", but the agent runs on cluster h1`},
		"nothing is deployed there": {annotation: "h2", runs: ""},
	} {
		t.Run(name, func(t *testing.T) {
			addon := ocmtest.Addon("c1")
			addon.Annotations = map[string]string{hostingAnnotation: test.annotation}
			refused := judgeHost(addon, test.deployed, test.runs)
			switch {
			case test.refusal == "" && refused != nil:
				t.Errorf("refused: %s", refused.message)
			case test.refusal != "" && (refused == nil || !strings.Contains(refused.message, test.refusal) || refused.reason != "HostingRefused"):
				t.Errorf("got %+v, want %q in it", refused, test.refusal)
			}
		})
	}
}

// Of two agents that want one namespace exactly one gets it, and it is always the same.
func TestOneNamespaceHasOneAgent(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	for name, test := range map[string]struct{ first, second resident }{
		"the older one":                    {resident{"b", "n", false, early}, resident{"a", "n", false, late}},
		"the one that is registered there": {resident{"b", "n", true, late}, resident{"a", "n", false, early}},
		"of the same age, the first name":  {resident{"a", "n", false, early}, resident{"b", "n", false, early}},
	} {
		t.Run(name, func(t *testing.T) {
			got := []string{
				takenBy(test.first, []resident{test.second}), takenBy(test.second, []resident{test.first}),
			}
			if diff := cmp.Diff([]string{"", test.first.cluster}, got); diff != "" {
				t.Errorf("who is in the way (-want +got):\n%s", diff)
			}
		})
	}
	if got := takenBy(resident{"a", "n", false, late}, []resident{{"b", "m", true, early}}); got != "" {
		t.Errorf("a namespace of another name is taken by %s", got)
	}
}

func TestAResidentIsWhereTheKlusterletWasTold(t *testing.T) {
	addon := ocmtest.Addon("c1")
	addon.CreationTimestamp = metav1.NewTime(time.Unix(1, 0))
	want := resident{cluster: "c1", namespace: "wanted", since: addon.CreationTimestamp.Time}
	if diff := cmp.Diff(want, residentOf(addon, "wanted"), cmp.AllowUnexported(resident{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	addon.Status.Namespace = "told"
	want.namespace, want.registered = "told", true
	if diff := cmp.Diff(want, residentOf(addon, "wanted"), cmp.AllowUnexported(resident{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
