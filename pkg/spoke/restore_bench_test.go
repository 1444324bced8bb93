package spoke

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

const (
	// agentsVariable holds a number of agents.
	agentsVariable = "BENCH_AGENTS"
	defaultAgents  = 300

	// downtime is for how long the hub is down.
	downtime = 30 * time.Second

	// established is how old a watch is. One that breaks within a second is not resumed.
	established = 5 * time.Second

	// settled is how long it takes at most until all have connected and listed: client-go
	// pauses for up to a minute before each.
	settled = 2*time.Minute + relistHub + 10*time.Second
)

// BenchmarkHubAfterAnOutage measures what the hub is asked, by the agents of a fleet, after
// it was down for half a minute and was restored from an older snapshot: the most requests in
// a second, their number, and how long it takes until all caches are right. Their hub's
// caches are those of the agent, each with its own connection. "resume" is client-go's
// behaviour, for comparison: its caches are not right in the end.
func BenchmarkHubAfterAnOutage(b *testing.B) {
	agents := defaultAgents
	if value := os.Getenv(agentsVariable); value != "" {
		var err error
		agents, err = strconv.Atoi(value)
		apitest.Must(b, err)
	}
	b.Run("resume", func(b *testing.B) {
		benchOutage(b, agents, func(cfg *rest.Config) *rest.Config { return cfg })
	})
	b.Run("relist", func(b *testing.B) {
		benchOutage(b, agents, func(cfg *rest.Config) *rest.Config {
			cfg, _ = watch.RelistAfterOutage(cfg, relistHub)
			return cfg
		})
	})
}

func benchOutage(b *testing.B, agents int, connect func(*rest.Config) *rest.Config) {
	server := apitest.Start(b, apitest.Hub())
	w := server.World(b, ocmtest.Scheme())
	names := make([]string, agents)
	for i := range names {
		names[i] = w.Namespace("cluster", nil)
		w.MustCreate(ocmtest.Addon(names[i]))
	}
	data := server.Snapshot(b)
	mark := func(name, value string) {
		w.MustMerge(ocmtest.Addon(name), `{"metadata":{"labels":{"state":"`+value+`"}}}`)
	}
	for round := range 4 { // the restored hub reaches only the first of these rounds
		for _, name := range names {
			mark(name, []string{"1", "2", "3", "lost"}[round])
		}
	}
	requests := &arrivals{}
	hubs := make([]cluster.Cluster, agents)
	for i, name := range names {
		cfg := server.Config(b)
		cfg.Dial = (&net.Dialer{}).DialContext // so that it shares no connection
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return arrivalsTo{requests, next} })
		hub, err := newHub(connect(cfg), name, logr.Discard())
		apitest.Must(b, err)
		_, err = hub.GetCache().GetInformer(b.Context(), &addonv1beta1.ManagedClusterAddOn{}, cache.BlockUntilSynced(false))
		apitest.Must(b, err)
		hubs[i] = hub
		apitest.Run(b, hub.Start)
	}
	wrong := func(want string) (n int) {
		b.Helper()
		for i, name := range names {
			addon := ocmtest.Addon(name)
			err := hubs[i].GetCache().Get(b.Context(), client.ObjectKeyFromObject(addon), addon)
			if err != nil || addon.Labels["state"] != want {
				n++
			}
		}
		return n
	}
	w.Eventually("all caches are filled", func() string {
		if n := wrong("lost"); n > 0 {
			return fmt.Sprint(n, " are not")
		}
		return ""
	})
	<-time.After(established)

	server.Restore(b, data, func() { <-time.After(downtime) })
	back := time.Now()
	for _, name := range names {
		mark(name, "restored")
	}
	ctx, cancel := context.WithTimeout(b.Context(), settled)
	defer cancel()
	for wrong("restored") > 0 && ctx.Err() == nil {
		<-time.After(100 * time.Millisecond)
	}
	right := time.Since(back)
	perSecond := requests.since(back)
	b.Logf("requests in each second: %v", perSecond)
	total := 0
	for _, n := range perSecond {
		total += n
	}
	b.ReportMetric(float64(slices.Max(perSecond)), "most-requests/s")
	b.ReportMetric(float64(total), "requests")
	b.ReportMetric(float64(wrong("restored")), "wrong-caches")
	b.ReportMetric(right.Seconds(), "s-until-right")
	b.ReportMetric(0, "ns/op")
}

// arrivals are when requests got an answer.
type arrivals struct {
	mu sync.Mutex
	at []time.Time
}

func (a *arrivals) add() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = append(a.at, time.Now())
}

// since returns how many there were in each second.
func (a *arrivals) since(start time.Time) []int {
	a.mu.Lock()
	defer a.mu.Unlock()
	seconds := make([]int, int(time.Since(start).Seconds())+1)
	for _, at := range a.at {
		if after := at.Sub(start); after >= 0 && int(after.Seconds()) < len(seconds) {
			seconds[int(after.Seconds())]++
		}
	}
	return seconds
}

type arrivalsTo struct {
	*arrivals
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (a arrivalsTo) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := a.next.RoundTrip(req)
	if err == nil {
		a.add()
	}
	return resp, err
}
