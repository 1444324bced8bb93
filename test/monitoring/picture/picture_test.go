package picture

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"

	"open-cluster-management.io/cluster-inventory-addon/test/monitoring"
)

func TestDraw(t *testing.T) {
	panels, err := monitoring.Panels("../../../charts/cluster-inventory/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	store := monitoring.NewStore()
	for second := range 60 {
		text := "cluster_inventory_profiles{state=\"InPlace\"} 3\n"
		if err := store.Scrape([]byte(text), time.Unix(int64(second), 0), "manager"); err != nil {
			t.Fatal(err)
		}
	}
	run := Run{
		Store: store, From: time.Unix(0, 0), Until: time.Unix(59, 0), Step: time.Second, Rates: 10 * time.Second,
	}
	var out bytes.Buffer
	if err := Draw(t.Context(), &out, "svg", panels, run); err != nil {
		t.Fatal(err)
	}
	for _, panel := range panels {
		if !strings.Contains(out.String(), ">"+strings.ReplaceAll(panel.Title, "'", "&#39;")+"<") {
			t.Errorf("the picture has no panel %q", panel.Title)
		}
	}
	if !strings.Contains(out.String(), ">InPlace<") {
		t.Error("the picture has no series")
	}
}

func TestALineEndsWhereThereIsNoValue(t *testing.T) {
	run := Run{From: time.Unix(0, 0), Step: time.Second}
	got := run.pieces([]promql.FPoint{{T: 0, F: 1}, {T: 1000, F: 2}, {T: 5000, F: 3}}, 2)
	if len(got) != 2 || len(got[0]) != 2 || len(got[1]) != 1 || got[1][0].Y != 6 {
		t.Errorf("pieces %v", got)
	}
}
