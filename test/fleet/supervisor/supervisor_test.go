package supervisor

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/files"
)

// testTime is the most any step of these tests may take.
const testTime = 20 * time.Second

func newTestSupervisor(t *testing.T) *supervisor {
	t.Helper()
	s := newSupervisor(t.TempDir(), log.New(io.Discard, "", 0))
	t.Cleanup(s.stopAll)
	return s
}

// eventually waits for the status of a process to be as wanted.
func eventually(t *testing.T, s *supervisor, name, what string, as func(Status) bool) Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	var last Status
	err := await.Until(ctx, name+" "+what, time.Millisecond, func(context.Context) (bool, error) {
		all := s.statuses()
		i := slices.IndexFunc(all, func(p Status) bool { return p.Name == name })
		if i >= 0 {
			last = all[i]
		}
		return i >= 0 && as(last), nil
	})
	if err != nil {
		t.Fatalf("%v; last: %+v", err, last)
	}
	return last
}

func running(p Status) bool { return p.Running }

func TestSupervisorStartsAProcessAgainThatEndsUnasked(t *testing.T) {
	s := newTestSupervisor(t)
	if err := s.ensure(Process{Name: "hub/sleep", Args: []string{"sleep", "60"}}); err != nil {
		t.Fatal(err)
	}
	first := eventually(t, s, "hub/sleep", "runs", running)
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	again := eventually(t, s, "hub/sleep", "runs again", func(p Status) bool { return p.Running && p.Restarts == 1 })
	if again.PID == first.PID || again.LastExit != "signal: killed" {
		t.Errorf("first %+v, again %+v", first, again)
	}
}

func TestSupervisorKeepsAStoppedProcessStoppedUntilItIsStarted(t *testing.T) {
	s := newTestSupervisor(t)
	if err := s.ensure(Process{Name: "hub/sleep", Args: []string{"sleep", "60"}}); err != nil {
		t.Fatal(err)
	}
	first := eventually(t, s, "hub/sleep", "runs", running)
	if err := s.stop("hub/sleep"); err != nil {
		t.Fatal(err)
	}
	if first.Alive() {
		t.Error("stop returned before the process was gone")
	}
	stopped := s.statuses()[0]
	if stopped.Running || stopped.Wanted || stopped.Restarts != 0 {
		t.Errorf("after the stop: %+v", stopped)
	}
	if err := s.start("hub/sleep"); err != nil {
		t.Fatal(err)
	}
	eventually(t, s, "hub/sleep", "runs again", running)
	if s.start("hub/nobody") == nil || s.stop("hub/nobody") == nil {
		t.Error("a process nobody knows was started or stopped")
	}
}

func TestSupervisorRestartsOnlyWhatIsDescribedOtherwise(t *testing.T) {
	s := newTestSupervisor(t)
	p := Process{Name: "hub/sleep", Args: []string{"sleep", "60"}}
	if err := s.ensure(p); err != nil {
		t.Fatal(err)
	}
	first := eventually(t, s, p.Name, "runs", running)
	if err := s.ensure(p); err != nil {
		t.Fatal(err)
	}
	if same := s.statuses()[0]; same.Identity != first.Identity {
		t.Errorf("restarted without need: %+v, then %+v", first.Identity, same.Identity)
	}
	p.Args = []string{"sleep", "61"}
	if err := s.ensure(p); err != nil {
		t.Fatal(err)
	}
	changed := eventually(
		t, s, p.Name, "runs as changed", func(now Status) bool { return now.Running && now.PID != first.PID },
	)
	if diff := cmp.Diff(p, changed.Process); diff != "" {
		t.Error(diff)
	}
}

