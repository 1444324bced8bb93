package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// devices are the host's device files every process gets.
var devices = []string{"null", "zero", "full", "random", "urandom"}

// build makes the private root on top of spec.Root and pivots into it. Only this mount namespace sees any of it.
func build(spec Spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", spec.Root, "tmpfs", unix.MS_NOSUID, "mode=0755"); err != nil {
		return fmt.Errorf("mount a root: %w", err)
	}
	steps := []func(Spec) error{placeImage, placeSystem, placeMounts, pivot, finish}
	for _, step := range steps {
		if err := step(spec); err != nil {
			return err
		}
	}
	return nil
}

// placeImage shows the image's content at the root, bound read-only. A directory that something
// else is mounted into is recreated, so that the mount point can be made inside it.
func placeImage(spec Spec) error {
	parents := map[string]bool{"/proc": true, "/dev": true, "/tmp": true}
	for _, m := range spec.Mounts {
		for dir := filepath.Dir(filepath.Clean(m.Target)); dir != "/"; dir = filepath.Dir(dir) {
			parents[dir] = true
		}
	}
	return placeDirectory(spec, "/", parents)
}

func placeDirectory(spec Spec, dir string, parents map[string]bool) error {
	entries, err := os.ReadDir(filepath.Join(spec.Image, dir))
	if err != nil {
		return fmt.Errorf("read the image: %w", err)
	}
	for _, entry := range entries {
		if err := placeEntry(spec, filepath.Join(dir, entry.Name()), entry, parents); err != nil {
			return err
		}
	}
	return nil
}

func placeEntry(spec Spec, path string, entry fs.DirEntry, parents map[string]bool) error {
	source, target := filepath.Join(spec.Image, path), filepath.Join(spec.Root, path)
	switch {
	case entry.Type()&fs.ModeSymlink != 0:
		link, err := os.Readlink(source)
		if err != nil {
			return fmt.Errorf("read the image: %w", err)
		}
		return os.Symlink(link, target)
	case entry.IsDir() && parents[path]:
		if err := makeDir(target); err != nil {
			return err
		}
		return placeDirectory(spec, path, parents)
	default:
		return bind(Mount{Source: source, Target: path, ReadOnly: true}, spec.Root)
	}
}

func placeSystem(spec Spec) error {
	proc, dev, tmp := filepath.Join(spec.Root, "proc"), filepath.Join(spec.Root, "dev"), filepath.Join(spec.Root, "tmp")
	for _, dir := range []string{proc, dev, tmp} {
		if err := makeDir(dir); err != nil {
			return err
		}
	}
	// The umask must not take the sticky bit and the write bits away.
	if err := os.Chmod(tmp, 0o777|fs.ModeSticky); err != nil {
		return err
	}
	const harmless = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("proc", proc, "proc", harmless, ""); err != nil {
		// Inside another container's user namespace only the proc that is already there may be shown.
		if err := unix.Mount("/proc", proc, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mount /proc: %w", err)
		}
	}
	for _, device := range devices {
		path := filepath.Join("/dev", device)
		if err := bind(Mount{Source: path, Target: path}, spec.Root); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{
		"fd":     "/proc/self/fd",
		"stdin":  "/proc/self/fd/0",
		"stdout": "/proc/self/fd/1",
		"stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	return nil
}

// placeMounts binds outer paths before the ones inside them.
func placeMounts(spec Spec) error {
	mounts := slices.Clone(spec.Mounts)
	slices.SortStableFunc(mounts, func(a, b Mount) int {
		return strings.Compare(filepath.Clean(a.Target), filepath.Clean(b.Target))
	})
	for _, m := range mounts {
		if err := bind(m, spec.Root); err != nil {
			return err
		}
	}
	if spec.Dir == "" {
		return nil
	}
	return makeDir(filepath.Join(spec.Root, spec.Dir))
}

func bind(m Mount, root string) error {
	target := filepath.Join(root, m.Target)
	if err := makeMountPoint(m.Source, target); err != nil {
		return fmt.Errorf("make the mount point %s: %w", m.Target, err)
	}
	if err := unix.Mount(m.Source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", m.Source, m.Target, err)
	}
	if !m.ReadOnly {
		return nil
	}
	return makeReadOnly(target, unix.AT_RECURSIVE)
}

func makeMountPoint(source, target string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return makeDir(target)
	}
	if err := makeDir(filepath.Dir(target)); err != nil {
		return err
	}
	file, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// makeReadOnly uses mount_setattr (Linux 5.12), because a remount inside a user namespace must
// repeat every flag the host has locked, and would have to find them out first.
func makeReadOnly(path string, flags uint) error {
	if err := unix.MountSetattr(
		unix.AT_FDCWD, path, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY},
	); err != nil {
		return fmt.Errorf("make %s read-only: %w", path, err)
	}
	return nil
}

func pivot(spec Spec) error {
	if err := os.Chdir(spec.Root); err != nil {
		return err
	}
	// With the same directory twice the old root ends up stacked on the new one, so no place for it is needed.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot into the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the host's root: %w", err)
	}
	return os.Chdir("/")
}

func finish(spec Spec) error {
	if spec.ReadOnlyRoot {
		if err := makeReadOnly("/", 0); err != nil {
			return err
		}
	}
	if spec.Hostname == "" {
		return nil
	}
	if err := unix.Sethostname([]byte(spec.Hostname)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	return nil
}

// makeDir makes a directory that any user can enter.
func makeDir(path string) error {
	return os.MkdirAll(path, 0o755) //nolint:gosec // the command may run as any user
}
