package inventoryctl

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/gather"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/show"
)

// maxColumns is the largest number of clusters with a column each, unless --fold says
// otherwise.
const maxColumns = 8

type matrixOptions struct {
	*options
	output string
	fold   string
}

func newMatrixCommand(o *options) *cobra.Command {
	m := &matrixOptions{options: o, fold: "auto"}
	cmd := &cobra.Command{
		Use:   "matrix [CLUSTER...]",
		Short: "Shows which namespaces see which clusters, and why the others do not",
		Long: "Shows which namespaces see which clusters:\n\n" +
			"  published      there is a ClusterProfile\n" +
			"  not selected   no set that is bound in the namespace has the cluster\n" +
			"  withheld       one has it, and there must be no ClusterProfile\n" +
			"  failed         there should be a ClusterProfile, and it cannot be written\n" +
			"  unknown        that is undecided, not done yet, or not visible to you\n\n" +
			"It shows the namespaces that publish a set or have a ClusterProfile, or only the one given with -n.",
		ValidArgsFunction: o.completeCluster,
		RunE:              func(cmd *cobra.Command, clusters []string) error { return m.run(cmd.Context(), clusters) },
	}
	addOutput(cmd, &m.output)
	cmd.Flags().StringVar(&m.fold, "fold", m.fold,
		fmt.Sprintf(
			"show counts instead of a column per cluster: auto (for more than %d clusters), always or never", maxColumns))
	return cmd
}

func (m *matrixOptions) run(ctx context.Context, wanted []string) error {
	if err := checkOutput(m.output); err != nil {
		return err
	}
	if !slices.Contains([]string{"auto", "always", "never"}, m.fold) {
		return fmt.Errorf("--fold: %q is not one of auto, always, never", m.fold)
	}
	namespace, given, err := m.namespace()
	if err != nil {
		return err
	}
	hub, err := m.hub()
	if err != nil {
		return err
	}
	scope := ""
	if given {
		scope = namespace
	}
	snapshot, scope, err := m.snapshot(ctx, hub, scope, namespace)
	if err != nil {
		return advise(err, hub.Host)
	}
	namespaces := snapshot.Namespaces()
	if scope != "" {
		if !snapshot.HasNamespace(scope) {
			return noNamespace(scope)
		}
		namespaces = []string{scope}
	}
	clusters, err := selected(snapshot.Clusters(), wanted, snapshot.Hidden.Clusters)
	if err != nil {
		return err
	}
	isFolded := m.fold == "always" || m.fold == "auto" && len(clusters) > maxColumns
	result := decide.MatrixOf(snapshot, namespaces, clusters, snapshot.HiddenProfiles, !isFolded || m.output != "")
	result.NotVisible = decide.HiddenKinds(snapshot.Hidden, snapshot.HiddenProfiles)
	if err := m.print(result, isFolded); err != nil || given || scope == "" {
		return err
	}
	return printLine(m.ErrOut, "Other namespaces than "+scope+" are not visible to you.")
}

// snapshot reads the hub. A reader who may not read all namespaces gets the one of the
// kubeconfig.
func (m *matrixOptions) snapshot(
	ctx context.Context, hub *gather.Hub, scope, own string,
) (*gather.Snapshot, string, error) {
	snapshot, err := hub.Snapshot(ctx, gather.SnapshotOptions{Namespace: scope})
	if err != nil || scope != "" || !snapshot.HiddenProfiles || !snapshot.Hidden.Bindings {
		return snapshot, scope, err
	}
	snapshot, err = hub.Snapshot(ctx, gather.SnapshotOptions{Namespace: own})
	return snapshot, own, err
}

// selected returns the requested clusters, or all if none was requested. An unknown one is
// a mistake, unless clusters are hidden.
func selected(known, wanted []string, hidden bool) ([]string, error) {
	if len(wanted) == 0 {
		return append([]string{}, known...), nil
	}
	for _, name := range wanted {
		if _, ok := slices.BinarySearch(known, name); !ok && !hidden {
			return nil, noCluster(name)
		}
	}
	wanted = slices.Clone(wanted)
	slices.Sort(wanted)
	return slices.Compact(wanted), nil
}

// noCluster is the error for a cluster that does not exist.
func noCluster(name string) error {
	return fmt.Errorf(
		"there is no ManagedCluster %q on this hub: kubectl get managedclusters lists those that exist", name)
}

func (m *matrixOptions) print(result decide.Matrix, isFolded bool) error {
	switch {
	case len(result.NotVisible) > 0 && len(result.Clusters) == 0:
		return fmt.Errorf("no cluster is visible to you, because you may not read %s: ask the hub's administrator for the "+
			"rights that %s lists, or give another namespace with -n",
			strings.Join(result.NotVisible, ", "), docsOfRights())
	case m.output != "":
		return show.Structured(m.Out, m.output, result)
	case len(result.Clusters) == 0:
		return printLine(m.ErrOut, "There are no ManagedClusters on this hub.")
	case len(result.Rows) == 0:
		return printLine(m.ErrOut, "No namespace has a ManagedClusterSetBinding or a ClusterProfile: "+
			"clusteradm clusterset bind SET --namespace NAMESPACE binds a set.")
	}
	printMatrix := show.Matrix
	if isFolded {
		printMatrix = show.MatrixCounts
	}
	if err := printMatrix(m.Out, result); err != nil {
		return err
	}
	show.NotVisible(m.Out, result.NotVisible)
	return nil
}
