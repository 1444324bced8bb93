package profiles

import (
	"strings"
	"testing"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

func TestDisplayName(t *testing.T) {
	for name, test := range map[string]struct {
		annotation *string
		want       string
	}{
		"none":                              {nil, "c1"},
		"an empty one":                      {new(""), "c1"},
		"only spaces and line ends":         {new(" \n\t "), "c1"},
		"with spaces and letters of others": {new(" Größe, Zürich 東京 "), "Größe, Zürich 東京"},
		"the cluster's own name":            {new("c1"), "c1"},
		"line ends and terminal codes":      {new("a\nb\x1b[31m\x00"), `a\nb\x1b[31m\x00`},
		"text that turns around":            {new("a\u202eb"), `a\u202eb`},
		"no UTF-8":                          {new("a\xff"), `a\xff`},
		"as long as may be":                 {new(strings.Repeat("é", 128)), strings.Repeat("é", 128)},
		"too long":                          {new(strings.Repeat("é", 5000)), strings.Repeat("é", 126) + "..."},
		"too long when escaped":             {new(strings.Repeat("\x01", 200)), strings.Repeat(`\x01`, 63) + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.ManagedCluster{}
			cluster.Name = "c1"
			if test.annotation != nil {
				cluster.Annotations = map[string]string{"inventory.open-cluster-management.io/display-name": *test.annotation}
			}
			for when, trimmed := range map[string]*clusterv1.ManagedCluster{
				"cached": asCached(cluster), "trimmed twice": asCached(asCached(cluster)),
			} {
				profile, leftOut := Desired(Observed{Observation: selection.Observation{Cluster: trimmed}}, nil, early)
				if got := profile.Spec.DisplayName; got != test.want || len(got) > 256 || len(leftOut) > 0 {
					t.Errorf("%s: %q, want %q; left out: %q", when, got, test.want, leftOut)
				}
			}
		})
	}
}
