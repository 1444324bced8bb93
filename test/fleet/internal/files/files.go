// Package files writes and locks the files of fleets and of the build cache.
// They hold keys, so only their user can read them.
package files

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
)

// Modes of what is written.
const (
	PrivateDir fs.FileMode = 0o700
	Private    fs.FileMode = 0o600
	// Image is the mode of directories and programs that pods of any user run.
	Image fs.FileMode = 0o755
)

// Write replaces a file in one step, so that a reader never sees half of it.
func Write(path string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), PrivateDir); err != nil {
		return err
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, content, mode); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// Exists reports whether there is a file or directory at path.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Lock waits for the lock on path and returns the function that releases it.
// The holder may remove the file; a waiter that then gets the lock of the
// removed file tries again with the new one.
func Lock(ctx context.Context, path string) (release func(), err error) {
	for {
		if err := os.MkdirAll(filepath.Dir(path), PrivateDir); err != nil {
			return nil, err
		}
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, Private)
		if err != nil {
			return nil, err
		}
		err = await.Until(ctx, "the lock "+path, 50*time.Millisecond, func(context.Context) (bool, error) {
			return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil, nil
		})
		if err != nil {
			_ = file.Close()
			return nil, err
		}
		held, err := file.Stat()
		if err != nil {
			return nil, err
		}
		if present, err := os.Stat(path); err == nil && os.SameFile(held, present) {
			return func() { _ = file.Close() }, nil
		}
		_ = file.Close()
	}
}
