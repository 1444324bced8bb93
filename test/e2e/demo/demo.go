package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/node"
)

const (
	addonName = "cluster-inventory"
	setName   = "sandbox-fleet"
	// namespace is the consumer's: it binds the set and finds the profiles.
	namespace = "cluster-inventory"

	// releaseNamespace is the addon's own, as in the documents.
	releaseNamespace = "open-cluster-management-cluster-inventory"
	setLabel         = "cluster.open-cluster-management.io/clusterset"

	patience = 2 * time.Minute
	// aMoment is more than the resolution of the times a profile shows.
	aMoment = 2 * time.Second
)

// Demo is one run of the demo.
type Demo struct {
	name   string
	fleet  *fleet.Fleet
	hub    client.WithWatch
	spokes map[string]client.WithWatch
	out    io.Writer
	act    int
	logins int
	// alone is why pods cannot have networks of their own here, which connecting needs.
	alone error
}

// step is a part of the demo.
type step struct {
	title string
	show  func(*Demo, context.Context) error
	// connects is whether a consumer must be able to connect to the spokes.
	connects bool
}

func steps() []step {
	return []step{
		{title: "A hub and two spokes: real control planes, real Open Cluster Management", show: (*Demo).start},
		{
			title: "The clusters to inventory: ManagedClusterSet " + setName + ", bound into namespace " + namespace,
			show:  (*Demo).target,
		},
		{title: "The addon, installed by a Placement over that set", show: (*Demo).install},
		{title: "Spoke owners describe their clusters with ClusterProperties", show: (*Demo).publish},
		{title: "An edit on a spoke is on the hub at once", show: (*Demo).edit},
		{title: "One bad property affects nothing else, and its owner learns why", show: (*Demo).mistake},
		{title: "A cluster that leaves the set leaves the inventory, and comes back with it", show: (*Demo).leave},
		{
			title: "A new revision of the agent goes to one cluster, and to the next once that has succeeded",
			show:  (*Demo).upgrade,
		},
		{
			title: "Access: the consumer gets an account on cluster1, whose token is copied to it",
			show:  (*Demo).invite, connects: true,
		},
		{
			title: "The consumer lists the namespaces of cluster1, with nothing but the profile and its own provider file",
			show:  (*Demo).connect, connects: true,
		},
		{
			title: "A person gets a context for cluster1, without a secret in it, and sees each hop on the way there",
			show:  (*Demo).visit, connects: true,
		},
		{
			title: "The right to the token is withdrawn: the copy is gone, and the next login fails",
			show:  (*Demo).withdraw, connects: true,
		},
		{title: "Look around", show: (*Demo).farewell},
	}
}

// Titles are the headings of everything that is shown, as they are printed.
func Titles() []string {
	var titles []string
	for i, s := range steps() {
		titles = append(titles, heading(i+1, s.title))
	}
	return titles
}

func heading(number int, title string) string { return fmt.Sprintf("%d. %s", number, title) }

// Run shows everything, on the fleet of that name, and leaves it running.
func Run(ctx context.Context, name string, out io.Writer) error {
	d := &Demo{name: name, out: out, spokes: map[string]client.WithWatch{}, alone: node.CheckOwnNetworks()}
	for _, s := range steps() {
		if s.connects && d.alone != nil {
			continue
		}
		d.act++
		fmt.Fprintf(d.out, "\n%s\n\n", heading(d.act, s.title))
		if err := s.show(d, ctx); err != nil {
			return err
		}
	}
	return nil
}

// start starts the fleet.
func (d *Demo) start(ctx context.Context) (err error) {
	if d.fleet, err = fleet.Up(ctx, fleet.Options{Name: d.name, Access: d.alone == nil}, d.out); err != nil {
		return err
	}
	if d.hub, err = d.fleet.Client(fleet.HubName); err != nil {
		return err
	}
	if err := d.buildPlugin(ctx); err != nil {
		return err
	}
	for _, spoke := range d.fleet.Spokes() {
		if d.spokes[spoke], err = d.fleet.Client(spoke); err != nil {
			return err
		}
	}
	return nil
}

// target creates the set and the consumer's namespace bound to it.
func (d *Demo) target(ctx context.Context) error {
	for _, object := range []client.Object{
		&clusterv1beta2.ManagedClusterSet{
			ObjectMeta: metav1.ObjectMeta{Name: setName},
			Spec: clusterv1beta2.ManagedClusterSetSpec{
				ClusterSelector: clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel},
			},
		},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&clusterv1beta2.ManagedClusterSetBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: setName},
			Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: setName},
		},
	} {
		if err := d.hub.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	for _, cluster := range d.fleet.Spokes() {
		if err := d.move(ctx, cluster, setName); err != nil {
			return err
		}
		d.say("%s is labeled %s=%s", cluster, setLabel, setName)
	}
	return nil
}

