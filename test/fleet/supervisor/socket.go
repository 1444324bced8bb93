package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/files"
)

const socketName = "control.sock"

// socketPath goes through the descriptor of the socket's directory, because a
// socket's own path may not exceed 107 bytes.
func socketPath(dir *os.File) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), socketName)
}

// listen opens the control socket in dir.
func listen(dir string) (net.Listener, func(), error) {
	if err := os.MkdirAll(dir, files.PrivateDir); err != nil {
		return nil, nil, err
	}
	handle, err := os.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	path := socketPath(handle)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, nil, err
	}
	return listener, func() {
		_ = listener.Close()
		_ = handle.Close()
	}, nil
}

func dial(ctx context.Context, dir string) (net.Conn, error) {
	handle, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = handle.Close() }()
	return (&net.Dialer{}).DialContext(ctx, "unix", socketPath(handle))
}

// handler serves what Control asks.
func (s *supervisor) handler(shutdown func()) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /processes", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(s.statuses()); err != nil {
			s.log.Printf("send processes: %v", err)
		}
	})
	mux.HandleFunc("POST /ensure", func(w http.ResponseWriter, r *http.Request) {
		var p Process
		err := json.NewDecoder(r.Body).Decode(&p)
		if err == nil {
			err = s.ensure(p)
		}
		respond(w, err)
	})
	mux.HandleFunc("POST /start", func(w http.ResponseWriter, r *http.Request) {
		respond(w, s.start(r.URL.Query().Get("name")))
	})
	mux.HandleFunc("POST /stop", func(w http.ResponseWriter, r *http.Request) {
		respond(w, s.stop(r.URL.Query().Get("name")))
	})
	mux.HandleFunc("POST /shutdown", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, nil)
		shutdown()
	})
	return mux
}

func respond(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}
