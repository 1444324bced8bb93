package configuration

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/ownwork"
)

const (
	hostingAnnotation = "addon.open-cluster-management.io/hosting-cluster-name"

	hookFinalizer    = "addon.open-cluster-management.io/addon-pre-delete"
	hostingPreDelete = "addon.open-cluster-management.io/hosting-addon-pre-delete"
	hostingManifests = "addon.open-cluster-management.io/hosting-manifests-cleanup"
)

func TestAHostedAgentHasANamespaceOfItsOwn(t *testing.T) {
	if got := ownwork.HostedNamespace("c1"); got != "cluster-inventory-c1" {
		t.Errorf("namespace %q", got)
	}
	long := strings.Repeat("c", 62)
	one, another := ownwork.HostedNamespace(long+"1"), ownwork.HostedNamespace(long+"2")
	if one == another {
		t.Errorf("two clusters share the namespace %s", one)
	}
	// A user names a cluster so that its namespace could be that of another one.
	name := strings.TrimPrefix(one, "cluster-inventory-")
	if len(validation.IsDNS1123Label(name)) == 0 && ownwork.HostedNamespace(name) == one {
		t.Errorf("the cluster %s shares the namespace %s", name, one)
	}
	for _, name := range []string{one, another} {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

func TestValidateHost(t *testing.T) {
	for name, test := range map[string]struct {
		annotation string
		deployed   bool
		runs       string
		down       bool   // the agent is not available
		reported   bool   // it has been
		refusal    string // part of the message; empty means none
	}{
		"on its own cluster":    {},
		"and it does":           {deployed: true},
		"on a host":             {annotation: "h1"},
		"and it does run there": {annotation: "h1", deployed: true, runs: "h1"},
		"on itself as host":     {annotation: "c1", refusal: "own name"},
		"it would move to a host": {annotation: "h1", deployed: true,
			refusal: `"h1", but the agent runs on cluster c1`},
		"it would move home": {deployed: true, runs: "h1", refusal: `"", but the agent runs on cluster h1`},
		"and loses its access meanwhile": {deployed: true, runs: "h1",
			refusal: "Until then the agent has no access to the hub"},
		"it would move to another": {annotation: "h2", deployed: true, runs: "h1",
			refusal: `"h2", but the agent runs on cluster h1`},
		"it moves before it is available": {annotation: "h1", deployed: true, down: true},
		"nor when it is unreachable": {annotation: "h1", deployed: true,
			down: true, reported: true, refusal: "runs on cluster c1"},
		"but not to itself": {annotation: "c1", deployed: true, down: true, refusal: "own name"},
		"nor from a host to another": {annotation: "h2", deployed: true,
			runs: "h1", down: true, refusal: "runs on cluster h1"},
		"nor home":                  {deployed: true, runs: "h1", down: true, refusal: "runs on cluster h1"},
		"nothing is deployed there": {annotation: "h2", runs: ""},
	} {
		t.Run(name, func(t *testing.T) {
			addon := ocmtest.Addon("c1")
			addon.Annotations = map[string]string{hostingAnnotation: test.annotation}
			if !test.down {
				addon.Status.Conditions = []metav1.Condition{ocmtest.Condition("Available", "True", "R", "")}
			}
			if test.reported {
				addon.Status.Conditions = append(addon.Status.Conditions,
					ocmtest.Condition("PropertiesPublished", "False", "R", ""))
			}
			at := Location{There: manifests.Deployed{Host: test.runs}}
			if test.deployed {
				at.There.Agent = &workv1.Manifest{}
			}
			refused := validateHost(addon, at)
			switch {
			case test.refusal == "" && refused != nil:
				t.Errorf("refused: %s", refused.Message)
			case test.refusal != "" &&
				(refused == nil || !strings.Contains(refused.Message, test.refusal) || refused.Reason != "HostingRefused"):
				t.Errorf("got %+v, want %q in it", refused, test.refusal)
			}
		})
	}
}

// TestValidateUnhosted: while the manager manages no hosted agents, it leaves those alone that
// are or may be hosted, and no others.
func TestValidateUnhosted(t *testing.T) {
	const annotation = ", or remove the annotation addon.open-cluster-management.io/hosting-cluster-name"
	for name, test := range map[string]struct {
		annotated bool
		finalizer string
		removed   bool
		left      bool
		mentions  string
	}{
		"on its own cluster":              {},
		"on its own cluster, and removed": {removed: true, finalizer: hookFinalizer},
		"it should be hosted":             {annotated: true, left: true, mentions: annotation},
		"it should, and runs on its own cluster": {
			annotated: true, finalizer: hookFinalizer, left: true, mentions: annotation,
		},
		"it should, and is removed from its own cluster": {annotated: true, finalizer: hookFinalizer, removed: true},
		"it may be hosted":                       {annotated: true, finalizer: hostingManifests, left: true},
		"it may, and the annotation is gone":     {finalizer: hostingManifests, left: true},
		"its clean-up may run on a host":         {finalizer: hostingPreDelete, left: true},
		"it may be hosted, and is removed":       {annotated: true, finalizer: hostingManifests, removed: true, left: true},
		"its clean-up may run, and it's removed": {finalizer: hostingPreDelete, removed: true, left: true},
	} {
		t.Run(name, func(t *testing.T) {
			addon := ocmtest.Addon("c1")
			if test.annotated {
				addon.Annotations = map[string]string{hostingAnnotation: "h1"}
			}
			if test.finalizer != "" {
				addon.Finalizers = []string{test.finalizer}
			}
			if test.removed {
				addon.DeletionTimestamp = ptr.To(metav1.Now())
			}
			refused := ValidateUnhosted(addon)
			switch {
			case (refused != nil) != test.left:
				t.Errorf("got %+v", refused)
			case refused != nil && (refused.Reason != "HostingDisabled" ||
				!strings.Contains(refused.Message, "agent.hosted.enabled to true"+test.mentions)):
				t.Errorf("got %+v", refused)
			}
		})
	}
}

// The namespace of a hosted agent is fixed: one configuration may apply to several
// clusters, and two agents in one namespace would share their access to the hub.
func TestDecideNamespace(t *testing.T) {
	naming := func(namespace string) choice {
		return choice{known: true, name: "configs/a",
			configuration: &configuration{overrides: overrides{installNamespace: namespace}}}
	}
	hosted := func(namespace string) string { return map[string]string{"cluster-inventory-c2": "c2"}[namespace] }
	runs := func(host, namespace string) manifests.Deployed {
		return manifests.Deployed{Host: host, Namespace: namespace}
	}
	tests := map[string]struct {
		chosen    choice
		at        Location
		manifests string
		want      string
		refused   string
	}{
		"the usual":          {want: "agents"},
		"with hosted agents": {at: Location{HostedIn: hosted}, want: "agents"},
		"hosted":             {at: Location{Host: "h"}, want: "cluster-inventory-c1"},
		"hosted, and deployed": {at: Location{Host: "h", There: runs("h", "cluster-inventory-c1")},
			want: "cluster-inventory-c1"},
		"hosted, and its own namespace named": {chosen: naming("cluster-inventory-c1"),
			at: Location{Host: "h"}, want: "cluster-inventory-c1"},
		"hosted, next to the host's own":     {at: Location{Host: "h", HostsOwn: "agents"}, want: "cluster-inventory-c1"},
		"hosted, with manifests that can be": {at: Location{Host: "h"}, manifests: "2", want: "cluster-inventory-c1"},
		"hosted, in a namespace that others may name, too": {
			chosen: naming("shared"), at: Location{Host: "h"},
			refused: "InstallNamespaceTaken: AddOnDeploymentConfig configs/a: spec.agentInstallNamespace is shared, which may be the " +
				"namespace of another cluster's agent: on hosting cluster h, the agent runs in namespace cluster-inventory-c1; " +
				"remove the field, or set it to that",
		},
		"hosted, with manifests that cannot be": {
			at: Location{Host: "h"}, manifests: "1",
			refused: "HostingRefused: The agent's manifests are of revision 1, which cannot run on a hosting cluster; " +
				"it needs an AgentRevision with manifests of a later revision",
		},
		"hosted, but the host's own agent is there": {
			at: Location{Host: "h", HostsOwn: "cluster-inventory-c1"},
			refused: "InstallNamespaceTaken: The agent's namespace cluster-inventory-c1 on hosting cluster h is in use by that " +
				"cluster's own agent; disable the addon on cluster h, and enable it again with another install namespace",
		},
		"already hosted next to it": {
			at:   Location{Host: "h", HostsOwn: "cluster-inventory-c1", There: runs("h", "cluster-inventory-c1")},
			want: "cluster-inventory-c1",
		},
		"in the namespace of a hosted agent": {
			chosen: naming("cluster-inventory-c2"), at: Location{HostedIn: hosted},
			refused: "InstallNamespaceTaken: AddOnDeploymentConfig configs/a: spec.agentInstallNamespace is cluster-inventory-c2, " +
				"which is in use by the agent of cluster c2, which this cluster hosts; choose another namespace",
		},
		"in the namespace of a later one": {
			chosen: naming("cluster-inventory-c2"), at: Location{HostedIn: hosted, There: runs("", "cluster-inventory-c2")},
			want: "cluster-inventory-c2",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			revision := choice{known: true, name: "r", configuration: &configuration{values: values()}}
			revision.configuration.values.Manifests, test.at.Cluster = test.manifests, "c1"
			got, refused := decideNamespace(revision, test.chosen, test.at)
			checkRefusal(t, test.refused, refused)
			if got != test.want {
				t.Errorf("namespace %q, want %q", got, test.want)
			}
		})
	}
}
