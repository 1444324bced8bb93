package fleet

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress tells a waiting person what happens, a line at a time, with the
// seconds since the command began.
type progress struct {
	mu    sync.Mutex
	out   io.Writer
	start time.Time
}

func newProgress(out io.Writer) *progress {
	if out == nil {
		out = io.Discard
	}
	return &progress{out: out, start: time.Now()}
}

func (p *progress) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Progress that cannot be written must not stop the work.
	_, _ = fmt.Fprintf(p.out, "%6.1fs  %s\n", time.Since(p.start).Seconds(), fmt.Sprintf(format, args...))
}
