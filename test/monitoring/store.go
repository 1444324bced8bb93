package monitoring

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
)

// Store holds samples in memory. It is a storage.Queryable.
type Store struct {
	series map[string]*series
	engine *promql.Engine
}

type series struct {
	labels labels.Labels
	chunk  *chunkenc.XORChunk
	into   chunkenc.Appender
}

// NewStore returns an empty one.
func NewStore() *Store {
	return &Store{series: map[string]*series{}, engine: promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e7, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
	})}
}

// Add adds a sample, which must be younger than those before.
func (s *Store) Add(of labels.Labels, at time.Time, value float64) error {
	one := s.series[of.String()]
	if one == nil {
		one = &series{labels: of, chunk: chunkenc.NewXORChunk()}
		var err error
		if one.into, err = one.chunk.Appender(); err != nil {
			return err
		}
		s.series[of.String()] = one
	}
	one.into.Append(timestamp.FromTime(at), value)
	return nil
}

// Scrape adds what was scraped at a time, in Prometheus' text format.
func (s *Store) Scrape(text io.Reader, at time.Time, instance string) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return fmt.Errorf("parsing metrics: %w", err)
	}
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			for _, sample := range samplesOf(name, metric) {
				b := labels.NewBuilder(labels.FromStrings(labels.MetricName, sample.name, "instance", instance))
				for _, label := range metric.GetLabel() {
					b.Set(label.GetName(), label.GetValue())
				}
				if sample.le != "" {
					b.Set("le", sample.le)
				}
				if err := s.Add(b.Labels(), at, sample.value); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

type sample struct {
	name, le string
	value    float64
}

func samplesOf(name string, metric *dto.Metric) []sample {
	switch {
	case metric.GetHistogram() != nil:
		h := metric.GetHistogram()
		all := []sample{
			{name + "_count", "", float64(h.GetSampleCount())}, {name + "_sum", "", h.GetSampleSum()},
		}
		for _, bucket := range h.GetBucket() {
			le := fmt.Sprint(bucket.GetUpperBound())
			all = append(all, sample{name + "_bucket", le, float64(bucket.GetCumulativeCount())})
		}
		return all
	case metric.GetSummary() != nil:
		return nil // the queries use none
	case metric.GetCounter() != nil:
		return []sample{{name, "", metric.GetCounter().GetValue()}}
	case metric.GetUntyped() != nil:
		return []sample{{name, "", metric.GetUntyped().GetValue()}}
	default:
		return []sample{{name, "", metric.GetGauge().GetValue()}}
	}
}

// At evaluates a query at a time.
func (s *Store) At(ctx context.Context, query string, at time.Time) (promql.Vector, error) {
	q, err := s.engine.NewInstantQuery(ctx, s, nil, query, at)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	result := q.Exec(ctx)
	vector, err := result.Vector()
	return slices.Clone(vector), err
}

// Between evaluates a query at every step from one time to another.
func (s *Store) Between(ctx context.Context, query string, from, to time.Time, step time.Duration) (promql.Matrix, error) {
	q, err := s.engine.NewRangeQuery(ctx, s, nil, query, from, to, step)
	if err != nil {
		return nil, err
	}
	return q.Exec(ctx).Matrix()
}

// Querier implements storage.Queryable.
func (s *Store) Querier(int64, int64) (storage.Querier, error) { return querier{s}, nil }

type querier struct{ *Store }

// Select implements storage.Querier.
func (q querier) Select(
	_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher,
) storage.SeriesSet {
	found := &set{at: -1}
	for _, one := range q.series {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(one.labels.Get(m.Name)) }) {
			found.series = append(found.series, &storage.SeriesEntry{Lset: one.labels, SampleIteratorFn: one.chunk.Iterator})
		}
	}
	slices.SortFunc(found.series, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return found
}

// LabelValues implements storage.Querier; the engine does not ask.
func (querier) LabelValues(
	context.Context, string, *storage.LabelHints, ...*labels.Matcher,
) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// LabelNames implements storage.Querier; the engine does not ask.
func (querier) LabelNames(
	context.Context, *storage.LabelHints, ...*labels.Matcher,
) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// Close implements storage.Querier.
func (querier) Close() error { return nil }

type set struct {
	series []storage.Series
	at     int
}

func (s *set) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *set) At() storage.Series                { return s.series[s.at] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }
