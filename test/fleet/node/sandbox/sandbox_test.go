package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
)

// playParent makes the test binary start one process and then wait to be killed.
const playParent = "SANDBOX_TEST_PARENT_IMAGE"

func TestMain(m *testing.M) {
	Init()
	if image, set := os.LookupEnv(playParent); set {
		parent(image)
	}
	m.Run()
}

// within bounds everything that is waited for.
const within = 20 * time.Second

// probe builds the probe once and returns its content.
var probe = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "probe")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "probe"), "../testdata/probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the probe: %w\n%s", err, out)
	}
	return os.ReadFile(filepath.Join(dir, "probe"))
})

// image returns an image of its own for each test, because tests count the
// processes that run the file.
func image(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	program, err := probe()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "probe"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "etc", "probe"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "etc", "probe", "image"), []byte("of the image"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// run returns exit code and output of a command that ends by itself.
func run(t *testing.T, l *Launcher, spec Spec) (int32, string) {
	t.Helper()
	spec.Output = output(t)
	process, err := l.Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	return wait(t, process).Code, read(t, spec.Output)
}

func output(t *testing.T) *os.File {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "output")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func read(t *testing.T, file *os.File) string {
	t.Helper()
	data, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func wait(t *testing.T, process *Process) Exit {
	t.Helper()
	select {
	case <-process.Done():
		return process.Exit()
	case <-time.After(within):
		t.Fatalf("process %d still runs", process.PID)
		return Exit{}
	}
}

func newLauncher(t *testing.T) *Launcher {
	t.Helper()
	launcher := NewLauncher()
	t.Cleanup(launcher.Close)
	return launcher
}

func TestCheckAgreesThatSandboxesWorkHere(t *testing.T) {
	if err := Check(); err != nil {
		t.Fatal(err)
	}
}

func TestHint(t *testing.T) {
	settings := func(values map[string]string) func(string) ([]byte, error) {
		return func(path string) ([]byte, error) {
			if value, found := values[path]; found {
				return []byte(value + "\n"), nil
			}
			return nil, os.ErrNotExist
		}
	}
	for name, tc := range map[string]struct {
		values map[string]string
		want   string
	}{
		"nothing known, general advice": {want: ": run as root, outside of a container that forbids it"},
		"AppArmor forbids, it is named": {
			values: map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"},
			want:   ": kernel.apparmor_restrict_unprivileged_userns is 1; change it or run as root",
		},
		"harmless values, general advice": {
			values: map[string]string{
				"/proc/sys/kernel/unprivileged_userns_clone": "1", "/proc/sys/user/max_user_namespaces": "100",
			},
			want: ": run as root, outside of a container that forbids it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, hint(settings(tc.values))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSandbox(t *testing.T) {
	img, launcher := image(t), newLauncher(t)
	volume := t.TempDir()
	if err := os.WriteFile(filepath.Join(volume, "key"), []byte("of the volume"), 0o644); err != nil {
		t.Fatal(err)
	}
	writable := t.TempDir()
	if err := os.Chmod(writable, 0o777); err != nil {
		t.Fatal(err)
	}
	groups := "[]"
	if os.Geteuid() == 0 {
		groups = "[2000]"
	} else if got, err := os.Getgroups(); err == nil && len(got) > 0 {
		groups = ""
	}
	mounts := []Mount{
		{Source: volume, Target: "/etc/probe/volume", ReadOnly: true},
		{Source: filepath.Join(volume, "key"), Target: "/etc/hosts", ReadOnly: true},
		{Source: writable, Target: "/data"},
	}
	for name, tc := range map[string]struct {
		argv     []string
		readOnly bool
		code     int32
		output   string
		contains string
	}{
		"a user, a first process and a host name of its own": {
			argv:     []string{"/probe", "whoami"},
			contains: "uid=65532 gid=65532 groups=" + groups,
		},
		"the first process of its namespace": {
			argv:     []string{"/probe", "whoami"},
			contains: "pid=1 host=pod-0",
		},
		"a command without a slash is found in PATH": {argv: []string{"probe", "exit", "3"}, code: 3},
		"the image is at the root": {
			argv:   []string{"/probe", "cat", "/etc/probe/image"},
			output: "of the image",
		},
		"a volume lies inside a directory of the image": {
			argv:   []string{"/probe", "cat", "/etc/probe/volume/key"},
			output: "of the volume",
		},
		"a single file is mounted": {
			argv:   []string{"/probe", "cat", "/etc/hosts"},
			output: "of the volume",
		},
		"a read-only volume cannot be written": {
			argv:     []string{"/probe", "touch", "/etc/probe/volume/new"},
			code:     1,
			contains: "read-only file system",
		},
		"a writable volume can be written": {argv: []string{"/probe", "touch", "/data/new"}},
		"a writable volume can be written in a read-only root": {
			argv:     []string{"/probe", "touch", "/data/newer"},
			readOnly: true,
		},
		"/tmp can be written": {argv: []string{"/probe", "touch", "/tmp/new"}},
		"/tmp cannot be written in a read-only root": {
			argv:     []string{"/probe", "touch", "/tmp/new"},
			readOnly: true,
			code:     1,
			contains: "read-only file system",
		},
		"nothing of the host is seen": {
			argv:   []string{"/probe", "ls", "/"},
			output: "data\ndev\netc\nprobe\nproc\ntmp\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			code, out := run(t, launcher, Spec{
				Image: img, Root: t.TempDir(), Mounts: mounts, ReadOnlyRoot: tc.readOnly, Hostname: "pod-0",
				Argv: tc.argv, Env: []string{"PATH=/bin:/"}, UID: 65532, GID: 65532, Groups: []int{2000},
			})
			if code != tc.code || (tc.contains == "" && out != tc.output) || !strings.Contains(out, tc.contains) {
				t.Errorf("exit code %d, output %q; want %d, %q", code, out, tc.code, tc.output+tc.contains)
			}
		})
	}
}

func TestACommandThatCannotBeExecutedIsAnErrorOfStart(t *testing.T) {
	img, launcher := image(t), newLauncher(t)
	_, err := launcher.Start(Spec{Image: img, Root: t.TempDir(), Argv: []string{"/manager"}})
	if err == nil || !strings.Contains(err.Error(), "/manager") {
		t.Fatalf("got %v, want an error that names /manager", err)
	}
}

func TestTheEndOfTheFirstProcessEndsItsChildren(t *testing.T) {
	img, launcher := image(t), newLauncher(t)
	out := output(t)
	process, err := launcher.Start(Spec{Image: img, Root: t.TempDir(), Argv: []string{"/probe", "parent"}, Output: out})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the child starts", func() bool { return read(t, out) == "started\n" })
	if n := processes(t, img); n != 2 {
		t.Fatalf("%d processes run, want 2", n)
	}
	if err := process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wait(t, process)
	eventually(t, "no process is left", func() bool { return processes(t, img) == 0 })
}

func TestExecRunsInTheRootOfAProcess(t *testing.T) {
	img, launcher := image(t), newLauncher(t)
	process, err := launcher.Start(
		Spec{Image: img, Root: t.TempDir(), Argv: []string{"/probe", "wait"}, UID: 65532, GID: 65532},
	)
	if err != nil {
		t.Fatal(err)
	}
	out := output(t)
	for _, argv := range [][]string{{"/probe", "touch", "/tmp/made"}, {"/probe", "ls", "/tmp"}, {"/probe", "whoami"}} {
		if code, err := launcher.Exec(t.Context(), process, argv, out); err != nil || code != 0 {
			t.Fatalf("%v: exit code %d, %v; %s", argv, code, err, read(t, out))
		}
	}
	if got := read(t, out); !strings.HasPrefix(got, "made\nuid=65532 gid=65532") {
		t.Errorf("got %q", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := launcher.Exec(ctx, process, []string{"/probe", "stubborn"}, nil); !errors.Is(
		err, context.DeadlineExceeded,
	) {
		t.Errorf("a command that hangs: got %v", err)
	}
}

func TestNothingOutlivesAKilledParent(t *testing.T) {
	img := image(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), playParent+"="+img, "SANDBOX_TEST_ROOT="+t.TempDir())
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "parent and child run", func() bool { return processes(t, img) == 1 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, "no process is left", func() bool { return processes(t, img) == 0 })
}

func TestCloseKillsWhatStillRuns(t *testing.T) {
	img, launcher := image(t), NewLauncher()
	process, err := launcher.Start(Spec{Image: img, Root: t.TempDir(), Argv: []string{"/probe", "stubborn"}})
	if err != nil {
		t.Fatal(err)
	}
	launcher.Close()
	if exit := wait(t, process); exit.Code != 137 {
		t.Errorf("exit code %d, want 137", exit.Code)
	}
	if _, err := launcher.Start(Spec{}); err == nil {
		t.Error("a closed launcher starts a process")
	}
}

// parent starts a process that ignores SIGTERM and never returns.
func parent(img string) {
	root, _ := os.LookupEnv("SANDBOX_TEST_ROOT")
	if _, err := NewLauncher().Start(Spec{Image: img, Root: root, Argv: []string{"/probe", "stubborn"}}); err != nil {
		panic(err)
	}
	select {}
}

// processes counts the processes whose executable is the image's probe, which is found by its inode
// because every process has its own root.
func processes(t *testing.T, img string) int {
	t.Helper()
	var want unix.Stat_t
	if err := unix.Stat(filepath.Join(img, "probe"), &want); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range paths {
		var got unix.Stat_t
		if unix.Stat(path, &got) == nil && got.Ino == want.Ino && got.Dev == want.Dev {
			n++
		}
	}
	return n
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), within) // cleanups wait, too
	defer cancel()
	err := await.Until(ctx, "this: "+what, 10*time.Millisecond,
		func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		t.Fatal(err)
	}
}
