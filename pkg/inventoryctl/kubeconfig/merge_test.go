package kubeconfig

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

const (
	hub  = "https://hub"
	team = "team-a"
)

func published(name string, change func(*clientcmdv1.Cluster)) *inventoryv1alpha1.ClusterProfile {
	extension, _ := json.Marshal(map[string]string{"clusterName": name})
	cluster := clientcmdv1.Cluster{
		Server: "https://proxy:9092/" + name, CertificateAuthorityData: []byte("ca"),
		Extensions: []clientcmdv1.NamedExtension{
			{Name: "client.authentication.k8s.io/exec", Extension: runtime.RawExtension{Raw: extension}},
		},
	}
	if change != nil {
		change(&cluster)
	}
	profile := &inventoryv1alpha1.ClusterProfile{}
	profile.Name = name
	profile.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{Name: "open-cluster-management", Cluster: cluster}}
	return profile
}

// selects is what a selection of an account chooses, where the clusters that exist are chosen or
// in more.
func selects(t *testing.T, selection, account string, chosen []string, more ...string) Wanted {
	t.Helper()
	exists := map[string]bool{}
	wanted := Wanted{
		Hub: hub, Namespace: team, Accounts: []string{account}, Selection: selection, Prune: true,
		Clusters:    map[string]*clientcmdapi.Cluster{},
		IsWithdrawn: func(cluster string) bool { return !exists[cluster] },
		IsKept:      func(string) bool { return false },
		Exec: func(account string) *clientcmdapi.ExecConfig {
			return &clientcmdapi.ExecConfig{Command: "plugin", Args: []string{account}, APIVersion: "client.authentication.k8s.io/v1"}
		},
	}
	for _, name := range append(more, chosen...) {
		exists[name] = true
	}
	for _, name := range chosen {
		cluster, err := ClusterOf(published(name, nil), "open-cluster-management")
		apitest.Must(t, err)
		wanted.Clusters[name] = cluster
	}
	return wanted
}

// merged merges as the file would be read again the next time.
func merged(t *testing.T, config *clientcmdapi.Config, wanted Wanted) []string {
	t.Helper()
	changes, err := Merge(config, wanted)
	apitest.Must(t, err)
	content, err := clientcmd.Write(*config)
	apitest.Must(t, err)
	again, err := clientcmd.Load(content)
	apitest.Must(t, err)
	*config = *again
	lines := []string{}
	for _, change := range changes {
		lines = append(lines, change.Action+" "+change.Context)
	}
	return lines
}

func TestMergeKeepsWhatIsChosenAndPrunesWhatIsNot(t *testing.T) {
	all := func(clusters ...string) Wanted { return selects(t, "all", "a", clusters) }
	for name, test := range map[string]struct {
		steps []Wanted
		want  []string // of the last step
	}{
		"a new cluster":       {[]Wanted{all("x")}, []string{"created x/team-a/a"}},
		"the same again":      {[]Wanted{all("x"), all("x")}, []string{}},
		"a withdrawn cluster": {[]Wanted{all("x", "y"), all("y")}, []string{"pruned x/team-a/a"}},
		"all are withdrawn":   {[]Wanted{all("x"), all()}, []string{"pruned x/team-a/a"}},
		"a withdrawn cluster of another account": {
			[]Wanted{selects(t, "all", "b", []string{"x"}), all()}, []string{"pruned x/team-a/b"},
		},
		"a named cluster leaves the others": {
			[]Wanted{all("x"), selects(t, Named, "a", []string{"y"}, "x")}, []string{"created y/team-a/a"},
		},
		"no longer chosen": {
			[]Wanted{selects(t, "eu", "a", []string{"x"}), selects(t, "eu", "a", nil, "x")}, []string{"pruned x/team-a/a"},
		},
		"chosen by another selection, too": {
			[]Wanted{all("x"), selects(t, "eu", "a", []string{"x"}), selects(t, "eu", "a", nil, "x")}, []string{},
		},
		"not pruned on request": {[]Wanted{all("x"), func() Wanted { w := all(); w.Prune = false; return w }()}, []string{}},
		"of another namespace": {
			[]Wanted{all("x"), func() Wanted { w := all(); w.Namespace = "team-b"; return w }()}, []string{},
		},
		"of another hub": {[]Wanted{all("x"), func() Wanted { w := all(); w.Hub = "https://b"; return w }()}, []string{}},
		"still chosen, without access": {
			[]Wanted{all("x"), func() Wanted {
				w := selects(t, "all", "a", nil, "x")
				w.IsKept = func(string) bool { return true }
				return w
			}()}, []string{},
		},
		"another address": {
			[]Wanted{all("x"), func() Wanted { w := all("x"); w.Clusters["x"].Server = "https://new"; return w }()},
			[]string{"updated x/team-a/a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := clientcmdapi.NewConfig()
			var got []string
			for _, step := range test.steps {
				got = merged(t, config, step)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPruningLeavesNothingBehindAndOthersAlone(t *testing.T) {
	config := clientcmdapi.NewConfig()
	config.Contexts["mine"] = &clientcmdapi.Context{Cluster: "x/team-a", AuthInfo: "me", Namespace: "n"}
	config.AuthInfos["me"] = &clientcmdapi.AuthInfo{Token: "secret"}
	config.Clusters["other"] = &clientcmdapi.Cluster{Server: "https://other"}
	config.CurrentContext = "mine"
	merged(t, config, selects(t, "all", "a", []string{"x", "y"}))
	config.Contexts["renamed"] = config.Contexts["y/team-a/a"]
	delete(config.Contexts, "y/team-a/a")
	if got := merged(t, config, selects(t, "all", "a", []string{"x", "y"})); len(got) > 0 {
		t.Errorf("a renamed context is written again: %v", got)
	}
	merged(t, config, selects(t, "all", "a", nil))
	if len(config.Contexts) != 1 || config.Contexts["mine"].Namespace != "n" || config.CurrentContext != "mine" {
		t.Errorf("contexts: %v", config.Contexts)
	}
	if len(config.AuthInfos) != 1 || config.AuthInfos["me"].Token != "secret" {
		t.Errorf("users: %v", config.AuthInfos)
	}
	if len(config.Clusters) != 2 || config.Clusters["x/team-a"] == nil || config.Clusters["other"] == nil {
		t.Errorf("clusters, one of which another context uses: %v", config.Clusters)
	}
}

func TestNamesOfOthersAreRefused(t *testing.T) {
	taken := map[string]func(*clientcmdapi.Config){
		"context": func(c *clientcmdapi.Config) { c.Contexts["x/team-a/a"] = &clientcmdapi.Context{Cluster: "mine"} },
		"cluster": func(c *clientcmdapi.Config) { c.Clusters["x/team-a"] = &clientcmdapi.Cluster{Server: "https://mine"} },
		"user":    func(c *clientcmdapi.Config) { c.AuthInfos["team-a/a"] = &clientcmdapi.AuthInfo{Token: "mine"} },
		"https://b": func(c *clientcmdapi.Config) {
			other := selects(t, "all", "a", []string{"x"})
			other.Hub = "https://b"
			merged(t, c, other)
		},
	}
	for what, take := range taken {
		config := clientcmdapi.NewConfig()
		take(config)
		before := config.DeepCopy()
		wanted := selects(t, "all", "a", []string{"x"})
		if _, err := Merge(config, wanted); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
		if diff := cmp.Diff(before, config); diff != "" {
			t.Errorf("%s: it was changed: %s", what, diff)
		}
		wanted.Prefix = "fleet/"
		if got := merged(t, config, wanted); !cmp.Equal(got, []string{"created fleet/x/team-a/a"}) {
			t.Errorf("%s: with a prefix: %v", what, got)
		}
	}
}

func TestOnlySafeAddressesAreTaken(t *testing.T) {
	for want, change := range map[string]func(*clientcmdv1.Cluster){
		"is not encrypted":     func(c *clientcmdv1.Cluster) { c.Server = "http://proxy/x" },
		"is not a URL":         func(c *clientcmdv1.Cluster) { c.Server = "" },
		"names a user":         func(c *clientcmdv1.Cluster) { c.Server = "https://a:b@proxy" },
		"does not verify":      func(c *clientcmdv1.Cluster) { c.InsecureSkipTLSVerify = true },
		"its CA is a file":     func(c *clientcmdv1.Cluster) { c.CertificateAuthority = "/etc/ca" },
		"names the cluster \"": func(c *clientcmdv1.Cluster) { c.Extensions = nil },
		`the cluster "other"`: func(c *clientcmdv1.Cluster) {
			c.Extensions[0].Extension.Raw = []byte(`{"clusterName": "other"}`)
		},
	} {
		if _, err := ClusterOf(published("x", change), "open-cluster-management"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	if _, err := ClusterOf(published("x", nil), "direct"); err == nil {
		t.Error("a provider that the profile does not have")
	}
}
