package inventoryctl

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/printers"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/gather"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/show"
)

type listOptions struct {
	*options
	allNamespaces bool
	selector      string
	properties    []string
	output        string
	noHeaders     bool
}

func newListCommand(o *options) *cobra.Command {
	l := &listOptions{options: o}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Lists ClusterProfiles with version, health, access and properties",
		Example: "  kubectl inventory list -n team-a -L region.example.com\n" +
			"  kubectl inventory list -A -o wide",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return l.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.BoolVarP(&l.allNamespaces, "all-namespaces", "A", false, "list the profiles of all namespaces")
	flags.StringVarP(&l.selector, "selector", "l", "", "label selector of the profiles")
	flags.StringSliceVarP(&l.properties, "property-columns", "L", nil,
		"names of properties to show, each in a column; may be repeated")
	flags.StringVarP(&l.output, "output", "o", "", "output format: wide, json, yaml or name")
	flags.BoolVar(&l.noHeaders, "no-headers", false, "do not print column headers")
	return cmd
}

func (l *listOptions) run(ctx context.Context) error {
	structured, err := l.printer()
	if err != nil {
		return err
	}
	if _, err := labels.Parse(l.selector); err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	namespace := ""
	if !l.allNamespaces {
		if namespace, _, err = l.namespace(); err != nil {
			return err
		}
	}
	hub, err := l.hub()
	if err != nil {
		return err
	}
	var count int
	if structured != nil {
		count, err = l.printObjects(ctx, hub, namespace, structured)
	} else {
		count, err = l.printTable(ctx, hub, namespace)
	}
	if err != nil || count > 0 {
		return err
	}
	return l.explainNothing(ctx, hub, namespace)
}

// printer returns the printer of whole objects, nil for a table.
func (l *listOptions) printer() (printers.ResourcePrinter, error) {
	switch l.output {
	case "", "wide":
		return nil, nil
	case "json":
		return &printers.JSONPrinter{}, nil
	case "yaml":
		return &printers.YAMLPrinter{}, nil
	case "name":
		return &printers.NamePrinter{}, nil
	default:
		return nil, fmt.Errorf("--output: %q is not one of wide, json, yaml, name", l.output)
	}
}

func (l *listOptions) printTable(ctx context.Context, hub *gather.Hub, namespace string) (int, error) {
	properties := decide.PropertyNames(l.properties)
	var profiles []decide.Profile
	hidden, err := hub.EachProfile(ctx, namespace, l.selector, func(p *inventoryv1alpha1.ClusterProfile) {
		profiles = append(profiles, decide.ProfileOf(p, properties))
	})
	if err := l.failure(hub, namespace, hidden, err); err != nil || len(profiles) == 0 {
		return 0, err
	}
	return len(profiles), show.List(l.Out, profiles, show.ListOptions{
		Namespaces: l.allNamespaces, Properties: properties, Wide: l.output == "wide", Headers: !l.noHeaders, Now: l.now(),
	})
}

// printObjects prints the objects as they are on the hub, in a list as kubectl prints it.
func (l *listOptions) printObjects(
	ctx context.Context, hub *gather.Hub, namespace string, printer printers.ResourcePrinter,
) (int, error) {
	list := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""},
	}}
	list.Items = []unstructured.Unstructured{}
	hidden, err := hub.EachWholeProfile(ctx, namespace, l.selector, func(p *unstructured.Unstructured) {
		p.SetManagedFields(nil)
		list.Items = append(list.Items, *p)
	})
	if err := l.failure(hub, namespace, hidden, err); err != nil {
		return 0, err
	}
	return len(list.Items), printer.PrintObj(list, l.Out)
}

func (l *listOptions) failure(hub *gather.Hub, namespace string, hidden bool, err error) error {
	switch {
	case err != nil:
		return advise(err, hub.Host)
	case hidden && namespace == "":
		return errors.New("you may not list the ClusterProfiles of all namespaces: give one with -n, or ask for the right " +
			"to list clusterprofiles.multicluster.x-k8s.io")
	case hidden:
		return fmt.Errorf("you may not list the ClusterProfiles of namespace %s: ask for the right to list "+
			"clusterprofiles.multicluster.x-k8s.io there, or give another namespace with -n", namespace)
	default:
		return nil
	}
}

// explainNothing reports that there are no profiles. A namespace that does not exist is a
// mistake.
func (l *listOptions) explainNothing(ctx context.Context, hub *gather.Hub, namespace string) error {
	if namespace == "" {
		return printLine(l.ErrOut, "No ClusterProfiles found.")
	}
	exists, err := hub.Namespace(ctx, namespace)
	switch {
	case err != nil:
		return advise(err, hub.Host)
	case !exists:
		return noNamespace(namespace)
	default:
		return printLine(l.ErrOut, "No ClusterProfiles found in namespace "+namespace+
			": kubectl inventory explain CLUSTER -n "+namespace+" says why a cluster is missing.")
	}
}

func printLine(out io.Writer, line string) error {
	_, err := fmt.Fprintln(out, line)
	return err
}
