package monitoring

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/template"
)

// Rules reads a file of rules as Prometheus does, which checks expressions, durations and
// templates.
func Rules(file string) ([]rulefmt.Rule, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	groups, errs := rulefmt.Parse(content, false, model.UTF8Validation)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var rules []rulefmt.Rule
	for _, group := range groups.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules, nil
}

// Alert is an alert that fires.
type Alert struct {
	Name string

	// Labels are those of the rule and of the expression, Text is the description.
	Labels map[string]string
	Text   string
}

// Firing evaluates an alerting rule at every step until a time, and returns what fires
// then: whatever the expression has returned at every step for as long as "for" says.
func (s *Store) Firing(
	ctx context.Context, rule rulefmt.Rule, from, until time.Time, step time.Duration,
) ([]Alert, error) {
	since := map[string]time.Time{}
	var firing []Alert
	for at := from; !at.After(until); at = at.Add(step) {
		found, err := s.At(ctx, rule.Expr, at)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rule.Alert, err)
		}
		firing = nil
		active := map[string]time.Time{}
		for _, one := range found {
			identity := one.Metric.String()
			active[identity] = at
			if began, ok := since[identity]; ok {
				active[identity] = began
			}
			if at.Sub(active[identity]) < time.Duration(rule.For) {
				continue
			}
			alert, err := expand(ctx, rule, one, at)
			if err != nil {
				return nil, err
			}
			firing = append(firing, alert)
		}
		since = active
	}
	return firing, nil
}

func expand(ctx context.Context, rule rulefmt.Rule, found promql.Sample, at time.Time) (Alert, error) {
	alert := Alert{Name: rule.Alert, Labels: maps.Clone(rule.Labels)}
	maps.Copy(alert.Labels, found.Metric.Map())
	const variables = "{{$labels := .Labels}}{{$value := .Value}}"
	data := template.AlertTemplateData(found.Metric.Map(), nil, "", found)
	for _, name := range slices.Sorted(maps.Keys(rule.Annotations)) {
		text, err := template.NewTemplateExpander(
			ctx, variables+rule.Annotations[name], rule.Alert, data, model.Time(timestamp.FromTime(at)), nil, &url.URL{}, nil,
		).Expand()
		if err != nil {
			return Alert{}, fmt.Errorf("%s: %s: %w", rule.Alert, name, err)
		}
		if name == "description" {
			alert.Text = text
		}
	}
	return alert, nil
}
