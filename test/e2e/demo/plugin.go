package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

// buildPlugin builds kubectl-inventory beside the fleet's kubectl.
func (d *Demo) buildPlugin(ctx context.Context) error {
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", d.bin()+"/", "./cmd/kubectl-inventory")
	build.Dir = d.fleet.Root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building kubectl-inventory: %w\n%s", err, out)
	}
	return nil
}

func (d *Demo) bin() string { return filepath.Dir(d.fleet.Kubectl()) }

// inventory runs kubectl inventory on the hub, and shows the command and its output.
func (d *Demo) inventory(ctx context.Context, code int, args ...string) error {
	return d.kubectl(ctx, fleetEnv(d.fleet.Kubeconfig(fleet.HubName)), code, append([]string{"inventory"}, args...)...)
}

func fleetEnv(kubeconfig string) []string { return []string{"KUBECONFIG=" + kubeconfig} }

// kubectl runs kubectl with more of an environment, and shows the command and its output.
func (d *Demo) kubectl(ctx context.Context, env []string, code int, args ...string) error {
	cmd := exec.CommandContext(ctx, d.fleet.Kubectl(), args...)
	path := d.bin() + string(os.PathListSeparator) + os.Getenv("PATH") //nolint:forbidigo // as a person's shell has it
	cmd.Env = append(append(os.Environ(), "PATH="+path), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	d.say("$ kubectl %s", strings.Join(quoted(args), " "))
	for line := range strings.Lines(out.String()) {
		d.say("  %s", strings.TrimRight(line, "\n"))
	}
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got, err = exit.ExitCode(), nil
	}
	if err == nil && got != code {
		err = fmt.Errorf("kubectl %s: exit code %d, want %d", strings.Join(args, " "), got, code)
	}
	return err
}

// quoted are arguments as a shell takes them.
func quoted(args []string) []string {
	texts := make([]string, 0, len(args))
	for _, arg := range args {
		if strings.ContainsAny(arg, " *!") {
			arg = "'" + arg + "'"
		}
		texts = append(texts, arg)
	}
	return texts
}

// visit has a person, outside the hub, write contexts and use one, through a proxy into the hub.
func (d *Demo) visit(ctx context.Context) error {
	proxy := httptest.NewServer(d.fleet.ServiceProxy(fleet.HubName))
	defer proxy.Close()
	env := append(fleetEnv(d.fleet.Kubeconfig(fleet.HubName)), "HTTPS_PROXY="+proxy.URL)
	contexts := filepath.Join(filepath.Dir(d.bin()), "person.kubeconfig")
	if err := os.RemoveAll(contexts); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"inventory", "kubeconfig", "cluster1", "-n", namespace, "--account", consumer, "--output", contexts},
		{"inventory", "check-access", "cluster1", "-n", namespace, "--account", consumer, "--can", "list namespaces"},
		{"--kubeconfig", contexts, "--context", "cluster1/" + namespace + "/" + consumer, "get", "namespaces"},
	} {
		if err := d.kubectl(ctx, env, 0, args...); err != nil {
			return err
		}
	}
	return nil
}
