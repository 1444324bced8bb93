// Command picture records what a manager serves of metrics, and draws the dashboard's panels
// from that. hack/dashboard-picture.sh runs it on a fleet.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/monitoring"
	"open-cluster-management.io/cluster-inventory-addon/test/monitoring/picture"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: picture record|draw [flags]")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	dir := flags.String("dir", "", "the folder with the scrapes")
	every := flags.Duration("every", 5*time.Second, "how long from one scrape to the next")
	url := flags.String("url", "", "the address of the metrics")
	token := flags.String("token-file", "", "the file with the token of whoever may read them")
	length := flags.Duration("for", 6*time.Minute, "how long to record")
	dashboard := flags.String("dashboard", "", "the dashboard")
	out := flags.String("o", "", "the picture: a file that ends in .svg or .png")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "record":
		ctx, cancel := context.WithTimeout(ctx, *length)
		defer cancel()
		return record(ctx, *url, *token, *dir, *every)
	case "draw":
		return drawAll(ctx, *dir, *dashboard, *out, *every)
	default:
		return fmt.Errorf("unknown command %q", args[0])
	}
}

func record(ctx context.Context, url, tokenFile, dir string, every time.Duration) error {
	token, err := os.ReadFile(tokenFile) //nolint:gosec // named on the command line
	if err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	//nolint:gosec // the manager's certificate is its own
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	client := &http.Client{Timeout: every, Transport: bearer{strings.TrimSpace(string(token)), transport}}
	return monitoring.Record(ctx, client, url, dir, every)
}

type bearer struct {
	token string
	next  http.RoundTripper
}

// RoundTrip adds the token.
func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(request)
}

func drawAll(ctx context.Context, dir, dashboard, file string, every time.Duration) error {
	panels, err := monitoring.Panels(dashboard)
	if err != nil {
		return err
	}
	store, from, until, err := monitoring.Replay(dir, "manager")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil { //nolint:gosec // named on the command line
		return err
	}
	out, err := os.Create(file) //nolint:gosec // named on the command line
	if err != nil {
		return err
	}
	err = picture.Draw(ctx, out, strings.TrimPrefix(filepath.Ext(file), "."), panels, picture.Run{
		Store: store, From: from, Until: until, Step: every, Rates: 6 * every,
	})
	return errors.Join(err, out.Close())
}
