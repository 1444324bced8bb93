package extremes

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/memhub"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// hostile are texts that spokes and tenants may choose.
var hostile = map[string]string{
	"escapes that clear the screen":  "\x1b[2J\x1b]0;title\x07mine\x1b[31m",
	"escapes of one character":       "\u009b2J\u009d0;title\u009cmine",
	"a line over others":             "innocent\rfleet   east   Healthy",
	"more lines and columns":         "a\nb\tc\vd\fe",
	"text that runs backwards":       "a\u202egnirts\u2066b",
	"a line of a megabyte":           strings.Repeat("megabyte ", 1<<17),
	"many escapes":                   strings.Repeat("\x1b[2J", 1<<16),
	"a template":                     `{{range .items}}{{.metadata}}{{end}} {.items[*]} $(id) %s%d%!`,
	"a path":                         `{.status.properties[0]}`,
	"not UTF-8, as a decoder has it": "a\ufffd\ufffdb",
}

// ofHostile is a hub with one text wherever users other than the hub's administrator choose one.
func ofHostile(t *testing.T, value string) *memhub.Hub {
	t.Helper()
	text := value
	if len(text) > 4096 { // only values have more, so that the hub's answers stay within megabytes
		text = text[:4096]
	}
	h := boundHub(t)
	definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "cluster-inventory"}}
	definition.Status.InstallProgressions = []addonv1beta1.InstallProgression{{
		PlacementRef: addonv1beta1.PlacementRef{Namespace: text, Name: text},
		Conditions:   []metav1.Condition{ocmtest.Condition("Progressing", "True", text, text)},
	}}
	h.Add(t, "clustermanagementaddons", definition)
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	for _, name := range []string{"east", "west"} {
		cluster := &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: ocmtest.InSet("all")},
			Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		}
		cluster.Status.Version.Kubernetes = text
		cluster.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{
			{Name: "tier", Value: value}, {Name: text, Value: text},
		}
		h.Add(t, "managedclusters", cluster)
		addon := ocmtest.Addon(name)
		addon.Status.ConfigReferences = []addonv1beta1.ConfigReference{{
			ConfigGroupResource: revision,
			DesiredConfig:       &addonv1beta1.ConfigSpecHash{ConfigReferent: addonv1beta1.ConfigReferent{Name: text}},
		}}
		for _, of := range []string{
			"Available", "Degraded", "ProfilesSynced", "CredentialsSynced", "PropertiesPublished", "ConfigurationApplied",
		} {
			status := "False"
			if of == "Degraded" {
				status = "True"
			}
			addon.Status.Conditions = append(addon.Status.Conditions, ocmtest.Condition(of, status, text, text))
		}
		addon.Status.Conditions = append(addon.Status.Conditions, ocmtest.Condition("Progressing", "False", "Failed", text))
		addon.Status.Namespace = text
		addon.Annotations = map[string]string{addonv1beta1.InstallNamespaceAnnotation: text + "other"}
		h.Add(t, "managedclusteraddons", addon)
		account := &authv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Namespace: name, Name: "reader",
			Labels:      map[string]string{"authentication.open-cluster-management.io/sync-to-clusterprofile": "true"},
			Annotations: map[string]string{"inventory.open-cluster-management.io/sync-to-namespaces": team + "," + text},
		}}
		account.Status.TokenSecretRef = &authv1beta1.SecretRef{Name: text, LastRefreshTimestamp: now}
		h.Add(t, "managedserviceaccounts", account)
	}
	for cluster, manager := range map[string]string{"east": "open-cluster-management", "foreign": text} {
		profile := ocmtest.OurProfile(team, cluster)
		profile.UID = "uid"
		profile.Spec.ClusterManager.Name = manager
		profile.Labels[text] = text
		profile.Status.Version.Kubernetes = text
		profile.Status.Conditions = []metav1.Condition{ocmtest.Condition(text, "True", text, value)}
		profile.Status.Properties = []inventoryv1alpha1.Property{
			{Name: "tier", Value: value, LastObservedTime: now}, {Name: text, Value: text},
		}
		other := access(text)
		other.Name, other.Cluster.Server = text, text
		profile.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{access("east"), other}
		h.Add(t, "clusterprofiles", profile)
	}
	h.Add(t, "events", &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "event"}, EventTime: metav1.NewMicroTime(now.Time),
		ReportingController: "hub.inventory", ReportingInstance: "i", Action: text, Reason: text, Note: text, Type: text,
		Regarding: corev1.ObjectReference{Kind: "ClusterProfile", Namespace: team, Name: "east"},
	})
	return h
}

