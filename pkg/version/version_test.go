package version

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

func TestValuesOfTheLinkerTakePrecedence(t *testing.T) {
	recorded := &debug.BuildInfo{
		Main: debug.Module{Version: "v0.0.0-recorded"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "recorded"}, {Key: "vcs.time", Value: "2026-01-01T00:00:00Z"},
		},
	}
	tests := map[string]struct {
		linked   Info
		recorded *debug.BuildInfo
		want     Info
	}{
		"a release": {
			linked:   Info{Version: "v1.2.3", Revision: "abc", Date: "2026-02-03T04:05:06Z"},
			recorded: recorded,
			want:     Info{Version: "v1.2.3", Revision: "abc", Date: "2026-02-03T04:05:06Z"},
		},
		"go install": {
			recorded: recorded,
			want:     Info{Version: "v0.0.0-recorded", Revision: "recorded", Date: "2026-01-01T00:00:00Z"},
		},
		"a test": {
			recorded: &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}},
			want:     Info{Version: "(devel)", Revision: "unknown", Date: "unknown"},
		},
		"nothing is known": {want: Info{Version: "unknown", Revision: "unknown", Date: "unknown"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := from(test.linked, test.recorded)
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(Info{}, "GoVersion", "Platform")); diff != "" {
				t.Errorf("info (-want +got):\n%s", diff)
			}
			if got.GoVersion != runtime.Version() || got.Platform != runtime.GOOS+"/"+runtime.GOARCH {
				t.Errorf("built with %s for %s", got.GoVersion, got.Platform)
			}
		})
	}
}

// A program prints its version instead of doing anything, and -v stays free for others.
func TestFlag(t *testing.T) {
	var out bytes.Buffer
	cmd := &cobra.Command{Use: "program", RunE: func(*cobra.Command, []string) error {
		t.Error("it runs")
		return nil
	}}
	AddFlag(cmd)
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--version"})
	apitest.Must(t, cmd.Execute())
	if want := "program version " + Get().String() + "\n"; out.String() != want || strings.Count(want, "\n") > 1 {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
	if flag := cmd.Flags().ShorthandLookup("v"); flag != nil {
		t.Errorf("-v is --%s", flag.Name)
	}
}
