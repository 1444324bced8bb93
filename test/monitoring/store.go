package monitoring

import (
	"context"
	"slices"
	"time"

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
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e7, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
	})
	return &Store{series: map[string]*series{}, engine: engine}
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