// printers are the commands that show what others chose. Exact ones print it as it is, because the
// user asked for the objects themselves: as JSON, which has no control characters, or by a template.
var printers = []struct {
	args  []string
	exact bool
}{
	{[]string{"list", "-A", "-o", "wide", "-L", "tier"}, false},
	{[]string{"list", "--count-by", "tier"}, false},
	{[]string{"list", "-L", "HOSTILE", "--where", "HOSTILE"}, false},
	{[]string{"list", "-o", "custom-columns=NAME:.metadata.name,ALL:.status"}, false},
	{[]string{"list", "-o", "custom-columns=HOSTILE:.metadata.name"}, false},
	{[]string{"list", "-o", "json"}, true},
	{[]string{"list", "-o", "yaml"}, true},
	{[]string{"list", "-o", "name"}, false},
	{[]string{"list", "-o", `jsonpath={.items[*].status.properties[?(@.name=="tier")].value}`}, true},
	{[]string{"list", "-o", `go-template={{range .items}}{{range .status.properties}}{{.value}}{{end}}{{end}}`}, true},
	{[]string{"describe", "east"}, false},
	{[]string{"describe", "east", "-o", "json"}, true},
	{[]string{"describe", "east", "-o", "yaml"}, true},
	{[]string{"explain", "east"}, false},
	{[]string{"explain", "west"}, false},
	{[]string{"explain", "foreign"}, false},
	{[]string{"explain", "east", "tier"}, false},
	{[]string{"explain", "east", "HOSTILE"}, false},
	{[]string{"doctor"}, false},
	{[]string{"rollout"}, false},
	{[]string{"matrix"}, false},
	{[]string{"matrix", "--fold=always"}, false},
	{[]string{"matrix", "--tokens"}, false},
	{[]string{"matrix", "-o", "yaml"}, true},
	{[]string{"diff"}, false},
	{[]string{"diff", "-o", "json"}, true},
	{[]string{"kubeconfig", "--account", "reader", "--output", "FILE"}, false},
	{[]string{"check-access", "foreign", "--account", "reader", "--access-provider", "HOSTILE"}, false},
	{[]string{"__complete", "explain", "east", ""}, false},
	{[]string{"__complete", "describe", ""}, false},
}

// maxLine is longer than every line that is not asked for in full: a table with several cells.
const maxLine = 6000

// No command lets the terminal, or who reads the output line by line, be deceived.
func TestHostileContent(t *testing.T) {
	for what, text := range hostile {
		t.Run(what, func(t *testing.T) {
			u := newUser(t, ofHostile(t, text))
			t.Setenv(asPlugin, u.peak()) // for exec plugins
			argument := text
			if len(argument) > 1000 { // of what a command line can have
				argument = argument[:1000]
			}
			for _, printer := range printers {
				args := slices.Clone(printer.args)
				for i := range args {
					args[i] = strings.ReplaceAll(args[i], "HOSTILE", argument)
				}
				got := u.runHere(t, args...)
				title := strings.Join(printer.args, " ")
				if got.code > 2 || got.code < 0 || got.stdout+got.stderr == "" {
					t.Errorf("%s: exit code %d, %d bytes", title, got.code, len(got.stdout+got.stderr))
				}
				if strings.Count(got.stderr, "\n") > 4 {
					t.Errorf("%s: errors %.1000q", title, got.stderr)
				}
				output := got.stderr
				if !printer.exact {
					output += got.stdout
				}
				checkPrintable(t, title, output)
			}
		})
	}
}

