// Command picture draws the chart's dashboard from what a manager served of metrics:
//
//	picture record -url https://POD-IP:8080/metrics -token-file token -for 5m -dir scrapes
//	picture draw -dir scrapes -dashboard .../dashboard.json -out dashboard.svg
//
// The queries are the dashboard's own, evaluated by Prometheus' engine; only the drawing
// is not Grafana's.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/monitoring"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	const usage = "usage: picture record|draw ..."
	if len(args) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	dir := flags.String("dir", "scrapes", "where the scrapes are, a file each, named by its Unix time in milliseconds")
	switch args[0] {
	case "record":
		r := recorder{dir: dir}
		flags.StringVar(&r.url, "url", "", "URL of the metrics")
		flags.StringVar(&r.tokenFile, "token-file", "", "file with a token that may read them")
		flags.DurationVar(&r.every, "every", 2*time.Second, "time between two scrapes")
		flags.DurationVar(&r.length, "for", 5*time.Minute, "for how long to scrape")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return r.record(ctx)
	case "draw":
		dashboard := flags.String("dashboard", "", "the dashboard's file")
		out := flags.String("out", "dashboard.svg", "the picture")
		rates := flags.Duration("rates", 20*time.Second, "over how long rates are computed")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return draw(ctx, *dir, *dashboard, *out, *rates)
	default:
		return errors.New(usage)
	}
}

// recorder writes scrapes to files.
type recorder struct {
	dir            *string
	url, tokenFile string
	every, length  time.Duration
}

func (r recorder) record(ctx context.Context) error {
	token := ""
	if r.tokenFile != "" {
		text, err := os.ReadFile(r.tokenFile)
		if err != nil {
			return err
		}
		token = strings.TrimSpace(string(text))
	}
	if err := os.MkdirAll(*r.dir, 0o750); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.length)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the manager's certificate is its own
	}}
	ticker := time.NewTicker(r.every)
	defer ticker.Stop()
	for {
		if err := r.scrape(ctx, client, token); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "picture:", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (r recorder) scrape(ctx context.Context, client *http.Client, token string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, http.NoBody)
	if err != nil {
		return err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", r.url, response.Status)
	}
	name := strconv.FormatInt(time.Now().UnixMilli(), 10)
	return os.WriteFile(filepath.Join(*r.dir, name), text, 0o600)
}

func draw(ctx context.Context, dir, dashboard, out string, rates time.Duration) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	store := monitoring.NewStore()
	var times []time.Time
	for _, entry := range entries { // by name, which is by time
		millis, err := strconv.ParseInt(entry.Name(), 10, 64)
		if err != nil {
			return fmt.Errorf("%s is not named by its time: %w", entry.Name(), err)
		}
		text, err := os.Open(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		at := time.UnixMilli(millis)
		err = store.Scrape(text, at, "manager")
		_ = text.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", entry.Name(), err)
		}
		times = append(times, at)
	}
	if len(times) < 2 {
		return fmt.Errorf("%s has %d scrapes", dir, len(times))
	}
	panels, err := monitoring.Panels(dashboard)
	if err != nil {
		return err
	}
	first, last := slices.MinFunc(times, time.Time.Compare), slices.MaxFunc(times, time.Time.Compare)
	return store.Draw(ctx, panels, first, last, rates, out)
}