func (d *Demo) move(ctx context.Context, cluster, set string) error {
	object := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, setLabel, set)
	return d.hub.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
}

// install installs the chart with the Placements strategy.
func (d *Demo) install(ctx context.Context) error {
	if err := d.deploy(ctx); err != nil {
		return err
	}
	for _, cluster := range d.fleet.Spokes() {
		start := time.Now()
		if err := d.until(ctx, "the addon to be available on "+cluster, func(ctx context.Context) error {
			return d.addonReady(ctx, cluster)
		}); err != nil {
			return err
		}
		d.say("%s has the addon, its agent runs (%s)", cluster, time.Since(start).Round(time.Second))
	}
	return nil
}

// deploy installs or upgrades the chart, with the Placements strategy and more values.
func (d *Demo) deploy(ctx context.Context, more ...string) error {
	args := []string{"--namespace", releaseNamespace}
	for _, value := range append([]string{
		"installStrategy.type=Placements", "installStrategy.placement.clusterSet=" + setName,
	}, more...) {
		args = append(args, "--set", value)
	}
	return d.fleet.Deploy(ctx, d.out, args...)
}

// publish sets the first properties and shows the profiles.
func (d *Demo) publish(ctx context.Context) error {
	first := map[string]map[string]string{
		"cluster1": {"region.example.com": "eu-north", "gpu.example.com": "none"},
		"cluster2": {"region.example.com": "us-west", "gpu.example.com": "h100"},
	}
	for _, cluster := range d.fleet.Spokes() {
		for _, name := range []string{"gpu.example.com", "region.example.com"} {
			if err := d.setAndSee(ctx, cluster, name, first[cluster][name]); err != nil {
				return err
			}
		}
	}
	return d.showProfiles(ctx)
}

// edit changes a property a few times and shows how long the hub took to show it.
func (d *Demo) edit(ctx context.Context) error {
	if err := d.pause(ctx); err != nil {
		return err
	}
	for _, region := range []string{"eu-west", "eu-south", "eu-central"} {
		if err := d.setAndSee(ctx, "cluster1", "region.example.com", region); err != nil {
			return err
		}
	}
	d.say("only the edited property has a new time:")
	return d.inventory(ctx, 0, "describe", "cluster1", "-n", namespace)
}

// mistake publishes a value that no API on the way would accept.
func (d *Demo) mistake(ctx context.Context) error {
	if err := d.set(ctx, "cluster1", "notes.example.com", strings.Repeat("too long ", 200)); err != nil {
		return err
	}
	if err := d.until(ctx, "the mistake to be named", func(ctx context.Context) error {
		return d.conditionIs(ctx, "cluster1", "PropertiesPublished", metav1.ConditionFalse)
	}); err != nil {
		return err
	}
	if err := d.inventory(ctx, 1, "explain", "cluster1", "notes.example.com"); err != nil {
		return err
	}
	d.say("the property's owner, who has no right on the hub, finds on cluster1:")
	if err := d.showEvent(ctx, "cluster1", "notes.example.com"); err != nil {
		return err
	}
	if err := d.spokes["cluster1"].Delete(ctx, property("notes.example.com")); err != nil {
		return err
	}
	if err := d.until(ctx, "the mistake to be fixed", func(ctx context.Context) error {
		return d.conditionIs(ctx, "cluster1", "PropertiesPublished", metav1.ConditionTrue)
	}); err != nil {
		return err
	}
	d.say("the property is deleted, and the others are as they were:")
	return d.inventory(ctx, 0, "explain", "cluster1", "region.example.com")
}

// leave takes a cluster out of the set and puts it back.
func (d *Demo) leave(ctx context.Context) error {
	if err := d.move(ctx, "cluster2", "default"); err != nil {
		return err
	}
	if err := d.until(ctx, "the profile of cluster2 to go", func(ctx context.Context) error {
		return d.profileGone(ctx, "cluster2")
	}); err != nil {
		return err
	}
	d.say("cluster2 moved to another set:")
	if err := d.showProfiles(ctx); err != nil {
		return err
	}
	if err := d.move(ctx, "cluster2", setName); err != nil {
		return err
	}
	if err := d.until(ctx, "cluster2 to be back", func(ctx context.Context) error {
		_, err := d.value(ctx, "cluster2", "region.example.com")
		return err
	}); err != nil {
		return err
	}
	d.say("cluster2 is back:")
	return d.showProfiles(ctx)
}

