package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

// Faults of rollouts, while the story runs. None of them has a target. Managers elect a leader. After
// its first write of the act, the leader ends, and the standby of another version takes over.
const (
	// upgraded begins with the next version and ends with this one, which finds what the other wrote.
	upgraded proxy.Kind = "upgraded"
	// rolledBack begins with this version. After the act and the next version's first write, that ends,
	// too, and this version takes over again.
	rolledBack proxy.Kind = "rolled-back"
)

// ofVersions are all of them.
var ofVersions = []proxy.Kind{upgraded, rolledBack}

// next is the patch that makes the next version of this tree's manager.
const next = "next"

// version is what runs as the manager.
type version struct {
	// program is a file; "" is this tree's manager.
	program string
	// env is what it has in its environment besides.
	env []string
	// shift is how much later all times are that it reads on the hub.
	shift time.Duration
}

// versionsOf returns what leads first and what stands by.
func (l *lane) versionsOf(tb testing.TB, kind proxy.Kind) (first, second version) {
	tb.Helper()
	this := l.clockVersion(tb, kind)
	switch kind {
	case upgraded:
		return version{program: patched(tb, next)}, this
	case rolledBack:
		return this, version{program: patched(tb, next)}
	default:
		return this, this
	}
}

// replaceLeader plays the story while the standby takes over from the leader, and then, if the version
// is rolled back, a manager like the first one from the standby.
func (r *running) replaceLeader(tb testing.TB, isRolledBack bool) error {
	tb.Helper()
	ctx := tb.Context()
	left := make(chan error, 1)
	go func() { left <- r.leaves(ctx, r.managers[0]) }()
	r.story.act(r.world)
	if err := <-left; err != nil || !isRolledBack {
		return err
	}
	if err := wrote(ctx, r.managers[1]); err != nil {
		return err
	}
	r.managers = append(r.managers, r.lane.manage(version{program: r.lane.program}, elect))
	return r.managers[1].leave()
}

// leaves ends a manager after its first write.
func (r *running) leaves(ctx context.Context, m *manager) error {
	if err := wrote(ctx, m); err != nil {
		return err
	}
	return m.leave()
}

// wrote waits until a write of a manager was answered since its proxy began.
func wrote(ctx context.Context, m *manager) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stepPatience, fmt.Errorf("the leader wrote nothing: %w", errNotReached))
	defer cancel()
	const soon = 5 * time.Millisecond // much less than a story's act takes
	isAnswered := func(write proxy.Write) bool { return write.Code != 0 }
	for !slices.ContainsFunc(m.proxy.Record().Writes, isAnswered) {
		if err := pause(ctx, soon); err != nil {
			return err
		}
	}
	return nil
}

// rewrites are how many writes it takes to write once all that the manager has on a hub: of a profile
// the status and the rest, and of an addon the status.
func rewrites(states ...map[string]string) int {
	addons, _, _ := strings.Cut(addonStatus, "/")
	each := map[string]int{profiles: 2, references: 1, secrets: 1, addons: 1}
	all := map[string]int{}
	for _, state := range states {
		for id := range state {
			resource, key, _ := strings.Cut(id, " ")
			if !isForeign(key) && (resource != secrets || !isOfCluster(namespaceOf(key))) {
				all[id] = each[resource]
			}
		}
	}
	sum := 0
	for _, writes := range all {
		sum += writes
	}
	return sum
}

// builds are the programs of patched, by patch.
var builds struct {
	mu       sync.Mutex
	dir      string
	programs map[string]string
}

// patched returns this tree's manager with a patch of the folder versions, which is built when first
// needed.
func patched(tb testing.TB, name string) string {
	tb.Helper()
	builds.mu.Lock()
	defer builds.mu.Unlock()
	if program := builds.programs[name]; program != "" {
		return program
	}
	if builds.dir == "" {
		var err error
		builds.dir, err = os.MkdirTemp("", "versions-")
		apitest.Must(tb, err)
		builds.programs = map[string]string{}
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	apitest.Must(tb, err)
	overlay, err := applied(root, filepath.Join("versions", name+".patch"), filepath.Join(builds.dir, name+".tree"))
	apitest.Must(tb, err)
	program := filepath.Join(builds.dir, name)
	err = run(root, "go", "build", "-overlay="+overlay, "-ldflags=-s -w", "-o", program, "./cmd/manager")
	apitest.Must(tb, err)
	builds.programs[name] = program
	return program
}

// removePatched deletes what patched has built. It belongs after the tests in TestMain.
func removePatched() {
	if builds.dir != "" {
		_ = os.RemoveAll(builds.dir)
	}
}

// applied applies a patch of files below root to copies of them in a new folder. It returns a file for
// "go build -overlay" that puts them in their place.
func applied(root, patch, folder string) (overlay string, err error) {
	content, err := os.ReadFile(patch)
	if err != nil {
		return "", err
	}
	files := filesIn(string(content))
	if len(files) == 0 {
		return "", fmt.Errorf("%s changes no file", patch)
	}
	replace := map[string]string{}
	for _, file := range files {
		from, to := filepath.Join(root, file), filepath.Join(folder, file)
		replace[from] = to
		if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
			return "", err
		}
		before, err := os.ReadFile(from)
		if errors.Is(err, os.ErrNotExist) {
			continue // the patch creates it
		}
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(to, before, 0o600); err != nil { //nolint:gosec // a path of the patch, which is ours
			return "", err
		}
	}
	path, err := filepath.Abs(patch)
	if err != nil {
		return "", err
	}
	if err := run(folder, "git", "apply", path); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	overlay = filepath.Join(folder, "overlay.json")
	return overlay, errors.Join(err, os.WriteFile(overlay, text, 0o600))
}

// filesIn returns the files that a patch changes or creates.
func filesIn(patch string) []string {
	var files []string
	for line := range strings.Lines(patch) {
		if file, is := strings.CutPrefix(strings.TrimSpace(line), "+++ b/"); is {
			files = append(files, file)
		}
	}
	return slices.Compact(files)
}

// run runs a command in a folder that git takes for no repository.
func run(folder string, command ...string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(folder))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, &out)
	}
	return nil
}
