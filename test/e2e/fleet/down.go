package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// Down ends every process of a fleet and removes every file of it. It returns
// ErrNoFleet when there is nothing, and works as well when the supervisor was
// killed: then the recorded processes are ended.
func Down(ctx context.Context, name string, out io.Writer) error {
	report := newProgress(out)
	f, err := locate(name)
	if err != nil {
		return err
	}
	if _, err := os.Stat(f.Dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", ErrNoFleet, name)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	unlock, err := lockFile(ctx, f.path("lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.shutdown(ctx, report); err != nil {
		return err
	}
	if err := os.RemoveAll(f.Dir); err != nil {
		return err
	}
	// The parent stays while another fleet is in it.
	if err := os.Remove(filepath.Dir(f.Dir)); err != nil && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, fs.ErrExist) {
		return err
	}
	report.line("fleet %s is gone", name)
	return nil
}

// shutdownTimeout is how long an orderly end may take before it is forced.
const shutdownTimeout = 45 * time.Second

// shutdown ends the supervisor, which ends everything else, and makes sure.
func (f *Fleet) shutdown(ctx context.Context, report *progress) error {
	recorded, err := f.recorded()
	if err != nil {
		return err
	}
	report.line("fleet %s: stopping", f.Name)
	err = f.askToEnd(ctx, recorded.Supervisor)
	if errors.Is(err, errNoSupervisor) {
		report.line("fleet %s: the supervisor does not run, ending what it recorded", f.Name)
	} else if err != nil {
		report.line("fleet %s: %v, ending it by force", f.Name, err)
	}
	return f.killRecorded(ctx)
}

func (f *Fleet) askToEnd(ctx context.Context, supervisor identity) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	if err := f.call(ctx, http.MethodPost, "/shutdown", nil, nil); err != nil {
		return err
	}
	return wait(ctx, "the supervisor to end", 20*time.Millisecond, func(context.Context) (bool, error) {
		return !supervisor.alive(), nil
	})
}

func (f *Fleet) recorded() (records, error) {
	var r records
	content, err := os.ReadFile(f.path("run", "processes.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(content, &r)
}

// killRecorded ends whatever of the last recorded processes still runs, by
// number and start time: a number that went to another process is left alone.
func (f *Fleet) killRecorded(ctx context.Context) error {
	recorded, err := f.recorded()
	if err != nil {
		return err
	}
	slices.SortFunc(recorded.Processes, func(a, b ProcessStatus) int { return int(b.Tier - a.Tier) })
	// The supervisor first, so that it starts nothing again.
	for _, id := range append([]identity{recorded.Supervisor}, identities(recorded.Processes)...) {
		if err := id.kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("kill process %d: %w", id.PID, err)
		}
		gone := func(context.Context) (bool, error) { return !id.alive(), nil }
		if err := wait(ctx, fmt.Sprintf("process %d to end", id.PID), time.Millisecond, gone); err != nil {
			return err
		}
	}
	return nil
}

func identities(processes []ProcessStatus) []identity {
	ids := make([]identity, 0, len(processes))
	for _, p := range processes {
		ids = append(ids, p.identity)
	}
	return ids
}
