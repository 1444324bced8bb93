package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Others' consumers take long to build: they run on request, and then alone.
func TestOthersConsumersRunOnlyOnRequest(t *testing.T) {
	t.Chdir("../..")
	const consumers = ownModule + "test/e2e/journeys/consumers"
	for mode, want := range map[string]bool{"e2e": false, "consumers": true} {
		chosen, err := jobs(mode)
		if err != nil {
			t.Fatal(err)
		}
		packages, err := chosen[0][0].list(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(packages, consumers); got != want || len(packages) == 0 || want && len(packages) > 1 {
			t.Errorf("%s runs %v", mode, packages)
		}
	}
}

// A package that runs in parts runs every test in one of them, on its own fleet, and no
// package is forgotten or runs twice.
func TestJourneysRunOnce(t *testing.T) {
	t.Chdir("../..")
	chosen, err := jobs("all")
	if err != nil {
		t.Fatal(err)
	}
	rest, part := chosen[0][0], chosen[1][0]
	if part.part == "" || part.only == "" || part.skip != "" || rest.only != "" || rest.skip != part.only {
		t.Errorf("one part is %+v, the other %+v", part, rest)
	}
	var got []string
	for _, s := range slices.Concat(chosen[0], chosen[1][1:], chosen[2]) {
		packages, err := s.list(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, packages...)
	}
	slices.Sort(got)
	want, err := suite{
		module: "test/e2e", packages: []string{"./journeys/..."},
		without: []string{"/journeys/consumers", "/journeys/slices", "/journeys/localcluster"},
	}.list(t.Context())
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, packages (-want +got):\n%s", err, diff)
	}
	for _, job := range selected(chosen, "TestGuide") {
		for _, s := range job {
			if s.only != "TestGuide" || s.skip != "" || s.part != "" {
				t.Errorf("who selects tests gets %+v", s)
			}
		}
	}
}
