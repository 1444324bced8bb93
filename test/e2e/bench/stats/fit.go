package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Ratio compares one series with another that was measured alternately.
type Ratio struct {
	// Median of the ratios of the pairs, with the lowest and the highest.
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	// Pairs is the number of pairs.
	Pairs int `json:"pairs"`
}

// RatioOf compares each value with that of the same index in the other series. Values
// without a counterpart, and counterparts that are not positive, are left out.
func RatioOf(values, others []float64) Ratio {
	var ratios []float64
	for i := range min(len(values), len(others)) {
		if others[i] > 0 {
			ratios = append(ratios, values[i]/others[i])
		}
	}
	if len(ratios) == 0 {
		return Ratio{}
	}
	return Ratio{Median: Median(ratios), Low: slices.Min(ratios), High: slices.Max(ratios), Pairs: len(ratios)}
}

// String is the ratio as reports show it.
func (r Ratio) String() string {
	if r.Pairs == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f (%.2f-%.2f, %d pairs)", r.Median, r.Low, r.High, r.Pairs)
}

// Median returns the middle value, or the mean of the two in the middle; 0 for none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Line is y = Intercept + Slope * x.
type Line struct {
	Intercept float64 `json:"intercept"`
	Slope     float64 `json:"slope"`
}

// At is the line's value at x.
func (l Line) At(x float64) float64 { return l.Intercept + l.Slope*x }

// ErrNoFit says that the points do not determine a line.
var ErrNoFit = errors.New("a fit needs points at two places or more")

// FitLine returns the least-squares line through the points.
func FitLine(xs, ys []float64) (Line, error) {
	n := float64(len(xs))
	if len(xs) != len(ys) || len(xs) < 2 {
		return Line{}, ErrNoFit
	}
	var meanX, meanY float64
	for i := range xs {
		meanX += xs[i] / n
		meanY += ys[i] / n
	}
	var covariance, variance float64
	for i := range xs {
		covariance += (xs[i] - meanX) * (ys[i] - meanY)
		variance += (xs[i] - meanX) * (xs[i] - meanX)
	}
	if variance == 0 {
		return Line{}, ErrNoFit
	}
	slope := covariance / variance
	return Line{Intercept: meanY - slope*meanX, Slope: slope}, nil
}

// Exponent returns k of the curve c * x^k that fits the points best: 1 if y grows in
// proportion to x, 2 if it grows with the square. All values must be positive.
func Exponent(xs, ys []float64) (float64, error) {
	logs := func(values []float64) ([]float64, error) {
		out := make([]float64, 0, len(values))
		for _, v := range values {
			if v <= 0 {
				return nil, fmt.Errorf("%w: %v is not positive", ErrNoFit, v)
			}
			out = append(out, math.Log(v))
		}
		return out, nil
	}
	logX, err := logs(xs)
	if err != nil {
		return 0, err
	}
	logY, err := logs(ys)
	if err != nil {
		return 0, err
	}
	line, err := FitLine(logX, logY)
	return line.Slope, err
}
