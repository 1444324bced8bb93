package report

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgsvg" // the format of the plots

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/stats"
)

// colors are distinguishable for people who cannot tell red from green.
var colors = map[string]color.Color{
	Raw:    color.Gray{Y: 130},
	Addon:  color.RGBA{R: 0, G: 114, B: 178, A: 255},
	Gate:   color.RGBA{R: 213, G: 94, B: 0, A: 255},
	Syncer: color.RGBA{R: 230, G: 159, B: 0, A: 255},
}

var writers = []string{Raw, Addon, Gate, Syncer}

// Plots writes the plots of the runs as SVG files into a folder.
func Plots(dir string, runs []Run) error {
	if len(runs) == 0 {
		return ErrNothing
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // to be published
		return err
	}
	largest := &runs[len(runs)-1]
	for name, draw := range map[string]func() (*plot.Plot, error){
		"time":   func() (*plot.Plot, error) { return times(largest) },
		"edits":  func() (*plot.Plot, error) { return latencies(largest) },
		"cpu":    func() (*plot.Plot, error) { return cpus(largest) },
		"growth": func() (*plot.Plot, error) { return growths(runs) },
		"memory": func() (*plot.Plot, error) { return memories(runs) },
	} {
		p, err := draw()
		if err != nil {
			return fmt.Errorf("plot %s: %w", name, err)
		}
		if p == nil { // nothing was measured
			continue
		}
		if err := save(p, filepath.Join(dir, name+".svg")); err != nil {
			return fmt.Errorf("plot %s: %w", name, err)
		}
	}
	return nil
}

// save draws a plot with a margin on the right, where the last label of the axis is wider than
// the plot.
func save(p *plot.Plot, path string) (err error) {
	canvas, err := draw.NewFormattedCanvas(18*vg.Centimeter, 10*vg.Centimeter, "svg")
	if err != nil {
		return err
	}
	p.Draw(draw.Crop(draw.New(canvas), 0, -vg.Points(14), 0, 0))
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = canvas.WriteTo(file)
	return err
}

func newPlot(title, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text, p.Y.Label.Text = title, y
	p.Title.Padding = vg.Points(6)
	p.Legend.Top, p.Legend.Left = true, true
	return p
}

// bars draws groups of adjacent bars, one bar for each series. It returns nil if all values
// are zero.
func bars(
	p *plot.Plot, groups []string, series []string, value func(group, series string) float64,
) (*plot.Plot, error) {
	width := vg.Points(14)
	p.Add(plotter.NewGrid())
	highest, drawn := 0.0, 0
	for i, name := range series {
		values := make(plotter.Values, 0, len(groups))
		some := false
		for _, group := range groups {
			v := value(group, name)
			some = some || v > 0
			highest = max(highest, v)
			values = append(values, v)
		}
		if !some {
			continue
		}
		chart, err := plotter.NewBarChart(values, width)
		if err != nil {
			return nil, err
		}
		chart.Color, chart.LineStyle.Width = colors[name], 0
		if chart.Color == nil {
			chart.Color = shades[i%len(shades)]
		}
		chart.Offset = width * vg.Length(float64(i)-float64(len(series)-1)/2)
		p.Add(chart)
		p.Legend.Add(name, chart)
		drawn++
	}
	if drawn == 0 {
		return nil, nil
	}
	p.NominalX(groups...)
	p.Y.Min, p.Y.Max = 0, highest*1.25
	return p, nil
}

// shades are for series other than writers.
var shades = []color.Color{
	color.RGBA{R: 0, G: 114, B: 178, A: 255},
	color.RGBA{R: 86, G: 180, B: 233, A: 255},
	color.RGBA{R: 0, G: 158, B: 115, A: 255},
	color.RGBA{R: 204, G: 121, B: 167, A: 255},
}

func times(run *Run) (*plot.Plot, error) {
	p := newPlot(fmt.Sprintf("Until the last of %d clusters is visible", run.Clusters), "seconds")
	groups := []string{Bind, EditAll, Unbind, FirstCopies, Rotation}
	return bars(p, groups, writers, func(scenario, writer string) float64 {
		return stats.Median(seconds(run.of(scenario, writer)))
	})
}

