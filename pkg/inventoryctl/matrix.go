package inventoryctl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/gather"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/settings"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/show"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// maxColumns is the largest number of clusters with a column each, unless --fold says
// otherwise.
const maxColumns = 8

type matrixOptions struct {
	*options
	fold   string
	tokens bool
}

func newMatrixCommand(o *options) *cobra.Command {
	m := &matrixOptions{options: o, fold: "auto"}
	cmd := &cobra.Command{
		Use:   "matrix [CLUSTER...]",
		Short: "Shows which namespaces see which clusters, and why others do not",
		Long: "Shows which namespaces see which clusters:\n\n" +
			"  published      there is a ClusterProfile\n" +
			"  not selected   no set that is bound in the namespace contains the cluster\n" +
			"  withheld       one contains it, but there must be no ClusterProfile\n" +
			"  failed         there should be a ClusterProfile, but it cannot be written\n" +
			"  unknown        the answer is undecided, not done yet, or not visible to you\n\n" +
			"It shows the namespaces that publish a set or have a ClusterProfile, or only the one given with -n.\n\n" +
			"With --tokens it shows who can log in to which clusters: the namespaces to which the tokens of\n" +
			"ManagedServiceAccounts are copied, or should be. It reads no Secret.",
		Example: "  kubectl inventory matrix\n" +
			"  kubectl inventory matrix cluster1 --tokens",
		ValidArgsFunction: o.completeCluster,
		RunE:              func(cmd *cobra.Command, clusters []string) error { return m.run(cmd.Context(), clusters) },
	}
	o.addOutput(cmd)
	cmd.Flags().BoolVar(&m.tokens, "tokens", false,
		"show which namespaces have tokens of which clusters, by account")
	cmd.Flags().StringVar(&m.fold, "fold", m.fold,
		fmt.Sprintf(
			"show counts instead of a column per cluster: auto (for more than %d clusters), always or never", maxColumns))
	return cmd
}

func (m *matrixOptions) run(ctx context.Context, wanted []string) error {
	if !slices.Contains([]string{"auto", "always", "never"}, m.fold) {
		return fmt.Errorf("--fold: %q is not one of auto, always, never", m.fold)
	}
	own, given, err := m.namespace()
	if err != nil {
		return err
	}
	hub, err := m.hub()
	if err != nil {
		return err
	}
	snapshot, scope, err := m.snapshot(ctx, hub, given, own)
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
	if m.tokens {
		return m.runTokens(ctx, hub, snapshot, scope, clusters, len(wanted) > 0, isFolded)
	}
	withCells := !isFolded || m.format != show.FormatText
	result := decide.MatrixOf(snapshot, namespaces, clusters, snapshot.HiddenProfiles, withCells)
	result.NotVisible = decide.HiddenKinds(snapshot.Hidden, snapshot.HiddenProfiles)
	if err := m.print(result, isFolded); err != nil || given != "" || scope == "" {
		return err
	}
	return printLine(m.ErrOut, "Other namespaces than "+scope+" are not visible to you.")
}

// runTokens shows who has tokens of the clusters. If these were named, single lists are enough.
func (m *matrixOptions) runTokens(
	ctx context.Context, hub *gather.Hub, snapshot *gather.Snapshot, scope string, clusters []string,
	isNamed, isFolded bool,
) error {
	var accounts []*authv1beta1.ManagedServiceAccount
	mode, of := snapshot.Settings.CredentialsMode, []string{""}
	switch {
	case mode != settings.CopyingEnabled:
		of = nil
	case isNamed:
		of = clusters
	}
	for _, cluster := range of {
		hidden, err := hub.EachAccount(ctx, cluster, func(a *authv1beta1.ManagedServiceAccount) {
			accounts = append(accounts, a)
		})
		switch {
		case err != nil:
			return advise(err, hub.Host)
		case hidden:
			return errors.New("you may not list ManagedServiceAccounts, so who has tokens is not visible to you: ask the " +
				"hub's administrator for the rights that " + docsOfRights() + " lists")
		}
	}
	source := decide.TokenSource{
		Source: snapshot, Settings: snapshot.Settings, HiddenProfiles: snapshot.HiddenProfiles,
	}
	result := decide.TokensOf(source, accounts, snapshot.Namespaces(), clusters, scope, m.now())
	result.NotVisible = decide.HiddenKinds(snapshot.Hidden, snapshot.HiddenProfiles)
	switch {
	case m.format != show.FormatText:
		return show.Structured(m.Out, m.format, result)
	case mode != settings.CopyingEnabled:
		return printLine(m.ErrOut, "The manager copies no tokens (credentials.mode="+kube.Shorten(mode, maxErrorBytes)+").")
	case len(result.Rows) == 0 && result.Unnamed == 0:
		return printLine(m.ErrOut, "No token of these clusters is or should be copied to a namespace.")
	}
	if err := show.Tokens(m.Out, result, isFolded); err != nil {
		return err
	}
	show.NotVisible(m.Out, result.NotVisible)
	return nil
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
	return kube.SortedNames(wanted), nil
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
	case m.format != show.FormatText:
		return show.Structured(m.Out, m.format, result)
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
