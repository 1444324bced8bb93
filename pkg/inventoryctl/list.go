package inventoryctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/columns"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/gather"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/show"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/where"
)

type listOptions struct {
	*options
	allNamespaces bool
	selector      string
	properties    []string
	where         []string
	countBy       string
	watch         bool
	output        string
	noHeaders     bool

	conditions where.Conditions
}

func newListCommand(o *options) *cobra.Command {
	l := &listOptions{options: o}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"get"},
		Short:   "Lists ClusterProfiles with version, health, access and properties",
		Long: "Lists ClusterProfiles with version, health, access and properties.\n\n" +
			"--where selects by properties: NAME=PATTERN and NAME!=PATTERN compare the value, where * stands for any text\n" +
			"and ? for one character; NAME and !NAME ask whether the property exists. All conditions must hold.",
		Example: "  kubectl inventory list -n team-a -L region.example.com\n" +
			"  kubectl inventory list -A -o wide\n" +
			"  kubectl inventory list -A --where 'region.example.com=eu-*' --where '!deprecated.example.com'\n" +
			"  kubectl inventory list -A --count-by region.example.com",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return l.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.BoolVarP(&l.allNamespaces, "all-namespaces", "A", false, "list the profiles of all namespaces")
	flags.StringVarP(&l.selector, "selector", "l", "", "label selector of the profiles")
	flags.StringSliceVarP(&l.properties, "property-columns", "L", nil,
		"names of properties to show, each in a column; may be repeated")
	flags.StringArrayVar(&l.where, "where", nil,
		"condition on a property, such as region.example.com=eu-*; may be repeated")
	flags.StringVar(&l.countBy, "count-by", "", "count the clusters by the values of a property, instead of listing them")
	flags.BoolVarP(&l.watch, "watch", "w", false, "list the profiles, and then print each that changes")
	flags.StringVarP(&l.output, "output", "o", "",
		"output format: wide, json, yaml, name, jsonpath=..., go-template=... or custom-columns=...")
	flags.BoolVar(&l.noHeaders, "no-headers", false, "do not print column headers")
	return cmd
}

func (l *listOptions) run(ctx context.Context) error {
	structured, err := l.printer()
	if err != nil {
		return err
	}
	if err := l.validate(structured != nil); err != nil {
		return err
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
	if l.watch {
		return l.watchProfiles(ctx, hub, namespace)
	}
	var count int
	if structured != nil {
		count, err = l.printObjects(ctx, hub, namespace, structured)
	} else {
		count, err = l.printTable(ctx, hub, namespace)
	}
	switch {
	case err != nil || count > 0:
		return err
	case len(l.conditions) > 0 || l.selector != "":
		return printLine(l.ErrOut, "No ClusterProfiles meet these conditions.")
	default:
		return l.explainNothing(ctx, hub, namespace)
	}
}

// validate checks the flags.
func (l *listOptions) validate(isStructured bool) error {
	if _, err := labels.Parse(l.selector); err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	var err error
	if l.conditions, err = where.Parse(l.where); err != nil {
		return fmt.Errorf("--where: %w", err)
	}
	switch {
	case l.countBy != "" && (l.output != "" || l.watch):
		return errors.New("--count-by: choose neither --output nor --watch with it")
	case l.watch && isStructured:
		return errors.New("--watch: it prints tables only")
	}
	return nil
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
	}
	if definition, found := strings.CutPrefix(l.output, "custom-columns="); found {
		parsed, err := columns.Parse(definition)
		if err != nil {
			return nil, fmt.Errorf("--output: %w", err)
		}
		return show.CustomColumns(parsed, !l.noHeaders), nil
	}
	printer, err := genericclioptions.NewKubeTemplatePrintFlags().ToPrinter(l.output)
	switch {
	case genericclioptions.IsNoCompatiblePrinterError(err):
		return nil, fmt.Errorf(
			"--output: want wide, json, yaml, name, jsonpath=..., go-template=... or custom-columns=..., not %q", l.output)
	case err != nil:
		return nil, fmt.Errorf("--output: %w", err)
	default:
		return printer, nil
	}
}

func (l *listOptions) printTable(ctx context.Context, hub *gather.Hub, namespace string) (int, error) {
	table, counter := l.table(), decide.Counter{Property: l.countBy}
	var rows [][]string
	hidden, err := hub.EachProfile(ctx, namespace, l.selector, func(p *inventoryv1alpha1.ClusterProfile) {
		switch {
		case !l.conditions.Match(p.Status.Properties):
		case l.countBy != "":
			counter.Add(p)
		default:
			rows = append(rows, table.Row(p, false))
		}
	})
	counts := counter.Counts()
	switch err := listError(hub, namespace, hidden, err); {
	case err != nil:
		return 0, err
	case len(counts) > 0:
		return len(counts), show.Counts(l.Out, l.countBy, counts, !l.noHeaders)
	case len(rows) == 0:
		return 0, nil
	}
	return len(rows), show.List(l.Out, rows, table)
}

func (l *listOptions) table() show.ListOptions {
	return show.ListOptions{
		Namespaces: l.allNamespaces, Properties: decide.PropertyNames(l.properties), Wide: l.output == "wide",
		Headers: !l.noHeaders, Now: l.now(),
	}
}

// watchProfiles prints the profiles, and then each that changes, until it is interrupted.
func (l *listOptions) watchProfiles(ctx context.Context, hub *gather.Hub, namespace string) error {
	if _, err := l.printTable(ctx, hub, namespace); err != nil {
		return err
	}
	table := l.table()
	table.Headers = false
	take := func(p *inventoryv1alpha1.ClusterProfile, gone bool) error {
		if !l.conditions.Match(p.Status.Properties) {
			return nil
		}
		table.Now = l.now()
		return show.List(l.Out, [][]string{table.Row(p, gone)}, table)
	}
	hidden, err := hub.WatchProfiles(ctx, namespace, l.selector, take)
	switch {
	case hidden:
		return errors.New("you may not watch ClusterProfiles here: ask for the right to watch " +
			"clusterprofiles.multicluster.x-k8s.io, or leave out --watch")
	case ctx.Err() != nil:
		return nil //nolint:nilerr // users end a watch by ending the program
	default:
		return advise(err, hub.Host)
	}
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
		if len(l.conditions) > 0 && !l.conditions.Match(decide.PropertiesOf(p)) {
			return
		}
		p.SetManagedFields(nil)
		list.Items = append(list.Items, *p)
	})
	if err := listError(hub, namespace, hidden, err); err != nil {
		return 0, err
	}
	return len(list.Items), printer.PrintObj(list, l.Out)
}

// listError returns the error for profiles that could not be listed.
func listError(hub *gather.Hub, namespace string, hidden bool, err error) error {
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
func (o *options) explainNothing(ctx context.Context, hub *gather.Hub, namespace string) error {
	if namespace == "" {
		return printLine(o.ErrOut, "No ClusterProfiles found.")
	}
	exists, err := hub.Namespace(ctx, namespace)
	switch {
	case err != nil:
		return advise(err, hub.Host)
	case !exists:
		return noNamespace(namespace)
	default:
		return printLine(o.ErrOut, "No ClusterProfiles found in namespace "+namespace+
			": kubectl inventory explain CLUSTER -n "+namespace+" says why a cluster is missing.")
	}
}

func printLine(out io.Writer, line string) error {
	_, err := fmt.Fprintln(out, line)
	return err
}
