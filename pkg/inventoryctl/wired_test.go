package inventoryctl

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/golden"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// hubServer has only one story's objects, so that the whole output is known.
var hubServer = apitest.New(apitest.Hub(), apitest.ClusterProfile(), apitest.ManagedServiceAccount())

// TestMain runs the exec plugin where the tests have started this program as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "credential" {
		streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
		os.Exit(Main(context.Background(), os.Args[1:], streams)) //nolint:forbidigo // it is a main here
	}
	apitest.Main(m, hubServer)
}

// then is when the commands run; conditions are an hour older.
var then = time.Date(2026, 1, 2, 4, 4, 5, 0, time.UTC)

// reader is a user of kubectl inventory.
type reader struct {
	t          *testing.T
	kubeconfig string
	wire       *apitest.Wire
}

func newReader(t *testing.T, cfg *rest.Config, namespace string) *reader {
	t.Helper()
	wire := &apitest.Wire{}
	content := apitest.Kubeconfig(t, wire.Proxy(t, cfg), namespace)
	return &reader{t: t, kubeconfig: apitest.File(t, "kubeconfig", content), wire: wire}
}

// ran is the result of a command.
type ran struct {
	code           int
	stdout, stderr string
}

// String is what goldens show.
func (r ran) String() string {
	return fmt.Sprintf("exit code %d\n--- stdout\n%s--- stderr\n%s", r.code, r.stdout, r.stderr)
}

func (r *reader) run(args ...string) ran {
	r.t.Helper()
	r.wire.Reset()
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	kubeconfig := "--kubeconfig=" + r.kubeconfig
	if args = slices.Clone(args); len(args) > 0 && args[0] == "__complete" {
		args = slices.Insert(args, 1, kubeconfig) // what comes last is completed
	} else {
		args = append(args, kubeconfig)
	}
	code := run(r.t.Context(), args, streams, func() time.Time { return then })
	for _, call := range r.wire.Calls() {
		isReview := call.Method == http.MethodPost && call.Resource == "selfsubjectaccessreviews"
		isCopy := call.Resource == "secrets" && args[0] == "check-access" // read by its exec plugin
		if call.Method != http.MethodGet && !isReview || call.IsWatch() || call.Resource == "secrets" && !isCopy {
			r.t.Errorf("kubectl inventory %v sent %s?%s", args, call, call.Query.Encode())
		}
	}
	return ran{code, stdout.String(), stderr.String()}
}

// hub is the story: prod is bound in team-a, where east has a profile and west's write
// failed; team-b has a Placement that chose west; lab is in no set; newcomer has not been
// accepted and has no addon.
type hub struct{ *ocmtest.Hub }

