package policies

import (
	"context"
	"maps"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

// What has changed is logged once, and everything is reported after each check.
func TestAnnounce(t *testing.T) {
	const (
		noA = `"msg"="An admission policy of the chart is not enforced" "error"=null "policy"="a" "problem"="p"`
		noB = `"msg"="An admission policy of the chart is not enforced" "error"=null "policy"="b" "problem"="q"`
		all = `"level"=0 "msg"="All admission policies of the chart are enforced" "policies"=2`
	)
	var logged []string
	reported := map[string]bool{}
	log := funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{})
	watch := &Watch{Report: func(policy string, enforced bool) { reported[policy] = enforced }}
	var last map[string]string
	for i, step := range []struct {
		found map[string]string
		lines []string
	}{
		{map[string]string{"a": "p", "b": ""}, []string{noA}},
		{map[string]string{"a": "p", "b": ""}, nil},
		{map[string]string{"a": "p", "b": "q"}, []string{noB}},
		{map[string]string{"a": "", "b": "q"}, nil},
		{map[string]string{"a": "", "b": ""}, []string{all}},
		{map[string]string{"a": "", "b": ""}, nil},
		{map[string]string{"a": "p", "b": ""}, []string{noA}},
	} {
		logged = nil
		clear(reported)
		watch.announce(logr.NewContext(context.Background(), log), last, step.found, true)
		last = step.found
		if diff := cmp.Diff(step.lines, logged); diff != "" {
			t.Errorf("step %d logs (-want +got):\n%s", i, diff)
		}
		want := map[string]bool{}
		for policy := range maps.Keys(step.found) {
			want[policy] = step.found[policy] == ""
		}
		if diff := cmp.Diff(want, reported); diff != "" {
			t.Errorf("step %d reports (-want +got):\n%s", i, diff)
		}
	}
}
