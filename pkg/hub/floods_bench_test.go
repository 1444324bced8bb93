package hub

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// BenchmarkFloods fills a hub with all that spokes and tenants can send, with their rights
// alone, and reports what that costs the manager's process: its memory, and how long the
// withdrawal of another tenant's token takes in the meantime, next to a bare client that
// watches one object and deletes another. The manager runs as the chart installs it. Run it
// once; it takes some ten minutes and gigabytes of memory, most for the API server:
//
//	go test ./pkg/hub -run '^$' -bench Floods -benchtime 1x -timeout 1h -v
//
// PERCENT says how much of each flood is sent.
func BenchmarkFloods(b *testing.B) {
	percent := apitest.Size(b, "PERCENT", 100)
	for range b.N {
		measureFloods(b, percent)
	}
}

const (
	floodTimeout = 20 * time.Minute

	// atRest is how long the manager is left alone before its memory counts as settled.
	atRest = 30 * time.Second

	// These are the whole floods.
	requests, placements, targetNames = 600, 2000, 58_000

	// attempts is how often a request of a flood is repeated that failed.
	attempts = 10

	benchClusters = 50
)

// flooded is a hub with a manager whose process is measured.
type flooded struct {
	*ocmtest.Hub
	server   *apitest.Server
	manager  *hubtest.Manager
	percent  int
	tenant   string // the tenant's namespace, which sees all clusters
	victims  string // another tenant's, with the copies of all accounts
	bare     string // the namespace of what is compared with
	accounts []*authv1beta1.ManagedServiceAccount
}

func measureFloods(b *testing.B, percent int) {
	b.Setenv("GOGC", "50") // as in the chart
	b.Setenv("GOMEMLIMIT", "512MiB")
	server := apitest.Start(b, apitest.Hub(), apitest.AgentRevision(), apitest.ClusterProfile(),
		apitest.PlacementDecision(), apitest.ManagedServiceAccount(), apitest.ManagedProxyConfiguration())
	f := &flooded{Hub: ocmtest.New(b, server.Config(b)), server: server, percent: percent}
	f.Patience = 5 * time.Minute
	hubtest.Install(f.World, "", hubtest.AllButProgram)
	f.MustCreate(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:cluster-manager-registration:controller"},
		Rules: []rbacv1.PolicyRule{{ // its own ClusterProfile controller is off
			APIGroups: []string{"cluster.open-cluster-management.io"}, Resources: []string{"managedclusters"},
			Verbs: []string{"get"},
		}},
	})
	f.populate()
	f.watchBare()
	f.start()
	before := f.settled()
	b.Logf("%-34s MiB %.0f", "before", before)
	f.measure(fmt.Sprintf("%d certificate requests of 900 KB", f.count(requests)), f.requests)
	f.measure(fmt.Sprintf("%d Placements, toggled", f.count(placements)), f.placements)
	f.measure(fmt.Sprintf("%d target names", f.count(targetNames)), f.names)
	f.measure("a flapping spoke", f.flap)
	after := f.settled()
	b.Logf("%-34s MiB %.0f", "after all", after)
	b.ReportMetric(after-before, "MiB-grown")
	f.manager.Stop()
	f.measure("a restart on all of it", f.start)
	restarted := f.settled()
	b.Logf("%-34s MiB %.0f", "restarted", restarted)
	b.ReportMetric(restarted-before, "MiB-grown-restarted")
}

// mebibytes is an amount of memory.
type mebibytes = float64

// populate creates clusters whose accounts are copied to the victims' namespace.
func (f *flooded) populate() {
	set := f.ExclusiveSet("set").Name
	f.tenant, f.victims = f.Namespace("tenant", nil), f.Namespace("victims", nil)
	f.Bind(f.tenant, set)
	f.Bind(f.victims, set)
	for n := range benchClusters {
		cluster := f.Cluster(fmt.Sprintf("cluster%d", n), ocmtest.InSet(set))
		account := f.Account(cluster.Name, "reader", f.victims)
		f.Rotate(account)
		f.accounts = append(f.accounts, account)
	}
	f.MustCreate(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "spoke"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"},
			Verbs: []string{"create"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "spoke"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "spoke"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: f.spoke()}},
		},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: f.tenant, Name: "tenant"}, Rules: []rbacv1.PolicyRule{
			{
				APIGroups: []string{"cluster.open-cluster-management.io"}, Resources: []string{"placements"},
				Verbs: []string{"create", "patch"},
			},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.tenant, Name: "tenant"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "tenant"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "tenant"}},
		},
	)
}

// spoke is the user of the first cluster's klusterlet.
func (f *flooded) spoke() string {
	return "system:open-cluster-management:" + f.accounts[0].Namespace + ":agent"
}

