// Package progress tells a waiting person what a command is doing.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Report writes a line at a time, each with the seconds since it was created.
type Report struct {
	mu    sync.Mutex
	out   io.Writer
	start time.Time
}

// New reports to out; if out is nil, reports are dropped.
func New(out io.Writer) *Report {
	if out == nil {
		out = io.Discard
	}
	return &Report{out: out, start: time.Now()}
}

// Out is where the lines go.
func (r *Report) Out() io.Writer { return r.out }

// Line adds a line.
func (r *Report) Line(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Failing to report progress must not stop the work.
	_, _ = fmt.Fprintf(r.out, "%6.1fs  %s\n", time.Since(r.start).Seconds(), fmt.Sprintf(format, args...))
}
