package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOptionsAreCompleted(t *testing.T) {
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
	for _, spokes := range []int{-2, 51} {
		if err := (&Options{Spokes: spokes}).complete(); err == nil {
			t.Errorf("%d spokes were accepted", spokes)
		}
	}
}
