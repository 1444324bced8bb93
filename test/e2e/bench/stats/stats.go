// Package stats is the arithmetic of the benchmarks: quantiles, ratios with their spread,
// and how a cost grows. It reads no clock and sends no request.
package stats

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Sample is a series of durations of one kind.
type Sample []time.Duration

// Quantile returns the smallest duration that at least the share q of the sample
// does not exceed (nearest rank), and 0 of an empty sample.
func (s Sample) Quantile(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// String is one row of the report, in milliseconds.
func (s Sample) String() string {
	ms := func(q float64) float64 { return float64(s.Quantile(q)) / float64(time.Millisecond) }
	return fmt.Sprintf(
		"n=%-4d p50 %6.1f ms   p90 %6.1f ms   p99 %6.1f ms   max %6.1f ms", len(s), ms(0.5), ms(0.9), ms(0.99), ms(1),
	)
}
