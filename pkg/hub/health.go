package hub

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// health serves /healthz and /readyz, from before the manager is built until after
// it has ended.
type health struct {
	listener net.Listener // nil if the server is turned off

	// notReady is the reason, or nil.
	notReady atomic.Pointer[string]
}

// newHealth listens on the address; "0" turns the server off. It is not ready until told
// otherwise.
func newHealth(address string) (*health, error) {
	h := &health{}
	h.setNotReady("the manager is starting")
	if address == "0" {
		return h, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--health-probe-bind-address: %w", err)
	}
	h.listener = listener
	return h, nil
}

func (h *health) setReady() { h.notReady.Store(nil) }

// setNotReady makes /readyz fail with a reason.
func (h *health) setNotReady(reason string) { h.notReady.Store(&reason) }

// serveWhile serves while work runs, and returns the errors of both. If the server
// fails, it ends the context of work.
func (h *health) serveWhile(ctx context.Context, work func(context.Context) error) error {
	if h.listener == nil {
		return work(ctx)
	}
	workCtx, stopWork := context.WithCancel(ctx)
	defer stopWork()
	serverCtx, stopServer := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServer()
	ended := make(chan error, 1)
	go func() {
		defer stopWork()
		ended <- h.server().Start(serverCtx)
	}()
	err := work(workCtx)
	stopServer()
	return errors.Join(err, <-ended)
}

func (h *health) server() *manager.Server {
	mux := http.NewServeMux()
	alive := &healthz.Handler{Checks: map[string]healthz.Checker{"ping": healthz.Ping}}
	for path, handler := range map[string]http.Handler{"/healthz": alive, "/readyz": h.readiness(alive)} {
		mux.Handle(path, http.StripPrefix(path, handler))
		mux.Handle(path+"/", http.StripPrefix(path, handler))
	}
	return &manager.Server{
		Name:            "health probe",
		Listener:        h.listener,
		Server:          &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second},
		ShutdownTimeout: ptr.To(time.Second),
	}
}

// readiness responds as ready does, unless there is a reason not to be ready.
func (h *health) readiness(ready http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if reason := h.notReady.Load(); reason != nil {
			http.Error(w, *reason, http.StatusServiceUnavailable)
			return
		}
		ready.ServeHTTP(w, req)
	})
}
