package faults

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// verdict is how a plan ended.
type verdict string

const (
	passed  verdict = "passed"
	finding verdict = "finding"
	// notReached says that the write or event of the plan did not come, so nothing was injected.
	notReached verdict = "not reached"
	// broken says that something else than the manager failed: the suite, the hub or the machine.
	broken verdict = "broken"
	// noReference says that a story has no reference, so none of its plans can run.
	noReference verdict = "no reference"
)

// outcome is one line of the file of results.
type outcome struct {
	// Plan can be repeated with PLAN.
	Plan string `json:"plan"`
	// Writer is whose program it is, and Manager a digest of it: results of another one do not
	// count.
	Writer   string   `json:"writer,omitempty"`
	Manager  string   `json:"manager"`
	Verdict  verdict  `json:"verdict"`
	Findings []string `json:"findings,omitempty"`
	Seconds  float64  `json:"seconds"`
	// Loaded is the share of the last minute, in percent, in which work waited for a CPU.
	Loaded float64 `json:"loaded"`
}

// unknownLoad is Loaded where the kernel does not say.
const unknownLoad = -1

func (o outcome) failed() bool { return o.Verdict == broken || o.Verdict == finding }

// onTime are the kinds of violations that a busy machine may cause.
var onTime = []string{ofEffect, ofState, ofNumber, ofQuiet}

// mayRepeat reports whether a second run may replace the outcome: what must never happen counts at once.
func (o outcome) mayRepeat() bool {
	isLasting := func(kind string) bool { return !slices.Contains(onTime, kind) }
	return o.failed() && !slices.ContainsFunc(violations(o), isLasting)
}

// results are the outcomes so far, kept in a file if it has a path. They are safe for
// concurrent use.
type results struct {
	path, writer, manager string

	mu   sync.Mutex
	last map[string]outcome // by plan
}

// openResults reads what the file has of the same writer and program.
func openResults(path, writer, manager string) (*results, error) {
	r := &results{path: path, writer: writer, manager: manager, last: map[string]outcome{}}
	if path == "" {
		return r, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, err
	}
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var o outcome
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			continue // an interrupted run may have left half a line
		}
		if o.Writer == writer && o.Manager == manager {
			r.last[o.Plan] = o
		}
	}
	return r, lines.Err()
}

// add records an outcome.
func (r *results) add(o outcome) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	o.Writer, o.Manager = r.writer, r.manager
	r.last[o.Plan] = o
	if r.path == "" {
		return nil
	}
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(r.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// done reports whether a plan needs no further run. A broken one does.
func (r *results) done(p plan) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, ran := r.last[p.String()]
	return ran && o.Verdict != broken
}

// selects returns the variables by which make robust runs a plan with the same writer.
func (r *results) selects(plan string) string {
	if r.writer == "" {
		return fmt.Sprintf("PLAN='%s'", plan)
	}
	return fmt.Sprintf("WRITER=%s PLAN='%s'", r.writer, plan)
}

// count returns how many plans ended so.
func (r *results) count(as verdict) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, o := range r.last {
		if o.Verdict == as {
			n++
		}
	}
	return n
}

// loads says how busy the machine was. It requires the lock.
func (r *results) loads() string {
	var known []float64
	sum := 0.0
	for _, o := range r.last {
		if o.Loaded != unknownLoad {
			known = append(known, o.Loaded)
			sum += o.Loaded
		}
	}
	if len(known) == 0 {
		return "The kernel does not say how busy the CPUs were."
	}
	return fmt.Sprintf("Work waited for a CPU for %.0f to %.0f %% of the time, %.0f %% on average.",
		slices.Min(known), slices.Max(known), sum/float64(len(known)))
}

// summary writes how many plans ended how, by kind of fault, how many violate which oracle, which share of all
// plans that is, and all findings.
func (r *results) summary(out io.Writer, all []plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	violated := map[string]int{}
	counts, sum := map[string]map[verdict]int{}, map[verdict]int{}
	var found []outcome
	for _, name := range slices.Sorted(maps.Keys(r.last)) {
		o := r.last[name]
		kind := strings.Fields(name)[1]
		if counts[kind] == nil {
			counts[kind] = map[verdict]int{}
		}
		counts[kind][o.Verdict]++
		sum[o.Verdict]++
		if slices.Contains([]verdict{finding, broken, noReference}, o.Verdict) {
			found = append(found, o)
		}
		for _, kind := range violations(o) {
			violated[kind]++
		}
	}
	fmt.Fprintf(out, "\n| fault | plans | passed | findings | not reached | broken | no reference |\n"+
		"|---|---:|---:|---:|---:|---:|---:|\n")
	row := func(name string, of map[verdict]int) {
		fmt.Fprintf(out, "| %s | %d | %d | %d | %d | %d | %d |\n", name, of[passed]+of[finding]+of[notReached]+of[broken],
			of[passed], of[finding], of[notReached], of[broken], of[noReference])
	}
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		row(kind, counts[kind])
	}
	row("all", sum)
	fmt.Fprintf(out, "\n| violation | plans |\n|---|---:|\n")
	for _, kind := range violationKinds {
		fmt.Fprintf(out, "| %s | %d |\n", kind, violated[kind])
	}
	if len(all) > 0 {
		const percent = 100
		ran := 0
		for _, p := range all {
			if verdict := r.last[p.String()].Verdict; verdict == passed || verdict == finding {
				ran++
			}
		}
		fmt.Fprintf(out, "\n%d of %d plans (%.0f %%) have run with this manager and this suite.\n", ran, len(all),
			percent*float64(ran)/float64(len(all)))
		fmt.Fprintln(out, r.loads())
	}
	for _, o := range found {
		fmt.Fprintf(out, "\n%s: %s\n", o.Verdict, r.selects(o.Plan))
		for _, text := range o.Findings {
			fmt.Fprintf(out, "  %s\n", strings.ReplaceAll(text, "\n", "\n  "))
		}
	}
}

// violations returns the kinds of an outcome's findings, each once.
func violations(o outcome) []string {
	var kinds []string
	if o.Verdict != finding {
		return nil
	}
	for _, text := range o.Findings {
		kind, _, _ := strings.Cut(text, ": ")
		if slices.Contains(violationKinds, kind) && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// digest names programs by their content.
func digest(paths ...string) (string, error) {
	hash := sha256.New()
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		_, _ = hash.Write(content) // a hash never fails
	}
	return hex.EncodeToString(hash.Sum(nil)[:6]), nil
}

// cpuPressure returns the share of the last minute, in percent, in which work waited for a
// CPU; unknownLoad where the kernel does not say.
func cpuPressure() float64 {
	content, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return unknownLoad
	}
	var ten, sixty float64
	if _, err := fmt.Sscanf(string(content), "some avg10=%f avg60=%f", &ten, &sixty); err != nil {
		return unknownLoad
	}
	return sixty
}
