package inventoryctl

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/gather"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/show"
)

type diffOptions struct {
	*options
	labelAllow []string
}

func newDiffCommand(o *options) *cobra.Command {
	d := &diffOptions{options: o}
	cmd := &cobra.Command{
		Use:   "diff",
		Short: "Shows which ClusterProfiles the manager would create, adopt, change or remove",
		Long: "Shows which ClusterProfiles the manager would create, adopt, change or remove if it wrote now, for\n" +
			"instance once OCM's own feature gate is off, and which it would leave alone. It checks all namespaces, or\n" +
			"the one given with -n. It does not compare access providers. Exit code 1 says that something would change.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context()) },
	}
	o.addOutput(cmd)
	cmd.Flags().StringSliceVar(&d.labelAllow, "label-allow", nil,
		"patterns of labels that the manager copies (chart value profiles.labelAllow; default: those of its Deployment)")
	return cmd
}

func (d *diffOptions) run(ctx context.Context) error {
	_, namespace, err := d.namespace()
	if err != nil {
		return err
	}
	hub, err := d.hub()
	if err != nil {
		return err
	}
	of, err := hub.Settings(ctx)
	if err != nil {
		return advise(err, hub.Host)
	}
	if given := d.labelAllow; len(given) > 0 {
		of.LabelAllow = given
	}
	differ := &decide.Differ{LabelAllow: of.LabelAllow, Limits: of.Limits, Now: metav1.NewTime(d.now())}
	snapshot, err := hub.Snapshot(ctx, gather.SnapshotOptions{
		Namespace: namespace, TrimCluster: differ.TrimCluster,
		EachProfile: func(s *gather.Snapshot, p *inventoryv1alpha1.ClusterProfile) {
			pair := client.ObjectKeyFromObject(p)
			facts := s.Facts(pair)
			facts.Profile = p
			differ.Add(pair, facts)
		},
	})
	switch {
	case err != nil:
		return advise(err, hub.Host)
	case namespace != "" && !snapshot.HasNamespace(namespace):
		return noNamespace(namespace)
	case snapshot.HiddenProfiles:
		return errors.New("you may not list ClusterProfiles, so nothing can be compared: ask the hub's administrator for " +
			"that right, or give a namespace with -n")
	}
	addAbsent(differ, snapshot)
	hidden := decide.HiddenKinds(snapshot.Hidden, false)
	if !of.Known {
		hidden = append(hidden, "the manager's settings (its defaults are assumed)")
	}
	return d.print(differ.Difference(hidden))
}

// addAbsent decides about the pairs that have no profile.
func addAbsent(differ *decide.Differ, snapshot *gather.Snapshot) {
	clusters := snapshot.Clusters()
	for _, namespace := range snapshot.Namespaces() {
		for _, cluster := range clusters {
			pair := types.NamespacedName{Namespace: namespace, Name: cluster}
			if facts := snapshot.Facts(pair); facts.Profile == nil {
				differ.Add(pair, facts)
			}
		}
	}
}

func (d *diffOptions) print(difference decide.Difference) error {
	var err error
	switch {
	case d.format != show.FormatText:
		err = show.Structured(d.Out, d.format, difference)
	case len(difference.Changes) == 0:
		err = printLine(d.ErrOut, "Nothing would change.")
	default:
		err = show.Diff(d.Out, difference)
	}
	if err != nil {
		return err
	}
	if d.format == show.FormatText {
		show.NotVisible(d.Out, difference.NotVisible)
	}
	if difference.IsChange() {
		return errMissing
	}
	return nil
}
