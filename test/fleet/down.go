package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/files"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/progress"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/supervisor"
)

// Down ends every process of a fleet and removes all its files. It returns ErrNoFleet if
// there is no fleet. If the supervisor was killed, it ends the recorded processes itself.
func Down(ctx context.Context, name string, out io.Writer) error {
	report := progress.New(out)
	f, err := locate(name)
	if err != nil {
		return err
	}
	if _, err := os.Stat(f.Dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", ErrNoFleet, name)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	unlock, err := files.Lock(ctx, f.path("lock"))
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
	err = os.Remove(filepath.Dir(f.Dir))
	if err != nil && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, fs.ErrExist) {
		return err
	}
	report.Line("fleet %s is gone", name)
	return nil
}

// shutdown ends the supervisor, which ends everything else, and kills what is left.
func (f *Fleet) shutdown(ctx context.Context, report *progress.Report) error {
	report.Line("fleet %s: stopping", f.Name)
	err := f.Shutdown(ctx)
	if errors.Is(err, supervisor.ErrNotRunning) {
		report.Line("fleet %s: the supervisor does not run, ending what it recorded", f.Name)
	} else if err != nil {
		report.Line("fleet %s: %v, ending it by force", f.Name, err)
	}
	return f.KillRecorded(ctx)
}
