package credentials

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// BenchmarkColdStart makes the manager copy one token of each of n clusters, all
// RoleBindings included, from nothing. Its own CPU time is that of
// this process, in which it is all that runs meanwhile.
func BenchmarkColdStart(b *testing.B) {
	for _, n := range []int{250, 500, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				coldStart(b, n)
			}
		})
	}
}

func coldStart(b *testing.B, n int) {
	const teams = 10
	w := newWorldOn(b, apitest.Start(b, apitest.Hub(), apitest.ClusterProfile(), apitest.ManagedServiceAccount()))
	var team [teams]string
	for i := range team {
		team[i] = w.team()
	}
	var all sync.WaitGroup
	gate := make(chan struct{}, 8)
	for i := range n {
		all.Add(1)
		gate <- struct{}{}
		go func() {
			defer func() { <-gate; all.Done() }()
			c := w.cluster(fmt.Sprintf("c%d", i))
			w.publish(team[i%teams], c)
			w.account(c, "reader", team[i%teams])
		}()
	}
	all.Wait()

	cpu := cpuTime(b)
	b.StartTimer()
	began := time.Now()
	w.start()
	copied := time.Duration(0)
	for copied == 0 {
		copies := 0
		for i := range team {
			copies += w.creds.ledger.Count(team[i])
		}
		if copies == n {
			copied = time.Since(began)
		}
		if time.Since(began) > 2*time.Minute {
			b.Fatalf("%d of %d copies after %s", copies, n, time.Since(began))
		}
		<-time.After(50 * time.Millisecond)
	}
	b.StopTimer()
	used := cpuTime(b) - cpu
	b.ReportMetric(copied.Seconds(), "s/copied")
	b.ReportMetric(used.Seconds(), "cpu-s")
	b.ReportMetric(float64(used.Microseconds())/float64(n), "cpu-µs/account")
	b.ReportMetric(float64(len(w.wire.Writes()))/float64(n), "writes/account")
	b.ReportMetric(float64(len(w.wire.Calls()))/float64(n), "requests/account")
	w.stop()
}

// BenchmarkLatency measures, from the write that causes it, how long a new token takes to
// be copied, and how long a copy takes to be withdrawn.
func BenchmarkLatency(b *testing.B) {
	w := newWorldOn(b, apitest.Start(b, apitest.Hub(), apitest.ClusterProfile(), apitest.ManagedServiceAccount()))
	c, team := w.cluster("c"), w.team()
	w.publish(team, c)
	w.start()
	account := w.account(c, "reader", team)
	var rotations, withdrawals []time.Duration
	const rounds = 200
	for range rounds {
		token := w.Rotate(account)
		began := time.Now()
		w.holds(team, c, "reader", token)
		rotations = append(rotations, time.Since(began))

		apitest.Edit(w, account, func(a *authv1beta1.ManagedServiceAccount) { delete(a.Labels, syncLabel) })
		began = time.Now()
		w.hasNoCopy(team, c, "reader")
		withdrawals = append(withdrawals, time.Since(began))
		apitest.Edit(w, account,
			func(a *authv1beta1.ManagedServiceAccount) { a.Labels = map[string]string{syncLabel: "true"} })
		w.holds(team, c, "reader", token)
	}
	for name, all := range map[string][]time.Duration{"rotation": rotations, "withdrawal": withdrawals} {
		slices.Sort(all)
		b.ReportMetric(float64(all[rounds/2].Milliseconds()), "ms/"+name+"-p50")
		b.ReportMetric(float64(all[rounds*99/100].Milliseconds()), "ms/"+name+"-p99")
	}
}

func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
