package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ends are the tests of each package that have begun and not ended, and whether any has failed.
type ends map[string]*end

type end struct {
	running       map[string]bool
	failed, early bool
}

// add counts an event.
func (t ends) add(e event) {
	of := t[e.Package]
	if of == nil {
		of = &end{running: map[string]bool{}}
		t[e.Package] = of
	}
	switch {
	case e.Action == "run":
		of.running[e.Test] = true
	case e.Test != "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip"):
		delete(of.running, e.Test)
		of.failed = of.failed || e.Action == "fail"
	case e.Test == "" && e.Action == "fail":
		of.early = !of.failed || len(of.running) > 0
	}
}

// early is an error if a package failed outside its tests, or while one was running: others of its tests may not
// have run at all, so that it is not enough to run again those that failed.
func (t ends) early() error {
	var packages []string
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if t[name].early {
			packages = append(packages, strings.TrimPrefix(name, ownModule))
		}
	}
	if len(packages) == 0 {
		return nil
	}
	return fmt.Errorf("failed outside their tests, or before these had ended: %s", strings.Join(packages, ", "))
}
