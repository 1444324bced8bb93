package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	const events = `{"Action":"start","Package":"open-cluster-management.io/cluster-inventory-addon/pkg/a"}
{"Action":"output","Package":"open-cluster-management.io/cluster-inventory-addon/pkg/a","Test":"TestA","Output":"pass"}
{"Action":"pass","Package":"open-cluster-management.io/cluster-inventory-addon/pkg/a","Test":"TestA/case","Elapsed":0.5}
{"Action":"pass","Package":"open-cluster-management.io/cluster-inventory-addon/pkg/a","Test":"TestA","Elapsed":1}
{"Action":"pass","Package":"open-cluster-management.io/cluster-inventory-addon/pkg/a","Elapsed":1.5}
{"Action":"fail","Package":"open-cluster-management.io/cluster-inventory-addon/pkg/b","Test":"TestB","Elapsed":62}
{"Action":"fail","Package":"open-cluster-management.io/cluster-inventory-addon/pkg/b","Elapsed":62.25}
{"Action":"skip","Package":"open-cluster-management.io/cluster-inventory-addon/pkg/empty","Elapsed":0}
{"Action":"skip","Package":"open-cluster-management.io/cluster-inventory-addon/pkg/c","Test":"TestC","Elapsed":0}
{"Action":"pass","Package":"open-cluster-management.io/cluster-inventory-addon/pkg/c","Elapsed":0.125}
{"Action":"build-output","ImportPath":"x","Output":"broken"}
not an event
`
	got := times{}
	for line := range strings.Lines(events) {
		if e, ok := decode([]byte(line)); ok {
			got.add(e)
		}
	}
	want := "  seconds  tests  package\n" +
		"     62.2      1  pkg/b\n" +
		"      1.5      2  pkg/a\n" +
		"      0.1      1  1 others, each below a second\n" +
		"     63.9      4  all, some of them side by side\n"
	if diff := cmp.Diff(strings.TrimRight(want, "\n"), strings.Join(got.table(), "")); diff != "" {
		t.Error(diff)
	}
}

func TestOutputEventIsOneLine(t *testing.T) {
	got, err := outputEvent("  1.5  2  pkg/\"a\"\n")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"Action":"output","Package":"times","Output":"  1.5  2  pkg/\"a\"\n"}` + "\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestStreamKeepsEveryLineWhole(t *testing.T) {
	var out strings.Builder
	s := &stream{out: &out, times: times{}}
	long := strings.Repeat("x", 1<<20)
	if err := s.copy(strings.NewReader("a\n" + long + "\nlast")); err != nil {
		t.Fatal(err)
	}
	if want := "a\n" + long + "\nlast\n"; out.String() != want {
		t.Errorf("got %d bytes, want %d", out.Len(), len(want))
	}
}

func TestJobs(t *testing.T) {
	for mode, want := range map[string]int{"unit": 2, "race": 1, "e2e": 1, "all": 3} {
		got, err := jobs(mode)
		if err != nil || len(got) != want {
			t.Errorf("%s: %d jobs, %v", mode, len(got), err)
		}
	}
	if _, err := jobs("none"); err == nil {
		t.Error("an unknown mode is accepted")
	}
}
