package stats

import (
	"testing"
	"time"
)

func TestQuantileIsTheNearestRank(t *testing.T) {
	hundred := make(Sample, 100)
	for i := range hundred {
		hundred[99-i] = time.Duration(i + 1)
	}
	tests := map[string]struct {
		sample Sample
		q      float64
		want   time.Duration
	}{
		"median of a hundred":        {hundred, 0.5, 50},
		"99th percentile of hundred": {hundred, 0.99, 99},
		"maximum":                    {hundred, 1, 100},
		"one alone is every one":     {Sample{7}, 0.01, 7},
		"nothing":                    {nil, 0.5, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.sample.Quantile(test.q); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