func TestSupervisorEndsWhatAProcessHasStarted(t *testing.T) {
	s := newTestSupervisor(t)
	note := filepath.Join(t.TempDir(), "pid")
	script := `trap '' TERM; sleep 60 & echo $! >` + note + `.tmp; mv ` + note + `.tmp ` + note + `; wait`
	if err := s.ensure(Process{Name: "hub/parent", Args: []string{"sh", "-c", script}, Tier: TierStore}); err != nil {
		t.Fatal(err)
	}
	eventually(t, s, "hub/parent", "has a child", func(Status) bool { return files.Exists(note) })
	content, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	for _, digit := range strings.TrimSpace(string(content)) {
		pid = pid*10 + int(digit-'0')
	}
	grandchild, err := Identify(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.stop("hub/parent"); err != nil {
		t.Fatal(err)
	}
	// It was killed, but a process takes a moment to die.
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	if err := await.Until(
		ctx, "it to end", time.Millisecond, func(context.Context) (bool, error) { return !grandchild.Alive(), nil },
	); err != nil {
		t.Error(err)
	}
}

func TestSupervisorStopsTiersFromTheTop(t *testing.T) {
	s := newTestSupervisor(t)
	order := filepath.Join(t.TempDir(), "order")
	for name, tier := range map[string]Tier{"hub/etcd": TierStore, "hub/apiserver": TierServer, "hub/node": TierAgents} {
		// Each says that it is ready, and its name at its end.
		script := `trap 'echo ` + name + ` >>` + order + `; exit 0' TERM; : >` + order + `.` + filepath.Base(
			name,
		) + `; while :; do sleep 0.05; done`
		if err := s.ensure(Process{Name: name, Args: []string{"sh", "-c", script}, Tier: tier}); err != nil {
			t.Fatal(err)
		}
		eventually(t, s, name, "is ready", func(Status) bool { return files.Exists(order + "." + filepath.Base(name)) })
	}
	s.stopAll()
	content, err := os.ReadFile(order)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("hub/node\nhub/apiserver\nhub/etcd\n", string(content)); diff != "" {
		t.Error(diff)
	}
	if err := s.ensure(Process{Name: "hub/late", Args: []string{"sleep", "60"}}); err == nil {
		t.Error("a process was started after the end")
	}
}

func TestRecordedProcessesAreEndedWithoutTheSupervisor(t *testing.T) {
	s := newTestSupervisor(t)
	if err := s.ensure(Process{Name: "hub/sleep", Args: []string{"sleep", "60"}}); err != nil {
		t.Fatal(err)
	}
	first := eventually(t, s, "hub/sleep", "runs", running)
	recorded, err := At(s.dir).recorded()
	if err != nil {
		t.Fatal(err)
	}
	recorded.Supervisor = Identity{} // it is this test
	if diff := cmp.Diff([]Identity{first.Identity}, identities(recorded.Processes)); diff != "" {
		t.Fatal(diff)
	}
	for _, id := range identities(recorded.Processes) {
		if err := id.Kill(); err != nil {
			t.Error(err)
		}
	}
	eventually(t, s, "hub/sleep", "was killed", func(p Status) bool { return p.LastExit == "signal: killed" })
}

func TestProcessesSeeNothingOfTheUsersShell(t *testing.T) {
	got := BaseEnv([]string{"PATH=/bin", "KUBECONFIG=/home/me/.kube/config", "HTTPS_PROXY=http://proxy", "HOME=/home/me"})
	if diff := cmp.Diff([]string{"HOME=/home/me", "PATH=/bin"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestBackoffGrowsToALimit(t *testing.T) {
	var got []time.Duration
	for _, n := range []int{0, 1, 4, 5, 1000} {
		got = append(got, backoff(n))
	}
	want := []time.Duration{500 * time.Millisecond, time.Second, 8 * time.Second, 8 * time.Second, 8 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestControlSocketWorksHoweverLongItsPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long-", 40))
	c := At(dir)
	if _, err := c.Processes(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("without a supervisor: %v", err)
	}
	listener, closeListener, err := listen(runDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer closeListener()
	conn, err := dial(t.Context(), runDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(accepted.Close(), conn.Close()); err != nil {
		t.Error(err)
	}
}
