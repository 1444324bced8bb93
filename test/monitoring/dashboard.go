package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql"
)

// Panel is one of a Grafana dashboard.
type Panel struct {
	Title   string   `json:"title"`
	Targets []Target `json:"targets"`
}

// Target is one query of a panel.
type Target struct {
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
}

// Panels reads a dashboard.
func Panels(file string) ([]Panel, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var dashboard struct {
		Panels []Panel `json:"panels"`
	}
	if err := json.Unmarshal(content, &dashboard); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return dashboard.Panels, nil
}

// Query is the expression with the interval over which rates are taken, as Grafana fills
// it in.
func (t Target) Query(rates time.Duration) string {
	return strings.ReplaceAll(t.Expr, "$__rate_interval", rates.String())
}

var label = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// Legend is what a series is called.
func (t Target) Legend(labels map[string]string) string {
	return label.ReplaceAllStringFunc(t.LegendFormat, func(found string) string {
		return labels[label.FindStringSubmatch(found)[1]]
	})
}

// Range evaluates a query at every step of a time.
func (s *Store) Range(
	ctx context.Context, query string, from, until time.Time, step time.Duration,
) (promql.Matrix, error) {
	q, err := s.engine.NewRangeQuery(ctx, s, nil, query, from, until, step)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	matrix, err := q.Exec(ctx).Matrix()
	if err != nil {
		return nil, err
	}
	copied := make(promql.Matrix, 0, len(matrix)) // the engine reuses what it returns
	for _, series := range matrix {
		series.Floats = append([]promql.FPoint(nil), series.Floats...)
		copied = append(copied, series)
	}
	return copied, nil
}
