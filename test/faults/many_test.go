package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

func TestManyClustersAreOfAllSorts(t *testing.T) {
	m := newMany(manyClusters)
	if diff := cmp.Diff(m, newMany(manyClusters), cmp.AllowUnexported(many{})); diff != "" {
		t.Errorf("they are not the same each time:\n%s", diff)
	}
	if slices.IsSorted(m.all) || !slices.Equal(sorted(m.all), manyNames) {
		t.Errorf("%d in the order %v", len(m.all), m.all)
	}
	sorts := map[string]int{}
	for _, name := range m.all {
		sorts[fmt.Sprintf("token %t, at once %t", m.tokens[name], m.atOnce[name])]++
	}
	want := map[string]int{
		"token true, at once true": 25, "token true, at once false": 25,
		"token false, at once true": 475, "token false, at once false": 475,
	}
	if diff := cmp.Diff(want, sorts); diff != "" {
		t.Error(diff)
	}
}

func TestStoriesOfFewerClusters(t *testing.T) {
	for name, want := range map[string]bool{
		"register-again-1000": true, "register-again-40": true, "register-again": true, "register-again-39": false,
		"register-again-1001": false, "register-again-": false, "register-again-x": false, "": false,
	} {
		s, known := storyNamed(stories, name)
		if known != want || s.name != name && want {
			t.Errorf("%q is %t, %q", name, known, s.name)
		}
	}
	if _, err := parsePlan(stories, "register-again-80 none"); err != nil {
		t.Error(err)
	}
}

func TestPlansOfManyClustersAreASample(t *testing.T) {
	s := registerAgain(manyClusters)
	var ref reference
	write := func(verb, resource, object string) {
		for n := range 2 {
			ref.writes = append(ref.writes, proxy.Key{Verb: verb, Resource: resource, Object: object, N: n + 1})
		}
	}
	for _, name := range newMany(manyClusters).all {
		for _, namespace := range consumers {
			write("create", profiles, namespace+"/"+name)
			write("delete", profiles, namespace+"/"+name)
			write("create", secrets, namespace+"/"+name+"-"+reader)
			write("delete", secrets, namespace+"/"+name+"-"+reader)
		}
		write("patch", addonStatus, name+"/cluster-inventory")
		for _, resource := range []string{profiles, secrets, accounts} {
			ref.events = append(ref.events, proxy.Key{Verb: "ADDED", Resource: resource, Object: "team-a/" + name, N: 1})
		}
	}
	all := plansOf(s, ref)
	slices.Reverse(ref.events)
	if again := plansOf(s, ref); !slices.Equal(all, again) {
		t.Errorf("%v and %v", all, again)
	}
	kinds, names := map[proxy.Kind]int{}, map[string]bool{}
	for _, p := range all {
		kinds[p.fault.Kind]++
		names[p.String()] = true
		if parsed, err := parsePlan(stories, p.String()); err != nil || parsed != p {
			t.Errorf("%s is read as %s, %v", p, parsed, err)
		}
		isWrite := slices.Contains(proxy.OfWrites, p.fault.Kind)
		if isWrite && (clusterOf(p.fault.Key.Object) != s.sample || p.fault.Key.N != 1) {
			t.Errorf("%s is not of the sample, %s", p, s.sample)
		}
	}
	const writes, watches = 5, 3
	if len(all) != 2*writes+2*watches+3 || len(names) != len(all) {
		t.Errorf("%d plans, %d names", len(all), len(names))
	}
	for _, kind := range slices.Concat(sampled, proxy.OfWatches, []proxy.Kind{paused, restarted, proxy.Lagging}) {
		if kinds[kind] == 0 {
			t.Errorf("no plan of %s", kind)
		}
	}
}

func TestRacesAreOneDeletionAtMost(t *testing.T) {
	const raced, other = profiles + " team-a/m001", profiles + " team-a/m000"
	again := func(id string, times int) map[string]int {
		return map[string]int{created + " " + id: times, deleted + " " + id: times}
	}
	tests := map[string]struct {
		counts, want map[string]int
	}{
		"it stays":                   {counts: map[string]int{}, want: map[string]int{}},
		"it goes and comes":          {counts: again(raced, 1), want: map[string]int{}},
		"it goes and comes twice":    {counts: again(raced, 2), want: again(raced, 1)},
		"it only goes":               {counts: map[string]int{deleted + " " + raced: 1}, want: map[string]int{deleted + " " + raced: 1}},
		"another one goes and comes": {counts: again(other, 1), want: again(other, 1)},
		"a cluster's right": {
			counts: again(rightsResource+" m001/"+sourceRights, 1), want: map[string]int{},
		},
		"a copy": {counts: again(secrets+" team-b/m001-"+reader, 1), want: map[string]int{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			settle([]string{"m001", "m003"}, test.counts)
			if diff := cmp.Diff(test.want, test.counts); diff != "" {
				t.Error(diff)
			}
		})
	}
	stays, goes := registeredAgain(nil), registeredAgain([]change{
		{what: deleted, resource: profiles, key: "team-a/m001"}, {what: created, resource: profiles, key: "team-a/m001"},
	})
	if _, differences := merge(stays, goes); len(differences) > 0 {
		t.Error(differences)
	}
}

// registeredAgain is a run in which a cluster is registered again at once.
func registeredAgain(changes []change) result {
	_, _, got := good()
	got.changes, got.races = changes, []string{"m001"}
	return got
}

func TestWritesOfEachClusterAreBounded(t *testing.T) {
	for _, object := range []string{"team-a/c2", "team-a/c2-reader", "c2/cluster-inventory", "c2"} {
		for n, want := range map[int]string{2: "", 3: ofNumber + ": 3 for c2, at most 2 are right: "} {
			s, ref, got := good()
			s.most = map[string]int{"c1": 5, "c2": 2}
			for range n {
				key := proxy.Key{Verb: "patch", Resource: addonStatus, Object: object, N: 1}
				got.record.Writes = append(got.record.Writes, proxy.Write{Key: key, Code: 409})
			}
			ref.sent = len(got.record.Writes)
			findings := strings.Join(check(s, ref, got), "\n")
			if (want == "") != (findings == "") || !strings.HasPrefix(findings, want) {
				t.Errorf("%d writes of %s: %q, want %q", n, object, findings, want)
			}
		}
	}
}

func TestNothingOfAnEarlierRegistrationStays(t *testing.T) {
	s, ref, got := good()
	s.outdated = []string{"wrong"}
	if findings := check(s, ref, got); len(findings) > 0 {
		t.Error(findings)
	}
	s.outdated = []string{"wrong", "right"}
	want := []string{ofState + ": " + profiles + " team-a/c1 has right in the end"}
	if diff := cmp.Diff(want, check(s, ref, got)); diff != "" {
		t.Error(diff)
	}
}
