package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Check reports in one line why this user on this kernel cannot run processes in a sandbox, or nil. It needs Init.
func Check() error {
	dir, err := os.MkdirTemp("", "sandbox-check-")
	if err != nil {
		return fmt.Errorf("no scratch directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	spec := Spec{
		Image:        filepath.Join(dir, "image"),
		Root:         filepath.Join(dir, "root"),
		Hostname:     "check",
		ReadOnlyRoot: true,
		UID:          65532,
		GID:          65532,
	}
	for _, path := range []string{spec.Image, spec.Root} {
		if err := makeDir(path); err != nil {
			return fmt.Errorf("no scratch directory: %w", err)
		}
	}
	launcher := NewLauncher()
	defer launcher.Close()
	process, err := launcher.launch(request{Spec: spec, Check: true})
	if err != nil {
		return fmt.Errorf("this user cannot run processes in namespaces (%w)%s", err, hint(os.ReadFile))
	}
	<-process.Done()
	return nil
}

// hint names the kernel setting that most likely forbids it.
func hint(read func(string) ([]byte, error)) string {
	for _, s := range []struct{ path, bad, say string }{
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns is 1"},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone is 0"},
		{"/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces is 0"},
	} {
		if value, err := read(s.path); err == nil && strings.TrimSpace(string(value)) == s.bad {
			return ": " + s.say + "; change it or run as root"
		}
	}
	return ": run as root, outside of a container that forbids it"
}
