package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

// claimOf is the content of a claim.
func claimOf(name, value string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"value":%q}}`, name, value)
}

// seenClaim is a change of the claim of a name.
func seenClaim(what, name, value string) change {
	return change{what: what, resource: claimsOfSpoke, key: "/" + name, content: claimOf(name, value)}
}

// goodOnSpoke is a run without anything wrong: a claim is created and changed, and another one stays.
func goodOnSpoke() (story, reference, result) {
	s := story{
		name: "properties", before: claimsOf(kept), after: claimsOf(kept, edited), meanwhile: claimsOf(edited),
	}
	key := func(resource, object string) proxy.Write {
		return proxy.Write{Key: proxy.Key{Verb: "patch", Resource: resource, Object: object, N: 1}, Code: 200}
	}
	got := result{
		converged: true,
		record: proxy.Record{
			Writes: []proxy.Write{key(claimsOfSpoke, edited), key(addonStatus, "c1/cluster-inventory")}, Fired: time.Now(),
		},
		setup:   []change{seenClaim(created, kept, "1")},
		changes: []change{seenClaim(created, edited, "1"), seenClaim(changed, edited, "2")},
		wrote:   map[string][]string{kept: {"1"}, edited: {"1", "2"}},
	}
	ref, _ := merge(got, got)
	return s, ref, got
}

func TestOraclesOfClaims(t *testing.T) {
	add := func(changes ...change) func(*result) {
		return func(r *result) { r.changes = slices.Concat(r.changes, changes) }
	}
	// reported is that the report on the hub is written some more times, while an API is not served.
	reported := func(api string, times int) func(*result) {
		return func(r *result) {
			r.api = api
			r.record.Writes = append(slices.Repeat(r.record.Writes[:1], 3),
				slices.Repeat(r.record.Writes[1:], 1+times)...)
		}
	}
	tests := map[string]struct {
		wrong func(*result)
		want  []string
	}{
		"nothing is wrong": {wrong: func(*result) {}},
		"a claim goes and comes again": {
			wrong: add(seenClaim(deleted, kept, "1"), seenClaim(created, kept, "1")),
			want: []string{"created clusterclaims.cluster.open-cluster-management.io /kept.example.com: 1 times, 0",
				"deleted clusterclaims.cluster.open-cluster-management.io /kept.example.com: 1 times, 0",
				"claims: a claim went that is published all along"},
		},
		"a claim that nobody asked for": {
			wrong: add(seenClaim(changed, taken, "1")),
			want:  []string{"claims: a claim that must never be there", "never written"},
		},
		"an old value comes again": {
			wrong: add(seenClaim(changed, edited, "1"), seenClaim(changed, edited, "2")),
			want:  []string{`history: /size.example.com: consumers saw ["1" "2" "1" "2"], ["1" "2"] was written: "1" came`},
		},
		"a value in between is missed": {wrong: func(r *result) { r.wrote[edited] = []string{"1", "1.5", "2"} }},
		"the last value is missed": {
			wrong: func(r *result) { r.wrote[edited] = []string{"1", "2", "3"} }, want: []string{"the last one is missing"},
		},
		"another client's claim is changed": {
			wrong: add(seenClaim(changed, foreign, "ours")), want: []string{"others' objects"},
		},
		"a claim goes with its kind and comes again": {wrong: func(r *result) {
			add(seenClaim(deleted, kept, "1"), seenClaim(created, kept, "1"))(r)
			r.lost = []string{claimsOfSpoke + " /" + kept}
			markLost(r.changes, r.lost)
		}},
		"the agent deletes a claim just before its kind goes": {
			wrong: func(r *result) {
				add(seenClaim(deleted, kept, "1"), seenClaim(created, kept, "1"))(r)
				r.lost = []string{claimsOfSpoke + " /" + kept}
				markLost(r.changes, r.lost)
				key := proxy.Key{Verb: "delete", Resource: claimsOfSpoke, Object: kept, N: 1}
				r.record.Writes = append(r.record.Writes, proxy.Write{Key: key, Code: 200})
			},
			want: []string{"claims: the manager deleted a claim that is published all along: /kept.example.com"},
		},
		"properties are not served, which is reported and taken back": {wrong: reported(properties, 2)},
		"properties are not served, which is reported all the time": {
			wrong: reported(properties, 3), want: []string{"number of writes: 7 writes, 2 without a fault"},
		},
		"accounts are not served, which is nothing to report": {
			wrong: reported(accounts, 2), want: []string{"number of writes: 6 writes, 2 without a fault"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, ref, got := goodOnSpoke()
			test.wrong(&got)
			compare(t, check(s, ref, got), test.want)
		})
	}
}

func TestClaimsAreShownButForThoseOfOthers(t *testing.T) {
	claims, copies := shown(map[string]string{
		claimsOfSpoke + " /" + kept: "", claimsOfSpoke + " /" + edited: "", claimsOfSpoke + " /" + foreign: "",
		"configmaps " + agentNamespace + "/cluster-inventory-cleanup": "",
	})
	if diff := cmp.Diff(claimsOf(kept, edited), claims); diff != "" || len(copies) > 0 {
		t.Errorf("copies %v, claims:\n%s", copies, diff)
	}
}

// Plans of a writer have its stories only: a name that another writer's story has is refused.
func TestPlansOfTheAgentHaveItsStories(t *testing.T) {
	key := proxy.Key{Verb: "patch", Resource: claimsOfSpoke, Object: edited, N: 2}
	ref := reference{
		writes: []proxy.Key{key}, events: []proxy.Key{{Verb: "ADDED", Resource: claimsOfSpoke, Object: edited, N: 1}},
		after: map[string]string{claimsOfSpoke + " /" + edited: ""},
	}
	var ofAPI []string
	for _, p := range plansOf(story{name: "properties"}, ref, agentWriter().apis...) {
		parsed, err := parsePlan(agentStories, p.String())
		if err != nil || parsed != p {
			t.Errorf("%s is read as %s, %v", p, parsed, err)
		}
		if p, err := parsePlan(stories, p.String()); err == nil {
			t.Errorf("the manager has a plan %s", p)
		}
		if slices.Contains(ofAPIs, p.fault.Kind) {
			ofAPI = append(ofAPI, p.String())
		}
	}
	want := []string{
		"properties unserved clusterclaims.cluster.open-cluster-management.io",
		"properties recreated clusterclaims.cluster.open-cluster-management.io",
		"properties recreated-10s clusterclaims.cluster.open-cluster-management.io",
		"properties unserved clusterproperties.about.k8s.io",
	}
	if diff := cmp.Diff(want, ofAPI); diff != "" {
		t.Error(diff)
	}
}
