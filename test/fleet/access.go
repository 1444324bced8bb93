package fleet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/objects"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/progress"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/programs"
)

// How clusters are reached from the hub.
const (
	// AccessNamespace is the namespace of cluster-proxy and of
	// managed-serviceaccount on the hub.
	AccessNamespace = "open-cluster-management-addon"
	// UserServer is the host and port of cluster-proxy's user server, as pods of
	// the hub know it.
	UserServer = "cluster-proxy-addon-user." + AccessNamespace + ":9092"
)

const (
	clusterProxyImage   = "quay.io/open-cluster-management/cluster-proxy"
	serviceAccountImage = "quay.io/open-cluster-management/managed-serviceaccount"
	// proxyEntrypoint is where the agents of the spokes find the proxy server.
	proxyEntrypoint = "hub/proxy-entrypoint"
)

// access is what a fleet with access to its spokes also needs.
type access struct {
	helm   string
	images map[string]string // to the directory with what is at /
	charts []chart
}

// chart is one that upstream publishes.
type chart struct {
	name, dir string
}

// findAccess builds what is not in the cache.
func (f *Fleet) findAccess(ctx context.Context, report *progress.Report) (access, error) {
	helm, err := programs.Helm.Path(ctx, f.Root, report)
	if err != nil {
		return access{}, err
	}
	found := access{helm: helm, images: map[string]string{}}
	for _, part := range []struct {
		program programs.Program
		image   string
	}{{programs.ClusterProxy, clusterProxyImage}, {programs.ManagedServiceAccount, serviceAccountImage}} {
		if found.images[part.image], err = part.program.Path(ctx, f.Root, report); err != nil {
			return access{}, err
		}
		sources, err := part.program.ModuleDir(ctx, f.Root)
		if err != nil {
			return access{}, err
		}
		name := part.program.Name
		found.charts = append(found.charts, chart{name: name, dir: filepath.Join(sources, "charts", name)})
	}
	return found, nil
}

// UpstreamPlugin returns the path of upstream's credential plugin cp-creds, as
// managed-serviceaccount publishes it. It is built if needed.
func UpstreamPlugin(ctx context.Context, out io.Writer) (string, error) {
	root, err := repositoryRoot()
	if err != nil {
		return "", err
	}
	image, err := programs.ManagedServiceAccount.Path(ctx, root, progress.New(out))
	return filepath.Join(image, "cp-creds"), err
}

// accessNodeFlags give the pods of upstream, which listen on all addresses at
// fixed ports, networks of their own, connected with what they need to reach.
func (f *Fleet) accessNodeFlags(cluster string) []string {
	if !f.state.Access {
		return nil
	}
	flags := []string{"--service-cidr=" + serviceCIDR(f.state.Network, slices.Index(f.Clusters(), cluster))}
	for _, image := range []string{clusterProxyImage, serviceAccountImage} {
		flags = append(flags, "--image="+image+"="+f.access.images[image], "--own-network="+image)
	}
	if cluster == HubName {
		flags = append(flags, fmt.Sprintf("--expose=%s=%s/proxy-entrypoint:8091", f.entrypoint(), AccessNamespace))
		if f.state.LocalCluster { // its proxy agent reaches the entrypoint like that of any spoke
			flags = append(flags, "--outside="+f.entrypoint())
		}
		return flags
	}
	hub := strings.TrimPrefix(f.server(HubName), "https://")
	return append(flags, "--outside="+hub, "--outside="+f.entrypoint())
}

func (f *Fleet) entrypoint() string {
	return fmt.Sprintf("127.0.0.1:%d", f.state.Ports[proxyEntrypoint])
}

// accessValues are what the fleet sets in upstream's charts.
func (f *Fleet) accessValues(chart string, gates Gates) []string {
	if chart != programs.ClusterProxy.Name {
		return []string{fmt.Sprintf("featureGates.clusterProfileCredSyncer=%t", gates.Tokens)}
	}
	return []string{
		fmt.Sprintf("enableServiceProxy=%t", !gates.NoServiceProxy),
		"userServer.enabled=true",
		fmt.Sprintf("featureGates.clusterProfileAccessProvider=%t", gates.AccessProviders),
		"proxyServer.entrypointAddress=127.0.0.1",
		fmt.Sprintf("proxyServer.port=%d", f.state.Ports[proxyEntrypoint]),
	}
}

// installAccess applies upstream's charts to the hub.
func (f *Fleet) installAccess(ctx context.Context, report *progress.Report) error {
	if !f.state.Access {
		return nil
	}
	c, err := f.Client(HubName)
	if err != nil {
		return err
	}
	all := objects.Namespaces(AccessNamespace)
	for _, chart := range f.access.charts {
		rendered, err := f.renderChart(ctx, chart, Gates{})
		if err != nil {
			return err
		}
		all = append(all, rendered...)
	}
	if err := applyInOrder(ctx, c, all); err != nil {
		return err
	}
	report.Line("hub: cluster-proxy and managed-serviceaccount installed in %s", AccessNamespace)
	return nil
}

// applyInOrder applies kinds and namespaces first, then objects of these kinds.
func applyInOrder(ctx context.Context, c client.Client, all []*unstructured.Unstructured) error {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int { return order(a) - order(b) })
	kinds := slices.IndexFunc(all, func(o *unstructured.Unstructured) bool { return order(o) > 0 })
	if kinds < 0 {
		kinds = len(all)
	}
	if err := objects.Apply(ctx, c, all[:kinds]...); err != nil {
		return err
	}
	return objects.Apply(ctx, c, all[kinds:]...)
}

func order(o *unstructured.Unstructured) int {
	switch o.GetKind() {
	case "CustomResourceDefinition", "Namespace":
		return 0
	default:
		return 1
	}
}

// template renders a chart in a directory.
func (f *Fleet) template(
	ctx context.Context, release, dir, namespace string, more ...string,
) ([]*unstructured.Unstructured, error) {
	args := append([]string{"template", release, dir, "--namespace", namespace, "--include-crds"}, more...)
	var rendered, stderr bytes.Buffer
	cmd := f.helmCommand(ctx, f.access.helm, args...)
	cmd.Stdout, cmd.Stderr = &rendered, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("render the chart of %s: %w: %s", release, err, strings.TrimSpace(stderr.String()))
	}
	all, err := objects.Decode(&rendered)
	if err != nil {
		return nil, fmt.Errorf("chart of %s: %w", release, err)
	}
	return all, nil
}

func (f *Fleet) renderChart(ctx context.Context, chart chart, gates Gates) ([]*unstructured.Unstructured, error) {
	var values []string
	for _, value := range f.accessValues(chart.name, gates) {
		values = append(values, "--set", value)
	}
	all, err := f.template(ctx, chart.name, chart.dir, AccessNamespace, values...)
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		if o.GetKind() == "ManagedClusterSetBinding" {
			// The binding is for upstream's Placement; no consumer reads profiles there.
			o.SetLabels(map[string]string{"inventory.open-cluster-management.io/publish": "false"})
		}
		if o.GetKind() == "ManagedProxyConfiguration" {
			// The chart of this release sets fields that its own CRD does not have.
			unstructured.RemoveNestedField(o.Object, "spec", "proxyAgent", "additionalValues")
			unstructured.RemoveNestedField(o.Object, "spec", "proxyServer", "entrypoint", "hostname", "port")
		}
	}
	return all, nil
}
