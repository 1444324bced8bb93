package faults

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
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

// revert is a known fix that is not in a manager, or in an agent.
type revert struct {
	name, program string
	writer        string // of the program
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
		writer, plans := headOf(tb, string(content))
		all = append(all, revert{name: name, program: program, writer: writer, plans: plans})
	}
	return all
}

// headOf returns the writer that the head of a patch names, or "" for this addon's manager, and the
// plans.
func headOf(tb testing.TB, patch string) (of string, plans []plan) {
	tb.Helper()
	for line := range strings.Lines(patch) {
		if text, is := strings.CutPrefix(line, "Writer: "); is {
			of = strings.TrimSpace(text)
		}
	}
	known := writerNamed(tb, of, "").stories
	for line := range strings.Lines(patch) {
		if text, is := strings.CutPrefix(line, "Plan: "); is {
			p, err := parsePlan(known, text)
			apitest.Must(tb, err)
			plans = append(plans, p)
		}
	}
	if len(plans) == 0 {
		tb.Fatalf("no plan in %q", patch)
	}
	return of, plans
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
		headOf(t, string(content))
	}
}

func TestAPatchNamesItsWriter(t *testing.T) {
	for patch, want := range map[string]string{
		"A fix.\nPlan: edit none\n":                      "",
		"A fix.\nWriter: agent\nPlan: properties none\n": agentName,
		"A fix.\nPlan: properties none\nWriter: agent\n": agentName,
	} {
		if of, plans := headOf(t, patch); of != want || len(plans) != 1 {
			t.Errorf("%q: writer %q, want %q, plans %v", patch, of, want, plans)
		}
	}
}

// TestReverts shows that plans find known fixes that are missing: each plan passes with the
// manager of this tree, and has a finding with the revert.
func TestReverts(t *testing.T) {
	if *revertsFlag == "" {
		t.Skip("make robust-reverts runs it")
	}
	byWriter := map[string][]revert{}
	for _, r := range readReverts(t, *revertsFlag) {
		byWriter[r.writer] = append(byWriter[r.writer], r)
	}
	if len(byWriter) == 0 {
		t.Fatal("no revert is selected")
	}
	var rows []string
	for _, of := range slices.Sorted(maps.Keys(byWriter)) {
		t.Run(cmp.Or(of, "manager"), func(t *testing.T) { // a failure of one writer's does not end another's
			rows = append(rows, take(t, of, byWriter[of])...)
		})
	}
	t.Log("\n| revert | found by | seconds |\n|---|---|---:|\n" + strings.Join(rows, "\n"))
}

// take runs the plans of reverts of one writer, and returns a row of a table for each.
func take(t *testing.T, of string, all []revert) []string {
	t.Helper()
	s := newSuite(t, of, "")
	s.start(*laneFlag, slices.DeleteFunc(slices.Clone(s.writer.stories), func(s story) bool {
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
			s.hub(l)
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
				findings := s.with(t, *l, r.program, p)
				if slices.Contains(violations(outcome{Verdict: finding, Findings: findings}), ofExit) {
					t.Fatalf("with the revert, the program ends by itself:\n%s", strings.Join(findings, "\n"))
				}
				if len(findings) > 0 {
					t.Log(strings.Join(findings, "\n"))
					rows[i] = fmt.Sprintf("| %s | `%s` | %.0f |", r.name, p, time.Since(began).Seconds())
					return
				}
			}
			t.Error("no plan has a finding")
		})
	})
	return rows
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
	findings := check(of, ref, got)
	if len(findings) > 0 {
		l.discard()
	} else if got.record.Fired.IsZero() && p.fault.Kind != proxy.None {
		t.Fatalf("%s did not reach its write or event", p)
	}
	return findings
}
