package hubtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
)

// Manager is the manager's program while it runs.
type Manager struct {
	tb    testing.TB
	cmd   *exec.Cmd
	log   output
	ended chan struct{}
	err   error // how it ended, once ended is closed
	once  sync.Once
}

// Start runs the manager as Command describes, until Stop is called or the test ends. Its log
// is shown if the test fails. Under the race detector, so is the program, and a data race in
// it fails the test.
func Start(tb testing.TB, cfg *rest.Config, more ...string) *Manager {
	tb.Helper()
	m := &Manager{tb: tb, cmd: Command(tb, cfg, more...), ended: make(chan struct{})}
	m.cmd.Stdout, m.cmd.Stderr = &m.log, &m.log
	apitest.Must(tb, m.cmd.Start())
	go func() {
		m.err = m.cmd.Wait()
		close(m.ended)
	}()
	tb.Cleanup(func() {
		m.Stop()
		if tb.Failed() {
			tb.Logf("the manager logged, at the end:\n%s", m.log.tail(1<<14))
		}
	})
	return m
}

// Command is the manager as the user of a configuration, not yet started, with the command
// line of the chart's Deployment. It does not elect a leader and serves neither probes nor
// metrics. More arguments override those of the chart.
func Command(tb testing.TB, cfg *rest.Config, more ...string) *exec.Cmd {
	tb.Helper()
	deployment := manifesttest.Find[appsv1.Deployment](tb, MustRender(tb, ""), "Deployment", "cluster-inventory-manager")
	args := slices.Concat(deployment.Spec.Template.Spec.Containers[0].Args, []string{
		"--kubeconfig=" + apitest.File(tb, "kubeconfig", apitest.Kubeconfig(tb, cfg, "")),
		"--leader-elect=false",
		"--health-probe-bind-address=0",
		"--metrics-bind-address=0",
	}, more)
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), Program(tb, "manager"), args...)
	cmd.Env = append(os.Environ(), "POD_NAMESPACE="+Namespace)
	return cmd
}

// Stop kills the program, which must not have ended by itself.
func (m *Manager) Stop() {
	m.tb.Helper()
	m.once.Do(func() {
		select {
		case <-m.ended:
			m.tb.Errorf("the manager ended by itself: %v", m.err)
		default:
			apitest.Must(m.tb, m.cmd.Process.Kill())
			<-m.ended
		}
		if strings.Contains(m.Log(), "WARNING: DATA RACE") {
			m.tb.Error("the manager has a data race; its log says where")
		}
	})
}

// PID is the process to measure.
func (m *Manager) PID() int { return m.cmd.Process.Pid }

// Log returns what the program has logged so far.
func (m *Manager) Log() string { return m.log.String() }

// built are the programs of this test binary, each built when first needed.
var built struct {
	mu   sync.Mutex
	dir  string
	errs map[string]error // by program, of those that were built
}

// Program returns the path of one of the programs in cmd, which it builds once.
func Program(tb testing.TB, name string) string {
	tb.Helper()
	root := moduleRoot(tb)
	built.mu.Lock()
	defer built.mu.Unlock()
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "programs-")
		apitest.Must(tb, err)
		built.dir, built.errs = dir, map[string]error{}
	}
	err, isBuilt := built.errs[name]
	if !isBuilt {
		err = build(root, name)
		built.errs[name] = err
	}
	apitest.Must(tb, err)
	return filepath.Join(built.dir, name)
}

func build(root, name string) error {
	args := []string{"build", "-ldflags=-s -w", "-o", filepath.Join(built.dir, name)}
	if underRace {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./cmd/"+name)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building cmd/%s: %w: %s", name, err, out)
	}
	return nil
}

// RemoveProgram deletes the programs that Start and Program built. It belongs after the tests
// in TestMain.
func RemoveProgram() {
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
}

// output collects what a program prints while others read it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends to the output.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String is all of the output.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// tail is the end of the output, of at most so many bytes.
func (o *output) tail(limit int) string {
	text := o.String()
	return text[max(0, len(text)-limit):]
}
