package consumers

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
)

// sound returns a profile that suits every consumer.
func sound(ca []byte) *Profile {
	return &Profile{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "argocd", Name: "cluster1", UID: "one", ResourceVersion: "1",
			Labels: map[string]string{
				"x-k8s.io/cluster-manager":                  "open-cluster-management",
				"open-cluster-management.io/cluster-name":   "cluster1",
				"cluster.open-cluster-management.io/region": "eu",
			},
		},
		Spec: inventoryv1alpha1.ClusterProfileSpec{
			DisplayName:    "cluster1",
			ClusterManager: inventoryv1alpha1.ClusterManager{Name: "open-cluster-management"},
		},
		Status: inventoryv1alpha1.ClusterProfileStatus{
			Conditions: []metav1.Condition{{Type: "ControlPlaneHealthy", Status: "True", Reason: "Available"}},
			Properties: []inventoryv1alpha1.Property{{Name: "a", Value: "1"}, {Name: "agents.x-k8s.io/last-seen", Value: "1"}},
			AccessProviders: []inventoryv1alpha1.AccessProvider{{
				Name: "open-cluster-management",
				Cluster: clientcmdv1.Cluster{
					Server:                   "https://cluster-proxy-addon-user.open-cluster-management-addon:9092/cluster1",
					CertificateAuthorityData: ca,
					Extensions: []clientcmdv1.NamedExtension{{
						Name:      "client.authentication.k8s.io/exec",
						Extension: runtime.RawExtension{Raw: []byte(`{"clusterName":"cluster1"}`)},
					}},
				},
			}},
		},
	}
}

func TestValidate(t *testing.T) {
	ca := certtest.NewCA(t, "old", time.Now().Add(time.Hour))
	next := certtest.NewCA(t, "new", time.Now().Add(time.Hour))
	cluster := func(change func(*clientcmdv1.Cluster)) func(*Profile) {
		return func(p *Profile) { change(&p.Status.AccessProviders[0].Cluster) }
	}
	extension := func(name, raw string) func(*Profile) {
		return cluster(func(c *clientcmdv1.Cluster) {
			c.Extensions[0] = clientcmdv1.NamedExtension{Name: name, Extension: runtime.RawExtension{Raw: []byte(raw)}}
		})
	}
	for name, tc := range map[string]struct {
		change func(*Profile)
		first  bool // there is no version before
		want   string
	}{
		"a first version, whole": {change: func(*Profile) {}, first: true},
		"a first version, not whole yet": {
			change: func(p *Profile) { p.Status = inventoryv1alpha1.ClusterProfileStatus{} },
			first:  true,
		},
		"a property changes": {change: func(p *Profile) { p.Status.Properties[0].Value = "2" }},
		"a new label":        {change: func(p *Profile) { p.Labels["env"] = "prod" }},
		"another client adds a finalizer": {
			change: func(p *Profile) { p.Finalizers = []string{"argoproj.io/cluster-profile-finalizer"} },
		},
		"a second CA": {
			change: cluster(func(c *clientcmdv1.Cluster) { c.CertificateAuthorityData = certtest.ByAge(ca, next) }),
		},
		"a new entry behind ours": {
			change: func(p *Profile) { p.Status.AccessProviders = append(p.Status.AccessProviders, entry("gke")) },
		},
		"the cluster is not healthy": {change: func(p *Profile) { p.Status.Conditions[0].Status = "False" }},
		"a removed property":         {change: func(p *Profile) { p.Status.Properties = p.Status.Properties[1:] }},
		"a removed property of agent-sandbox": {
			change: func(p *Profile) { p.Status.Properties = p.Status.Properties[:1] },
			want:   "agent-sandbox: the property agents.x-k8s.io/last-seen has gone",
		},
		"the profile is recreated": {change: func(p *Profile) { p.UID = "two" }, want: "recreated"},
		"only a time changes": {
			change: func(p *Profile) { p.Status.Properties[0].LastObservedTime = metav1.Now() },
			want:   "without a change",
		},
		"the entry is removed": {
			change: func(p *Profile) { p.Status.AccessProviders = nil },
			want:   "access provider has gone",
		},
		"the entry is called otherwise": {
			change: func(p *Profile) { p.Status.AccessProviders[0].Name = "ocm" },
			want:   "access provider has gone",
		},
		"another CA instead": {
			change: cluster(func(c *clientcmdv1.Cluster) { c.CertificateAuthorityData = next.PEM() }),
			want:   "the CA old went",
		},
		"the CA is removed": {
			change: cluster(func(c *clientcmdv1.Cluster) { c.CertificateAuthorityData = nil }),
			want:   "no CA certificate",
		},
		"the CA is a file": {
			change: cluster(func(c *clientcmdv1.Cluster) { c.CertificateAuthority = "/ca.crt" }),
			want:   "the library ignores",
		},
		"the server is http": {
			change: cluster(func(c *clientcmdv1.Cluster) { c.Server = "http://proxy/cluster1" }),
			want:   "is not an https URL",
		},
		"the server has no name": {
			change: cluster(func(c *clientcmdv1.Cluster) { c.Server = "https://under_score/cluster1" }),
			want:   "Kueue: the server's host",
		},
		"a TLS server name is needed": {
			change: cluster(func(c *clientcmdv1.Cluster) { c.TLSServerName = "x" }),
			want:   "the library ignores",
		},
		"a proxy is needed": {
			change: cluster(func(c *clientcmdv1.Cluster) { c.ProxyURL = "http://p" }),
			want:   "Argo CD does not carry over",
		},
		"the extension names another": {
			change: extension("client.authentication.k8s.io/exec", `{"clusterName":"cluster2"}`),
			want:   "the extension says",
		},
		"the extension names an account": {
			change: extension("client.authentication.k8s.io/exec", `{"clusterName":"cluster1","account":"a"}`),
			want:   "the extension says",
		},
		"the extension is a list": {
			change: extension("client.authentication.k8s.io/exec", `["cluster1"]`),
			want:   "is not an object",
		},
		"the extension is another": {
			change: extension("clusterprofiles.multicluster.x-k8s.io/exec/additional-args", `{}`),
			want:   "not just",
		},
		"the cluster's label is removed": {
			change: func(p *Profile) { delete(p.Labels, "open-cluster-management.io/cluster-name") },
			want:   "the extension says",
		},
		"the manager's label is removed": {
			change: func(p *Profile) { delete(p.Labels, "x-k8s.io/cluster-manager") },
			want:   "Argo CD: the label x-k8s.io/cluster-manager",
		},
		"the health is removed": {
			change: func(p *Profile) { p.Status.Conditions = nil },
			want:   "Knative: there is access",
		},
		"a new entry before ours": {
			change: func(p *Profile) { p.Status.AccessProviders = slices.Insert(p.Status.AccessProviders, 0, entry("gke")) },
			want:   "the first access provider is gke",
		},
		"the names are long": {
			change: func(p *Profile) { p.Namespace = strings.Repeat("n", 55) },
			first:  true,
			want:   "have 63 bytes together",
		},
		"a label is Argo CD's own": {
			change: func(p *Profile) { p.Labels["argocd.argoproj.io/secret-type"] = "x" },
			want:   "Argo CD's own",
		},
		"a label hides it from Headlamp": {
			change: func(p *Profile) { p.Labels["headlamp.dev/ignore"] = "" },
			want:   "Headlamp: the label",
		},
		"the display name is removed": {
			change: func(p *Profile) { p.Spec.DisplayName = "" },
			want:   "no display name",
		},
		"an entry is Sveltos' own": {change: func(p *Profile) {
			p.Status.AccessProviders = append(p.Status.AccessProviders, entry("kubeconfig-secretreader"))
		}, want: "Sveltos does not run the plugin"},
		"a first version has no condition": {
			change: func(p *Profile) { p.Status.Conditions = nil },
			first:  true,
			want:   "Knative: there is access",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, now := sound(ca.PEM()), sound(ca.PEM())
			now.ResourceVersion = "2"
			tc.change(now)
			if tc.first {
				before = nil
			}
			got := Validate(before, now, time.Now())
			if tc.want == "" && len(got) > 0 || tc.want != "" && !strings.Contains(strings.Join(got, "; "), tc.want) {
				t.Errorf("problems %q, want %q", got, tc.want)
			}
		})
	}
}

