// Package meter measures a benchmark's costs: CPU time and memory of processes from /proc,
// requests and bytes from the API server's own metrics.
package meter

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// sampling is how often memory is read, to find its peak.
	sampling = 200 * time.Millisecond
	// quiet is how long all processes must be idle to count as settled.
	quiet = 1500 * time.Millisecond
	// busy is the share of one core that settled processes do not exceed.
	busy = 0.04
)

// Meter reads the processes of one hub.
type Meter struct {
	// Hub reads the API server's metrics.
	Hub rest.Interface
	// Processes are the IDs of the processes to measure, by name. Processes that do not run
	// are left out.
	Processes func(ctx context.Context) (map[string]int, error)
}

// Cost is the resource usage of a measurement.
type Cost struct {
	Counters
	// CPU in seconds, by process.
	CPU map[string]float64
	// Peak and Settled are the memory in bytes: its maximum, and its size in the end.
	Peak, Settled map[string]int64
}

// Measurement is a measurement in progress.
type Measurement struct {
	meter  *Meter
	before Counters
	usages map[string]Usage
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu   sync.Mutex
	peak map[string]int64
}

// Begin starts a measurement.
func (m *Meter) Begin(ctx context.Context) (*Measurement, error) {
	counters, err := Server(ctx, m.Hub)
	if err != nil {
		return nil, err
	}
	usages, err := m.usages(ctx)
	if err != nil {
		return nil, err
	}
	started := &Measurement{meter: m, before: counters, usages: usages, peak: map[string]int64{}}
	ctx, started.cancel = context.WithCancel(ctx)
	started.ended.Go(func() { started.sample(ctx) })
	return started, nil
}

// sample records the peak memory. It asks for the processes each time, because one may be
// replaced.
func (s *Measurement) sample(ctx context.Context) {
	ticker := time.NewTicker(sampling)
	defer ticker.Stop()
	for {
		if usages, err := s.meter.usages(ctx); err == nil {
			s.note(usages)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (s *Measurement) note(usages map[string]Usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, usage := range usages {
		s.peak[name] = max(s.peak[name], usage.RSS)
	}
}

// End returns the resource usage since the beginning.
func (s *Measurement) End(ctx context.Context) (Cost, error) {
	s.cancel()
	s.ended.Wait()
	counters, err := Server(ctx, s.meter.Hub)
	if err != nil {
		return Cost{}, err
	}
	usages, err := s.meter.usages(ctx)
	if err != nil {
		return Cost{}, err
	}
	s.note(usages)
	cost := Cost{
		Counters: counters.since(s.before),
		CPU:      map[string]float64{}, Peak: maps.Clone(s.peak), Settled: map[string]int64{},
	}
	for name, usage := range usages {
		cost.CPU[name] = usage.since(s.usages[name]).Seconds()
		cost.Settled[name] = usage.RSS
	}
	return cost, nil
}

func (m *Meter) usages(ctx context.Context) (map[string]Usage, error) {
	processes, err := m.Processes(ctx)
	if err != nil {
		return nil, err
	}
	usages := map[string]Usage{}
	for name, pid := range processes {
		usage, err := Process(pid)
		if err != nil {
			continue // it ended since
		}
		usages[name] = usage
	}
	return usages, nil
}

// Settle waits until the named processes use almost no CPU, and returns the time at which
// that began.
func (m *Meter) Settle(ctx context.Context, names ...string) (time.Time, error) {
	const every = 250 * time.Millisecond
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	window := newWindow(quiet, busy)
	for {
		usages, err := m.usages(ctx)
		if err != nil {
			return time.Time{}, err
		}
		var used time.Duration
		identity := ""
		for _, name := range names {
			used += usages[name].CPU
			identity += fmt.Sprintf("%d/%d ", usages[name].PID, usages[name].Start)
		}
		if since, settled := window.add(time.Now(), identity, used); settled {
			return since, nil
		}
		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("%v did not come to rest: %w", names, ctx.Err())
		case <-ticker.C:
		}
	}
}

// window holds recent CPU times.
type window struct {
	length time.Duration
	share  float64
	points []point
	whose  string
}

type point struct {
	at   time.Time
	used time.Duration
}

func newWindow(length time.Duration, share float64) *window {
	return &window{length: length, share: share}
}

// add records a reading, and reports whether little CPU was used for the length of the
// window, and since when.
func (w *window) add(at time.Time, whose string, used time.Duration) (since time.Time, settled bool) {
	if whose != w.whose { // a process was replaced
		w.whose, w.points = whose, nil
	}
	w.points = append(w.points, point{at: at, used: used})
	for len(w.points) > 1 && at.Sub(w.points[1].at) >= w.length {
		w.points = w.points[1:]
	}
	first := w.points[0]
	passed := at.Sub(first.at)
	if passed < w.length || float64(used-first.used) > w.share*float64(passed) {
		return time.Time{}, false
	}
	return first.at, true
}
