package inventoryctl

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"text/template"

	"sigs.k8s.io/yaml"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// The manifest for krew is a template; filled in, it must be one that krew takes.
func TestKrewManifest(t *testing.T) {
	text, err := os.ReadFile("../../.krew.yaml")
	apitest.Must(t, err)
	functions := template.FuncMap{"addURIAndSha": func(uri, tag string) string {
		return "uri: " + strings.ReplaceAll(uri, "{{ .TagName }}", tag) + "\n    sha256: " + strings.Repeat("a", 64)
	}}
	filled, err := template.New("krew").Funcs(functions).Parse(string(text))
	apitest.Must(t, err)
	var content bytes.Buffer
	apitest.Must(t, filled.Execute(&content, map[string]string{"TagName": "v1.2.3"}))
	var manifest struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			Version, Homepage, ShortDescription, Description, Caveats string
			Platforms                                                 []struct {
				URI, SHA256, Bin string
				Selector         struct{ MatchLabels map[string]string }
			}
		}
	}
	apitest.Must(t, yaml.UnmarshalStrict(content.Bytes(), &manifest))
	if manifest.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || manifest.Kind != "Plugin" ||
		manifest.Metadata.Name != "inventory" || manifest.Spec.Version != "v1.2.3" {
		t.Errorf("not a manifest of this plugin: %+v", manifest)
	}
	if short := manifest.Spec.ShortDescription; short == "" || len(short) > 50 || strings.HasSuffix(short, ".") {
		t.Errorf("shortDescription %q: krew wants at most 50 characters and no full stop", short)
	}
	seen := map[string]bool{}
	for _, platform := range manifest.Spec.Platforms {
		name := platform.Selector.MatchLabels["os"] + "_" + platform.Selector.MatchLabels["arch"]
		bin, archive := "kubectl-inventory", ".tar.gz"
		if platform.Selector.MatchLabels["os"] == "windows" {
			bin, archive = "kubectl-inventory.exe", ".zip"
		}
		if seen[name] || platform.Bin != bin || len(platform.SHA256) != 64 ||
			!strings.HasSuffix(platform.URI, "/v1.2.3/kubectl-inventory_v1.2.3_"+name+archive) {
			t.Errorf("platform %s: %+v", name, platform)
		}
		seen[name] = true
	}
	if len(seen) != 5 {
		t.Errorf("platforms: %v", seen)
	}
}
