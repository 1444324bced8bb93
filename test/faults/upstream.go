package faults

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
)

const (
	upstreamName = "upstream"
	// upstreamUser has the rights of both programs' accounts.
	upstreamUser = "upstream"

	registrationNamespace = "open-cluster-management-hub"
)

// upstreamNames are the stories of which all steps concern upstream's own writers. Most others
// are about what only this addon has or promises (doc.go lists them).
var upstreamNames = []string{"bind", "edit", "rotate", "unbind", "register-again", "move"}

// ofRegistration is what Open Cluster Management's registration controller leaves, besides ownedKinds.
var ofRegistration = []owned{
	{
		kind: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
		only: []client.ListOption{client.HasLabels{clusterv1.ClusterNameLabelKey}},
	},
	{
		kind: rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		only: []client.ListOption{client.HasLabels{clusterv1.ClusterNameLabelKey}},
	},
	{kind: schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}},
}

// upstreamWriter is Open Cluster Management's registration controller with its ClusterProfile
// gate, and managed-serviceaccount's manager with its syncer, from a folder that "fleet
// upstream" has filled. Both have one proxy, and end and start together.
func upstreamWriter(folder string) writer {
	of := onHub(writer{
		name:    upstreamName,
		stories: upstreamStories(),
		// Each of the two elects a leader of its own, after times of its own. Garbage collection
		// deletes what a recreated kind's objects own.
		without:          slices.Concat(ofLeaders, ofClocks, ofRecreated),
		mayLackReference: true,
		// A reset takes finalizers from clusters, so the controller does not clean up after them.
		fresh: true,
		owned: ofRegistration,
		crds:  []apitest.CRDs{apitest.HubInAllVersions()},
		user:  upstreamUser,
		programs: func(testing.TB) []string {
			return []string{filepath.Join(folder, "ocm"), filepath.Join(folder, "msa")}
		},
		install: func(l *lane, _ []byte) {
			l.createNamespaces(append([]string{registrationNamespace, proxyNamespace}, namespaces...)...)
			l.installRights(filepath.Join(folder, "rights.yaml"), upstreamUser)
			l.collectGarbage(filepath.Join(folder, "kube-controller-manager"))
		},
		commands: func(l *lane, cfg *rest.Config, _ version, _ ...string) func() []*exec.Cmd {
			kubeconfig := apitest.File(l.tb, "kubeconfig", apitest.Kubeconfig(l.tb, cfg, ""))
			return func() []*exec.Cmd { return upstreamCommands(folder, kubeconfig, freePort()) }
		},
		ready: func(r *running, _ map[string]string) bool { return r.isRegistered() },
	})
	// It takes away what depends on a kind whose CRD is gone.
	of.apis = withoutOCMs(of.apis)
	return of
}

// upstreamStories are stories for a writer that copies the token of an account to every
// namespace with a profile of its cluster: it knows no list of namespaces.
func upstreamStories() []story {
	var all []story
	for _, s := range stories {
		if !slices.Contains(upstreamNames, s.name) {
			continue
		}
		targets := map[string][]string{}
		for cluster := range s.targets {
			for _, namespace := range namespaces {
				if slices.Contains(s.may(), namespace+"/"+cluster) {
					targets[cluster] = append(targets[cluster], namespace)
				}
			}
		}
		s.targets = targets
		all = append(all, s)
	}
	return all
}

// upstreamCommands are the two programs with the flags that OCM's operator and
// managed-serviceaccount's chart give them, but for a leader's election, probes and metrics.
func upstreamCommands(folder, kubeconfig string, port int) []*exec.Cmd {
	registration := exec.Command(filepath.Join(folder, "ocm"), "registration", "controller",
		"--kubeconfig="+kubeconfig, "--namespace="+registrationNamespace, "--disable-leader-election",
		fmt.Sprintf("--listen=127.0.0.1:%d", port), "--feature-gates=ClusterProfile=true")
	registration.Env = append(os.Environ(), olderClient...)
	registration.Env = append(registration.Env, "POD_NAMESPACE="+registrationNamespace)
	accounts := exec.Command(filepath.Join(folder, "msa"), "manager",
		"--deploy-mode=Deployment", "--feature-gates=EphemeralIdentity=false,ClusterProfileCredSyncer=true",
		"--metrics-bind-address=0", "--health-probe-bind-address=0")
	accounts.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "NAMESPACE="+proxyNamespace)
	return []*exec.Cmd{registration, accounts}
}

