package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// event is the part of a test event (go doc test2json) that is used here.
type event struct {
	Action, Package, Test, Output string  `json:",omitempty"`
	Elapsed                       float64 `json:",omitempty"`
}

// times are how long packages took and how many tests ran in them, by import path.
type times map[string]*elapsed

type elapsed struct {
	seconds float64
	tests   int
}

// decode returns the event in a line. Other lines, such as those of a failed build, are left to the runner.
func decode(line []byte) (e event, ok bool) {
	err := json.Unmarshal(line, &e)
	return e, err == nil && e.Package != ""
}

// add counts an event.
func (t times) add(e event) {
	if e.Action != "pass" && e.Action != "fail" && e.Action != "skip" {
		return
	}
	if t[e.Package] == nil {
		t[e.Package] = &elapsed{}
	}
	if e.Test != "" {
		t[e.Package].tests++
	} else {
		t[e.Package].seconds += e.Elapsed // of its parts
	}
}

const ownModule = "open-cluster-management.io/cluster-inventory-addon/"

// table lists the packages that took a second or more, the longest first.
func (t times) table() []string {
	packages := slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		return cmp.Or(cmp.Compare(t[b].seconds, t[a].seconds), cmp.Compare(a, b))
	})
	var text bytes.Buffer
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(seconds float64, tests int, name string) {
		_, _ = fmt.Fprintf(columns, "%.1f\t%d\t  %s\n", seconds, tests, name) // writing to a buffer cannot fail
	}
	_, _ = fmt.Fprint(columns, "seconds\ttests\t  package\n")
	var short, all elapsed
	shorts := 0
	for _, name := range packages {
		e := t[name]
		all.seconds, all.tests = all.seconds+e.seconds, all.tests+e.tests
		switch {
		case e.tests == 0 && e.seconds < 1:
		case e.seconds < 1:
			short.seconds, short.tests = short.seconds+e.seconds, short.tests+e.tests
			shorts++
		default:
			row(e.seconds, e.tests, strings.TrimPrefix(name, ownModule))
		}
	}
	if shorts > 0 {
		row(short.seconds, short.tests, fmt.Sprintf("%d others, each below a second", shorts))
	}
	row(all.seconds, all.tests, "all, some of them side by side")
	_ = columns.Flush() // to a buffer
	return strings.SplitAfter(strings.TrimRight(text.String(), "\n"), "\n")
}

// outputEvent returns a line that runners show because it belongs to a package but to no
// test of it.
func outputEvent(line string) ([]byte, error) {
	content, err := json.Marshal(event{Action: "output", Package: "times", Output: strings.TrimRight(line, "\n") + "\n"})
	return append(content, '\n'), err
}
