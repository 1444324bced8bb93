package monitoring

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// Scrape adds what a manager served at a time, in Prometheus' text format.
func (s *Store) Scrape(text []byte, at time.Time, instance string) error {
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
		of = labels.NewBuilder(of).Set("instance", instance).Set("job", "cluster-inventory-metrics").Labels()
		_, _, sample := parser.Series()
		if err := s.Add(of, at, sample); err != nil {
			return err
		}
	}
}
