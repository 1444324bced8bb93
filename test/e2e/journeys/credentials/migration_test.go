package credentials

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/consumers/status"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/guide"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

// Names in OCM's published guide and docs/migration.md.
const (
	app        = "my-app"
	appSet     = "my-app-clusters"
	appAccount = "my-consumer"
)

// migration is a hub that follows OCM's guide, and a program that works on its clusters all
// the time.
type migration struct {
	*testing.T
	clusters []string
	report   func() status.Report
	before   map[string]types.UID
	first    status.Report
	edits    int
	table    [][]string
}

// TestMigrationAndBack goes from upstream's three gates to this addon as docs/migration.md
// says, and back. Every profile and every copied token stays the same object, and the
// program that uses them loses no request.
func TestMigrationAndBack(t *testing.T) {
	journeys.WithAccess(t)
	m := &migration{T: t, clusters: []string{journeys.Cluster1, journeys.Cluster2}}
	m.follow()
	m.step("three gates of upstream's", true, m.upstream)

	journeys.Installed(t)
	journeys.Enabled(t, m.clusters...)
	for _, cluster := range m.clusters {
		journeys.Says(t, cluster, journeys.ProfilesSynced, metav1.ConditionFalse, "UpstreamGateOn")
		journeys.Says(t, cluster, conditionCS, metav1.ConditionFalse, "UpstreamSyncerOn")
	}
	m.step("the addon is installed beside them", false, m.upstream)

	m.types("Say where tokens may go")
	gated(t, fleet.Gates{AccessProviders: true, Tokens: true})
	m.step("OCM's gate is off", false, func(cluster string) error {
		return errors.Join(m.profile(cluster, true), m.secret(cluster, true))
	})
	gated(t, fleet.Gates{Tokens: true})
	m.step("cluster-proxy's gate is off", false, func(cluster string) error {
		return errors.Join(m.profile(cluster, true), m.secret(cluster, true))
	})
	for _, cluster := range m.clusters {
		journeys.Says(t, cluster, journeys.ProfilesSynced, metav1.ConditionTrue, "Synced")
	}
	gated(t, fleet.Gates{})
	m.step("managed-serviceaccount's gate is off", false, func(cluster string) error {
		return errors.Join(m.profile(cluster, true), m.secret(cluster, false))
	})
	for _, cluster := range m.clusters {
		journeys.Says(t, cluster, conditionCS, metav1.ConditionTrue, "Copied")
		rotated(t, cluster, appAccount)
		hasCopy(t, app, cluster, appAccount)
	}
	m.types("See what is left")
	m.step("all is this addon's, with new tokens", false, func(cluster string) error {
		return errors.Join(m.profile(cluster, true), m.secret(cluster, false))
	})

	gated(t, fleet.Gates{Tokens: true})
	gated(t, fleet.Gates{AccessProviders: true, Tokens: true})
	gated(t, fleet.Gates{Profiles: true, AccessProviders: true, Tokens: true})
	m.step("the way back: the three gates are on", false, m.upstream)
	m.types("Before the addon goes")
	journeys.Uninstalled(t)
	m.step("the addon is uninstalled", true, m.upstream)
	for _, cluster := range m.clusters {
		rotated(t, cluster, appAccount)
		hasCopy(t, app, cluster, appAccount)
	}
	m.step("upstream goes on, with new tokens", true, m.upstream)
	m.print()
}

// follow follows OCM's guide: gates, a set, a binding, accounts with rights, and a program
// with upstream's plugin.
func (m *migration) follow() {
	t := m.T
	journeys.Hub(t) // starts the fleet
	journeys.Uninstalled(t)
	ungated(t)
	apitest.Must(t, journeys.BuildConsumers())
	gated(t, fleet.Gates{Profiles: true, AccessProviders: true, Tokens: true})
	journeys.Create(t, journeys.Hub(t), &clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: appSet},
		Spec: clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: clusterv1beta2.ManagedClusterSelector{
			SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{},
		}},
	})
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: app}}
	c := journeys.Hub(t)
	t.Cleanup(func() {
		apitest.Within(t, journeys.Eventually, "namespace "+app+" goes", func(ctx context.Context) error {
			return journeys.Gone(ctx, c, namespace)
		})
	})
	journeys.Create(t, journeys.Hub(t), namespace)
	journeys.Bind(t, app, appSet)
	equip(t, app, upstreamPlugin, []string{"--managed-serviceaccount=" + appAccount})
	for _, cluster := range m.clusters {
		mayWork(t, cluster, appAccount)
		account(t, cluster, appAccount) // without a namespace, as the guide has it
		hasCopy(t, app, cluster, appAccount)
		reaches(t, app, cluster)
	}
	m.before = m.uids()
	m.report = runs(t, app)
	m.works()
	m.first = m.report()
}

