// Package extremes has the tests of kubectl inventory with a large fleet, with hostile content, and
// with a hub that fails. Its hub serves objects from memory: to create 10,000 clusters with all that
// belongs to them takes an API server several minutes.
package extremes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/memhub"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl"
)

// asPlugin is set for processes that run the plugin's command line instead of the tests.
const asPlugin = "KUBECTL_INVENTORY_IS_THIS"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
		code := inventoryctl.Main(context.Background(), os.Args[1:], streams)
		reportPeak(os.Getenv(asPlugin))
		os.Exit(code) //nolint:forbidigo // it is a main here
	}
	apitest.Main(m)
}

// reportPeak writes a process's largest resident memory into a file. What wait(2) returns to its
// parent would include the memory of the parent, from which it was forked.
func reportPeak(file string) {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if peak, found := strings.CutPrefix(line, "VmHWM:"); found {
			_ = os.WriteFile(file, []byte(peak), 0o600)
		}
	}
}

const (
	clusters = 10_000
	page     = 500 // the default of --chunk-size
	pages    = clusters / page
	team     = "fleet"
)

const memberID = "multicluster.x-k8s.io/inventory-member-id"

// revision is the kind of AgentRevisions in the configurations of addons.
var revision = addonv1beta1.ConfigGroupResource{
	Group: "inventory.open-cluster-management.io", Resource: "agentrevisions",
}

// boundHub is a hub without clusters, with the exclusive set "all" bound in the team's namespace.
func boundHub(tb testing.TB) *memhub.Hub {
	tb.Helper()
	h := memhub.Start(tb, ocmtest.Scheme())
	h.Add(tb, "namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}})
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "all"}}
	set.Spec.ClusterSelector.SelectorType = clusterv1beta2.ExclusiveClusterSetLabel
	h.Add(tb, "managedclustersets", set)
	h.Add(tb, "managedclustersetbindings", &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "all"},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "all"},
		Status: clusterv1beta2.ManagedClusterSetBindingStatus{
			Conditions: []metav1.Condition{ocmtest.Condition("Bound", "True", "ClusterSetBound", "")},
		},
	})
	return h
}

// fleet is a hub with 10,000 clusters, all of which are published in one namespace, with ten
// properties each, an access provider and an account. Every thousandth cluster failed to upgrade,
// and two ask for one member id.
func fleet(tb testing.TB) *memhub.Hub {
	tb.Helper()
	h := boundHub(tb)
	definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "cluster-inventory"}}
	definition.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{{
		ConfigGroupResource: revision, ConfigReferent: addonv1beta1.ConfigReferent{Name: "new"},
	}}
	h.Add(tb, "clustermanagementaddons", definition)
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	ends := metav1.NewTime(now.Add(time.Hour))
	for i := range clusters {
		name := fmt.Sprintf("cluster-%05d", i)
		cluster := &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: ocmtest.InSet("all")},
			Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		}
		profile := ocmtest.OurProfile(team, name)
		profile.UID = "uid"
		profile.Labels[memberID] = name
		if i == 1 || i == 2 {
			cluster.Labels[memberID], profile.Labels[memberID] = "shared", []string{"", "shared", name}[i]
		}
		for n := range 10 {
			property := fmt.Sprintf("property-%d.example.com", n)
			value := fmt.Sprintf("value-%d", i%(n+1))
			cluster.Status.ClusterClaims = append(cluster.Status.ClusterClaims,
				clusterv1.ManagedClusterClaim{Name: property, Value: value})
			profile.Status.Properties = append(profile.Status.Properties,
				inventoryv1alpha1.Property{Name: property, Value: value, LastObservedTime: now})
		}
		profile.Status.Conditions = []metav1.Condition{
			ocmtest.Condition("ControlPlaneHealthy", "True", "R", ""), ocmtest.Condition("Joined", "True", "R", ""),
		}
		profile.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{access(name)}
		addon := ocmtest.Addon(name)
		addon.Status.ConfigReferences = []addonv1beta1.ConfigReference{{
			ConfigGroupResource: revision,
			DesiredConfig:       &addonv1beta1.ConfigSpecHash{ConfigReferent: addonv1beta1.ConfigReferent{Name: "new"}},
		}}
		state := "Completed"
		if i%1000 == 0 {
			state = "Failed"
		}
		addon.Status.Conditions = []metav1.Condition{
			ocmtest.Condition("Available", "True", "R", ""), ocmtest.Condition("Progressing", "False", state, ""),
			ocmtest.Condition("ProfilesSynced", "True", "Synced", ""), ocmtest.Condition("CredentialsSynced", "True", "Copied", ""),
			ocmtest.Condition("PropertiesPublished", "True", "Published", ""),
		}
		account := &authv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Namespace: name, Name: "reader",
			Labels:      map[string]string{"authentication.open-cluster-management.io/sync-to-clusterprofile": "true"},
			Annotations: map[string]string{"inventory.open-cluster-management.io/sync-to-namespaces": team},
		}}
		account.Status.ExpirationTimestamp = &ends
		account.Status.TokenSecretRef = &authv1beta1.SecretRef{Name: "reader", LastRefreshTimestamp: now}
		h.Add(tb, "managedclusters", cluster)
		h.Add(tb, "clusterprofiles", profile)
		h.Add(tb, "managedclusteraddons", addon)
		h.Add(tb, "managedserviceaccounts", account)
	}
	return h
}

