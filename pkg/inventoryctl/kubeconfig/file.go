package kubeconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// lockPatience is how long another program may take to write the file.
	lockPatience = 10 * time.Second

	lockRecheck = 20 * time.Millisecond

	// fileMode keeps others from reading the file, which may have other users' secrets.
	fileMode fs.FileMode = 0o600
)

// Update changes a kubeconfig, which need not exist. It holds the lock that kubectl's own commands
// take, and replaces the file in one step, so that writers at the same time lose nothing. It does
// not write if nothing changes.
func Update(ctx context.Context, path string, change func(*clientcmdapi.Config) error) (err error) {
	if path, err = resolve(path); err != nil {
		return err
	}
	if err := writable(path); err != nil {
		return err
	}
	unlock, err := lock(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	config, err := clientcmd.Load(before)
	if err != nil {
		return fmt.Errorf("%s is not a kubeconfig, so it stays as it is: %w", path, err)
	}
	written, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	if err := change(config); err != nil {
		return err
	}
	after, err := clientcmd.Write(*config)
	if err != nil || bytes.Equal(written, after) {
		return err
	}
	return replace(path, after)
}

// resolve returns the file that a path leads to, so that a symbolic link stays one.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target, nil
	}
	return path, nil
}

// writable returns why a file must not be replaced. Its directory might allow that even if the
// file itself is read-only.
func writable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory: name a file with --output", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file: name one with --output, or - for stdout", path)
	case info.Mode().Perm()&0o200 == 0:
		return fmt.Errorf("%s is read-only: name another file with --output", path)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return file.Close()
}

// lock takes the lock of a kubeconfig as kubectl does: it creates a file next to it.
func lock(ctx context.Context, path string) (unlock func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	name := path + ".lock"
	deadline := time.Now().Add(lockPatience)
	for {
		file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0)
		switch {
		case err == nil:
			return func() error { return os.Remove(name) }, file.Close()
		case !errors.Is(err, fs.ErrExist):
			return nil, err
		case time.Now().After(deadline):
			return nil, fmt.Errorf("%s exists: another program writes the kubeconfig; if none does, remove that file", name)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lockRecheck):
		}
	}
}

// replace replaces a file in one step.
func replace(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Chmod(fileMode), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// Check returns an error if one of the other files that kubectl merges has an entry of the same
// name as one of this program's contexts: only one of the two would count.
func Check(config *clientcmdapi.Config, others []string, changes []Change) error {
	for _, path := range others {
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		other, loadErr := clientcmd.Load(content)
		if err := errors.Join(err, loadErr); err != nil {
			return fmt.Errorf("%s is not a kubeconfig: %w", path, err)
		}
		for name, context := range config.Contexts {
			isNew := slices.Contains(changes, Change{name, Created})
			switch {
			case !isNew:
			case other.Contexts[name] != nil:
				return &TakenError{"context", name, path}
			case other.Clusters[context.Cluster] != nil:
				return &TakenError{"cluster", context.Cluster, path}
			case other.AuthInfos[context.AuthInfo] != nil:
				return &TakenError{"user", context.AuthInfo, path}
			}
		}
	}
	return nil
}
