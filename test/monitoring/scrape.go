package monitoring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
)

// Scrape adds what a manager served at a time, in Prometheus' text format. Like Prometheus,
// it marks the series of an instance that are gone since the scrape before.
func (s *Store) Scrape(text []byte, at time.Time, instance string) error {
	parser := textparse.NewPromParser(text, labels.NewSymbolTable(), false)
	now := map[string]labels.Labels{}
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			break
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
		now[of.String()] = of
	}
	for name, of := range s.scraped[instance] {
		if _, still := now[name]; !still {
			if err := s.Add(of, at, math.Float64frombits(value.StaleNaN)); err != nil {
				return err
			}
		}
	}
	s.scraped[instance] = now
	return nil
}

// Record reads an address at every interval until the context ends, and writes what it
// answers into files that Replay reads. A scrape that fails is left out, as by Prometheus.
func Record(ctx context.Context, client *http.Client, url, dir string, every time.Duration) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		text, err := read(ctx, client, url)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, strconv.FormatInt(time.Now().UnixMilli(), 10)+suffix), text, 0o600)
			if err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

const suffix = ".txt"

func read(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	return io.ReadAll(response.Body)
}

// Replay returns what Record has written, and the time from the first scrape to the last.
func Replay(dir, instance string) (s *Store, from, until time.Time, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, from, until, err
	}
	if len(files) == 0 {
		return nil, from, until, fmt.Errorf("there are no scrapes in %s", dir)
	}
	slices.Sort(files) // by time: their names have equally many digits
	s = NewStore()
	for i, file := range files {
		millis, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(file), suffix), 10, 64)
		if err != nil {
			return nil, from, until, fmt.Errorf("%s: %w", file, err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, from, until, err
		}
		if until = time.UnixMilli(millis); i == 0 {
			from = until
		}
		if err := s.Scrape(text, until, instance); err != nil {
			return nil, from, until, err
		}
	}
	return s, from, until, nil
}