// checkPrintable reports lines with characters that do not print, or with more than people read.
func checkPrintable(t *testing.T, title, output string) {
	t.Helper()
	for line := range strings.Lines(output) {
		line = strings.TrimSuffix(line, "\n")
		bad := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) })
		switch {
		case bad >= 0 || !utf8.ValidString(line):
			t.Errorf("%s prints %q", title, line[max(0, bad-30):min(len(line), max(0, bad)+60)])
			return
		case len(line) > maxLine:
			t.Errorf("%s prints a line of %d bytes: %.200s", title, len(line), line)
			return
		}
	}
}

// templates run with the objects; what an object has is data, and never a template.
func TestHostileContentIsNoTemplate(t *testing.T) {
	text := hostile["a template"]
	u := newUser(t, ofHostile(t, text))
	for _, args := range [][]string{
		{"list", "-A", "-L", "tier"},
		{"list", "-o", `jsonpath={.items[0].status.properties[0].value}`},
		{"list", "-o", `go-template={{(index (index .items 0).status.properties 0).value}}`},
		{"list", "-o", "custom-columns=A:.status.properties[0].value"},
		{"list", "--count-by", "tier"},
		{"describe", "east"},
		{"explain", "east", "tier"},
	} {
		if got := u.runHere(t, args...); got.code != 0 && got.code != 1 || !strings.Contains(got.stdout, text) &&
			!strings.Contains(got.stdout, kube.Quote(text)) {
			t.Errorf("%v: exit code %d: %s%s", args, got.code, got.stdout, got.stderr)
		}
	}
}

var countOf = regexp.MustCompile(`: (\d+) \(`)

// Several processes write one kubeconfig, again and again at the same time, each contexts of its
// own: none loses what another has written, and what others had there stays.
func TestProcessesThatWriteOneKubeconfig(t *testing.T) {
	h := memhub.Start(t, ocmtest.Scheme())
	const writers, each = 4, 6
	for writer := range writers {
		for i := range each {
			name := fmt.Sprintf("writer-%d-%d", writer, i)
			profile := ocmtest.OurProfile(team, name)
			profile.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{access(name)}
			h.Add(t, "clusterprofiles", profile)
		}
	}
	u := newUser(t, h)
	path := filepath.Join(u.dir, "contexts")
	apitest.Must(t, os.WriteFile(path, []byte(`{apiVersion: v1, kind: Config, current-context: mine,
contexts: [{name: mine, context: {cluster: mine, user: mine}}], users: [{name: mine, user: {username: me}}],
clusters: [{name: mine, cluster: {server: "https://mine"}}]}`), 0o600))
	var all sync.WaitGroup
	for writer := range writers {
		all.Go(func() {
			for i := range each {
				out, err := u.command(t.Context(), "kubeconfig", fmt.Sprintf("writer-%d-%d", writer, i),
					"--account", "reader", "--output", path).CombinedOutput()
				if err != nil || countOf.FindStringSubmatch(string(out)) == nil {
					t.Errorf("%v: %s", err, out)
				}
			}
		})
	}
	all.Wait()
	config, err := clientcmd.LoadFromFile(path)
	apitest.Must(t, err)
	if want := writers*each + 1; len(config.Contexts) != want || len(config.Clusters) != want || len(config.AuthInfos) != 2 {
		t.Errorf("%d contexts, %d clusters, %d users; want %d contexts",
			len(config.Contexts), len(config.Clusters), len(config.AuthInfos), want)
	}
	if config.CurrentContext != "mine" || config.AuthInfos["mine"].Username != "me" {
		t.Errorf("the user's own context has changed: %+v", config.AuthInfos["mine"])
	}
	left, err := filepath.Glob(filepath.Join(u.dir, ".contexts*"))
	apitest.Must(t, err)
	if locks, _ := filepath.Glob(path + ".lock"); len(left)+len(locks) > 0 {
		t.Errorf("left over: %v %v", left, locks)
	}
}
