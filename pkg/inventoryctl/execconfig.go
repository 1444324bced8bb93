package inventoryctl

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// pluginName is the name of this program on the path.
const pluginName = "kubectl-inventory"

// programName returns how clients start this program: by its name if that finds it on the path, so
// that an upgrade does not change it, else by its path.
func programName() string {
	self, err := os.Executable()
	if err != nil {
		return pluginName
	}
	if found, err := exec.LookPath(pluginName); err == nil && isSame(found, self) {
		return pluginName
	}
	return self
}

func isSame(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// execOf returns the exec plugin of each account: this program, which finds the same hub again.
func execOf(
	namespace string, hub []string, env []clientcmdapi.ExecEnvVar,
) func(account string) *clientcmdapi.ExecConfig {
	command := programName()
	return func(account string) *clientcmdapi.ExecConfig {
		arguments := []string{"credential", "--managed-serviceaccount=" + account, "--namespace=" + namespace}
		return &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1",
			Command:    command,
			Args:       append(arguments, hub...),
			Env:        env,
			InstallHint: "kubectl-inventory reads the token of this context from the hub: install it as a kubectl plugin, " +
				"on the path",
			ProvideClusterInfo: true,                                        // it has the cluster's name
			InteractiveMode:    clientcmdapi.IfAvailableExecInteractiveMode, // for the login to the hub
		}
	}
}

// passed are kubectl's flags that say which hub is used, and as whom. Those in paths are files.
var (
	passed = []string{
		"cluster", "user", "server", "tls-server-name", "insecure-skip-tls-verify", "disable-compression",
		"as", "as-group", "as-uid", "as-user-extra",
	}
	paths = []string{"certificate-authority", "client-certificate", "client-key"}
)

// hubReference returns the arguments and the environment with which this program finds the hub
// again: the kubeconfig, the context, and other flags that were given. A token is refused,
// because it would be stored in the file.
func hubReference(
	loader clientcmd.ClientConfig, flags *pflag.FlagSet,
) (arguments []string, env []clientcmdapi.ExecEnvVar, err error) {
	if flags.Changed("token") {
		return nil, nil, errors.New("--token: it would be stored in the kubeconfig: put it into a context of your own, " +
			"and choose that with --context")
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, nil, advise(err, "")
	}
	current := raw.CurrentContext
	if flags.Changed("context") {
		current = flags.Lookup("context").Value.String()
	}
	if current != "" {
		if arguments, env, err = kubeconfigReference(loader.ConfigAccess()); err != nil {
			return nil, nil, err
		}
		arguments = append(arguments, "--context="+current)
	}
	for _, name := range slices.Concat(passed, paths) {
		flag := flags.Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		values := []string{flag.Value.String()}
		if many, ok := flag.Value.(pflag.SliceValue); ok {
			values = many.GetSlice()
		}
		for _, value := range values {
			if slices.Contains(paths, name) {
				if value, err = filepath.Abs(value); err != nil {
					return nil, nil, fmt.Errorf("--%s: %w", name, err)
				}
			}
			arguments = append(arguments, "--"+name+"="+value)
		}
	}
	return arguments, env, nil
}

// kubeconfigReference names the kubeconfig: in an argument, or, if several files are merged, in the
// environment variable of kubectl.
func kubeconfigReference(access clientcmd.ConfigAccess) ([]string, []clientcmdapi.ExecEnvVar, error) {
	files := []string{access.GetExplicitFile()}
	if !access.IsExplicitFile() {
		files = slices.DeleteFunc(slices.Clone(access.GetLoadingPrecedence()), func(name string) bool {
			_, err := os.Stat(name)
			return err != nil
		})
	}
	for i, name := range files {
		absolute, err := filepath.Abs(name)
		if err != nil {
			return nil, nil, err
		}
		files[i] = absolute
	}
	if len(files) == 1 {
		return []string{"--kubeconfig=" + files[0]}, nil, nil
	}
	list := strings.Join(files, string(filepath.ListSeparator))
	return nil, []clientcmdapi.ExecEnvVar{{Name: clientcmd.RecommendedConfigPathEnvVar, Value: list}}, nil
}
