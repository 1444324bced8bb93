package decisions

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// state plays the API server: slices by name.
type state map[string]slice

func (s state) current() []slice {
	return slices.Collect(maps.Values(s))
}

// do applies a write.
func (s state) do(t *testing.T, w write) {
	t.Helper()
	_, exists := s[w.slice.name]
	if exists == (w.action == create) {
		t.Fatalf("%s of %q, which exists: %t", w.action, w.slice.name, exists)
	}
	if w.action == remove {
		delete(s, w.slice.name)
		return
	}
	s[w.slice.name] = w.slice
}

// String names an action in messages of tests.
func (a action) String() string { return [...]string{"create", "update", "remove"}[a] }

// all are the clusters of all slices.
func (s state) all() map[string]bool {
	clusters := map[string]bool{}
	for _, one := range s {
		for _, cluster := range one.clusters {
			clusters[cluster] = true
		}
	}
	return clusters
}

// check checks the invariants at rest.
func (s state) check(t *testing.T, want map[string]selection.Group) {
	t.Helper()
	indexes, found := map[int]bool{}, map[string]selection.Group{}
	for _, one := range s {
		indexes[one.index] = true
		for _, cluster := range one.clusters {
			if _, twice := found[cluster]; twice {
				t.Errorf("%s is in two slices", cluster)
			}
			found[cluster] = one.group
		}
		if !slices.IsSorted(one.clusters) {
			t.Errorf("%s is not sorted: %v", one.name, one.clusters)
		}
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	for i := range len(s) {
		if !indexes[i] {
			t.Errorf("%d slices, and none has the index %d", len(s), i)
		}
	}
}

func number(n int) string { return nameOf("p", n) }

// reach plans and carries out the writes, and checks after each of them that no wanted
// cluster that was in a slice is missing, and that no slice is too large.
func (s state) reach(t *testing.T, want map[string]selection.Group) []write {
	t.Helper()
	before := s.all()
	writes := desiredWrites(s.current(), want, number, nil)
	for i, w := range writes {
		s.do(t, w)
		for _, one := range s {
			if len(one.clusters) > 100 {
				t.Fatalf("after write %d, %s has %d references", i, one.name, len(one.clusters))
			}
		}
		now := s.all()
		for cluster := range want {
			if before[cluster] && !now[cluster] {
				t.Fatalf("after write %d of %v, %s is missing", i, writes, cluster)
			}
		}
	}
	s.check(t, want)
	if again := desiredWrites(s.current(), want, number, nil); len(again) > 0 {
		t.Fatalf("writes without a change: %v", again)
	}
	return writes
}

// clusters are n clusters of no group.
func clusters(n int) map[string]selection.Group {
	want := map[string]selection.Group{}
	for i := range n {
		want[name(i)] = selection.Group{}
	}
	return want
}

func name(i int) string { return fmt.Sprintf("c%05d", i) }

func summary(writes []write) string {
	var parts []string
	for _, w := range writes {
		parts = append(parts, fmt.Sprintf("%s %s", w.action, strings.TrimPrefix(w.slice.name, "p-profiles-")))
	}
	return strings.Join(parts, ", ")
}

func expect(t *testing.T, what string, writes []write, want string) {
	t.Helper()
	if got := summary(writes); got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestFirstSlices(t *testing.T) {
	for n, count := range map[int]int{0: 1, 1: 1, 99: 1, 100: 1, 101: 2, 200: 2, 1000: 10, 1001: 11} {
		s := state{}
		if writes := s.reach(t, clusters(n)); len(writes) != count || len(s) != count {
			t.Errorf("%d clusters: %d writes, %d slices, want %d", n, len(writes), len(s), count)
		}
	}
}

func TestOneClusterIsOneWrite(t *testing.T) {
	s := state{}
	want := clusters(1000)
	s.reach(t, want)

	want["a-new-one"] = selection.Group{}
	expect(t, "one more than there is room for", s.reach(t, want), "create 10")
	want["b-new-one"] = selection.Group{}
	expect(t, "one more", s.reach(t, want), "update 10")
	delete(want, name(250))
	expect(t, "one less", s.reach(t, want), "update 2")
	want["c-new-one"] = selection.Group{}
	expect(t, "one more, where most room is", s.reach(t, want), "update 10")
	delete(want, name(777))
	want["d-new-one"] = selection.Group{}
	expect(t, "one for another", s.reach(t, want), "update 7")
	delete(want, "a-new-one")
	delete(want, "b-new-one")
	expect(t, "two less", s.reach(t, want), "update 10")
	delete(want, "c-new-one")
	expect(t, "the last of the last slice", s.reach(t, want), "remove 10")
	expect(t, "no change", s.reach(t, want), "")
}

func TestFlappingAtTheEdge(t *testing.T) {
	s := state{}
	s.reach(t, clusters(101))
	for range 3 {
		expect(t, "the 101st goes", s.reach(t, clusters(100)), "remove 1")
		expect(t, "the 101st comes", s.reach(t, clusters(101)), "create 1")
	}
}

func TestEmptyMiddleSliceStays(t *testing.T) {
	s := state{}
	want := clusters(500)
	s.reach(t, want)
	for i := 100; i < 200; i++ {
		delete(want, name(i))
	}
	expect(t, "emptied", s.reach(t, want), "update 1")
	want["new"] = selection.Group{}
	expect(t, "used again", s.reach(t, want), "update 1")
}

func TestNothingSelectedIsOneEmptySlice(t *testing.T) {
	s := state{}
	s.reach(t, clusters(300))
	expect(t, "all go", s.reach(t, clusters(0)), "update 0, remove 1, remove 2")
	if len(s) != 1 || len(s.current()[0].clusters) != 0 {
		t.Errorf("slices %v", s)
	}
	expect(t, "they come back", s.reach(t, clusters(300)), "update 0, create 1, create 2")
}

func TestCompaction(t *testing.T) {
	s := state{}
	want := clusters(1000)
	s.reach(t, want)
	writes := 0
	for i := 999; i >= 0 && len(s) > 5; i-- { // one of every slice in turn
		delete(want, name(i%10*100+i/10))
		if n := len(s.reach(t, want)); n > 1 {
			writes = n
		}
	}
	if len(want) > 500 || len(want) < 400 {
		t.Errorf("filled up again with %d clusters left", len(want))
	}
	if len(s) != 4 && len(s) != 5 {
		t.Errorf("%d slices of %d clusters", len(s), len(want))
	}
	if writes == 0 || writes > 15 {
		t.Errorf("%d writes", writes)
	}
}

func grouped(sizes ...int) map[string]selection.Group {
	want := map[string]selection.Group{}
	n := 0
	for i, size := range sizes {
		for range size {
			want[name(n)] = selection.Group{Index: i, Name: string(rune('a' + i))}
			n++
		}
	}
	return want
}

func TestGroupsHaveSlicesOfTheirOwn(t *testing.T) {
	s := state{}
	expect(t, "birth", s.reach(t, grouped(150, 10)), "create 0, create 1, create 2")
	for name, want := range map[string]selection.Group{
		"p-profiles-0": {Name: "a"}, "p-profiles-1": {Name: "a"}, "p-profiles-2": {Index: 1, Name: "b"},
	} {
		if s[name].group != want {
			t.Errorf("%s is of group %v", name, s[name].group)
		}
	}
	want := grouped(150, 10)
	want[name(0)] = selection.Group{Index: 1, Name: "b"}
	expect(t, "one moves: added before it is removed", s.reach(t, want), "update 2, update 0")
	for cluster, group := range want {
		if group.Index == 1 {
			want[cluster] = selection.Group{Index: 1, Name: "renamed"}
		}
	}
	expect(t, "a group is renamed", s.reach(t, want), "update 2")
}

// Full groups whose members all shift by one, as when OCM cuts decision groups again, wait
// for each other from the end of the chain.
func TestFullSlicesShiftByOne(t *testing.T) {
	s := state{}
	shift := func(by int) map[string]selection.Group {
		want := map[string]selection.Group{}
		for i := range 500 {
			want[name(i+by)] = selection.Group{Index: i / 100}
		}
		return want
	}
	s.reach(t, shift(0))
	if writes := s.reach(t, shift(1)); len(writes) != 5 {
		t.Errorf("writes: %s", summary(writes))
	}
}

// Two full groups that swap a member each wait for each other: one more slice breaks the
// cycle.
func TestFullSlicesThatSwap(t *testing.T) {
	s := state{}
	want := grouped(100, 100)
	s.reach(t, want)
	want[name(0)], want[name(100)] = want[name(100)], want[name(0)]
	if writes := s.reach(t, want); len(writes) != 3 || len(s) != 3 {
		t.Errorf("writes: %s, slices: %d", summary(writes), len(s))
	}
}

func TestAlteredSlicesAreRepaired(t *testing.T) {
	born := func() (state, map[string]selection.Group) {
		s, want := state{}, clusters(250)
		s.reach(t, want)
		return s, want
	}
	edit := func(s state, n int, change func(*slice)) {
		one := s[number(n)]
		one.clusters = slices.Clone(one.clusters)
		change(&one)
		s[number(n)] = one
	}
	tests := map[string]struct {
		damage func(s state)
		want   string
	}{
		"a slice was deleted": {func(s state) { delete(s, number(0)) }, "update 2, create 0"},
		"a reference was removed": {func(s state) {
			edit(s, 0, func(o *slice) { o.clusters = slices.Delete(o.clusters, 5, 6) })
		}, "update 2"},
		"something else was altered": {func(s state) { edit(s, 1, func(o *slice) { o.altered = true }) }, "update 1"},
		"an index was removed":       {func(s state) { edit(s, 0, func(o *slice) { o.index = noIndex }) }, "update 0"},
		"an index was repeated":      {func(s state) { edit(s, 0, func(o *slice) { o.index = 1 }) }, "update 1"},
		"an index is too high":       {func(s state) { edit(s, 0, func(o *slice) { o.index = 7 }) }, "update 0"},
		"the order was changed": {func(s state) { edit(s, 0, func(o *slice) { slices.Reverse(o.clusters) }) },
			"update 0"},
		"a reference was repeated here": {func(s state) {
			edit(s, 2, func(o *slice) { o.clusters = append(o.clusters, o.clusters[0]) })
		}, "update 2"},
		"a reference was repeated elsewhere": {func(s state) {
			edit(s, 2, func(o *slice) { o.clusters = append(o.clusters, name(0)) })
		}, "update 2"},
		"a reference was added": {func(s state) {
			edit(s, 2, func(o *slice) { o.clusters = append(o.clusters, "foreign") })
		}, "update 2"},
		"the group was changed": {func(s state) { edit(s, 1, func(o *slice) { o.group.Index = 3 }) }, "update 1"},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			s, want := born()
			test.damage(s)
			writes := desiredWrites(s.current(), want, number, nil)
			expect(t, what, writes, test.want)
			for _, w := range writes {
				s.do(t, w)
			}
			s.check(t, want)
		})
	}
}