func (f *flooded) as(user string) client.Client {
	return apitest.NewClient(f.T, f.server.User(f.T, user), ocmtest.Scheme())
}

// start starts the manager and waits until every token is copied.
func (f *flooded) start() {
	f.manager = hubtest.Start(f.T, f.managerConfig())
	for _, account := range f.accounts {
		f.copied(account, true)
	}
	f.withdraw(len(f.accounts) - 1) // so that it works, also after a restart that changes nothing
}

func (f *flooded) managerConfig() *rest.Config { return f.server.User(f.T, hubtest.User) }

// count is how many objects a flood of so many has.
func (f *flooded) count(all int) int { return max(1, all*f.percent/100) }

// each calls do for every number, a few at a time.
func (f *flooded) each(numbers int, do func(n int) error) {
	var group sync.WaitGroup
	var next atomic.Int64
	for range 4 {
		group.Go(func() {
			for n := int(next.Add(1)) - 1; n < numbers; n = int(next.Add(1)) - 1 {
				if !f.retried(func() error { return do(n) }) {
					return
				}
			}
		})
	}
	group.Wait()
}

func (f *flooded) requests() {
	attacker, request := f.as(f.spoke()), largeRequest(f.T, 900<<10)
	f.each(f.count(requests), func(n int) error {
		return attacker.Create(f.T.Context(), floodRequest(fmt.Sprintf("flood-%d", n), f.accounts[0].Namespace, request))
	})
}

func (f *flooded) placements() {
	attacker := f.as("tenant")
	f.each(f.count(placements), func(n int) error {
		return attacker.Create(f.T.Context(), &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
			Namespace: f.tenant, Name: fmt.Sprintf("flood-%d", n), Labels: map[string]string{publishLabel: "true"},
		}})
	})
	for _, value := range []string{"false", "true", "false"} {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, publishLabel, value)
		f.each(f.count(placements), func(n int) error {
			placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
				Namespace: f.tenant, Name: fmt.Sprintf("flood-%d", n),
			}}
			return attacker.Patch(f.T.Context(), placement, client.RawPatch(types.MergePatchType, patch))
		})
	}
}

func (f *flooded) names() {
	var names strings.Builder
	names.WriteString(f.victims + ",")
	for n := range f.count(targetNames) {
		names.WriteString(strconv.FormatInt(int64(n), 36) + ",")
	}
	f.MustMerge(f.accounts[0], fmt.Sprintf(
		`{"metadata":{"annotations":{"inventory.open-cluster-management.io/sync-to-namespaces":%q}}}`, names.String()))
	<-time.After(atRest) // the manager is busy with them when they are written
}

// flap changes all claims of one cluster as often as it can for a while.
func (f *flooded) flap() {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: f.accounts[0].Namespace}}
	for end, n := time.Now().Add(atRest), 0; time.Now().Before(end); n++ {
		apitest.EditStatus(f, cluster, func(c *clusterv1.ManagedCluster) {
			c.Status.ClusterClaims = nil
			for claim := range 100 {
				c.Status.ClusterClaims = append(c.Status.ClusterClaims, clusterv1.ManagedClusterClaim{
					Name: fmt.Sprintf("claim-%d.example.com", claim), Value: fmt.Sprintf("%01000d", 100*n+claim),
				})
			}
		})
	}
}

// measure reports what a flood costs while it lasts and afterwards.
func (f *flooded) measure(what string, flood func()) {
	before, runs := f.memory()
	peak := before
	var latencies, bare []time.Duration
	over := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for isOver := false; !isOver; {
			select {
			case <-over:
				isOver = true
			case <-time.After(20 * time.Millisecond):
			}
			if now, ok := f.memory(); ok {
				peak = max(peak, now)
			}
		}
	})
	group.Go(func() {
		for n := 1; runs && !f.T.Failed(); n++ {
			latencies = append(latencies, f.withdraw(1+n%(len(f.accounts)-1)))
			bare = append(bare, f.withdrawBare())
			select {
			case <-over:
				return
			default:
			}
		}
	})
	began := time.Now()
	flood()
	took := time.Since(began)
	close(over)
	group.Wait()
	after := f.settled()
	line := fmt.Sprintf("%-34s %5.1f s; MiB before %.0f, peak %.0f, after %.0f", what, took.Seconds(), before, peak, after)
	if len(latencies) > 0 {
		line += fmt.Sprintf("; %d withdrawals: %s; bare: %s", len(latencies), summary(latencies), summary(bare))
	}
	f.T.Log(line)
}

