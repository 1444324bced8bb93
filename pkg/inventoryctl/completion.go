package inventoryctl

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/gather"
)

// completer is the program that kubectl starts to complete a command line of this plugin.
const completer = "kubectl_complete-inventory"

// completionTimeout bounds how long a shell waits for names.
const completionTimeout = 3 * time.Second

// Arguments returns the arguments of the program with this command line. If it was started as kubectl
// starts the completer, they ask for completions.
func Arguments(commandLine []string) []string {
	if len(commandLine) == 0 {
		return nil
	}
	name := strings.TrimSuffix(filepath.Base(commandLine[0]), ".exe")
	if name == completer {
		return append([]string{cobra.ShellCompRequestCmd}, commandLine[1:]...)
	}
	return commandLine[1:]
}

// completeCluster completes the name of a cluster, as the first argument.
func (o *options) completeCluster(
	cmd *cobra.Command, args []string, begun string,
) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return o.complete(cmd.Context(), begun, (*gather.Hub).ClusterNames)
}

// completeProperty completes the name of a cluster and of one of its properties.
func (o *options) completeProperty(
	cmd *cobra.Command, args []string, begun string,
) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return o.completeCluster(cmd, args, begun)
	}
	names := func(hub *gather.Hub, ctx context.Context, namespace string) ([]string, error) {
		return hub.PropertyNames(ctx, namespace, args[0])
	}
	return o.complete(cmd.Context(), begun, names)
}

// complete returns the names that begin as the user has begun. Spokes choose names of properties,
// so those that a shell could misread are left out.
func (o *options) complete(
	ctx context.Context, begun string, read func(*gather.Hub, context.Context, string) ([]string, error),
) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	var names []string
	hub, err := o.hub()
	if err == nil {
		namespace, _, _ := o.namespace()
		names, err = read(hub, ctx, namespace)
	}
	if err != nil {
		return nil, cobra.ShellCompDirectiveError | cobra.ShellCompDirectiveNoFileComp
	}
	var matching []string
	for _, name := range names {
		if strings.HasPrefix(name, begun) && len(validation.IsQualifiedName(name)) == 0 {
			matching = append(matching, name)
		}
	}
	return matching, cobra.ShellCompDirectiveNoFileComp
}
