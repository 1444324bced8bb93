// Command suite runs the tests of all modules and writes one stream of test events (go test
// -json), for a runner that shows and summarizes them. It ends the stream with how long
// each package took.
//
// The journeys mostly wait, so they run in parallel with the other tests, each package of them on
// its own fleet.
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
	"runtime"
	"slices"
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
		os.Exit(2) // gotestsum runs no test again after that
	}
	if !passed {
		os.Exit(1)
	}
}

// suite is one call of go test in a module.
type suite struct {
	module string
	// packages are patterns; packages whose path contains one of without are left out.
	packages, without []string
	// race is true if they run under the race detector.
	race bool
	// sideBySide is how many packages run at once; 0 means one per CPU.
	sideBySide int
	// only and skip select tests, unless the caller does.
	only, skip string
}

// jobs run in parallel, and the suites of a job one after the other.
func jobs(mode string) ([][]suite, error) {
	// Tests against an API server mostly wait. What takes longest begins first.
	unit := []suite{{
		module: ".", packages: []string{"./pkg/hub/inventory", "./pkg/hub/credentials", "./pkg/hub/...", "./..."},
		sideBySide: 2 * runtime.NumCPU(),
	}}
	fleet := []suite{
		{module: "test/fleet", packages: []string{"./..."}},
		{module: "test/faults", packages: []string{"./..."}}, // without plans: make robust runs those
		{module: "test/e2e", packages: []string{"./..."}, without: []string{"/journeys"}},
	}
	// Building others' consumers takes half an hour. More than three fleets at once keep two cores
	// busy with API servers that have nothing to do.
	journeys := suite{
		module: "test/e2e", packages: []string{"./journeys/..."}, without: []string{"/journeys/consumers"}, sideBySide: 3,
	}
	consumers := []suite{{module: "test/e2e", packages: []string{"./journeys/consumers"}}}
	switch mode {
	case "unit":
		return [][]suite{unit, fleet}, nil
	case "consumers":
		return [][]suite{consumers}, nil
	case "e2e":
		return [][]suite{{journeys}}, nil
	case "all":
		// Beside three fleets, two packages for each CPU made TLS handshakes take longer than ten seconds.
		unit[0].sideBySide = runtime.NumCPU()
		return [][]suite{{mainOf(journeys)}, unit, fleet}, nil
	case "race":
		return [][]suite{{{module: ".", packages: []string{"./..."}, race: true}}}, nil
	default:
		return nil, fmt.Errorf("unknown mode %q: want all, unit, race, e2e or consumers", mode)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (passed bool, err error) {
	if len(args) != 1 && len(args) != 3 {
		return false, errors.New("usage: suite all|unit|race|e2e|consumers [-test.run=PATTERN PACKAGE]")
	}
	chosen, err := jobs(args[0])
	if err != nil {
		return false, err
	}
	events := &stream{out: out, times: times{}, ends: ends{}}
	if len(args) == 3 {
		s, err := again(chosen, args[1], args[2])
		if err != nil {
			return false, err
		}
		return passes(s.run(ctx, events), events.ends.early())
	}
	if only := os.Getenv("RUN"); only != "" {
		chosen = selected(chosen, only)
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	var failures []error
	for _, job := range chosen {
		group.Go(func() {
			for _, s := range job {
				if err := s.run(ctx, events); err != nil {
					mu.Lock()
					failures = append(failures, err)
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	passed, err = passes(append(failures, events.ends.early())...)
	return passed, errors.Join(err, events.end())
}

// passes tells failed tests, which go test has reported as events, from other errors.
func passes(failures ...error) (passed bool, err error) {
	passed = true
	for _, failure := range failures {
		if failure == nil {
			continue
		}
		passed = false
		if exit := (*exec.ExitError)(nil); !errors.As(failure, &exit) || exit.ExitCode() != 1 {
			err = errors.Join(err, failure)
		}
	}
	return passed, err
}

// again returns the suite of one test that failed and that gotestsum runs again. If a package
// failed outside its tests, there is no such test.
func again(jobs [][]suite, run, pkg string) (suite, error) {
	test, isRun := strings.CutPrefix(run, "-test.run=")
	if !isRun || test == "^$" {
		return suite{}, fmt.Errorf("%s failed outside its tests, and does not run again", pkg)
	}
	var found suite
	for _, s := range slices.Concat(jobs...) {
		module := strings.TrimSuffix(ownModule+strings.TrimPrefix(s.module, "."), "/")
		if strings.HasPrefix(pkg+"/", module+"/") && len(s.module) > len(found.module) {
			found = s
		}
	}
	if found.module == "" {
		return suite{}, fmt.Errorf("no module has the package %s", pkg)
	}
	return suite{module: found.module, packages: []string{pkg}, race: found.race, only: test}, nil
}

// selected returns the jobs for the tests that the caller selects.
func selected(jobs [][]suite, only string) [][]suite {
	for _, job := range jobs {
		for i := range job {
			job[i].only, job[i].skip = only, ""
		}
	}
	return jobs
}

func (s suite) run(ctx context.Context, events *stream) error {
	packages := s.packages
	if len(s.without) > 0 {
		var err error
		if packages, err = s.list(ctx); err != nil {
			return err
		}
	}
	// hack/lint.sh vets everything, and more thoroughly.
	args := []string{"test", "-json", "-count=1", "-timeout=55m", "-vet=off"}
	if s.only != "" {
		args = append(args, "-run="+s.only)
	}
	skip := slices.DeleteFunc([]string{s.skip, os.Getenv("SKIP")}, func(pattern string) bool { return pattern == "" })
	if len(skip) > 0 {
		args = append(args, "-skip="+strings.Join(skip, "|"))
	}
	if s.race {
		args = append(args, "-race")
	}
	if s.sideBySide > 0 {
		args = append(args, fmt.Sprintf("-p=%d", s.sideBySide))
	}
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...) //nolint:gosec // RUN and SKIP are the caller's own
	cmd.Dir, cmd.Stderr = s.module, os.Stderr
	// The race detector needs cgo. Everything else builds without it, so that packages are
	// compiled once for the tests and for the fleets' image.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if s.race {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	}
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
	cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, s.packages...)...)
	cmd.Dir, cmd.Stderr = s.module, os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var packages []string
	for _, name := range strings.Fields(string(output)) {
		isLeftOut := func(part string) bool { return strings.Contains(name+"/", part+"/") }
		if !slices.ContainsFunc(s.without, isLeftOut) {
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
	ends  ends
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
	if e, ok := decode(line); ok {
		s.times.add(e)
		s.ends.add(e)
	}
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
