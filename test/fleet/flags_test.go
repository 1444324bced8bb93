package fleet

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/supervisor"
)

// testFleet has a port for everything, without asking the kernel.
func testFleet(t *testing.T, spokes int) *Fleet {
	t.Helper()
	f := &Fleet{
		Name:  "test",
		Root:  "/repo",
		Dir:   "/repo/.fleet/test",
		state: state{Spokes: spokes, Network: 20, Ports: map[string]int{}},
	}
	for i, listener := range f.listeners() {
		f.state.Ports[listener] = 15000 + i
	}
	return f
}

// accessFleet is one that also runs what gives access to clusters.
func accessFleet(t *testing.T, spokes int) *Fleet {
	t.Helper()
	f := testFleet(t, spokes)
	f.state.Access = true
	f.state.Ports[proxyEntrypoint] = 15999
	f.access.images = map[string]string{
		clusterProxyImage:   "/cache/cluster-proxy",
		serviceAccountImage: "/cache/managed-serviceaccount",
	}
	return f
}

func (f *Fleet) allProcesses() []supervisor.Process {
	var all []supervisor.Process
	for _, name := range f.Clusters() {
		all = append(all, f.controlPlane(name, "/cache/kube").Processes()...)
		all = append(all, f.nodeProcess(name))
	}
	hub := f.hubOCM("/cache/ocm")
	all = append(all, hub.Webhooks())
	all = append(all, hub.Controllers()...)
	for _, name := range f.Managed() {
		spoke := f.spokeOCM("/cache/ocm", name)
		all = append(all, spoke.RegistrationAgent(), spoke.WorkAgent())
	}
	return all
}

func TestEveryAddressIsOnLoopback(t *testing.T) {
	address := regexp.MustCompile(`(?:https?://)?(\d+\.\d+\.\d+\.\d+)\b`)
	for _, p := range accessFleet(t, 2).allProcesses() {
		for _, arg := range p.Args {
			if strings.HasPrefix(arg, "--service-cluster-ip-range=") {
				continue
			}
			for _, match := range address.FindAllStringSubmatch(arg, -1) {
				if !strings.HasPrefix(match[1], "127.") {
					t.Errorf("%s: %s", p.Name, arg)
				}
			}
		}
		if p.Probe != "" {
			if u, err := url.Parse(p.Probe); err != nil || u.Hostname() != "127.0.0.1" {
				t.Errorf("%s: probe %s", p.Name, p.Probe)
			}
		}
	}
}

func TestNoPortServesTwice(t *testing.T) {
	listening := regexp.MustCompile(
		`^--(?:listen|port|secure-port|listen-client-urls|listen-peer-urls|health-probe-bind-address)=(?:https?://)?(?:127\.0\.0\.1:)?(\d+)$`,
	)
	by := map[string]string{}
	for _, p := range testFleet(t, 3).allProcesses() {
		for _, arg := range p.Args {
			match := listening.FindStringSubmatch(arg)
			if match == nil {
				continue
			}
			if other := by[match[1]]; other != "" || match[1] == "0" {
				t.Errorf("%s (%s) and %s", p.Name, arg, other)
			}
			by[match[1]] = p.Name
		}
	}
	if want := 5 + 4*4 + 2*3; len(by) != want {
		t.Errorf("%d ports are listened on: want %d", len(by), want)
	}
}

