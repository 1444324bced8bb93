package fleet

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOptionsAreCompleted(t *testing.T) {
	t.Setenv("FLEET_AUDIT", "")
	tests := map[string]struct{ given, want Options }{
		"nothing said: two spokes": {Options{}, Options{Name: "default", Spokes: 2}},
		"a hub alone":              {Options{Name: "x", Spokes: NoSpokes}, Options{Name: "x"}},
		"as many as asked for":     {Options{Name: "x", Spokes: 7}, Options{Name: "x", Spokes: 7}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := test.given
			if err := got.complete(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Setenv("FLEET_AUDIT", "/logs")
	fromEnv, given := Options{}, Options{Audit: "/mine"}
	if err := errors.Join(fromEnv.complete(), given.complete()); err != nil || fromEnv.Audit != "/logs" || given.Audit != "/mine" {
		t.Errorf("audit logs are in %q and %q: %v", fromEnv.Audit, given.Audit, err)
	}
	if err := (&Options{Audit: "logs"}).complete(); err == nil {
		t.Error("a relative path was accepted, which means another place to every process")
	}
	for _, spokes := range []int{-2, 51} {
		if err := (&Options{Spokes: spokes}).complete(); err == nil {
			t.Errorf("%d spokes were accepted", spokes)
		}
	}
}
