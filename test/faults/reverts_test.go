package faults

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

var revertsFlag = flag.String("reverts", "", "folder of managers, each built with the patch of its name in reverts")

// revert is a known fix that is not in a manager.
type revert struct {
	name, program string
	plans         []plan // one of them must have a finding
}

// readReverts reads the plans of the reverts whose managers are in a folder.
func readReverts(tb testing.TB, folder string) []revert {
	tb.Helper()
	programs, err := filepath.Glob(filepath.Join(folder, "*"))
	apitest.Must(tb, err)
	var all []revert
	for _, program := range programs {
		name := filepath.Base(program)
		content, err := os.ReadFile(filepath.Join("reverts", name+".patch"))
		apitest.Must(tb, err)
		all = append(all, revert{name: name, program: program, plans: plansIn(tb, string(content))})
	}
	return all
}

// plansIn returns the plans that the head of a patch names.
func plansIn(tb testing.TB, patch string) []plan {
	tb.Helper()
	var plans []plan
	for line := range strings.Lines(patch) {
		if text, is := strings.CutPrefix(line, "Plan: "); is {
			p, err := parsePlan(text)
			apitest.Must(tb, err)
			plans = append(plans, p)
		}
	}
	if len(plans) == 0 {
		tb.Fatalf("no plan in %q", patch)
	}
	return plans
}

func TestEveryRevertHasAPlan(t *testing.T) {
	patches, err := filepath.Glob(filepath.Join("reverts", "*.patch"))
	apitest.Must(t, err)
	if len(patches) == 0 {
		t.Fatal("there are no reverts")
	}
	for _, path := range patches {
		content, err := os.ReadFile(path)
		apitest.Must(t, err)
		plansIn(t, string(content))
	}
}

// TestReverts shows that plans find known fixes that are missing: each plan passes with the
// manager of this tree, and has a finding with the revert.
func TestReverts(t *testing.T) {
	if *revertsFlag == "" {
		t.Skip("make robust-reverts runs it")
	}
	all := readReverts(t, *revertsFlag)
	s := newSuite(t, "")
	s.start(*laneFlag, slices.DeleteFunc(slices.Clone(stories), func(s story) bool {
		return !slices.ContainsFunc(all, func(r revert) bool {
			return slices.ContainsFunc(r.plans, func(p plan) bool { return p.story == s.name })
		})
	}))
	rows := make([]string, len(all))
	var mu sync.Mutex
	passes := map[plan]bool{} // with the manager of this tree
	s.share(len(all), func(l **lane, i int) {
		r := all[i]
		t.Run(r.name, func(t *testing.T) {
			rows[i] = fmt.Sprintf("| %s | not found | |", r.name)
			defer func() { fmt.Fprintln(os.Stderr, rows[i]) }()
			if *l == nil {
				*l = newLane(s, s.writer, s.certificate)
			}
			for _, p := range r.plans {
				mu.Lock()
				passed := passes[p]
				mu.Unlock()
				if !passed {
					if findings := s.with(t, *l, "", p); len(findings) > 0 {
						t.Fatalf("%s has findings without the revert, too:\n%s", p, strings.Join(findings, "\n"))
					}
					mu.Lock()
					passes[p] = true
					mu.Unlock()
				}
				began := time.Now()
				if findings := s.with(t, *l, r.program, p); len(findings) > 0 {
					t.Log(strings.Join(findings, "\n"))
					rows[i] = fmt.Sprintf("| %s | `%s` | %.0f |", r.name, p, time.Since(began).Seconds())
					return
				}
			}
			t.Error("no plan has a finding")
		})
	})
	t.Log("\n| revert | found by | seconds |\n|---|---|---:|\n" + strings.Join(rows, "\n"))
}

// with runs a plan with a program as the manager, and returns the findings.
func (s *suite) with(t *testing.T, l *lane, program string, p plan) []string {
	t.Helper()
	if l.program != program {
		l.discard()
		l.program = program
	}
	of := s.story(p)
	ref := s.references[p.story]
	got, err := l.run(t, of, p.fault, &ref, quiet)
	if err != nil {
		l.discard()
		t.Fatalf("%s is broken: %v", p, err)
	}
	findings := judge(of, ref, got)
	if len(findings) > 0 {
		l.discard()
	} else if got.record.Fired.IsZero() && p.fault.Kind != proxy.None {
		t.Fatalf("%s did not reach its write or event", p)
	}
	return findings
}
