// Command suite runs the tests of all modules and writes one stream of test
// events (go test -json), for a runner that shows and sums them up. It ends the
// stream with how long each package took.
//
// The journeys mostly wait, one of them for a token to expire, so they run beside
// the other tests, each package of them on a fleet of its own.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	passed, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
	}
	if err != nil || !passed {
		os.Exit(1)
	}
}

// suite is one call of go test in a module.
type suite struct {
	module string
	// packages is a pattern; those whose path contains without are left out.
	packages, without string
	// sideBySide is how many packages run at once; 0 is as many as there are CPUs.
	sideBySide int
}

// lanes run side by side, and the suites of a lane one after the other.
func lanes(mode string) ([][]suite, error) {
	unit := []suite{
		{module: ".", packages: "./..."},
		{module: "test/fleet", packages: "./..."},
		{module: "test/e2e", packages: "./...", without: "/journeys"},
	}
	journeys := []suite{{module: "test/e2e", packages: "./journeys/...", sideBySide: 3}}
	switch mode {
	case "unit":
		return [][]suite{unit}, nil
	case "e2e":
		return [][]suite{journeys}, nil
	case "all":
		return [][]suite{journeys, unit}, nil
	default:
		return nil, fmt.Errorf("unknown mode %q: want all, unit or e2e", mode)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (passed bool, err error) {
	if len(args) != 1 {
		return false, errors.New("usage: suite all|unit|e2e")
	}
	chosen, err := lanes(args[0])
	if err != nil {
		return false, err
	}
	events := &stream{out: out, times: times{}}
	var group sync.WaitGroup
	var mu sync.Mutex
	var failures []error
	for _, lane := range chosen {
		group.Go(func() {
			for _, s := range lane {
				if err := s.run(ctx, os.Getenv("RUN"), events); err != nil {
					mu.Lock()
					failures = append(failures, err)
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	passed = true
	for _, failure := range failures {
		passed = false
		// go test has reported its own failures as events.
		if exit := (*exec.ExitError)(nil); !errors.As(failure, &exit) {
			err = errors.Join(err, failure)
		}
	}
	return passed, errors.Join(err, events.end())
}

func (s suite) run(ctx context.Context, chosen string, events *stream) error {
	packages := []string{s.packages}
	if s.without != "" {
		var err error
		if packages, err = s.list(ctx); err != nil {
			return err
		}
	}
	args := []string{"test", "-json", "-count=1", "-timeout=40m"}
	if chosen != "" {
		args = append(args, "-run="+chosen)
	}
	if s.sideBySide > 0 {
		args = append(args, fmt.Sprintf("-p=%d", s.sideBySide))
	}
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...) //nolint:gosec // RUN is the caller's own
	cmd.Dir, cmd.Stderr = s.module, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	output, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	return errors.Join(events.copy(output), cmd.Wait())
}

// list expands the pattern.
func (s suite) list(ctx context.Context) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", s.packages)
	cmd.Dir, cmd.Stderr = s.module, os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var packages []string
	for _, name := range strings.Fields(string(output)) {
		if !strings.Contains(name, s.without) {
			packages = append(packages, name)
		}
	}
	return packages, nil
}

// stream merges the events of several suites, line by line.
type stream struct {
	mu    sync.Mutex
	out   io.Writer
	times times
}

func (s *stream) copy(events io.Reader) error {
	reader := bufio.NewReader(events)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 0 {
			if err := s.write(append(bytes.TrimRight(line, "\n"), '\n')); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *stream) write(line []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times.add(line)
	_, err := s.out.Write(line)
	return err
}

// end adds the table to the stream.
func (s *stream) end() error {
	for _, line := range s.times.table() {
		event, err := outputEvent(line)
		if err != nil {
			return err
		}
		if err := s.write(event); err != nil {
			return err
		}
	}
	return nil
}
