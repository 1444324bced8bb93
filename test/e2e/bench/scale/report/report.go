// Package report stores the results of a benchmark at scale, and shows them as JSON, tables
// and plots. It measures nothing.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/stats"
)

// The writers.
const (
	Raw    = "raw writer"
	Addon  = "this addon"
	Gate   = "OCM's gate"
	Syncer = "MSA's syncer"
)

// The scenarios.
const (
	Enable      = "enable"
	Bind        = "bind"
	EditAll     = "edit of all"
	Unbind      = "unbind"
	EditStream  = "edits at a rate"
	Flap        = "edits beside a flapping cluster"
	Second      = "bind a second namespace"
	Restart     = "restart"
	Swap        = "swap of half the fleet"
	FirstCopies = "first copies"
	Rotation    = "rotation of all tokens"
	Revocation  = "revocation behind first writes"
)

// Done is the outcome of a successful step.
const Done = "done"

// Machine is the machine of a run.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory int64  `json:"memoryBytes"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	// Load is the machine's load average of a minute before the run: others' load.
	Load float64 `json:"loadBefore"`
}

// Run holds the results for one number of clusters.
type Run struct {
	Clusters int       `json:"clusters"`
	Claims   int       `json:"claims"`
	Began    time.Time `json:"began"`
	Seconds  float64   `json:"seconds"`
	Commit   string    `json:"commit"`
	Machine  Machine   `json:"machine"`
	Steps    []Step    `json:"steps"`
}

// Step is one execution of a scenario by one writer.
type Step struct {
	Scenario string `json:"scenario"`
	Writer   string `json:"writer"`
	// Round counts the repetitions, from 1.
	Round int `json:"round"`
	// Objects is the number of objects it was done to.
	Objects int `json:"objects"`
	// Outcome is Done, or says what went wrong and how far the step came.
	Outcome string `json:"outcome"`
	// Seconds until the last object showed what it should, to one watch.
	Seconds float64 `json:"seconds"`
	// Rate is the number of edits started per second, where a rate was requested: lower
	// than requested if the API server did not accept more.
	Rate float64 `json:"rate,omitempty"`
	// Latency of single changes, where measured, and Floor, the time until a watch showed
	// the change itself: no watcher can be faster.
	Latency *Latency `json:"latency,omitempty"`
	Floor   *Latency `json:"floor,omitempty"`
	// Requests, Bytes and CPU include what followed until all processes had settled.
	Requests map[string]int     `json:"requests,omitempty"`
	Bytes    map[string]int64   `json:"bytes,omitempty"`
	CPU      map[string]float64 `json:"cpuSeconds,omitempty"`
	// Peak and Settled are memory in bytes, by process.
	Peak    map[string]int64 `json:"peakBytes,omitempty"`
	Settled map[string]int64 `json:"settledBytes,omitempty"`
	// Note is what a reader should know about this step.
	Note string `json:"note,omitempty"`
}

// Latency is a sample in milliseconds.
type Latency struct {
	N    int     `json:"n"`
	Lost int     `json:"lost"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// LatencyOf summarizes a sample. Lost changes never became visible.
func LatencyOf(sample stats.Sample, lost int) *Latency {
	ms := func(q float64) float64 { return float64(sample.Quantile(q).Microseconds()) / 1000 }
	return &Latency{N: len(sample), Lost: lost, P50: ms(0.5), P90: ms(0.9), P99: ms(0.99), Max: ms(1)}
}

// Write stores a run.
func (r *Run) Write(path string) error {
	content, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o644) //nolint:gosec // to be published
}

// ErrNothing says that there is nothing to report.
var ErrNothing = errors.New("no runs to report")

// Read returns the runs in the files, the smallest first.
func Read(paths ...string) ([]Run, error) {
	if len(paths) == 0 {
		return nil, ErrNothing
	}
	runs := make([]Run, 0, len(paths))
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var run Run
		if err := json.Unmarshal(content, &run); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		runs = append(runs, run)
	}
	slices.SortStableFunc(runs, func(a, b Run) int { return a.Clusters - b.Clusters })
	return runs, nil
}

// of returns the successful steps of a kind.
func (r *Run) of(scenario, writer string) []Step {
	var steps []Step
	for _, s := range r.Steps {
		if s.Scenario == scenario && s.Writer == writer && s.Outcome == Done {
			steps = append(steps, s)
		}
	}
	return steps
}

// seconds returns the seconds of these steps.
func seconds(steps []Step) []float64 {
	all := make([]float64, 0, len(steps))
	for _, s := range steps {
		all = append(all, s.Seconds)
	}
	return all
}

// median returns the median of a number of each step.
func median(steps []Step, number func(Step) float64) float64 {
	all := make([]float64, 0, len(steps))
	for _, s := range steps {
		all = append(all, number(s))
	}
	return stats.Median(all)
}

// ratio compares two writers by the steps that both did in the same round.
func (r *Run) ratio(scenario, writer, other string) stats.Ratio {
	var ours, theirs []float64
	for _, s := range r.of(scenario, writer) {
		for _, o := range r.of(scenario, other) {
			if o.Round == s.Round {
				ours, theirs = append(ours, s.Seconds), append(theirs, o.Seconds)
			}
		}
	}
	return stats.RatioOf(ours, theirs)
}