func TestNamesTakenByOthersAreSkipped(t *testing.T) {
	writes := desiredWrites(nil, clusters(150), number, map[string]bool{number(0): true, number(2): true})
	expect(t, "two slices", writes, "create 1, create 3")
	for i, w := range writes {
		if w.slice.index != i {
			t.Errorf("slice %s has the index %d", w.slice.name, w.slice.index)
		}
	}
}

// TestChurn adds, removes and regroups clusters at random. The invariants of reach hold
// after each write, and a change of one cluster is one write, two if it moves, unless
// slices are refilled.
func TestChurn(t *testing.T) {
	for seed := range uint64(9) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			groups := 1 + int(seed%3)
			s, want := state{}, map[string]selection.Group{}
			for range 300 {
				changes := 1
				if random.IntN(4) == 0 {
					changes = 1 + random.IntN(150)
				}
				moved := 0
				for range changes {
					cluster, group := name(random.IntN(600)), selection.Group{Index: random.IntN(groups)}
					before, there := want[cluster]
					switch {
					case there && random.IntN(3) > 0:
						delete(want, cluster)
					default:
						want[cluster] = group
						if there && before != group {
							moved++
						}
					}
				}
				existing, least := len(s), needed(want)
				writes := s.reach(t, want)
				if changes == 1 && existing < 2*least && len(writes) > 1+moved {
					t.Fatalf("one change is %s, with %d slices of which %d are needed", summary(writes), existing, least)
				}
			}
		})
	}
}

func needed(want map[string]selection.Group) int {
	sizes := map[selection.Group]int{}
	for _, group := range want {
		sizes[group]++
	}
	n := 0
	for _, size := range sizes {
		n += (size + 99) / 100
	}
	return n
}