func access(cluster string) inventoryv1alpha1.AccessProvider {
	extension, _ := json.Marshal(map[string]string{"clusterName": cluster}) // it cannot fail
	return inventoryv1alpha1.AccessProvider{Name: "open-cluster-management", Cluster: clientcmdv1.Cluster{
		Server: "https://proxy:9092/" + cluster, CertificateAuthorityData: bytes.Repeat([]byte("ca"), 600),
		Extensions: []clientcmdv1.NamedExtension{{
			Name:      "client.authentication.k8s.io/exec",
			Extension: runtime.RawExtension{Raw: extension},
		}},
	}}
}

// user runs the plugin.
type user struct {
	kubeconfig string
	dir        string
}

func newUser(tb testing.TB, h *memhub.Hub) user {
	tb.Helper()
	return user{apitest.File(tb, "kubeconfig", apitest.Kubeconfig(tb, h.Config(), team)), tb.TempDir()}
}

type result struct {
	code           int
	stdout, stderr string
	mib            int64 // the largest resident memory
	took, cpu      time.Duration
}

// arguments are those of the plugin. The value FILE is a file that does not exist before.
func (u user) arguments(args ...string) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "FILE", filepath.Join(u.dir, "contexts"))
	}
	return slices.Insert(args, 1, "--kubeconfig="+u.kubeconfig) // what comes last may be completed
}

// command is a process that runs the plugin.
func (u user) command(ctx context.Context, args ...string) *exec.Cmd {
	self, _ := os.Executable()
	cmd := exec.CommandContext(ctx, self, u.arguments(args...)...)
	cmd.Env = append(os.Environ(), asPlugin+"="+u.peak())
	return cmd
}

