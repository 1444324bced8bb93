package node

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Names that a kubelet uses, too: programs that watch mounted files wait for this symlink to change.
const (
	dataLink    = "..data"
	newDataLink = "..data_tmp"
)

// volumeDir is a directory whose content is replaced as a whole: files lie in a directory of their
// own, ..data points to it, and every visible name points through ..data.
type volumeDir struct {
	path    string
	group   *int // group of the files, if the pod has an fsGroup and the node may change owners
	current payload
	written bool
}

// write makes the directory show exactly p and reports whether anything changed.
func (d *volumeDir) write(p payload) (bool, error) {
	if d.written && reflect.DeepEqual(d.current, p) {
		return false, nil
	}
	if err := makeDir(d.path); err != nil {
		return false, err
	}
	fresh, err := d.fill(p)
	if err != nil {
		return false, fmt.Errorf("write volume %s: %w", d.path, err)
	}
	stale, err := os.Readlink(filepath.Join(d.path, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err := d.swap(fresh, p); err != nil {
		return false, fmt.Errorf("write volume %s: %w", d.path, err)
	}
	if stale != "" {
		if err := os.RemoveAll(filepath.Join(d.path, stale)); err != nil {
			return false, err
		}
	}
	d.current, d.written = p, true
	return true, nil
}

// fill writes the files into a new directory and returns its name.
func (d *volumeDir) fill(p payload) (string, error) {
	dir, err := os.MkdirTemp(d.path, "..content_")
	if err != nil {
		return "", err
	}
	if err := d.own(dir, 0o755); err != nil {
		return "", err
	}
	for path, f := range p {
		target := filepath.Join(dir, path)
		if err := makeDir(filepath.Dir(target)); err != nil {
			return "", err
		}
		if err := os.WriteFile(target, f.data, 0o600); err != nil {
			return "", err
		}
		mode := f.mode
		if d.group != nil {
			const readableByGroup = 0o440
			mode |= readableByGroup
		}
		if err := d.own(target, mode); err != nil {
			return "", err
		}
	}
	return filepath.Base(dir), nil
}

func (d *volumeDir) own(path string, mode fs.FileMode) error {
	if d.group != nil {
		if err := os.Lchown(path, -1, *d.group); err != nil {
			return err
		}
	}
	return os.Chmod(path, mode)
}

// swap makes ..data point to fresh in one step, then adds and removes visible names.
func (d *volumeDir) swap(fresh string, p payload) error {
	temporary := filepath.Join(d.path, newDataLink)
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(fresh, temporary); err != nil {
		return err
	}
	if err := os.Rename(temporary, filepath.Join(d.path, dataLink)); err != nil {
		return err
	}
	names := topNames(p)
	for _, name := range names {
		err := os.Symlink(filepath.Join(dataLink, name), filepath.Join(d.path, name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return d.prune(names)
}

func (d *volumeDir) prune(keep []string) error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "..") || slices.Contains(keep, entry.Name()) {
			continue
		}
		if err := os.Remove(filepath.Join(d.path, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// topNames returns the first path elements of a payload, sorted.
func topNames(p payload) []string {
	names := map[string]bool{}
	for path := range p {
		first, _, _ := strings.Cut(path, string(filepath.Separator))
		names[first] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// makeDir makes a directory that processes of any user can enter and read, whatever the umask.
func makeDir(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil { //nolint:gosec // containers run as any user
		return err
	}
	return os.Chmod(path, 0o755) //nolint:gosec // as above
}

// writeFile writes a file that processes of any user can read, whatever the umask.
func writeFile(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Chmod(path, 0o644) //nolint:gosec // containers run as any user
}

// closeQuietly closes files that were only read, or that another process writes.
func closeQuietly(c io.Closer) { _ = c.Close() }
