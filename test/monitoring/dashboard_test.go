package monitoring

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// served is what a manager serves of the metrics that the dashboard shows: at first, and a
// minute later.
var served = []string{`
cluster_inventory_profiles{state="InPlace"} 3
cluster_inventory_profiles_held_back 1
cluster_inventory_withheld{reason="NotBound"} 1
cluster_inventory_profile_delay_seconds_bucket{le="1"} 0
cluster_inventory_profile_delay_seconds_bucket{le="+Inf"} 0
cluster_inventory_writes_total{resource="clusterprofiles",verb="create",outcome="Success"} 3
cluster_inventory_writes_total{resource="clusterprofiles",verb="create",outcome="Refused"} 0
workqueue_depth{name="hub.inventory",controller="hub.inventory",priority="0"} 2
cluster_inventory_credentials{state="Copied"} 2
cluster_inventory_credential_expiry_seconds 3600
cluster_inventory_properties_rejected{reason="TooMany"} 4
cluster_inventory_upstream_mode{writer="registration",mode="Off"} 1
cluster_inventory_agents{revision="agents-2",state="Completed"} 3
cluster_inventory_addons{condition="Degraded",status="True",reason="WriteFailed"} 1
cluster_inventory_build_info{version="v1"} 1
leader_election_master_status{name="cluster-inventory-manager"} 1
process_resident_memory_bytes 6e+07
`, `
cluster_inventory_profiles{state="InPlace"} 4
cluster_inventory_profiles_held_back 1
cluster_inventory_withheld{reason="NotBound"} 1
cluster_inventory_profile_delay_seconds_bucket{le="1"} 5
cluster_inventory_profile_delay_seconds_bucket{le="+Inf"} 6
cluster_inventory_writes_total{resource="clusterprofiles",verb="create",outcome="Success"} 4
cluster_inventory_writes_total{resource="clusterprofiles",verb="create",outcome="Refused"} 2
workqueue_depth{name="hub.inventory",controller="hub.inventory",priority="0"} 1
cluster_inventory_credentials{state="Copied"} 1
cluster_inventory_credentials{state="ForeignSecret"} 1
cluster_inventory_credential_expiry_seconds 3540
cluster_inventory_properties_rejected{reason="TooMany"} 4
cluster_inventory_upstream_mode{writer="registration",mode="Off"} 1
cluster_inventory_agents{revision="agents-2",state="Completed"} 3
cluster_inventory_addons{condition="Degraded",status="True",reason="WriteFailed"} 1
cluster_inventory_build_info{version="v1"} 1
leader_election_master_status{name="cluster-inventory-manager"} 1
process_resident_memory_bytes 6.1e+07
`}

func TestEveryPanelShowsSomething(t *testing.T) {
	panels, err := Panels(chart + "dashboard.json")
	if err != nil || len(panels) == 0 {
		t.Fatalf("%d panels, %v", len(panels), err)
	}
	s := NewStore()
	for minute, text := range served {
		if err := s.scrape([]byte(text[1:]), time.Unix(int64(60*minute), 0)); err != nil {
			t.Fatal(err)
		}
	}
	for _, panel := range panels {
		t.Run(panel.Title, func(t *testing.T) {
			for _, target := range panel.Targets {
				found, err := s.Range(t.Context(), target.Query(2*time.Minute), time.Unix(60, 0), time.Unix(60, 0), time.Minute)
				if err != nil || len(found) == 0 {
					t.Errorf("%s: %d series, %v", target.Expr, len(found), err)
				}
				for _, one := range found {
					legend := target.Legend(one.Metric.Map())
					if legend == "" || strings.Contains(legend, "{") || strings.HasPrefix(legend, ":") {
						t.Errorf("%s: a series of %v is called %q", target.Expr, one.Metric, legend)
					}
				}
			}
		})
	}
}

// scrape adds what a manager served at a time, in Prometheus' text format.
func (s *Store) scrape(text []byte, at time.Time) error {
	parser := textparse.NewPromParser(text, labels.NewSymbolTable(), false)
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("scrape of %s: %w", at, err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var of labels.Labels
		parser.Labels(&of)
		of = labels.NewBuilder(of).Set("instance", "manager").Set("job", "cluster-inventory-metrics").Labels()
		_, _, sample := parser.Series()
		if err := s.Add(of, at, sample); err != nil {
			return err
		}
	}
}