func story(t *testing.T) *hub {
	t.Helper()
	h := &hub{ocmtest.New(t, hubServer.Config(t))}
	hubtest.Install(h.World, "image: {tag: v1.2.3}", func(object *unstructured.Unstructured) bool {
		kind := object.GetKind()
		return strings.HasPrefix(kind, "ValidatingAdmissionPolicy") || kind == "ClusterManagementAddOn" ||
			kind == "Deployment" || kind == "Lease"
	})
	h.isRunning()
	definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "cluster-inventory"}}
	apitest.Edit(h, definition, func(d *addonv1beta1.ClusterManagementAddOn) {
		d.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{{ConfigGroupResource: revisions, ConfigReferent: named("agents-2")}}
	})
	h.set("prod")
	region := clusterv1.ManagedClusterClaim{Name: "region.example.com", Value: "eu-north"}
	h.ClusterNamed("east", ocmtest.InSet("prod"), region)
	h.ClusterNamed("west", ocmtest.InSet("prod"))
	h.ClusterNamed("lab", nil)
	h.says("east", ocmtest.Condition("Available", "True", "R", ""), ocmtest.Condition("ProfilesSynced", "True", "Synced", "s"),
		ocmtest.Condition("CredentialsSynced", "True", "Copied", "c"),
		ocmtest.Condition("PropertiesPublished", "True", "Published", "1 property published."))
	h.says("west", ocmtest.Condition("ProfilesSynced", "False", "WriteFailed",
		"In team-a: the cluster cannot be published: exceeded quota."))
	h.upgrade("east", "agents-2", ocmtest.Condition("Progressing", "False", "Completed", ""))
	h.upgrade("west", "agents-2", ocmtest.Condition("Progressing", "False", "Failed", ""),
		ocmtest.Condition("Available", "False", "ProbeUnavailable", "no pod of the agent is ready"))
	h.upgrade("lab", "agents-1", ocmtest.Condition("Configured", "False", "ConfigurationsNotConfigured", ""))
	h.MustCreate(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "newcomer", Labels: ocmtest.InSet("prod")}})

	for _, namespace := range []string{"team-a", "team-b", "team-c"} {
		h.MustCreate(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	h.Bind("team-a", "prod")
	h.Bind("team-b", "prod")
	h.Placement("team-b", "mine", "west")
	h.profile("team-a", "east", func(p *inventoryv1alpha1.ClusterProfile) {
		p.Status.Version.Kubernetes = "v1.35.4"
		p.Status.Conditions = []metav1.Condition{
			ocmtest.Condition("ControlPlaneHealthy", "True", "R", ""), ocmtest.Condition("Joined", "True", "R", ""),
		}
		p.Status.Properties = []inventoryv1alpha1.Property{
			{Name: region.Name, Value: region.Value, LastObservedTime: metav1.NewTime(then.Add(-20 * time.Minute))},
		}
		p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{
			Name: "open-cluster-management", Cluster: clientcmdv1.Cluster{Server: "https://proxy:9092/east"},
		}}
	})
	foreign := ocmtest.OurProfile("team-c", "east")
	foreign.Labels, foreign.Spec.ClusterManager.Name = nil, "another-manager"
	h.MustCreate(foreign)
	account := h.Account("east", "reporter", "team-a")
	h.ReportToken(account, "reporter", then.Add(45*time.Minute))
	refused := func(at time.Time) string {
		return "Account reporter is not copied: its token has expired at " + at.Format(time.RFC3339) + "."
	}
	h.event("ClusterProfile", "team-a", "east", "InvalidSource", 42*time.Minute, refused(then.Add(-43*time.Minute)))
	h.event("ClusterProfile", "team-a", "east", "InvalidSource", 5*time.Minute, refused(then.Add(-6*time.Minute)))
	h.event("ManagedClusterSetBinding", "team-a", "prod", "ProfilesWithheld", 7*time.Minute, "west cannot be published: exceeded quota")
	h.event("ManagedClusterSetBinding", "team-b", "prod", "ProfilesWithheld", 3*time.Minute, "east is not chosen by a Placement")
	return h
}

var revisions = addonv1beta1.ConfigGroupResource{
	Group: "inventory.open-cluster-management.io", Resource: "agentrevisions",
}

func named(name string) addonv1beta1.ConfigReferent { return addonv1beta1.ConfigReferent{Name: name} }

// upgrade gives a cluster an AgentRevision, and more conditions.
func (h *hub) upgrade(cluster, revision string, conditions ...metav1.Condition) {
	h.T.Helper()
	apitest.EditStatus(h, ocmtest.Addon(cluster), func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.Conditions = append(a.Status.Conditions, conditions...)
		a.Status.ConfigReferences = []addonv1beta1.ConfigReference{{
			ConfigGroupResource: revisions,
			DesiredConfig:       &addonv1beta1.ConfigSpecHash{ConfigReferent: named(revision), SpecHash: "hash"},
		}}
	})
}

// isRunning has the replicas of the manager be ready, and one of them lead.
func (h *hub) isRunning() {
	h.T.Helper()
	deployment, lease := managerDeployment(), managerLease()
	apitest.EditStatus(h, deployment, func(d *appsv1.Deployment) {
		replicas := *d.Spec.Replicas
		d.Status.ObservedGeneration = d.Generation
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas = replicas, replicas, replicas
	})
	apitest.Edit(h, lease, func(l *coordinationv1.Lease) {
		l.Spec.HolderIdentity, l.Spec.RenewTime = ptr.To("cluster-inventory-manager-1"), &metav1.MicroTime{Time: then}
	})
}

func managerDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubtest.Namespace, Name: "cluster-inventory-manager"},
	}
}

func managerLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubtest.Namespace, Name: "cluster-inventory-manager"},
	}
}

// event is one that the manager created.
func (h *hub) event(kind, namespace, name, reason string, age time.Duration, note string) {
	h.T.Helper()
	regarding := corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name}
	controller := "hub.credentials"
	if kind == "ManagedClusterSetBinding" {
		controller = "hub.inventory"
	}
	h.MustCreate(kube.NewEvent(regarding, corev1.EventTypeWarning, reason, "Test", note, controller, controller, then.Add(-age)))
}

func (h *hub) set(name string) {
	h.T.Helper()
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	set.Spec.ClusterSelector.SelectorType = clusterv1beta2.ExclusiveClusterSetLabel
	h.MustCreate(set)
}

func (h *hub) says(cluster string, conditions ...metav1.Condition) {
	h.T.Helper()
	apitest.EditStatus(h, ocmtest.Addon(cluster), func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.Conditions = conditions
	})
}