// runHere runs the plugin in this process.
func (u user) runHere(tb testing.TB, args ...string) result {
	tb.Helper()
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	code := inventoryctl.Main(tb.Context(), u.arguments(args...), streams)
	return result{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// peak is the file with the memory of the last process.
func (u user) peak() string { return filepath.Join(u.dir, "peak") }

// run runs the plugin in a separate process.
func (u user) run(tb testing.TB, args ...string) result {
	tb.Helper()
	cmd := u.command(tb.Context(), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	_ = cmd.Run() // its exit code tells
	if cmd.ProcessState == nil {
		tb.Fatalf("%v did not start", args)
	}
	took := time.Since(start)
	var kib int64
	content, err := os.ReadFile(u.peak())
	apitest.Must(tb, err)
	_, err = fmt.Sscan(string(content), &kib)
	apitest.Must(tb, err)
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), kib >> 10, took, cpu}
}

// tied is what they say of the two clusters that ask for one member id.
const tied = `"shared" is that of cluster cluster-00001, because its ClusterProfiles have it already: ` +
	"cluster-00002 asks for it and has its name instead"

// onLargeFleet are commands, with what they must do on a hub with 10,000 clusters.
var onLargeFleet = []struct {
	args  []string
	code  int
	lines int            // of stdout
	says  string         // on stdout; several texts with | in between
	lists map[string]int // pages
}{
	{[]string{"list", "-A"}, 0, clusters + 1, "cluster-09999", map[string]int{"clusterprofiles": pages}},
	{
		[]string{"list", "--where", "property-9.example.com=value-7", "-L", "property-9.example.com"}, 0, clusters/10 + 1,
		"value-7", map[string]int{"clusterprofiles": pages},
	},
	{
		[]string{"list", "--count-by", "property-4.example.com"}, 0, 6, "value-3                  2000",
		map[string]int{"clusterprofiles": pages},
	},
	{[]string{"list", "-o", "name"}, 0, clusters, "cluster-09999", map[string]int{"clusterprofiles": pages}},
	{[]string{"describe", "cluster-05000"}, 0, 31, "property-9.example.com", map[string]int{
		"managedclustersetbindings": 1, "placements": 1, "placementdecisions": 1, "managedserviceaccounts": 1, "events": 2,
	}},
	{[]string{"explain", "cluster-05000"}, 0, 10, "the ClusterProfile exists", map[string]int{
		"managedclustersetbindings": 1, "placements": 1, "managedserviceaccounts": 1, "events": 2,
		"managedclusters": 1, "clusterprofiles": 1,
	}},
	{[]string{"explain", "cluster-05000", "property-9.example.com"}, 0, 6, "value-0", map[string]int{"clusterprofiles": 1}},
	{[]string{"explain", "cluster-00002"}, 1, 15, tied + "|Next step for member id", map[string]int{
		"managedclustersetbindings": 1, "placements": 1, "managedserviceaccounts": 1, "events": 2,
		"managedclusters": 1, "clusterprofiles": 1,
	}},
	{[]string{"doctor"}, 1, 22, "all 10000 clusters in bound sets have the addon|" + tied, map[string]int{
		"managedclusters": pages, "managedclusteraddons": pages, "managedclustersets": 1, "managedclustersetbindings": 1,
		"clusterprofiles": pages, "managedserviceaccounts": pages,
	}},
	{[]string{"rollout"}, 1, 20, "9990 of 10000 clusters", map[string]int{"managedclusteraddons": pages}},
	{[]string{"matrix"}, 0, 2, "fleet       10000", map[string]int{
		"clusterprofiles": pages, "managedclusters": pages, "managedclusteraddons": pages, "namespaces": 1,
		"managedclustersets": 1, "managedclustersetbindings": 1, "placements": 1,
	}},
	{[]string{"matrix", "--tokens"}, 0, 2, "fleet       reader    10000", map[string]int{
		"clusterprofiles": pages, "managedclusters": pages, "managedclusteraddons": pages, "namespaces": 1,
		"managedclustersets": 1, "managedclustersetbindings": 1, "placements": 1, "managedserviceaccounts": pages,
	}},
	{[]string{"diff"}, 1, 3, "10000", map[string]int{
		"clusterprofiles": pages, "managedclusters": pages, "managedclusteraddons": pages, "namespaces": 1,
		"managedclustersets": 1, "managedclustersetbindings": 1, "placements": 1,
	}},
	{
		[]string{"kubeconfig", "--account", "reader", "--output", "FILE"}, 0, 22, "10000 (10000 created)",
		map[string]int{"clusterprofiles": pages},
	},
	{
		[]string{"__complete", "explain", "cluster-00"}, 0, page + 1, "cluster-00499", map[string]int{"managedclusters": 1},
	},
}

// Every command gives the whole answer for 10,000 clusters, and reads each list once, in pages.
func TestTenThousandClusters(t *testing.T) {
	h := fleet(t)
	u := newUser(t, h)
	h.Lists()
	for _, test := range onLargeFleet {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			got := u.run(t, test.args...)
			lists := h.Lists()
			t.Logf("%s, CPU %s, %d MiB", got.took.Round(time.Millisecond), got.cpu.Round(time.Millisecond), got.mib)
			isMissing := func(text string) bool { return !strings.Contains(got.stdout, text) }
			if lines := strings.Count(got.stdout, "\n"); got.code != test.code || lines != test.lines ||
				slices.ContainsFunc(strings.Split(test.says, "|"), isMissing) {
				t.Errorf("exit code %d, %d lines: %.2000s%.500s", got.code, lines, got.stdout, got.stderr)
			}
			if !maps.Equal(lists, test.lists) {
				t.Errorf("lists %v, want %v", lists, test.lists)
			}
		})
	}
}

// BenchmarkTenThousandClusters measures what each command takes in time, CPU time and memory.
func BenchmarkTenThousandClusters(b *testing.B) {
	u := newUser(b, fleet(b))
	for _, test := range onLargeFleet {
		b.Run(strings.Join(test.args, " "), func(b *testing.B) {
			var most int64
			var cpu time.Duration
			for b.Loop() {
				got := u.run(b, test.args...)
				if got.code != test.code {
					b.Fatalf("exit code %d: %s", got.code, got.stderr)
				}
				most, cpu = max(most, got.mib), cpu+got.cpu
			}
			b.ReportMetric(float64(most), "MiB")
			b.ReportMetric(cpu.Seconds()/float64(b.N), "CPU-s/op")
		})
	}
}
