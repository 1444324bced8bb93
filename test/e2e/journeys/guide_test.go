package journeys

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// step is something the reader of a guide does: applies an object, or types a
// command.
type step struct {
	yaml    string
	command string
}

// steps are those of one section of a guide, in order: its YAML blocks, and the
// indented lines that begin with kubectl.
func steps(t *testing.T, guide, section string) []step {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(world.Root, "docs", guide))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(content), "\n## "+section+"\n")
	if !found {
		t.Fatalf("%s has no section %q", guide, section)
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	var all []step
	for i, part := range strings.Split(text, "```") {
		if yaml, isYAML := strings.CutPrefix(part, "yaml\n"); i%2 == 1 && isYAML {
			all = append(all, step{yaml: yaml})
		} else if i%2 == 0 {
			for line := range strings.Lines(part) {
				if command, isCode := strings.CutPrefix(line, "    "); isCode && strings.HasPrefix(command, "kubectl ") {
					all = append(all, step{command: command})
				}
			}
		}
	}
	return all
}

// types runs a command line on the hub as its admin.
func typed(ctx context.Context, input, line string) (string, error) {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, "bash", "-euc", line)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(world.Kubectl())+":"+os.Getenv("PATH"), "KUBECONFIG="+world.Kubeconfig("hub"))
	cmd.Stdin, cmd.Stderr = strings.NewReader(input), &said
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", line, err, said.String())
	}
	return string(output), nil
}

// Whoever does what docs/consumers.md says, step by step and to the letter, ends
// with a program that works on the cluster.
func TestConsumersGuideWorksAsWritten(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	if err := buildConsumers(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { moveTo(context.Background(), t, cluster1, defaultSet) })
	applied, commands := 0, 0
	for _, step := range steps(t, "consumers.md", "Step by step") {
		if step.yaml != "" {
			applied++
			if _, err := typed(t.Context(), step.yaml, "kubectl apply -f -"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if _, err := typed(context.Background(), step.yaml, "kubectl delete --ignore-not-found --timeout=2m -f -"); err != nil {
					t.Error(err)
				}
			})
			continue
		}
		commands++
		within(t, eventually, step.command, func(ctx context.Context) error {
			said, err := typed(ctx, "", step.command)
			if err == nil && strings.TrimSpace(said) == "" {
				err = errors.New("it says nothing")
			}
			return err
		})
	}
	if applied < 7 || commands < 4 {
		t.Fatalf("the guide has %d YAML blocks and %d commands", applied, commands)
	}
	token(t, cluster1, "my-consumer")
	wants(t, cluster1, "guide", "done")
}