// summary sorts durations.
func summary(all []time.Duration) string {
	slices.Sort(all)
	return fmt.Sprintf("median %s, slowest %s",
		all[len(all)/2].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond))
}

// bareUser is who deletes one object when another changes, as simply as possible.
const bareUser = "bare"

func bareMap(namespace, name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{"copy": value},
	}}
}

// watchBare starts the client that withdrawals are compared with.
func (f *flooded) watchBare() {
	f.bare = f.Namespace("bare", nil)
	f.MustCreate(
		bareMap(f.bare, "account", "true"),
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: f.bare, Name: "bare"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch", "delete"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.bare, Name: "bare"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "bare"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: bareUser}},
		},
	)
	c, err := client.NewWithWatch(f.server.User(f.T, bareUser), client.Options{Scheme: ocmtest.Scheme()})
	apitest.Must(f.T, err)
	ctx := f.T.Context()
	go func() {
		for ctx.Err() == nil {
			watching, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(f.bare))
			if err != nil {
				<-time.After(100 * time.Millisecond) // until it has the rights
				continue
			}
			for event := range watching.ResultChan() {
				account, ok := event.Object.(*corev1.ConfigMap)
				if !ok || account.Name != "account" || account.Labels["copy"] == "true" {
					continue
				}
				err := c.Delete(ctx, bareMap(f.bare, "copy", ""))
				for try := 0; client.IgnoreNotFound(err) != nil && try < attempts; try++ {
					err = c.Delete(ctx, bareMap(f.bare, "copy", ""))
				}
			}
		}
	}()
}

// withdrawBare returns how long the other client takes for what withdraw measures.
func (f *flooded) withdrawBare() time.Duration {
	object := bareMap(f.bare, "copy", "true")
	f.retried(func() error { return f.Create(f.T.Context(), object.DeepCopy()) })
	began := time.Now()
	f.labelBare("false")
	f.exists(object, false)
	took := time.Since(began)
	f.labelBare("true")
	return took
}

func (f *flooded) labelBare(value string) {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"copy":%q}}}`, value))
	f.retried(func() error { return f.Patch(f.T.Context(), bareMap(f.bare, "account", ""), patch) })
}

// retried calls do again while the API server is too busy, and reports whether it succeeded
// in the end.
func (f *flooded) retried(do func() error) bool {
	err := do()
	for try := 0; client.IgnoreAlreadyExists(err) != nil && try < attempts; try++ {
		<-time.After(time.Second)
		err = do()
	}
	if client.IgnoreAlreadyExists(err) != nil {
		f.T.Error(err)
		return false
	}
	return true
}

// withdraw takes the label from an account, and returns how long its copy took to go. It then
// has it copied again.
func (f *flooded) withdraw(n int) time.Duration {
	account := f.accounts[n]
	began := time.Now()
	f.label(account, "false")
	f.copied(account, false)
	took := time.Since(began)
	f.label(account, "true")
	f.copied(account, true)
	return took
}

func (f *flooded) label(account *authv1beta1.ManagedServiceAccount, value string) {
	patch := fmt.Appendf(nil,
		`{"metadata":{"labels":{"authentication.open-cluster-management.io/sync-to-clusterprofile":%q}}}`, value)
	f.retried(func() error {
		return f.Patch(f.T.Context(), account.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	})
}

// copied waits until there is a copy of an account's token, or none.
func (f *flooded) copied(account *authv1beta1.ManagedServiceAccount, want bool) {
	name := account.Namespace + "-" + account.Name
	f.exists(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.victims, Name: name}}, want)
}

// exists waits until an object exists, or does not.
func (f *flooded) exists(object client.Object, want bool) {
	ctx, cancel := context.WithTimeout(f.T.Context(), floodTimeout)
	defer cancel()
	for {
		err := f.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil && want || apierrors.IsNotFound(err) && !want {
			return
		}
		select {
		case <-ctx.Done():
			f.T.Errorf("whether %s exists is not %t: %v", object.GetName(), want, err)
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// memory returns the anonymous memory of the manager's process; false if it does not run.
func (f *flooded) memory() (mebibytes, bool) {
	if f.manager == nil {
		return 0, false
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.manager.PID()))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(status)) {
		var kibibytes int
		if n, _ := fmt.Sscanf(line, "RssAnon: %d kB", &kibibytes); n == 1 {
			return mebibytes(kibibytes) / 1024, true
		}
	}
	return 0, false
}

// settled returns the memory after the manager was left alone for a while.
func (f *flooded) settled() mebibytes {
	<-time.After(atRest)
	now, ok := f.memory()
	if !ok {
		f.T.Fatal("the manager does not run")
	}
	return now
}