func (h *hub) profile(namespace, cluster string, change func(*inventoryv1alpha1.ClusterProfile)) {
	h.T.Helper()
	profile := ocmtest.OurProfile(namespace, cluster)
	h.MustCreate(profile)
	apitest.EditStatus(h, profile, change)
}

// tenant may read what concerns one namespace, in it.
func (h *hub) tenant(namespace string) *rest.Config {
	h.T.Helper()
	name := "tenant-of-" + namespace
	h.MustCreate(
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Rules: []rbacv1.PolicyRule{
				{
					APIGroups: []string{"multicluster.x-k8s.io"}, Resources: []string{"clusterprofiles"},
					Verbs: []string{"get", "list"},
				},
				{
					APIGroups: []string{"cluster.open-cluster-management.io"},
					Resources: []string{"managedclustersetbindings", "placements", "placementdecisions"},
					Verbs:     []string{"get", "list"},
				},
				{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"get", "list"}},
			},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
		})
	cfg := hubServer.User(h.T, name)
	for _, resource := range []struct{ group, name string }{
		{"multicluster.x-k8s.io", "clusterprofiles"}, {"cluster.open-cluster-management.io", "placements"},
		{"events.k8s.io", "events"},
	} {
		h.EventuallyAllowed(cfg, true, authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "list", Group: resource.group, Resource: resource.name,
		})
	}
	return cfg
}

// inFileNames leaves out what file names may not have.
var inFileNames = strings.NewReplacer("*", "", ":", "", "!", "not-")

// The output for the administrator, the tenant of one namespace and a user without rights,
// on one hub: each is a golden file.
func TestOutputByReader(t *testing.T) {
	h := story(t)
	readers := map[string]*reader{
		"admin":  newReader(t, hubServer.Config(t), "team-a"),
		"tenant": newReader(t, h.tenant("team-a"), "team-a"),
		"nobody": newReader(t, hubServer.User(t, "nobody"), "team-a"),
	}
	for _, command := range [][]string{
		{"list", "-A", "-L", "region.example.com"},
		{"list", "-n", "team-a", "-o", "name"},
		{"list", "-A", "--where", "region.example.com=eu-*", "-o", "custom-columns=WHERE:.metadata.namespace,NAME:.metadata.name"},
		{"list", "-n", "team-a", "--where", "!region.example.com"},
		{"list", "-A", "--count-by", "region.example.com"},
		{"list", "-n", "team-b"},
		{"list", "-n", "no-such-namespace"},
		{"matrix"},
		{"matrix", "--fold=always"},
		{"matrix", "-n", "team-b", "-o", "json"},
		{"matrix", "no-such-cluster"},
		{"matrix", "--tokens"},
		{"matrix", "--tokens", "--fold=always", "-o", "json", "east"},
		{"matrix", "--tokens", "-n", "team-b"},
		{"explain", "east"},
		{"explain", "west"},
		{"explain", "west", "-n", "team-b"},
		{"explain", "east", "-n", "team-b"},
		{"explain", "lab", "-o", "yaml"},
		{"explain", "newcomer"},
		{"explain", "east", "-n", "team-c"},
		{"explain", "no-such-cluster"},
		{"explain", "east", "-n", "no-such-namespace"},
		{"explain", "Not_A_Name"},
		{"explain", "east", "region.example.com"},
		{"explain", "east", "no.such.property"},
		{"explain", "east", "region.example.com", "-n", "no-such-namespace"},
		{"describe", "east"},
		{"describe", "west", "-n", "team-b"},
		{"doctor"},
		{"rollout"},
		{"diff"},
		{"diff", "-n", "team-c"},
	} {
		for name, reader := range readers {
			title := inFileNames.Replace(strings.Join(append(slices.Clone(command), "as", name), "_"))
			t.Run(title, func(t *testing.T) {
				golden.Check(t, title, "$ kubectl inventory "+strings.Join(command, " ")+"\n"+reader.run(command...).String())
			})
		}
	}

	t.Run("a whole profile is printed as the hub has it", func(t *testing.T) {
		got := readers["admin"].run("list", "-n", "team-a", "-o", "json")
		if got.code != ExitOK || !strings.Contains(got.stdout, `"server": "https://proxy:9092/east"`) ||
			!strings.Contains(got.stdout, `"kind": "List"`) || strings.Contains(got.stdout, "managedFields") {
			t.Error(got)
		}
	})
	t.Run("templates", func(t *testing.T) {
		for _, output := range []string{
			"jsonpath={.items[*].metadata.name}", "go-template={{range .items}}{{.metadata.name}}{{end}}",
		} {
			if got := readers["admin"].run("list", "-n", "team-a", "-o", output); got.code != ExitOK || got.stdout != "east" {
				t.Errorf("%s: %s", output, got)
			}
		}
	})
	t.Run("names of clusters are completed", func(t *testing.T) {
		for name, want := range map[string]string{"admin": "east\n:4\n", "tenant": "east\n:4\n", "nobody": ":5\n"} {
			got := readers[name].run("__complete", "explain", "ea")
			if got.stdout != want {
				t.Errorf("%s gets %q", name, got.stdout)
			}
		}
	})
	t.Run("names of properties are completed", func(t *testing.T) {
		for name, want := range map[string]string{
			"admin": "region.example.com\n:4\n", "tenant": "region.example.com\n:4\n", "nobody": ":4\n",
		} {
			if got := readers[name].run("__complete", "explain", "east", "reg"); got.stdout != want {
				t.Errorf("%s gets %q", name, got.stdout)
			}
		}
	})
	t.Run("profiles are watched", func(t *testing.T) { watchedProfiles(t, &hub{h.In(t)}, readers["admin"]) })
	t.Run("kubectl's own flags", func(t *testing.T) {
		got := readers["admin"].run("list", "--as=nobody", "-n", "team-a")
		if got.code != ExitFailed || !strings.Contains(got.stderr, "you may not list the ClusterProfiles of namespace team-a") {
			t.Error(got)
		}
	})
	t.Run("the manager's own settings count", func(t *testing.T) {
		managersSettings(t, &hub{h.In(t)}, readers["admin"])
	})
	t.Run("no manager works", func(t *testing.T) {
		noManager(t, &hub{h.In(t)}, readers["admin"])
	})
	t.Run("lists are read in pages", func(t *testing.T) {
		pagesOfMany(t, &hub{h.In(t)}, readers["admin"])
	})
	t.Run("only exclusive sets publish", func(t *testing.T) {
		onlyExclusiveSets(t, &hub{h.In(t)}, readers["admin"])
	})
	t.Run("cluster-proxy lets clients choose their groups", func(t *testing.T) {
		impersonatingProxy(t, &hub{h.In(t)}, readers["admin"])
	})
	t.Run("the install Placement has several slices", func(t *testing.T) {
		placementOfMany(t, &hub{h.In(t)}, readers["admin"])
	})
	t.Run("ties of member ids are named", func(t *testing.T) { tiedMemberIDs(t, &hub{h.In(t)}, readers) })
	// These add profiles, and so come last.
	t.Run("contexts are written", func(t *testing.T) { writesContexts(t, &hub{h.In(t)}, readers["admin"]) })
	t.Run("access is checked", func(t *testing.T) { checksAccess(t, &hub{h.In(t)}, readers["admin"]) })
}

