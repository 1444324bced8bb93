package monitoring

import (
	"encoding/json"
	"os"
	"strings"
)

// Panel is a panel of the dashboard.
type Panel struct {
	Title       string
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []Target
}

// Target is a query of a panel.
type Target struct {
	Expr         string
	LegendFormat string
}

// Panels reads a dashboard of Grafana.
func Panels(file string) ([]Panel, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var dashboard struct{ Panels []Panel }
	err = json.Unmarshal(content, &dashboard)
	return dashboard.Panels, err
}

// Query returns a target's query as Grafana sends it, for rates over the given time.
func (t Target) Query(rates string) string {
	return strings.ReplaceAll(t.Expr, "$__rate_interval", rates)
}

// Legend returns what Grafana calls a series of these labels.
func (t Target) Legend(labels map[string]string) string {
	legend := t.LegendFormat
	for name, value := range labels {
		legend = strings.ReplaceAll(legend, "{{"+name+"}}", value)
	}
	return legend
}