func TestValidateLetsAnExpiredCAGo(t *testing.T) {
	ca := certtest.NewCA(t, "old", time.Now().Add(time.Hour))
	next := certtest.NewCA(t, "new", time.Now().Add(3*time.Hour))
	before, now := sound(certtest.ByAge(ca, next)), sound(next.PEM())
	if got := Validate(before, now, time.Now().Add(2*time.Hour)); len(got) > 0 {
		t.Errorf("problems %q", got)
	}
}

func TestValidateTogether(t *testing.T) {
	ca := certtest.NewCA(t, "ca", time.Now().Add(time.Hour)).PEM()
	first, second, third := sound(ca), sound(ca), sound(ca)
	second.Name, third.Name = "cluster2", "cluster3"
	second.Status.AccessProviders[0].Cluster.Server = "https://elsewhere"
	third.Status.AccessProviders = nil
	if got := ValidateTogether([]Profile{*first, *second, *third}); len(got) > 0 {
		t.Errorf("problems %q", got)
	}
	first.Labels[memberLabel], second.Labels[memberLabel], third.Labels[memberLabel] = "a", "b", "b"
	want := []string{"Argo CD: cluster2 and cluster3 have the same member id b"}
	if diff := cmp.Diff(want, ValidateTogether([]Profile{*first, *second, *third})); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	second.Status = first.Status
	server := first.Status.AccessProviders[0].Cluster.Server
	want = []string{"Argo CD: cluster1 and cluster2 have the same server " + server}
	if diff := cmp.Diff(want, ValidateTogether([]Profile{*first, *second})); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func entry(name string) inventoryv1alpha1.AccessProvider {
	return inventoryv1alpha1.AccessProvider{Name: name, Cluster: clientcmdv1.Cluster{Server: "https://" + name}}
}