// upgrade creates another revision of the agent, which goes to one cluster after the other.
func (d *Demo) upgrade(ctx context.Context) error {
	const level, before = 2, 0
	for _, cluster := range d.fleet.Spokes() {
		if err := d.until(ctx, "the agent of "+cluster, func(ctx context.Context) error {
			return errors.Join(d.addonReady(ctx, cluster), d.agentRuns(ctx, cluster, before))
		}); err != nil {
			return err
		}
	}
	if err := d.inventory(ctx, 0, "rollout"); err != nil {
		return err
	}
	if err := d.deploy(ctx, fmt.Sprintf("agent.logLevel=%d", level), "installStrategy.rollout.type=Progressive",
		"installStrategy.rollout.maxConcurrency=1", "installStrategy.rollout.minSuccessTime=10s"); err != nil {
		return err
	}
	clusters := d.fleet.Spokes()
	for i, cluster := range clusters {
		if err := d.until(ctx, "the new agent of "+cluster, func(ctx context.Context) error {
			return d.agentRuns(ctx, cluster, level)
		}); err != nil {
			return err
		}
		for _, later := range clusters[i+1:] {
			if err := d.agentRuns(ctx, later, level); err == nil {
				return fmt.Errorf("%s was upgraded with %s", later, cluster)
			}
		}
		d.say("the agent of %s runs with its new argument, -v=%d:", cluster, level)
		if err := d.inventory(ctx, 0, "rollout"); err != nil {
			return err
		}
	}
	return nil
}

// setAndSee sets a property and prints when the hub shows it.
func (d *Demo) setAndSee(ctx context.Context, cluster, name, value string) error {
	start := time.Now()
	if err := d.set(ctx, cluster, name, value); err != nil {
		return err
	}
	if err := d.until(ctx, name+" of "+cluster+" to be on the hub", func(ctx context.Context) error {
		switch got, err := d.value(ctx, cluster, name); {
		case err != nil:
			return err
		case got != value:
			return fmt.Errorf("it is %q there", got)
		}
		return nil
	}); err != nil {
		return err
	}
	d.say("%s: ClusterProperty %s = %s, on the hub after %d ms", cluster, name, value, time.Since(start).Milliseconds())
	return nil
}

func (d *Demo) set(ctx context.Context, cluster, name, value string) error {
	object := property(name)
	object.Object["spec"] = map[string]any{"value": value}
	return d.until(ctx, name+" to be set on "+cluster, func(ctx context.Context) error {
		err := d.spokes[cluster].Create(ctx, object.DeepCopy())
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		patch := fmt.Appendf(nil, `{"spec":{"value":%q}}`, value)
		return d.spokes[cluster].Patch(ctx, object.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	})
}

func property(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("about.k8s.io/v1beta1")
	object.SetKind("ClusterProperty")
	object.SetName(name)
	return object
}

// until makes attempts until one succeeds or patience ends. It polls often, because the
// demo shows how long things took.
func (d *Demo) until(ctx context.Context, what string, attempt func(context.Context) error) error {
	return await.Success(ctx, what, patience, 5*time.Millisecond, attempt)
}

// pause waits until a new time differs from an old one.
func (d *Demo) pause(ctx context.Context) error {
	select {
	case <-time.After(aMoment):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *Demo) say(format string, args ...any) {
	fmt.Fprintf(d.out, "   "+format+"\n", args...)
}

func (d *Demo) farewell(ctx context.Context) error {
	code := 0
	if d.alone == nil {
		code = 1 // the fleet's cluster-proxy lets clients choose their groups
	}
	if err := d.inventory(ctx, code, "doctor"); err != nil {
		return err
	}
	if d.alone != nil {
		d.say("A consumer that connects to cluster1 was not shown: %v.", d.alone)
	}
	d.say("export KUBECONFIG=%s", d.fleet.Kubeconfig(fleet.HubName))
	d.say("export PATH=%s:$PATH", d.bin())
	d.say("kubectl inventory list -n %s -o yaml", namespace)
	d.say("kubectl inventory matrix    kubectl inventory explain cluster1 -n %s    kubectl inventory --help", namespace)
	d.say("%s --kubeconfig %s edit clusterproperty region.example.com", d.fleet.Kubectl(), d.fleet.Kubeconfig("cluster1"))
	d.say("%s --kubeconfig %s get events -n default", d.fleet.Kubectl(), d.fleet.Kubeconfig("cluster1"))
	d.say("")
	d.say("logs: %s", d.fleet.LogDir())
	d.say("deploy your changes: make deploy HELM_ARGS='-n %s'", releaseNamespace)
	d.say("uninstall the chart: make undeploy HELM_ARGS='-n %s'    remove the fleet: make fleet-down", releaseNamespace)
	return nil
}
