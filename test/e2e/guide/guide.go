// Package guide follows the guides under docs to the letter.
package guide

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

// Step is one step of a guide: objects to apply, or a command to type.
type Step struct {
	YAML    string
	Command string
}

// Steps returns the steps of one section of a guide, in order: its YAML blocks, and the
// indented lines that start with kubectl, with their continuation lines.
func Steps(content, section string) ([]Step, error) {
	_, rest, found := strings.Cut("\n"+content, "\n## "+section+"\n")
	if !found {
		return nil, fmt.Errorf("the guide has no section %q", section)
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	var steps []Step
	for i, part := range strings.Split(text, "```") {
		if yaml, isYAML := strings.CutPrefix(part, "yaml\n"); i%2 == 1 && isYAML {
			steps = append(steps, Step{YAML: yaml})
		} else if i%2 == 0 {
			for line := range strings.Lines(strings.ReplaceAll(part, "\\\n", "")) {
				if command, isCode := strings.CutPrefix(line, "    "); isCode && strings.HasPrefix(command, "kubectl ") {
					steps = append(steps, Step{Command: strings.TrimSpace(command)})
				}
			}
		}
	}
	return steps, nil
}

// Read returns the steps of a section of a file under docs.
func Read(f *fleet.Fleet, file, section string) ([]Step, error) {
	content, err := os.ReadFile(filepath.Join(f.Root, "docs", file))
	if err != nil {
		return nil, err
	}
	return Steps(string(content), section)
}

// Shell is where a reader types commands.
type Shell struct {
	// Bin is searched for programs first.
	Bin string
	// Kubeconfig is the reader's.
	Kubeconfig string
	// Dir is where the reader is; empty is where the test is.
	Dir string
}

// Type runs a command line as the hub's admin and returns what it says.
func Type(ctx context.Context, f *fleet.Fleet, line, input string) (string, error) {
	return Shell{Bin: filepath.Dir(f.Kubectl()), Kubeconfig: f.Kubeconfig(fleet.HubName)}.Type(ctx, line, input)
}

// Type runs a command line and returns what it says.
func (s Shell) Type(ctx context.Context, line, input string) (string, error) {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, "bash", "-euc", "PATH=$FLEET_BIN:$PATH\n"+line)
	cmd.Env = append(os.Environ(), "FLEET_BIN="+s.Bin, "KUBECONFIG="+s.Kubeconfig)
	cmd.Dir, cmd.Stdin, cmd.Stderr = s.Dir, strings.NewReader(input), &said
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", line, err, said.String())
	}
	return string(output), nil
}
