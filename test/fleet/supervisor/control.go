package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
)

// ErrNotRunning says that no supervisor responds on the control socket.
var ErrNotRunning = errors.New("the fleet's supervisor does not run")

// Control drives the supervisor of the fleet in a directory.
type Control struct{ dir string }

// At returns the handle on the supervisor of the fleet in dir, running or not.
func At(dir string) Control { return Control{dir: dir} }

// call sends one request to the supervisor.
func (c Control) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		content, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(content)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://supervisor"+path, body)
	if err != nil {
		return err
	}
	transport := &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, runDir(c.dir)) },
		DisableKeepAlives: true,
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return ErrNotRunning
	}
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("fleet %s: %s", filepath.Base(c.dir), strings.TrimSpace(string(content)))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(content, out)
}

// Processes lists what the supervisor runs, by name.
func (c Control) Processes(ctx context.Context) ([]Status, error) {
	var all []Status
	return all, c.call(ctx, http.MethodGet, "/processes", nil, &all)
}

// Process returns one process.
func (c Control) Process(ctx context.Context, name string) (Status, error) {
	all, err := c.Processes(ctx)
	if err != nil {
		return Status{}, err
	}
	for _, p := range all {
		if p.Name == name {
			return p, nil
		}
	}
	return Status{}, fmt.Errorf("fleet %s has no process %q", filepath.Base(c.dir), name)
}

// Ensure makes a process run as described; one that runs with other arguments
// is restarted. To try another configuration of a component, take its Process,
// change it, and Ensure it.
func (c Control) Ensure(ctx context.Context, p Process) error {
	return c.call(ctx, http.MethodPost, "/ensure", p, nil)
}

// Stop ends a process, such as "cluster1/registration-agent", until Start. It
// returns when the process is gone.
func (c Control) Stop(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodPost, "/stop?name="+url.QueryEscape(name), nil, nil)
}

// Start starts a process that was stopped; see WaitReady.
func (c Control) Start(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodPost, "/start?name="+url.QueryEscape(name), nil, nil)
}

// Restart stops and starts a process and waits until it is ready.
func (c Control) Restart(ctx context.Context, name string) error {
	if err := c.Stop(ctx, name); err != nil {
		return err
	}
	if err := c.Start(ctx, name); err != nil {
		return err
	}
	return c.WaitReady(ctx, name)
}

// hopeless is the number of restarts in a row after which WaitReady gives up.
const hopeless = 6

// logTail is how many lines of the log an error of WaitReady ends with.
const logTail = 25

// WaitReady waits until a process is ready. The error of one that does not get
// ready ends with the last lines of its log.
func (c Control) WaitReady(ctx context.Context, name string) error {
	before, err := c.Process(ctx, name)
	if err != nil {
		return err
	}
	var failing error
	err = await.Until(ctx, name+" to be ready", 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		p, err := c.Process(ctx, name)
		if err != nil {
			return false, err
		}
		if p.Restarts-before.Restarts >= hopeless {
			failing = fmt.Errorf("%s keeps ending: %s", name, p.LastExit)
			return true, nil
		}
		return p.Running && p.Ready(ctx), nil
	})
	if err = errors.Join(err, failing); err != nil {
		return fmt.Errorf("%w\n%s", err, Tail(LogPath(c.dir, name), logTail))
	}
	return nil
}

// Tail returns the last lines of a log, indented.
func Tail(path string, lines int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return "    " + err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return "    " + strings.Join(all[max(0, len(all)-lines):], "\n    ")
}

// shutdownTimeout is how long an orderly end may take.
const shutdownTimeout = 45 * time.Second

// Shutdown makes the supervisor end all processes in order, and then itself.
// After an error some may still run: see KillRecorded.
func (c Control) Shutdown(ctx context.Context) error {
	recorded, err := c.recorded()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	if err := c.call(ctx, http.MethodPost, "/shutdown", nil, nil); err != nil {
		return err
	}
	return await.Until(ctx, "the supervisor to end", 20*time.Millisecond, func(context.Context) (bool, error) {
		return !recorded.Supervisor.Alive(), nil
	})
}

func (c Control) recorded() (records, error) {
	var r records
	content, err := os.ReadFile(recordPath(c.dir))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(content, &r)
}

// KillRecorded kills the supervisor and every process it recorded last that
// still run. A process number that was reused since is left alone.
func (c Control) KillRecorded(ctx context.Context) error {
	recorded, err := c.recorded()
	if err != nil {
		return err
	}
	slices.SortFunc(recorded.Processes, func(a, b Status) int { return int(b.Tier - a.Tier) })
	// The supervisor first, so that it restarts nothing.
	for _, id := range append([]Identity{recorded.Supervisor}, identities(recorded.Processes)...) {
		if err := id.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("kill process %d: %w", id.PID, err)
		}
		gone := func(context.Context) (bool, error) { return !id.Alive(), nil }
		if err := await.Until(ctx, fmt.Sprintf("process %d to end", id.PID), time.Millisecond, gone); err != nil {
			return err
		}
	}
	return nil
}

func identities(processes []Status) []Identity {
	ids := make([]Identity, 0, len(processes))
	for _, p := range processes {
		ids = append(ids, p.Identity)
	}
	return ids
}