func TestNamesAreUniqueAndEveryProcessNamesItsCluster(t *testing.T) {
	f := testFleet(t, 2)
	var names []string
	for _, p := range f.allProcesses() {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	want := []string{
		"cluster1/apiserver",
		"cluster1/controller-manager",
		"cluster1/etcd",
		"cluster1/node",
		"cluster1/registration-agent",
		"cluster1/work-agent",
		"cluster2/apiserver",
		"cluster2/controller-manager",
		"cluster2/etcd",
		"cluster2/node",
		"cluster2/registration-agent",
		"cluster2/work-agent",
		"hub/addon-manager",
		"hub/apiserver",
		"hub/controller-manager",
		"hub/etcd",
		"hub/node",
		"hub/placement",
		"hub/registration",
		"hub/webhooks",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// Measurements are made in fleets without access: nothing about their nodes may change
// because there can be some with.
func TestAccessOnlyAddsToWhatANodeDoes(t *testing.T) {
	plain, with := testFleet(t, 2), accessFleet(t, 2)
	added := map[string][]string{}
	for _, name := range plain.Clusters() {
		before, after := plain.nodeProcess(name).Args, with.nodeProcess(name).Args
		if diff := cmp.Diff(before, after[:len(before)]); diff != "" {
			t.Error(diff)
		}
		added[name] = after[len(before):]
	}
	images := []string{
		"--image=quay.io/open-cluster-management/cluster-proxy=/cache/cluster-proxy",
		"--own-network=quay.io/open-cluster-management/cluster-proxy",
		"--image=quay.io/open-cluster-management/managed-serviceaccount=/cache/managed-serviceaccount",
		"--own-network=quay.io/open-cluster-management/managed-serviceaccount",
	}
	hub := fmt.Sprintf("--outside=127.0.0.1:%d", with.state.Ports["hub/apiserver"])
	want := map[string][]string{
		"hub": slices.Concat([]string{"--service-cidr=127.20.129.0/24"}, images,
			[]string{"--expose=127.0.0.1:15999=open-cluster-management-addon/proxy-entrypoint:8091"}),
		"cluster1": slices.Concat(
			[]string{"--service-cidr=127.20.130.0/24"}, images, []string{hub, "--outside=127.0.0.1:15999"},
		),
		"cluster2": slices.Concat(
			[]string{"--service-cidr=127.20.131.0/24"}, images, []string{hub, "--outside=127.0.0.1:15999"},
		),
	}
	if diff := cmp.Diff(want, added); diff != "" {
		t.Error(diff)
	}
}

// Consumers, too, are only added.
func TestConsumersOnlyAddToWhatANodeDoes(t *testing.T) {
	plain, with := accessFleet(t, 1), accessFleet(t, 1)
	with.consumers = map[string]string{KueueImage: "/cache/kueue", KnativeOperatorImage: "/cache/knative"}
	for _, name := range plain.Clusters() {
		want := append(slices.Clone(plain.nodeProcess(name).Args),
			"--service-tunnel="+with.serviceTunnel(name), "--image="+KnativeOperatorImage+"=/cache/knative",
			"--own-network="+KnativeOperatorImage,
			"--image="+KueueImage+"=/cache/kueue", "--own-network="+KueueImage)
		if diff := cmp.Diff(want, with.nodeProcess(name).Args); diff != "" {
			t.Error(diff)
		}
		server := func(f *Fleet) []string { return f.controlPlane(name, "").Processes()[1].Args }
		with.state.Consumers = true
		selector := "--egress-selector-config-file=/repo/.fleet/test/" + name + "/egress.json"
		if diff := cmp.Diff(append(slices.Clone(server(plain)), selector), server(with)); diff != "" {
			t.Error(diff)
		}
	}
}

// OCM's stock intervals decide how fast a property travels: a fleet that
// shortens them would measure something no user has.
func TestAgentsRunAsStockButForWhatTestsNeed(t *testing.T) {
	f := testFleet(t, 1)
	spoke := f.spokeOCM("/cache/ocm", "cluster1")
	want := []string{
		"/cache/ocm", "registration", "agent",
		"--kubeconfig=/repo/.fleet/test/cluster1.kubeconfig",
		"--spoke-kubeconfig=/repo/.fleet/test/cluster1.kubeconfig",
		"--spoke-cluster-name=cluster1",
		"--namespace=open-cluster-management-agent",
		"--hub-kubeconfig-dir=/repo/.fleet/test/cluster1/hub-kubeconfig",
		"--disable-leader-election",
		"--listen=127.0.0.1:15013",
		"--cluster-name=cluster1",
		"--bootstrap-kubeconfig=/repo/.fleet/test/cluster1/bootstrap.kubeconfig",
		"--hub-kubeconfig-secret=hub-kubeconfig-secret",
		"--cluster-healthcheck-period=10s",
		"--spoke-external-server-urls=https://127.0.0.1:15011",
	}
	if diff := cmp.Diff(want, spoke.RegistrationAgent().Args); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyTheHubSignsCertificates(t *testing.T) {
	f := testFleet(t, 1)
	for name, want := range map[string]bool{"hub": true, "cluster1": false} {
		flags := strings.Join(f.controlPlane(name, "").Processes()[2].Args, " ")
		if got := strings.Contains(flags, "certificatesigningrequest-signing-controller"); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Only what Token and CredentialLifetime are about is described differently, so that a
// running fleet restarts nothing else.
func TestRegistrationByTokenAndShortLivesAreFlags(t *testing.T) {
	plain, other := testFleet(t, 2), testFleet(t, 2)
	other.state.Token, other.credentialLifetime = true, 10*time.Minute
	got := map[string][]string{}
	before := plain.allProcesses()
	for i, p := range other.allProcesses() {
		for _, arg := range p.Args {
			if !slices.Contains(before[i].Args, arg) {
				got[p.Name] = append(got[p.Name], arg)
			}
		}
	}
	want := map[string][]string{
		"hub/controller-manager":      {"--cluster-signing-duration=10m0s"},
		"cluster1/registration-agent": {"--addon-token-expiration-seconds=600"},
		"cluster2/registration-agent": {"--addon-kubeclient-registration-auth=token", "--addon-token-expiration-seconds=600"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("added flags (-want +got):\n%s", diff)
	}
}

// A hosted klusterlet keeps its access to the hub beside that of its hosting cluster's own:
// two that shared it would ask for a new certificate each time the other has got one.
func TestAHostedKlusterletHasASecretOfItsOwn(t *testing.T) {
	f := testFleet(t, 3)
	f.state.Hosted = true
	users := map[string]string{}
	for _, name := range f.Spokes() {
		var where []string
		for _, arg := range f.spokeOCM("", name).RegistrationAgent().Args {
			if strings.HasPrefix(arg, "--kubeconfig=") || strings.HasPrefix(arg, "--hub-kubeconfig-secret=") {
				where = append(where, arg)
			}
		}
		place := strings.Join(where, " ")
		if other, taken := users[place]; taken {
			t.Errorf("%s and %s share %s", other, name, place)
		}
		users[place] = name
	}
	host := f.spokeOCM("", HostingSpoke).RegistrationAgent().Args
	if !slices.Contains(host, "--hub-kubeconfig-secret=hub-kubeconfig-secret") {
		t.Errorf("the hosting cluster's own: %v", host)
	}
}

// The klusterlet of the hub as its own managed cluster is a spoke's, at the hub's API server, and
// nothing else of the fleet is described differently.
func TestTheHubJoinsItselfLikeASpoke(t *testing.T) {
	plain, other := accessFleet(t, 1), accessFleet(t, 1)
	other.state.LocalCluster = true
	other.state.Ports["local-cluster/registration-agent"] = 15997
	other.state.Ports["local-cluster/work-agent"] = 15998
	before := map[string][]string{}
	for _, p := range plain.allProcesses() {
		before[p.Name] = p.Args
	}
	added := map[string][]string{}
	for _, p := range other.allProcesses() {
		if diff := cmp.Diff(before[p.Name], p.Args); before[p.Name] != nil && diff != "" {
			added[p.Name] = p.Args[len(before[p.Name]):]
		} else if before[p.Name] == nil {
			added[p.Name] = p.Args[3:]
		}
	}
	hub := "/repo/.fleet/test/hub.kubeconfig"
	common := func(port string) []string {
		return []string{
			"--kubeconfig=" + hub, "--spoke-kubeconfig=" + hub, "--spoke-cluster-name=local-cluster",
			"--namespace=open-cluster-management-agent",
			"--hub-kubeconfig-dir=/repo/.fleet/test/local-cluster/hub-kubeconfig",
			"--disable-leader-election", "--listen=127.0.0.1:" + port,
		}
	}
	want := map[string][]string{
		"hub/node": {"--outside=127.0.0.1:15999"},
		"local-cluster/registration-agent": append(common("15997"),
			"--cluster-name=local-cluster",
			"--bootstrap-kubeconfig=/repo/.fleet/test/local-cluster/bootstrap.kubeconfig",
			"--hub-kubeconfig-secret=hub-kubeconfig-secret", "--cluster-healthcheck-period=10s",
			fmt.Sprintf("--spoke-external-server-urls=https://127.0.0.1:%d", other.state.Ports["hub/apiserver"])),
		"local-cluster/work-agent": append(common("15998"),
			"--workload-source-config=/repo/.fleet/test/local-cluster/hub-kubeconfig/kubeconfig",
			"--status-sync-interval=5s"),
	}
	if diff := cmp.Diff(want, added); diff != "" {
		t.Error(diff)
	}
}

// Benchmarks run without audit logs, which cost the API servers time.
func TestAuditLogsAreOnlyWhereAskedFor(t *testing.T) {
	logs := func(f *Fleet) (logs []string) {
		for _, p := range f.allProcesses() {
			for _, arg := range p.Args {
				if path, found := strings.CutPrefix(arg, "--audit-log-path="); found {
					logs = append(logs, p.Name+" "+path)
				}
			}
		}
		return logs
	}
	f := testFleet(t, 1)
	if got := logs(f); len(got) > 0 {
		t.Errorf("logs without being asked: %v", got)
	}
	f.audit = "/logs"
	want := []string{"hub/apiserver /logs/test/hub.log", "cluster1/apiserver /logs/test/cluster1.log"}
	if diff := cmp.Diff(want, logs(f)); diff != "" {
		t.Error(diff)
	}
}
