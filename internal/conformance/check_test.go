package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

const memberID = "multicluster.x-k8s.io/inventory-member-id"

// profile passes every check.
func profile(name string, spoil ...func(*inventoryv1alpha1.ClusterProfile)) inventoryv1alpha1.ClusterProfile {
	p := inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"x-k8s.io/cluster-manager": "m", memberID: name},
	}}
	p.Spec.ClusterManager.Name = "m"
	p.Status.Version.Kubernetes = "v1.36.0"
	p.Status.Conditions = []metav1.Condition{
		{Type: "ControlPlaneHealthy", Status: "True"}, {Type: "Joined", Status: "Unknown"},
	}
	p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{
		Name: "direct", Cluster: clientcmdv1.Cluster{
			Server: "https://example.com:6443", ProxyURL: "socks5://proxy:1080", TLSServerName: "example.com",
			Extensions: []clientcmdv1.NamedExtension{{Name: "a"}, {Name: "b"}},
		},
	}}
	for _, change := range spoil {
		change(&p)
	}
	return p
}

func hub(profiles ...inventoryv1alpha1.ClusterProfile) Hub {
	return Hub{Served: map[string]bool{"v1alpha1": true, "v1alpha2": true}, Profiles: profiles}
}

// failed are the checks of a report with problems, by the problems.
func failed(r Report) map[string]string {
	all := map[string]string{}
	for _, result := range r.Results {
		if len(result.Problems) > 0 {
			all[result.Check] = strings.Join(result.Problems, "; ")
		}
	}
	return all
}

func TestCheck(t *testing.T) {
	with := func(change func(*inventoryv1alpha1.AccessProvider)) Hub {
		return hub(profile("a", func(p *inventoryv1alpha1.ClusterProfile) { change(&p.Status.AccessProviders[0]) }))
	}
	label := func(key, value string) Hub {
		return hub(profile("a", func(p *inventoryv1alpha1.ClusterProfile) { p.Labels[key] = value }))
	}
	const access = "the access providers keep the limits of v1alpha2"
	older, cluster := hub(profile("a")), hub(profile("a"))
	older.Served = map[string]bool{"v1alpha1": true}
	cluster.Served = map[string]bool{"v1alpha2": false}
	for name, test := range map[string]struct {
		hub      Hub
		want     map[string]string
		conforms bool
	}{
		"all is well":        {hub: hub(profile("a"), profile("b")), conforms: true},
		"another's profiles": {hub: hub(profile("a"), inventoryv1alpha1.ClusterProfile{}), conforms: true},
		"an older hub": {hub: older, want: map[string]string{
			"ClusterProfile v1alpha2 is served, and namespaced": "it is not served",
		}},
		"not namespaced": {hub: cluster, want: map[string]string{
			"ClusterProfile v1alpha2 is served, and namespaced": "it is not namespaced",
		}},
		"another label of the manager": {hub: label("x-k8s.io/cluster-manager", "other"), want: map[string]string{
			"the label x-k8s.io/cluster-manager is the cluster manager's name": `a: it is "other"`,
		}},
		"an empty member id": {hub: label(memberID, ""), want: map[string]string{
			"the label " + memberID + " is not empty": "a: it is empty",
		}},
		"no member id": {
			hub: hub(profile("a", func(p *inventoryv1alpha1.ClusterProfile) { delete(p.Labels, memberID) })), conforms: true,
			want: map[string]string{"the label " + memberID + " is set": "a: it is not set"},
		},
		"one member id twice": {
			hub:  hub(profile("a"), profile("b", func(p *inventoryv1alpha1.ClusterProfile) { p.Labels[memberID] = "a" })),
			want: map[string]string{"no two profiles have the same member id": "a and b: a"}, conforms: true,
		},
		"no condition, no version": {
			hub: hub(profile("a", func(p *inventoryv1alpha1.ClusterProfile) {
				p.Status = inventoryv1alpha1.ClusterProfileStatus{Conditions: []metav1.Condition{{Type: "Joined"}}}
			})), conforms: true,
			want: map[string]string{
				"the condition ControlPlaneHealthy is set": "a: it is not set",
				"the condition Joined is set":              `a: its status is ""`,
				"the version of Kubernetes is set":         "a: it is not set",
			},
		},
		"too many access providers": {
			hub: hub(profile("a", func(p *inventoryv1alpha1.ClusterProfile) {
				for i := range 64 {
					more := p.Status.AccessProviders[0]
					more.Name = fmt.Sprint(i)
					p.Status.AccessProviders = append(p.Status.AccessProviders, more)
				}
			})),
			want: map[string]string{access: "a: there are 65"},
		},
		"an access provider without a name": {
			hub:  with(func(p *inventoryv1alpha1.AccessProvider) { p.Name = "" }),
			want: map[string]string{access: `a: "": its name has 0 bytes`},
		},
		"a server without a host": {
			hub:  with(func(p *inventoryv1alpha1.AccessProvider) { p.Cluster.Server = "https:///api" }),
			want: map[string]string{access: `a: "direct": its server is not a URL with a host`},
		},
		"a long server": {
			hub: with(func(p *inventoryv1alpha1.AccessProvider) {
				p.Cluster.Server = "https://h/" + strings.Repeat("x", 2039)
			}),
			want: map[string]string{access: `a: "direct": its server has 2049 bytes`},
		},
		"another kind of proxy": {
			hub:  with(func(p *inventoryv1alpha1.AccessProvider) { p.Cluster.ProxyURL = "ftp://h" }),
			want: map[string]string{access: `a: "direct": its proxy is not an http, https or socks5 URL`},
		},
		"a long TLS server name": {
			hub:  with(func(p *inventoryv1alpha1.AccessProvider) { p.Cluster.TLSServerName = strings.Repeat("x", 254) }),
			want: map[string]string{access: `a: "direct": its TLS server name has 254 bytes`},
		},
		"two extensions of one name": {
			hub:  with(func(p *inventoryv1alpha1.AccessProvider) { p.Cluster.Extensions[1].Name = "a" }),
			want: map[string]string{access: `a: "direct": it has two extensions "a"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			report := Check(test.hub, "m")
			want := test.want
			if want == nil {
				want = map[string]string{}
			}
			if diff := cmp.Diff(want, failed(report)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if report.Conforms() != test.conforms {
				t.Errorf("conforms: %t, want %t", report.Conforms(), test.conforms)
			}
		})
	}
}

// An empty namespace fails every check of profiles, so that its report cannot be mistaken
// for a good one.
func TestAnEmptyNamespaceDoesNotConform(t *testing.T) {
	report := Check(hub(inventoryv1alpha1.ClusterProfile{}), "m")
	if report.Conforms() {
		t.Error("it conforms")
	}
	passed := []string{}
	for _, result := range report.Results {
		if len(result.Problems) == 0 {
			passed = append(passed, result.Check)
		}
	}
	want := []string{"ClusterProfile v1alpha2 is served, and namespaced", "no two profiles have the same member id"}
	if diff := cmp.Diff(want, passed); diff != "" {
		t.Errorf("checks that pass (-want +got):\n%s", diff)
	}
}

func TestPrint(t *testing.T) {
	report := Report{ClusterManager: "m", Profiles: 7, Results: []Result{
		{Check: "good", Required: true}, {Check: "bad", Problems: []string{"1", "2", "3", "4", "5", "6", "7"}},
	}}
	out := &strings.Builder{}
	report.Print(out)
	const want = `7 ClusterProfiles of cluster manager m
pass  required  good
FAIL  optional  bad
                  1
                  2
                  3
                  4
                  5
                  and 2 more
It conforms: every required check passed.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}