// olderClient is the environment of Open Cluster Management's programs: their build has a newer
// client-go than their release, and this is how the older one behaves.
var olderClient = []string{"KUBE_FEATURE_InOrderInformersBatchProcess=false", "KUBE_FEATURE_WatchListClient=false"}

// freePort returns a port of loopback that nothing listens on, and that is none of those from which
// the kernel chooses for clients. The registration controller refuses to choose one itself.
func freePort() int {
	const first, many = 20000, 10000
	for {
		port := first + rand.IntN(many) //nolint:gosec // no secret
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = listener.Close()
			return port
		}
	}
}

// installRights creates ClusterRoles, and gives to one user what is bound to several accounts. A
// ClusterRole that exists gets the rules.
func (l *lane) installRights(path, user string) {
	l.tb.Helper()
	file, err := os.Open(path)
	apitest.Must(l.tb, err)
	defer func() { _ = file.Close() }()
	objects, err := manifesttest.Decode(file)
	apitest.Must(l.tb, err)
	for _, object := range objects {
		if object.GetKind() == "ClusterRoleBinding" {
			subject := map[string]any{"apiGroup": rbacv1.GroupName, "kind": rbacv1.UserKind, "name": user}
			apitest.Must(l.tb, unstructured.SetNestedSlice(object.Object, []any{subject}, "subjects"))
		}
		err := l.hub.Create(l.tb.Context(), object)
		if apierrors.IsAlreadyExists(err) {
			rules, _ := json.Marshal(map[string]any{"rules": object.Object["rules"]}) // impossible for what was JSON
			l.hub.MustMerge(object, string(rules))
			continue
		}
		apitest.Must(l.tb, err)
	}
}

// collectGarbage runs Kubernetes' garbage collector, past the proxy, until the test ends: a copy
// of a token goes with the profile that owns it.
func (l *lane) collectGarbage(path string) {
	l.tb.Helper()
	kubeconfig := apitest.File(l.tb, "kubeconfig", apitest.Kubeconfig(l.tb, l.server.Config(l.tb), ""))
	collector := &program{
		commands: func() []*exec.Cmd {
			return []*exec.Cmd{exec.Command(path, "--kubeconfig="+kubeconfig,
				"--controllers=garbage-collector-controller", "--leader-elect=false", "--secure-port=0")}
		},
		lost: func() {},
	}
	l.tb.Cleanup(func() {
		collector.stop()
		if exits, _, err := collector.report(); len(exits) > 0 || err != nil {
			l.tb.Logf("the garbage collector ended by itself: %v %v", exits, err)
		}
	})
	apitest.Must(l.tb, collector.start())
}

// isRegistered reports whether the registration controller has accepted all clusters and counted
// those of all sets.
func (r *running) isRegistered() bool {
	clusters, sets := &clusterv1.ManagedClusterList{}, &clusterv1beta2.ManagedClusterSetList{}
	r.world.MustList(clusters)
	r.world.MustList(sets)
	for _, cluster := range clusters.Items {
		accepted := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
		if accepted == nil || accepted.Reason != "HubClusterAdminAccepted" {
			return false
		}
	}
	for _, set := range sets.Items {
		counted := apimeta.FindStatusCondition(set.Status.Conditions, clusterv1beta2.ManagedClusterSetConditionEmpty)
		if counted == nil {
			return false
		}
	}
	return len(sets.Items) > 0
}

// writerNamed is the writer of that name.
func writerNamed(tb testing.TB, name, folder string) writer {
	tb.Helper()
	switch {
	case name == "":
		return addonWriter(folder)
	case name == agentName:
		return agentWriter()
	case name == upstreamName && folder != "":
		return upstreamWriter(folder)
	}
	tb.Fatal(fmt.Errorf("there is no writer %q in folder %q", name, folder))
	return writer{}
}
