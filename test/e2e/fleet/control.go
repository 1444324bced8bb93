package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const controlSocket = "control.sock"

// errNoSupervisor says that nobody answers on the control socket.
var errNoSupervisor = errors.New("the fleet's supervisor does not run")

// handler is the supervisor's side of the control socket.
func (s *supervisor) handler(shutdown func()) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /processes", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(s.statuses()); err != nil {
			s.log.Printf("answer: %v", err)
		}
	})
	mux.HandleFunc("POST /ensure", func(w http.ResponseWriter, r *http.Request) {
		var p Process
		err := json.NewDecoder(r.Body).Decode(&p)
		if err == nil {
			err = s.ensure(p)
		}
		s.answer(w, err)
	})
	mux.HandleFunc("POST /start", func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, s.start(r.URL.Query().Get("name")))
	})
	mux.HandleFunc("POST /stop", func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, s.stop(r.URL.Query().Get("name")))
	})
	mux.HandleFunc("POST /shutdown", func(w http.ResponseWriter, _ *http.Request) {
		s.answer(w, nil)
		shutdown()
	})
	return mux
}

func (s *supervisor) answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// call asks the supervisor.
func (f *Fleet) call(ctx context.Context, method, path string, in, out any) error {
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
	transport := &http.Transport{DialContext: f.dialControl, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return errNoSupervisor
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
		return fmt.Errorf("fleet %s: %s", f.Name, strings.TrimSpace(string(content)))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(content, out)
}

func (f *Fleet) dialControl(ctx context.Context, _, _ string) (net.Conn, error) {
	handle, err := os.Open(f.path("run"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = handle.Close() }()
	dialer := net.Dialer{}
	return dialer.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", handle.Fd(), controlSocket))
}

// Processes lists what the supervisor runs, by name.
func (f *Fleet) Processes(ctx context.Context) ([]ProcessStatus, error) {
	var all []ProcessStatus
	return all, f.call(ctx, http.MethodGet, "/processes", nil, &all)
}

// Process returns one process.
func (f *Fleet) Process(ctx context.Context, name string) (ProcessStatus, error) {
	all, err := f.Processes(ctx)
	if err != nil {
		return ProcessStatus{}, err
	}
	for _, p := range all {
		if p.Name == name {
			return p, nil
		}
	}
	return ProcessStatus{}, fmt.Errorf("fleet %s has no process %q", f.Name, name)
}

// Ensure makes a process run as described; one that runs with other arguments
// is restarted. Take a Process, change it, and Ensure it to play another
// configuration of the same component.
func (f *Fleet) Ensure(ctx context.Context, p Process) error {
	return f.call(ctx, http.MethodPost, "/ensure", p, nil)
}

// Stop ends a process, such as "cluster1/registration-agent", until Start. It
// returns when the process is gone.
func (f *Fleet) Stop(ctx context.Context, name string) error {
	return f.call(ctx, http.MethodPost, "/stop?name="+url.QueryEscape(name), nil, nil)
}

// Start starts a process that was stopped; see WaitReady.
func (f *Fleet) Start(ctx context.Context, name string) error {
	return f.call(ctx, http.MethodPost, "/start?name="+url.QueryEscape(name), nil, nil)
}

// Restart stops and starts a process and waits till it is ready.
func (f *Fleet) Restart(ctx context.Context, name string) error {
	if err := f.Stop(ctx, name); err != nil {
		return err
	}
	if err := f.Start(ctx, name); err != nil {
		return err
	}
	return f.WaitReady(ctx, name)
}

// hopeless is after how many restarts in a row waiting for a process is given up.
const hopeless = 6

// WaitReady waits till a process answers its probe; one without a probe is
// ready when it runs. The error of one that does not get ready ends with the
// last lines of its log.
func (f *Fleet) WaitReady(ctx context.Context, name string) error {
	before, err := f.Process(ctx, name)
	if err != nil {
		return err
	}
	var failing error
	err = wait(ctx, name+" to be ready", 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		p, err := f.Process(ctx, name)
		if err != nil {
			return false, err
		}
		if p.Restarts-before.Restarts >= hopeless {
			failing = fmt.Errorf("%s ends again and again: %s", name, p.LastExit)
			return true, nil
		}
		return p.Running && p.ready(ctx), nil
	})
	if err = errors.Join(err, failing); err != nil {
		return fmt.Errorf("%w\n%s", err, tail(filepath.Join(f.LogDir(), name+".log"), logTail))
	}
	return nil
}