// watchedProfiles changes a profile while its reader watches.
func watchedProfiles(t *testing.T, h *hub, admin *reader) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, printed := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: printed, ErrOut: io.Discard}
		ended <- run(ctx, []string{"list", "-n", "team-a", "-w", "--kubeconfig=" + admin.kubeconfig}, streams, time.Now)
		_ = printed.Close()
	}()
	lines := bufio.NewScanner(out)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || !strings.Contains(lines.Text(), want) {
			t.Fatalf("want %q: %q %v", want, lines.Text(), lines.Err())
		}
	}
	next("NAME")
	next("v1.35.4")
	apitest.EditStatus(h, ocmtest.OurProfile("team-a", "east"), func(p *inventoryv1alpha1.ClusterProfile) {
		p.Status.Version.Kubernetes = "v1.36.0"
	})
	defer apitest.EditStatus(h, ocmtest.OurProfile("team-a", "east"), func(p *inventoryv1alpha1.ClusterProfile) {
		p.Status.Version.Kubernetes = "v1.35.4"
	})
	next("v1.36.0")
	go func() { _, _ = io.Copy(io.Discard, out) }()
	stop()
	if code := <-ended; code != ExitOK {
		t.Errorf("exit code %d", code)
	}
}

// tiedMemberIDs has a cluster ask for the name of another as its member id, and then two profiles of a
// namespace have one.
func tiedMemberIDs(t *testing.T, h *hub, readers map[string]*reader) {
	t.Helper()
	says := func(reader, want string, code int, args ...string) {
		t.Helper()
		if got := readers[reader].run(args...); got.code != code || !strings.Contains(got.stdout, want) {
			t.Errorf("%s: %v does not say %q with exit code %d: %s", reader, args, want, code, got)
		}
	}
	const set, unset = `{"metadata":{"labels":{"multicluster.x-k8s.io/inventory-member-id":%q}}}`,
		`{"metadata":{"labels":{"multicluster.x-k8s.io/inventory-member-id":null}}}`
	lab := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "lab"}}
	h.MustMerge(lab, fmt.Sprintf(set, "east"))
	const tie = `"east" is that of cluster east, because it is its name: lab asks for it and has its name instead`
	says("admin", tie, ExitMissing, "doctor")
	says("admin", tie, ExitMissing, "explain", "lab")
	says("admin", tie, ExitOK, "explain", "east")
	h.MustMerge(lab, unset)

	east, twin := ocmtest.OurProfile("team-a", "east"), ocmtest.OurProfile("team-a", "twin")
	twin.Labels = map[string]string{"multicluster.x-k8s.io/inventory-member-id": "same"}
	twin.Spec.ClusterManager.Name = "another-manager"
	h.MustCreate(twin)
	defer h.MustDelete(twin)
	h.MustMerge(east, fmt.Sprintf(set, "same"))
	defer h.MustMerge(east, unset)
	const shared = `"same" is that of east, twin: consumers use `
	says("admin", `"same" in namespace team-a is that of east, twin: consumers use `, ExitMissing, "doctor")
	says("admin", shared, ExitMissing, "explain", "east")
	says("tenant", shared, ExitMissing, "explain", "east")
}

