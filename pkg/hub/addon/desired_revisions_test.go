package addon

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/manifests"
)

var update = flag.Bool("update", false, "write what the present manifests come to into testdata")

// What the manifests of a revision come to must not change once that was released: with the
// next manager, all clusters of that revision would change at once. Who changes what is
// released makes a new revision (package manifests), and gates what the code does by that;
// the file of the revision before stays as it is.
func TestManifestsOfARevisionStayAsTheyAre(t *testing.T) {
	for _, revision := range []string{manifests.Previous, manifests.Revision} {
		t.Run(revision, func(t *testing.T) {
			v := configured().of("", "")
			v.Manifests = revision
			renderers, err := newRenderers(v)
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
			if *update && revision == manifests.Revision {
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