func latencies(run *Run) (*plot.Plot, error) {
	p := newPlot("Edit of a cluster until its profile shows it", "milliseconds, logarithmic")
	groups := []string{"p50", "p90", "p99"}
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	drawn := false
	for _, writer := range []string{Addon, Gate} {
		steps := run.of(EditStream, writer)
		if len(steps) == 0 || steps[0].Latency.N == 0 {
			continue
		}
		l := steps[0].Latency
		line, points, err := plotter.NewLinePoints(plotter.XYs{{X: 0, Y: l.P50}, {X: 1, Y: l.P90}, {X: 2, Y: l.P99}})
		if err != nil {
			return nil, err
		}
		line.Color, points.Color, line.Width = colors[writer], colors[writer], vg.Points(2)
		p.Add(line, points)
		p.Legend.Add(fmt.Sprintf("%s (%d edits)", writer, l.N+l.Lost), line, points)
		drawn = true
	}
	if !drawn {
		return nil, nil
	}
	p.Add(plotter.NewGrid())
	p.NominalX(groups...)
	wholeDecades(&p.Y)
	return p, nil
}

func cpus(run *Run) (*plot.Plot, error) {
	p := newPlot(fmt.Sprintf("CPU to bind a set of %d clusters", run.Clusters), "seconds")
	p.Legend.Left = false
	processes := []string{"the writer", "API server", "etcd", "OCM"}
	return bars(p, []string{Raw, Addon, Gate}, processes, func(writer, process string) float64 {
		return median(run.of(Bind, writer), func(s Step) float64 {
			switch process {
			case "the writer":
				return s.CPU[processOf(writer)]
			case "API server":
				return s.CPU["apiserver"]
			case "etcd":
				return s.CPU["etcd"]
			default:
				return ocmCPU(processOf(writer))(s)
			}
		})
	})
}

func growths(runs []Run) (*plot.Plot, error) {
	p := newPlot("Time to bind as the fleet grows", "seconds, logarithmic")
	p.X.Label.Text = "clusters, logarithmic"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	var sizes plot.ConstantTicks
	for i := range runs {
		n := runs[i].Clusters
		sizes = append(sizes, plot.Tick{Value: float64(n), Label: fmt.Sprint(n)})
	}
	p.X.Tick.Marker = sizes
	drawn := false
	for _, writer := range []string{Raw, Addon, Gate} {
		clusters, seconds := Growth(runs, Bind, writer)
		k, err := stats.Exponent(clusters, seconds)
		if err != nil {
			continue // one size says nothing about growth
		}
		if err := addLine(p, fmt.Sprintf("%s: exponent %.2f", writer, k), colors[writer], clusters, seconds); err != nil {
			return nil, err
		}
		drawn = true
	}
	if !drawn {
		return nil, nil
	}
	p.Add(plotter.NewGrid())
	wholeDecades(&p.Y)
	return p, nil
}

// wholeDecades widens a logarithmic axis to powers of ten, the only ones with labels, and
// leaves room for the legend.
func wholeDecades(axis *plot.Axis) {
	axis.Min = math.Pow(10, math.Floor(math.Log10(max(axis.Min, 0.001))))
	axis.Max = 10 * math.Pow(10, math.Ceil(math.Log10(max(axis.Max, 0.01))))
}

func memories(runs []Run) (*plot.Plot, error) {
	clusters, mib, fit, err := MemoryFit(runs)
	if err != nil {
		return nil, nil //nolint:nilerr // of one size nothing is known about growth
	}
	p := newPlot("Settled memory of the manager, two namespaces", "MiB")
	p.X.Label.Text = "clusters"
	if err := addLine(p, "measured", colors[Addon], clusters, mib); err != nil {
		return nil, err
	}
	last := max(clusters[len(clusters)-1], 10000)
	line, err := plotter.NewLine(plotter.XYs{{X: 0, Y: fit.At(0)}, {X: last, Y: fit.At(last)}})
	if err != nil {
		return nil, err
	}
	line.Color, line.Dashes = colors[Raw], []vg.Length{vg.Points(4), vg.Points(3)}
	p.Add(line, plotter.NewGrid())
	p.Legend.Add(fmt.Sprintf("%.0f MiB + %.1f KiB per cluster", fit.Intercept, fit.Slope*1024), line)
	p.X.Min, p.Y.Min = 0, 0
	return p, nil
}

func addLine(p *plot.Plot, name string, shade color.Color, xs, ys []float64) error {
	points := make(plotter.XYs, 0, len(xs))
	for i := range xs {
		points = append(points, plotter.XY{X: xs[i], Y: ys[i]})
	}
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, line.Width, dots.Color = shade, vg.Points(2), shade
	p.Add(line, dots)
	p.Legend.Add(name, line, dots)
	return nil
}