// managersSettings has the manager run with other flags, which everything then follows.
func managersSettings(t *testing.T, h *hub, admin *reader) {
	t.Helper()
	deployment := managerDeployment()
	var before []string
	apitest.Edit(h, deployment, func(d *appsv1.Deployment) { before = d.Spec.Template.Spec.Containers[0].Args })
	runsWith := func(flags ...string) {
		apitest.Edit(h, deployment, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Args = append(slices.Clone(before), flags...)
		})
		h.isRunning()
	}
	t.Cleanup(func() { runsWith() })
	says := func(want string, args ...string) {
		t.Helper()
		if got := admin.run(args...); !strings.Contains(got.stdout, want) {
			t.Errorf("%v does not say %q: %s", args, want, got)
		}
	}
	says("the claim can be a property", "explain", "east", "region.example.com")
	runsWith("--max-property-bytes=5")
	says("the claim is left out of ClusterProfiles", "explain", "east", "region.example.com")
	says("--max-property-bytes=5", "doctor")
	runsWith("--upstream-gates=off", "--credentials-mode=draining")
	says("it is off according to upstreamGates=off", "doctor")
	says("the manager copies no tokens (credentials.mode=draining)", "explain", "east")
	runsWith("--access-cluster-proxy-namespace=proxies", "--upstream-registration-clusterrole=mine")
	says("there is no Deployment proxies/cluster-proxy-addon-manager", "doctor")
	says(`ClusterRole "mine"`, "doctor")
}

// noManager scales the manager to nothing and has it release its Lease.
func noManager(t *testing.T, h *hub, admin *reader) {
	t.Helper()
	scale := func(replicas int32) {
		apitest.Edit(h, managerDeployment(), func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas })
	}
	scale(0)
	apitest.Edit(h, managerLease(), func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("") })
	t.Cleanup(func() { scale(1); h.isRunning() })
	got := admin.run("doctor")
	for _, want := range []string{"has 0 replicas, so no manager runs", "no manager leads, so nothing is written"} {
		if got.code != ExitMissing || !strings.Contains(got.stdout, want) {
			t.Errorf("does not say %q: %s", want, got)
		}
	}
}

// onlyExclusiveSets binds a set that selects by labels, and then has the hub admin publish only
// through exclusive sets.
func onlyExclusiveSets(t *testing.T, h *hub, admin *reader) {
	t.Helper()
	h.MustCreate(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "open"}})
	every := h.Set("every", clusterv1beta2.ManagedClusterSelector{
		SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{},
	})
	h.CleanUp(every, h.Bind("open", every.Name))
	shows := func(set, matrix string) {
		t.Helper()
		if got := admin.run("explain", "lab", "-n", "open"); !strings.Contains(got.stdout, set) {
			t.Errorf("want %q: %s", set, got)
		}
		if got := admin.run("matrix", "-n", "open", "lab"); !strings.Contains(got.stdout, matrix) {
			t.Errorf("want %q: %s", matrix, got)
		}
	}
	withheld := fmt.Sprintf("is withheld: ManagedClusterSet %q is not exclusive", every.Name)
	shows("ManagedClusterSet "+every.Name+" selects the cluster", "is selected, but")
	definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "cluster-inventory"}}
	setTo := func(value string) {
		apitest.Edit(h, definition, func(d *addonv1beta1.ClusterManagementAddOn) {
			d.Annotations = map[string]string{"inventory.open-cluster-management.io/exclusive-sets-only": value}
		})
	}
	setTo("true")
	shows(withheld, withheld)
	if got := admin.run("doctor"); !strings.Contains(got.stdout, "publishes only through exclusive sets") {
		t.Error(got)
	}
	setTo("false")
}

