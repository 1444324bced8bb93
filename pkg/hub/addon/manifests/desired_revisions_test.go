package manifests

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	embedded "open-cluster-management.io/cluster-inventory-addon/manifests"
)

var update = flag.Bool("update", false, "write what the present manifests come to into testdata")

// The manifests of a released revision must not change: with the next manager, all clusters
// of that revision would change at once. To change them, add a new revision (package
// manifests), and make the code depend on it; the previous revision's file stays as it is.
func TestManifestsOfARevisionStayAsTheyAre(t *testing.T) {
	for _, revision := range []string{embedded.Previous, embedded.Revision} {
		t.Run(revision, func(t *testing.T) {
			v := configured().of("", "")
			v.Manifests = revision
			renderers, err := NewRenderers()
			apitest.Must(t, err)
			renderer, err := renderers.of(v)
			apitest.Must(t, err)
			objects, err := renderer.render("c1", "uid-1")
			apitest.Must(t, err)
			var got strings.Builder
			for _, object := range objects {
				indented, err := json.MarshalIndent(json.RawMessage(object.(*manifest).encoded), "", "  ")
				apitest.Must(t, err)
				got.Write(append(indented, '\n'))
			}
			file := "testdata/manifests-" + revision + ".json"
			if *update && revision == embedded.Revision {
				apitest.Must(t, os.WriteFile(file, []byte(got.String()), 0o600))
			}
			want, err := os.ReadFile(file)
			apitest.Must(t, err)
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
				t.Errorf("manifests (-want +got):\n%s", diff)
			}
		})
	}
}
