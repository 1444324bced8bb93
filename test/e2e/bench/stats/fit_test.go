package stats

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRatioComparesWhatWasMeasuredInTurn(t *testing.T) {
	tests := map[string]struct {
		values, others []float64
		want           Ratio
	}{
		"median and spread of three pairs": {
			[]float64{2, 9, 4}, []float64{1, 3, 4}, Ratio{Median: 2, Low: 1, High: 3, Pairs: 3},
		},
		"a value without its counterpart is left out": {
			[]float64{2, 50}, []float64{1}, Ratio{Median: 2, Low: 2, High: 2, Pairs: 1},
		},
		"a counterpart of zero is left out": {
			[]float64{2, 6}, []float64{0, 2}, Ratio{Median: 3, Low: 3, High: 3, Pairs: 1},
		},
		"nothing": {nil, nil, Ratio{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, RatioOf(test.values, test.others)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	tests := map[string]struct {
		values []float64
		want   float64
	}{
		"the middle of three":              {[]float64{9, 1, 2}, 2},
		"between the two middle ones":      {[]float64{4, 1, 2, 9}, 3},
		"one alone":                        {[]float64{7}, 7},
		"nothing has a median of zero":     {nil, 0},
		"an outlier does not pull it away": {[]float64{1, 1, 1000}, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Median(test.values); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestFitLineFindsTheLine(t *testing.T) {
	line, err := FitLine([]float64{1000, 3000, 10000}, []float64{40, 80, 220})
	if err != nil || math.Abs(line.Intercept-20) > 1e-9 || math.Abs(line.Slope-0.02) > 1e-9 {
		t.Errorf("got %+v, %v: want 20 + 0.02 x", line, err)
	}
	if got := line.At(5000); math.Abs(got-120) > 1e-9 {
		t.Errorf("at 5000: got %v, want 120", got)
	}
}

func TestExponentTellsLinearFromQuadraticGrowth(t *testing.T) {
	for _, k := range []float64{0.5, 1, 1.24, 2} {
		xs, ys := []float64{1000, 3000, 10000}, []float64{}
		for _, x := range xs {
			ys = append(ys, 0.04*math.Pow(x, k))
		}
		if got, err := Exponent(xs, ys); err != nil || math.Abs(got-k) > 1e-9 {
			t.Errorf("got %v, %v: want %v", got, err, k)
		}
	}
}

func TestNoFitWithoutTwoPlaces(t *testing.T) {
	tests := map[string]struct{ xs, ys []float64 }{
		"nothing":                    {nil, nil},
		"one point":                  {[]float64{1}, []float64{1}},
		"two points at one place":    {[]float64{3, 3}, []float64{1, 2}},
		"a value without its place":  {[]float64{1, 2}, []float64{1}},
		"no logarithm of a zero":     {[]float64{1, 2}, []float64{0, 1}},
		"no logarithm of a negative": {[]float64{1, 2}, []float64{-1, 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := Exponent(test.xs, test.ys); !errors.Is(err, ErrNoFit) {
				t.Errorf("got %v, %v: want ErrNoFit", got, err)
			}
		})
	}
}