// impersonatingProxy installs an old cluster-proxy on two clusters. One of them has it
// without impersonation.
func impersonatingProxy(t *testing.T, h *hub, admin *reader) {
	t.Helper()
	const namespace = "open-cluster-management-addon"
	labels := map[string]string{"app": "cluster-proxy"}
	manager := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-proxy-addon-manager"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "cluster-proxy:v0.10.0"}}},
			},
		},
	}
	config := &addonv1beta1.AddOnDeploymentConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "without-impersonation"},
		Spec: addonv1beta1.AddOnDeploymentConfigSpec{
			CustomizedVariables: []addonv1beta1.CustomizedVariable{{Name: "enableImpersonation", Value: "false"}},
		},
	}
	h.MustCreateIn(namespace, manager, config)
	off := func(cluster string) {
		addon := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "cluster-proxy"}}
		apitest.EditStatus(h, addon, func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.ConfigReferences = []addonv1beta1.ConfigReference{{
				ConfigGroupResource: addonv1beta1.ConfigGroupResource{
					Group: "addon.open-cluster-management.io", Resource: "addondeploymentconfigs",
				},
				DesiredConfig: &addonv1beta1.ConfigSpecHash{
					ConfigReferent: addonv1beta1.ConfigReferent{Namespace: namespace, Name: config.Name},
				},
			}}
		})
	}
	for _, cluster := range []string{"east", "west"} {
		h.MustCreate(&addonv1beta1.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "cluster-proxy"},
		})
	}
	says := func(want string) {
		t.Helper()
		if got := admin.run("doctor"); !strings.Contains(got.stdout, want) {
			t.Errorf("want %q: %s", want, got)
		}
	}
	off("west")
	says("version 0.10.0 lets clients choose their groups on 1 of 2 clusters (east): upgrade it to 0.11.0")
	off("east")
	says("ok               cluster-proxy's impersonation   it is off on all clusters")
}

// placementOfMany has a Placement choose more clusters than a slice of its decisions has. Who may
// not read Placements is told so.
func placementOfMany(t *testing.T, h *hub, admin *reader) {
	t.Helper()
	placement, _ := h.Placement("team-c", "fleet")
	apitest.EditStatus(h, placement, func(p *clusterv1beta1.Placement) { p.Status.NumberOfSelectedClusters = 163 })
	definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "cluster-inventory"}}
	apitest.Edit(h, definition, func(d *addonv1beta1.ClusterManagementAddOn) {
		d.Spec.InstallStrategy = addonv1beta1.InstallStrategy{
			Type: addonv1beta1.AddonInstallStrategyPlacements,
			Placements: []addonv1beta1.PlacementStrategy{{
				PlacementRef: addonv1beta1.PlacementRef{Namespace: "team-c", Name: "fleet"},
			}},
		}
	})
	const name = "reader-of-addons"
	h.MustCreate(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"addon.open-cluster-management.io"}, Resources: []string{"clustermanagementaddons"},
			Verbs: []string{"get"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
		})
	limited := hubServer.User(t, name)
	h.EventuallyAllowed(limited, true, authorizationv1.ResourceAttributes{
		Verb: "get", Group: "addon.open-cluster-management.io", Resource: "clustermanagementaddons",
	})
	for what, test := range map[string]struct {
		reader *reader
		want   string
		code   int
	}{
		"who may read it":     {admin, "Placement team-c/fleet chooses 163 clusters, so its decisions have several slices.", ExitMissing},
		"who may not read it": {newReader(t, limited, "team-a"), "you may not read Placement team-c/fleet", ExitOK},
	} {
		if got := test.reader.run("doctor"); got.code != test.code || !strings.Contains(got.stdout, test.want) {
			t.Errorf("%s: want exit code %d and %q: %s", what, test.code, test.want, got)
		}
	}
}

