package credentials

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/bearer"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/source"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

func TestExpiryOfACopiedToken(t *testing.T) {
	now := time.Unix(1000, 0)
	later := now.Add(time.Hour)
	for name, test := range map[string]struct {
		found source.Finding
		want  time.Time
	}{
		"a token":             {source.Finding{Digest: bearer.Digest{1}, Expires: later}, later},
		"nothing to copy":     {source.Finding{}, time.Time{}},
		"an unusable one":     {source.Finding{Problem: "is empty"}, time.Time{}},
		"one that has ended":  {source.Finding{Digest: bearer.Digest{1}, Expires: now}, time.Time{}},
		"an unknown token":    {source.Finding{Expires: later}, time.Time{}},
		"one that ends later": {source.Finding{Digest: bearer.Digest{1}, Expires: later.Add(1)}, later.Add(1)},
	} {
		if got := countedEnd(test.found, now); !got.Equal(test.want) {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestMetricsFollowAnAccount: it counts under its state once that is known, and its token
// until that is withdrawn.
func TestMetricsFollowAnAccount(t *testing.T) {
	clock := &apitest.Clock{}
	counts := metrics.New(metrics.Options{Clock: clock})
	s := newStepper(t, func(o *Options) { o.Metrics = counts })
	v := s.still(s.Name("c"))
	shows := func(when string, want map[string]float64) {
		t.Helper()
		if diff := cmp.Diff(want, apitest.Shown(t, counts, "cluster_inventory_credentials")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	left := func() (float64, bool) {
		seconds, ok := apitest.Shown(t, counts, "cluster_inventory_credential_expiry_seconds")[""]
		return seconds, ok
	}
	shows("at first", map[string]float64{})
	if seconds, ok := left(); ok {
		t.Errorf("at first a token ends in %g seconds", seconds)
	}
	v.converge(v.there)
	shows("copied", map[string]float64{"Copied": 1})
	if seconds, ok := left(); !ok || seconds < 60 || seconds > 48*3600 {
		t.Errorf("the token ends in %g seconds, known: %t", seconds, ok)
	}
	v.quietNow()
	v.rule.say(v.team, v.cluster, selection.Result{Answer: selection.No, Why: "is not bound there"})
	v.converge(v.gone)
	shows("withdrawn", map[string]float64{"TargetNotEntitled": 1})
	if seconds, ok := left(); ok {
		t.Errorf("a token that is not copied any more ends in %g seconds", seconds)
	}
	v.MustDelete(v.account)
	v.caughtUp()
	v.converge(v.gone)
	shows("the account is gone", map[string]float64{})
}
