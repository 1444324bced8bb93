package inventoryctl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/gather"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/kubeconfig"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/where"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// maxNotes is how many clusters without a context are named, and shownChanges how many contexts.
const (
	maxNotes     = 5
	shownChanges = 20
)

type kubeconfigOptions struct {
	*options
	accounts      []string
	where         []string
	fromPlacement string
	output        string
	provider      string
	prefix        string
	prune         bool

	conditions where.Conditions
}

func newKubeconfigCommand(o *options) *cobra.Command {
	k := &kubeconfigOptions{options: o, provider: contract.AccessProviderName, prune: true}
	cmd := &cobra.Command{
		Use:   "kubeconfig [CLUSTER...] --account ACCOUNT",
		Short: "Writes contexts for the clusters of a namespace into a kubeconfig, without any secret",
		Long: "Writes a context for each cluster of a namespace into a kubeconfig: CLUSTER/NAMESPACE/ACCOUNT. The server\n" +
			"and its CA are those of the ClusterProfile. A client that uses a context runs this program, which reads the\n" +
			"token from the hub each time; the file has no secret. It needs the right to get the Secret CLUSTER-ACCOUNT\n" +
			"there.\n\n" +
			"Contexts of clusters that were withdrawn are removed, as are those that the same selection no longer chooses.\n" +
			"Contexts of others are never changed. Exit code 1 says that a named cluster has no context.",
		Example: "  kubectl inventory kubeconfig -n team-a --account reader\n" +
			"  kubectl inventory kubeconfig cluster1 -n team-a --account reader --output fleet.kubeconfig\n" +
			"  kubectl inventory kubeconfig --where 'region.example.com=eu-*' --account reader\n" +
			"  kubectl inventory kubeconfig --from-placement team-a/canaries --account reader --output -",
		ValidArgsFunction: o.completeCluster,
		RunE:              func(cmd *cobra.Command, names []string) error { return k.run(cmd, names) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&k.accounts, "account", nil,
		"name of the ManagedServiceAccount whose token to use (required); may be repeated")
	flags.StringArrayVar(&k.where, "where", nil,
		"condition on a property, as in \"list\", such as region.example.com=eu-*; may be repeated")
	flags.StringVar(&k.fromPlacement, "from-placement", "",
		"NAMESPACE/NAME of a Placement: only the clusters that it chooses")
	flags.StringVar(&k.output, "output", "",
		"file to write, or - for stdout (default: the kubeconfig that kubectl would change)")
	flags.StringVar(&k.provider, "access-provider", k.provider, "name of the profiles' access provider to use")
	flags.StringVar(&k.prefix, "prefix", "",
		"prefix of the names of new entries, for use where entries of others have these names")
	flags.BoolVar(&k.prune, "prune", k.prune, "remove contexts of clusters that were withdrawn or are no longer chosen")
	return cmd
}

func (k *kubeconfigOptions) run(cmd *cobra.Command, names []string) error {
	ctx := cmd.Context()
	namespace, err := k.validate(names)
	if err != nil {
		return err
	}
	arguments, env, err := hubReference(k.config.ToRawKubeConfigLoader(), cmd.Root().PersistentFlags())
	if err != nil {
		return err
	}
	hub, err := k.hub()
	if err != nil {
		return err
	}
	chosen, err := k.choose(ctx, hub, namespace, names)
	if err != nil {
		return err
	}
	changes, err := k.write(ctx, kubeconfig.Wanted{
		Hub: hub.Host, Namespace: namespace, Accounts: k.accounts, Prefix: k.prefix, Prune: k.prune,
		Exec:        execOf(namespace, arguments, env),
		Clusters:    chosen.clusters,
		Selection:   k.selection(names),
		IsWithdrawn: chosen.isWithdrawn,
		IsKept:      func(cluster string) bool { return chosen.problems[cluster] != "" },
	})
	if err != nil {
		return err
	}
	if len(chosen.clusters)+len(chosen.problems)+len(changes)+len(names) == 0 {
		if len(k.where) > 0 || k.fromPlacement != "" {
			return printLine(k.ErrOut, "No ClusterProfiles in namespace "+namespace+" are chosen.")
		}
		return k.explainNothing(ctx, hub, namespace)
	}
	return k.note(namespace, names, chosen)
}

// validate checks the command line, and returns the namespace.
func (k *kubeconfigOptions) validate(names []string) (string, error) {
	var err error
	if k.conditions, err = where.Parse(k.where); err != nil {
		return "", fmt.Errorf("--where: %w", err)
	}
	if len(k.accounts) == 0 {
		return "", checkAccount("")
	}
	for _, account := range k.accounts {
		if err := checkAccount(account); err != nil {
			return "", err
		}
	}
	for _, name := range names {
		if err := checkCluster(name); err != nil {
			return "", err
		}
	}
	if len(names) > 0 && (len(k.where) > 0 || k.fromPlacement != "") {
		return "", errors.New("name clusters, or choose them with --where and --from-placement, but not both")
	}
	namespace, scope, err := k.namespace()
	if err != nil || k.fromPlacement == "" {
		return namespace, err
	}
	of, placement, found := strings.Cut(k.fromPlacement, "/")
	switch {
	case !found || len(validation.IsDNS1123Label(of)) > 0 || len(validation.IsDNS1123Subdomain(placement)) > 0:
		return "", fmt.Errorf("--from-placement: %s is not NAMESPACE/NAME", kube.Quote(k.fromPlacement))
	case scope != "" && scope != of:
		return "", fmt.Errorf("--from-placement: its namespace %s is not that of -n, %s", of, scope)
	}
	return of, nil
}

// chosenProfiles are what a selection chooses.
type chosenProfiles struct {
	clusters    map[string]*clientcmdapi.Cluster // by name
	problems    map[string]string                // why there is no way to a cluster, by name
	isWithdrawn func(cluster string) bool        // whether it is known that there is no profile
}

// choose reads the profiles.
func (k *kubeconfigOptions) choose(
	ctx context.Context, hub *gather.Hub, namespace string, names []string,
) (chosenProfiles, error) {
	chosen := chosenProfiles{clusters: map[string]*clientcmdapi.Cluster{}, problems: map[string]string{}}
	if len(names) > 0 {
		err := k.chooseNamed(ctx, hub, namespace, names, &chosen)
		return chosen, err
	}
	decided, err := k.decided(ctx, hub)
	if err != nil {
		return chosen, err
	}
	existing := map[string]bool{}
	chosen.isWithdrawn = func(cluster string) bool { return !existing[cluster] }
	hidden, err := hub.EachProfile(ctx, namespace, "", func(p *inventoryv1alpha1.ClusterProfile) {
		existing[p.Name] = true
		if k.conditions.Match(p.Status.Properties) && (decided == nil || decided[p.Name]) {
			k.add(&chosen, p)
		}
	})
	return chosen, listError(hub, namespace, hidden, err)
}

func (k *kubeconfigOptions) add(chosen *chosenProfiles, p *inventoryv1alpha1.ClusterProfile) {
	if cluster, err := kubeconfig.ClusterOf(p, k.provider); err != nil {
		chosen.problems[p.Name] = err.Error()
	} else {
		chosen.clusters[p.Name] = cluster
	}
}

// chooseNamed reads single profiles, which takes fewer rights than a list.
func (k *kubeconfigOptions) chooseNamed(
	ctx context.Context, hub *gather.Hub, namespace string, names []string, chosen *chosenProfiles,
) error {
	absent := map[string]bool{}
	chosen.isWithdrawn = func(cluster string) bool { return absent[cluster] }
	for _, name := range names {
		profile, hidden, err := hub.Profile(ctx, namespace, name)
		switch {
		case err != nil:
			return advise(err, hub.Host)
		case hidden:
			return mayNotRead(namespace)
		case profile == nil:
			absent[name], chosen.problems[name] = true, "it has no ClusterProfile there"
		default:
			k.add(chosen, profile)
		}
	}
	return nil
}

// decided returns the clusters that the Placement chooses, nil if none was given. One that is
// undecided chooses nothing yet, which must not look like a withdrawal.
func (k *kubeconfigOptions) decided(ctx context.Context, hub *gather.Hub) (map[string]bool, error) {
	if k.fromPlacement == "" {
		return nil, nil
	}
	namespace, name, _ := strings.Cut(k.fromPlacement, "/")
	clusters, found, isDecided, hidden, err := hub.Decided(ctx, namespace, name)
	switch {
	case err != nil:
		return nil, advise(err, hub.Host)
	case hidden:
		return nil, fmt.Errorf("--from-placement: you may not read the Placements and PlacementDecisions of namespace %s: "+
			"ask for the rights that %s lists", namespace, docsOfRights())
	case !found:
		return nil, fmt.Errorf("--from-placement: there is no Placement %s", k.fromPlacement)
	case !isDecided:
		return nil, fmt.Errorf("--from-placement: Placement %s is not decided yet, so nothing was changed", k.fromPlacement)
	}
	return clusters, nil
}

// selection returns what the user selects by, as a text.
func (k *kubeconfigOptions) selection(names []string) string {
	if len(names) > 0 {
		return kubeconfig.Named
	}
	conditions := kube.SortedNames(k.where)
	text := strings.Join(append([]string{"all"}, conditions...), " ")
	if k.fromPlacement != "" {
		text += " in " + k.fromPlacement
	}
	return text
}

// write writes the file, and reports what has changed.
func (k *kubeconfigOptions) write(ctx context.Context, wanted kubeconfig.Wanted) ([]kubeconfig.Change, error) {
	if k.output == "-" {
		config := clientcmdapi.NewConfig()
		changes, err := kubeconfig.Merge(config, wanted)
		if err != nil || len(changes) == 0 {
			return nil, err
		}
		content, err := clientcmd.Write(*config)
		if err != nil {
			return nil, err
		}
		_, err = k.Out.Write(content)
		return changes, err
	}
	access := k.config.ToRawKubeConfigLoader().ConfigAccess()
	path, others := k.output, []string(nil)
	if path == "" {
		path = access.GetDefaultFilename()
		others = slices.DeleteFunc(slices.Clone(access.GetLoadingPrecedence()), func(s string) bool { return s == path })
	}
	var changes []kubeconfig.Change
	dangling := ""
	err := kubeconfig.Update(ctx, path, func(config *clientcmdapi.Config) (err error) {
		if changes, err = kubeconfig.Merge(config, wanted); err == nil {
			err = kubeconfig.Check(config, others, changes)
		}
		if slices.Contains(changes, kubeconfig.Change{Context: config.CurrentContext, Action: kubeconfig.Pruned}) {
			dangling = config.CurrentContext
		}
		return err
	})
	if _, ok := errors.AsType[*kubeconfig.TakenError](err); ok {
		return nil, fmt.Errorf(
			"%w: choose other names with --prefix, or another file with --output; nothing was written", err)
	} else if err != nil {
		return nil, err
	}
	return changes, k.report(path, len(wanted.Clusters)*len(wanted.Accounts), changes, dangling)
}

// report prints what has changed.
func (k *kubeconfigOptions) report(path string, count int, changes []kubeconfig.Change, dangling string) error {
	counts := map[string]int{}
	for i, change := range changes {
		counts[change.Action]++
		if i < shownChanges {
			fmt.Fprintf(k.Out, "Context %q %s.\n", kube.Shorten(change.Context, maxErrorBytes), change.Action)
		}
	}
	if more := len(changes) - shownChanges; more > 0 {
		fmt.Fprintf(k.Out, "And %d more.\n", more)
	}
	if dangling != "" {
		fmt.Fprintf(k.ErrOut, "The current context %q was pruned: kubectl config use-context chooses another.\n", dangling)
	}
	if count == 0 && len(changes) == 0 {
		return nil
	}
	var parts []string
	for _, action := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[action], action))
	}
	if len(parts) == 0 {
		parts = []string{"unchanged"}
	}
	_, err := fmt.Fprintf(k.Out, "Contexts of this selection in %s: %d (%s).\n", path, count, strings.Join(parts, ", "))
	return err
}

// note says for which clusters there is no new context, and why.
func (k *kubeconfigOptions) note(namespace string, names []string, chosen chosenProfiles) error {
	for i, cluster := range slices.Sorted(maps.Keys(chosen.problems)) {
		if i == maxNotes && len(names) == 0 {
			fmt.Fprintf(k.ErrOut, "And %d more.\n", len(chosen.problems)-maxNotes)
			break
		}
		fmt.Fprintf(k.ErrOut, "No context was written for cluster %s: %s. kubectl inventory explain %s -n %s says more.\n",
			cluster, chosen.problems[cluster], cluster, namespace)
	}
	if len(names) > 0 && len(chosen.problems) > 0 {
		return errMissing
	}
	return nil
}