// pagesOfMany adds clusters and profiles, and counts the requests of commands: those for a
// whole hub take as many as there are pages, those for one pair do not grow with the fleet.
func pagesOfMany(t *testing.T, h *hub, admin *reader) {
	t.Helper()
	const more, size = 26, 10
	h.MustCreate(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "wide"}})
	for i := range more {
		name := fmt.Sprintf("many-%02d", i)
		h.MustCreate(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
		h.profile("wide", name, func(*inventoryv1alpha1.ClusterProfile) {})
	}
	const (
		clusterPages = 3 // 26 and the 4 of the story
		profilePages = 3 // 26 and the 2 of the story
	)
	for _, test := range []struct {
		args []string
		want map[string]int
	}{
		{[]string{"list", "-A"}, map[string]int{"clusterprofiles": profilePages}},
		{[]string{"matrix", "-o", "json"}, map[string]int{
			"clusterprofiles": profilePages, "managedclusters": clusterPages, "managedclusteraddons": 1, "namespaces": 2,
			"managedclustersets": 1, "managedclustersetbindings": 1, "placements": 1, "placementdecisions": 1,
			"clustermanagementaddons": 1, "deployments": 1,
		}},
		{[]string{"explain", "east", "-n", "wide"}, map[string]int{
			"deployments": 1, "clusterprofiles": 2, "managedclusters": 2, "managedclusteraddons": 2, "namespaces": 1,
			"managedclustersetbindings": 1, "placements": 1, "clustermanagementaddons": 1, "managedserviceaccounts": 1,
			"events": 2,
		}},
	} {
		got := admin.run(append(test.args, fmt.Sprintf("--chunk-size=%d", size))...)
		if got.code == ExitFailed {
			t.Errorf("%v: %s", test.args, got)
		}
		requests := map[string]int{}
		for _, call := range admin.wire.Calls() {
			requests[call.Resource]++
			if limit := call.Query.Get("limit"); limit != "" && limit != fmt.Sprint(size) {
				t.Errorf("%s asks for %s", call, limit)
			}
		}
		for resource, want := range test.want {
			if requests[resource] != want {
				t.Errorf("%v: %d requests of %s, want %d: %v", test.args, requests[resource], resource, want, requests)
			}
			delete(requests, resource)
		}
		if len(requests) > 0 {
			t.Errorf("%v: requests of others: %v", test.args, requests)
		}
	}
	if got := admin.run("matrix", "--chunk-size=10"); !strings.Contains(got.stdout, "wide") ||
		!strings.Contains(got.stdout, "26") || !strings.Contains(got.stdout, "PUBLISHED") {
		t.Errorf("a wide fleet is not folded:\n%s", got)
	}

	t.Run("a hub that disconnects half way", func(t *testing.T) {
		for name, test := range map[string]struct {
			fault apitest.Fault
			want  string
		}{
			"no answer":     {apitest.Fault{Err: errors.New("gone")}, "try again"},
			"refuses":       {apitest.Fault{Status: 401, Reason: "Unauthorized", Message: "token expired"}, "does not accept your credentials"},
			"overloaded":    {apitest.Fault{Status: 503, Reason: "ServiceUnavailable", Message: "busy"}, "try again"},
			"forgets":       {apitest.Fault{Status: 410, Reason: "Expired", Message: "too old"}, "try again"},
			"takes a right": {apitest.Fault{Status: 403, Reason: "Forbidden", Message: "not any more"}, "you may not do that"},
		} {
			t.Run(name, func(t *testing.T) {
				admin.wire.Fail(func(call apitest.Call) apitest.Fault {
					if call.Resource == "managedclusters" && call.Query.Get("continue") != "" {
						return test.fault
					}
					return apitest.Fault{}
				})
				defer admin.wire.Fail(nil)
				got := admin.run("matrix", "--chunk-size=10")
				if got.code != ExitFailed || got.stdout != "" || !strings.Contains(got.stderr, test.want) ||
					strings.Count(got.stderr, "\n") != 1 {
					t.Errorf("want one line with %q: %s", test.want, got)
				}
			})
		}
	})
}

