package inventoryctl

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/gather"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/show"
)

// options are the flags of every subcommand: kubectl's own.
type options struct {
	genericiooptions.IOStreams
	config    *genericclioptions.ConfigFlags
	chunkSize int64
	format    string // of commands that print a text, JSON or YAML
	now       func() time.Time
}

func (o *options) addFlags(cmd *cobra.Command) {
	o.config.AddFlags(cmd.PersistentFlags())
	cmd.PersistentFlags().Int64Var(&o.chunkSize, "chunk-size", o.chunkSize,
		"how many objects are read at a time; 0 reads each list at once")
}

// hub returns the hub that the flags and the kubeconfig select.
func (o *options) hub() (*gather.Hub, error) {
	if o.chunkSize < 0 {
		return nil, fmt.Errorf("--chunk-size: %d is negative", o.chunkSize)
	}
	cfg, err := o.config.ToRESTConfig()
	if err != nil {
		return nil, advise(err, "")
	}
	hub, err := gather.New(cfg, o.chunkSize)
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be used: %w", err)
	}
	if printers.IsTerminal(o.ErrOut) {
		// It overwrites one line with the kind that is being read, and ends on an empty line, which the
		// next output overwrites.
		hub.Progress = func(kind string, count int) {
			fmt.Fprintf(o.ErrOut, "\rreading %s: %d\x1b[K\r", kind, count)
		}
	}
	return hub, nil
}

// namespace returns the namespace that the flags or the kubeconfig select. scope is the same if it was a
// flag, and otherwise empty.
func (o *options) namespace() (name, scope string, err error) {
	name, given, err := o.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", "", advise(err, "")
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return "", "", fmt.Errorf("--namespace: %q is not a namespace name", name)
	}
	if given {
		scope = name
	}
	return name, scope, nil
}

// addOutput adds the flag -o to a command that prints a text, JSON or YAML. It is checked before the
// command runs.
func (o *options) addOutput(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", show.FormatText, "output format: json or yaml (default: text)")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if !slices.Contains([]string{show.FormatText, show.FormatJSON, show.FormatYAML}, o.format) {
			return fmt.Errorf("--output: %q is neither json nor yaml", o.format)
		}
		return nil
	}
}

// printFindings prints a value, which contains findings, in the chosen format. It returns errMissing
// if one of the findings requires action.
func (o *options) printFindings(value any, findings []decide.Finding, printText func(show.Palette)) error {
	if o.format == show.FormatText {
		printText(show.Palette(printers.AllowsColorOutput(o.Out)))
	} else if err := show.Structured(o.Out, o.format, value); err != nil {
		return err
	}
	if decide.FirstWrong(findings) != nil {
		return errMissing
	}
	return nil
}

// printChecks is printFindings for a list of findings, whose name is a key in JSON and YAML.
func (o *options) printChecks(name string, checks []decide.Finding) error {
	return o.printFindings(map[string]any{name: checks}, checks, func(p show.Palette) { show.Checks(o.Out, checks, p) })
}

// noNamespace is the error for a namespace that does not exist.
func noNamespace(name string) error {
	return errors.New("there is no namespace " + name + " on this hub: kubectl get namespaces lists those that exist")
}
