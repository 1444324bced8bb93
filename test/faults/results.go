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
)

// outcome is one line of the file of results.
type outcome struct {
	// Plan can be repeated with PLAN.
	Plan string `json:"plan"`
	// Manager is a digest of the program: results of another one do not count.
	Manager  string   `json:"manager"`
	Verdict  verdict  `json:"verdict"`
	Findings []string `json:"findings,omitempty"`
	Seconds  float64  `json:"seconds"`
	// Loaded is the share of the last minute, in percent, in which work waited for a CPU.
	Loaded float64 `json:"loaded"`
}

// results are the outcomes so far, kept in a file if it has a path. They are safe for
// concurrent use.
type results struct {
	path, manager string

	mu   sync.Mutex
	last map[string]outcome // by plan
}

// openResults reads what the file has of the same manager.
func openResults(path, manager string) (*results, error) {
	r := &results{path: path, manager: manager, last: map[string]outcome{}}
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
		if o.Manager == manager {
			r.last[o.Plan] = o
		}
	}
	return r, lines.Err()
}

// add records an outcome.
func (r *results) add(o outcome) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	o.Manager = r.manager
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

// summary writes how many plans ended how, by kind of fault, and all findings.
func (r *results) summary(out io.Writer, all int) {
	r.mu.Lock()
	defer r.mu.Unlock()
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
		if o.Verdict == finding || o.Verdict == broken {
			found = append(found, o)
		}
	}
	fmt.Fprintf(out, "\n| fault | plans | passed | findings | not reached | broken |\n|---|---:|---:|---:|---:|---:|\n")
	row := func(name string, of map[verdict]int) {
		fmt.Fprintf(out, "| %s | %d | %d | %d | %d | %d |\n", name, of[passed]+of[finding]+of[notReached]+of[broken],
			of[passed], of[finding], of[notReached], of[broken])
	}
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		row(kind, counts[kind])
	}
	row("all", sum)
	if all > 0 {
		const percent = 100
		ran := len(r.last) - sum[broken]
		fmt.Fprintf(out, "\n%d of %d plans (%.0f %%) have run with this manager.\n", ran, all,
			percent*float64(ran)/float64(all))
	}
	for _, o := range found {
		fmt.Fprintf(out, "\n%s: PLAN='%s'\n", o.Verdict, o.Plan)
		for _, text := range o.Findings {
			fmt.Fprintf(out, "  %s\n", strings.ReplaceAll(text, "\n", "\n  "))
		}
	}
}

// digest names a program by its content.
func digest(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:6]), nil
}

// cpuPressure returns the share of the last minute, in percent, in which work waited for a
// CPU; 0 where the kernel does not say.
func cpuPressure() float64 {
	content, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return 0
	}
	var ten, sixty float64
	if _, err := fmt.Sscanf(string(content), "some avg10=%f avg60=%f", &ten, &sixty); err != nil {
		return 0
	}
	return sixty
}