// Hubs without what the plugin needs, and meaningless command lines: one line each.
func TestFailureIsOneLine(t *testing.T) {
	bare := apitest.Start(t)
	empty := newReader(t, bare.Config(t), "default")
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<html>Welcome</html>"))
	}))
	t.Cleanup(page.Close)
	website := newReader(t, &rest.Config{Host: page.URL}, "default")
	nowhere := &reader{t: t, wire: &apitest.Wire{}}
	nowhere.kubeconfig = apitest.File(t, "kubeconfig", apitest.Kubeconfig(t, &rest.Config{Host: "https://127.0.0.1:1"}, ""))
	missing := &reader{t: t, kubeconfig: t.TempDir() + "/kubeconfig", wire: &apitest.Wire{}}
	for name, test := range map[string]struct {
		reader *reader
		args   string
		want   string
	}{
		"list without OCM":           {empty, "list", "serves no ClusterProfiles: install the addon with its chart"},
		"matrix without OCM":         {empty, "matrix", "serves no ManagedClusters: it is not a hub of Open Cluster Management"},
		"explain without OCM":        {empty, "explain c", "serves no ManagedClusters: it is not a hub of Open Cluster Management"},
		"property without OCM":       {empty, "explain c p", "serves no ManagedClusters"},
		"doctor without OCM":         {empty, "doctor", "it is not a hub of Open Cluster Management 1.2.1 or later"},
		"diff without OCM":           {empty, "diff", "serves no ManagedClusters"},
		"no server answers":          {nowhere, "matrix", "see whether https://127.0.0.1:1 is the hub and is up"},
		"a website answers":          {website, "matrix", "is the hub's API server, or choose another with --context"},
		"no kubeconfig":              {missing, "list", "kubeconfig"},
		"no such context":            {empty, "list --context=x", "context"},
		"no such selector":           {empty, "list -l a=(", "--selector: unable to parse requirement"},
		"no such format":             {empty, "list -o xml", `--output: want wide, json, yaml, name, jsonpath=..., go-template=... or custom-columns=..., not "xml"`},
		"no such format of matrix":   {empty, "matrix -o wide", `--output: "wide" is neither json nor yaml`},
		"no such fold":               {empty, "matrix --fold=some", `--fold: "some" is not one of auto, always, never`},
		"no such namespace name":     {empty, "matrix -n A_B", `--namespace: "A_B" is not a namespace name`},
		"no such command":            {empty, "lst", `unknown command "lst" for "kubectl inventory" Did you mean this? list`},
		"no such flag":               {empty, "list --nope", "unknown flag: --nope"},
		"nothing to explain":         {empty, "explain", "accepts between 1 and 2 arg(s), received 0"},
		"no such condition":          {empty, "list --where =x", "--where: \"=x\" names no property"},
		"a template without an end":  {empty, "list -o jsonpath={.items[", "--output: error parsing jsonpath"},
		"a template without meaning": {empty, "list -o go-template={{", "--output: "},
		"a column without a path":    {empty, "list -o custom-columns=A", `--output: "A" is not a column`},
		"two outputs":                {empty, "list --count-by=a -o json", "--count-by: choose neither"},
		"watching objects":           {empty, "list -w -o json", "--watch: it prints tables only"},
		"a rollout without a pause":  {empty, "rollout -w --interval=1ms", "--interval: 1ms is less than 1s"},
		"kubectl's flag --cluster":   {empty, "explain p --cluster=east", "kubectl inventory explain CLUSTER PROPERTY"},
		"no account":                 {empty, "kubeconfig", "--account: is required"},
		"no such account name":       {empty, "kubeconfig --account=A_B", `--account: "A_B" is not the name of an account`},
		"names and conditions":       {empty, "kubeconfig c --account=a --where b", "but not both"},
		"no such cluster name":       {empty, "kubeconfig C_D --account=a", `"C_D" is not a cluster name`},
		"a Placement without a name": {empty, "kubeconfig --account=a --from-placement=b", `"b" is not NAMESPACE/NAME`},
		"two namespaces":             {empty, "kubeconfig --account=a --from-placement=b/c -n d", "is not that of -n, d"},
		"a token for a file":         {empty, "kubeconfig --account=a --token=secret", "--token: it would be stored"},
		"contexts without OCM":       {empty, "kubeconfig --account=a", "serves no ClusterProfiles"},
		"checking no account":        {empty, "check-access c", "--account: is required"},
		"checking no cluster":        {empty, "check-access C_D --account=a", `"C_D" is not a cluster name`},
		"a question without a verb":  {empty, "check-access c --account=a --can=pods", "--can: \"pods\" is not VERB RESOURCE"},
		"access without OCM":         {empty, "check-access c --account=a", "serves no ClusterProfiles"},
		"a negative page":            {empty, "list --chunk-size=-1", "--chunk-size: -1 is negative"},
	} {
		t.Run(name, func(t *testing.T) {
			test.reader.t = t
			got := test.reader.run(strings.Fields(test.args)...)
			if got.code != ExitFailed || got.stdout != "" || !strings.Contains(got.stderr, test.want) ||
				strings.Count(got.stderr, "\n") != 1 || !strings.HasPrefix(got.stderr, "error: ") {
				t.Errorf("want one line with %q: %s", test.want, got)
			}
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var stderr bytes.Buffer
		streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, ErrOut: &stderr}
		code := run(ctx, []string{"matrix", "--kubeconfig=" + empty.kubeconfig}, streams, time.Now)
		if code != ExitFailed || stderr.String() != "error: interrupted\n" {
			t.Errorf("code %d: %s", code, stderr.String())
		}
	})
	t.Run("help and version need no hub", func(t *testing.T) {
		for _, args := range []string{"", "--help", "list --help", "version"} {
			if got := missing.run(strings.Fields(args)...); got.code != ExitOK || got.stdout == "" || got.stderr != "" {
				t.Errorf("%q: %s", args, got)
			}
		}
	})
}