// step ends a step of the story: everything is as it must be and stays so, the program
// works, and nothing was lost.
func (m *migration) step(what string, agentless bool, check func(cluster string) error) {
	m.Helper()
	apitest.Within(m.T, journeys.Eventually, what, func(context.Context) error {
		var all error
		for _, cluster := range m.clusters {
			all = errors.Join(all, check(cluster))
		}
		return all
	})
	journeys.Settled(m.T, written...)
	if !agentless {
		m.edits++
		for _, cluster := range m.clusters {
			journeys.Sets(m.T, cluster, "migration.example", fmt.Sprint(m.edits))
			journeys.Shows(m.T, app, cluster, "migration.example", fmt.Sprint(m.edits))
		}
	}
	m.works()
	now, said := m.uids(), m.report()
	for _, name := range slices.Sorted(maps.Keys(m.before)) {
		if now[name] != m.before[name] {
			m.Errorf("%s: %s was %s and is %s", what, name, m.before[name], now[name])
		}
	}
	row := []string{what}
	for _, cluster := range m.clusters {
		was, is := m.first[app+"/"+cluster], said[app+"/"+cluster]
		answers := 0
		for _, n := range is.Answers {
			answers += n
		}
		row = append(row, string(now["profile "+cluster]), string(now["token "+cluster]),
			fmt.Sprint(answers), fmt.Sprint(is.Failed))
		if is.Failed != was.Failed || !is.Engaged {
			m.Errorf("%s: of %s the program says %+v, and said %+v before", what, cluster, is, was)
		}
	}
	m.table = append(m.table, row)
}

// print prints the table of each step's results.
func (m *migration) print() {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprint(w, "step")
	for _, cluster := range m.clusters {
		_, _ = fmt.Fprintf(w, "\tprofile of %[1]s\ttoken of %[1]s\trequests\tfailed", cluster)
	}
	_, _ = fmt.Fprintln(w)
	for _, row := range m.table {
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush()
	_, _ = fmt.Fprint(os.Stderr, text.String())
}

// works makes the program reconcile a ConfigMap on every cluster.
func (m *migration) works() {
	m.Helper()
	m.edits++
	for _, cluster := range m.clusters {
		wants(m.T, cluster, "migration", fmt.Sprint(m.edits))
	}
}

// uids are those of everything that must survive.
func (m *migration) uids() map[string]types.UID {
	m.Helper()
	uids := map[string]types.UID{}
	for _, cluster := range m.clusters {
		profile, err := journeys.ProfileOf(m.Context(), journeys.Hub(m.T), app, cluster)
		apitest.Must(m.T, err)
		secret, err := secretOf(m.Context(), m.T, app, cluster+"-"+appAccount)
		apitest.Must(m.T, err)
		uids["profile "+cluster], uids["token "+cluster] = profile.UID, secret.UID
	}
	return uids
}

// upstream is an error unless profile and token of a cluster are upstream's.
func (m *migration) upstream(cluster string) error {
	return errors.Join(m.profile(cluster, false), m.secret(cluster, true))
}

// profile is an error unless the profile is what this addon, or upstream, writes.
func (m *migration) profile(cluster string, ours bool) error {
	profile, err := journeys.ProfileOf(m.Context(), journeys.Hub(m.T), app, cluster)
	if err != nil {
		return err
	}
	if !slices.Contains(providersOf(profile), throughProxy) {
		return fmt.Errorf("the profile of %s has no way in: %v", cluster, providersOf(profile))
	}
	if ours {
		if profile.Labels[journeys.MarkLabel] != journeys.MarkValue {
			return fmt.Errorf("the profile of %s is labeled %v", cluster, profile.Labels)
		}
		return dated(true)(profile)
	}
	undated := func(p inventoryv1alpha1.Property) bool { return !p.LastObservedTime.IsZero() }
	if slices.ContainsFunc(profile.Status.Properties, undated) {
		return fmt.Errorf("the profile of %s has properties %v", cluster, profile.Status.Properties)
	}
	return nil
}

// secret is an error unless the copy is upstream's, or this addon's.
func (m *migration) secret(cluster string, byUpstream bool) error {
	return owned(m.T, byUpstream, app, cluster, appAccount, m.before["token "+cluster])(m.Context())
}

// types follows a section of docs/migration.md.
func (m *migration) types(section string) {
	m.Helper()
	steps, err := guide.Read(journeys.Fleet, "migration.md", section)
	apitest.Must(m.T, err)
	if len(steps) == 0 {
		m.Fatalf("docs/migration.md has no commands in %q", section)
	}
	for _, step := range steps {
		apitest.Within(m.T, journeys.Eventually, step.Command, func(ctx context.Context) error {
			_, err := guide.Type(ctx, journeys.Fleet, step.Command, "")
			return err
		})
	}
}
