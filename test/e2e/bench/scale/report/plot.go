package report

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgsvg" // the format of the plots

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/stats"
)

// colors are distinguishable for people who cannot tell red from green.
var colors = map[string]color.Color{
	Raw:   color.Gray{Y: 130},
	Addon: color.RGBA{R: 0, G: 114, B: 178, A: 255},
	Gate:  color.RGBA{R: 213, G: 94, B: 0, A: 255},
}

// shades are for series other than writers.
var shades = []color.Color{
	color.RGBA{R: 0, G: 114, B: 178, A: 255},
	color.RGBA{R: 86, G: 180, B: 233, A: 255},
	color.RGBA{R: 0, G: 158, B: 115, A: 255},
	color.RGBA{R: 204, G: 121, B: 167, A: 255},
}

// typeface is the font with which texts are measured. Where a reader does not have it, the others
// of families have letters of the same width.
var typeface = font.Font{Typeface: "Liberation", Variant: "Sans"}

const families = "'Liberation Sans',Arial,Helvetica,sans-serif"

const (
	width, height = 18 * vg.Centimeter, 8 * vg.Centimeter
	textSize      = 10
)

// Plots writes the plots of the runs as SVG files into a folder. What the addon is compared with
// was measured on the largest fleet that has it.
func Plots(dir string, runs []Run) error {
	if len(runs) == 0 {
		return ErrNothing
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // to be published
		return err
	}
	compared := &runs[len(runs)-1]
	for i := range runs {
		if len(runs[i].of(Bind, Gate)) > 0 {
			compared = &runs[i]
		}
	}
	for name, draw := range map[string]func() (*plot.Plot, error){
		"speed":  func() (*plot.Plot, error) { return speeds(compared) },
		"edits":  func() (*plot.Plot, error) { return latencies(compared) },
		"cpu":    func() (*plot.Plot, error) { return cpus(compared) },
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

func save(p *plot.Plot, path string) error {
	canvas, err := draw.NewFormattedCanvas(width, height, "svg")
	if err != nil {
		return err
	}
	// The last label of an axis is wider than the axis.
	p.Draw(draw.Crop(draw.New(canvas), vg.Points(6), -vg.Points(20), vg.Points(4), -vg.Points(4)))
	var picture bytes.Buffer
	if _, err := canvas.WriteTo(&picture); err != nil {
		return err
	}
	named := bytes.ReplaceAll(picture.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:"+families))
	return os.WriteFile(path, named, 0o644) //nolint:gosec // to be published
}

func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text, p.Title.Padding = title, vg.Points(8)
	// A font that a reader has instead may be wider.
	p.Legend.Top, p.Legend.Left, p.Legend.Padding, p.Legend.ThumbnailWidth = true, true, vg.Points(2), vg.Points(12)
	for style, size := range map[*text.Style]vg.Length{
		&p.Title.TextStyle: textSize + 2, &p.Legend.TextStyle: textSize,
		&p.X.Label.TextStyle: textSize, &p.X.Tick.Label: textSize,
		&p.Y.Label.TextStyle: textSize, &p.Y.Tick.Label: textSize,
	} {
		style.Font = font.From(typeface, size)
	}
	p.Title.TextStyle.Font.Weight = xfont.WeightBold
	return p
}

// rows names the rows of a picture from top to bottom, and hides the axis of their numbers.
func rows(p *plot.Plot, names []string) {
	p.NominalY(names...)
	p.Y.Min, p.Y.Max = -0.6, float64(len(names))-0.4
	p.Y.Width, p.Y.Tick.Width = 0, 0
	p.X.Width, p.X.Tick.Width = 0, 0
	p.X.Tick.Marker = plot.ConstantTicks{}
	p.X.Min, p.Y.Padding = 0, vg.Points(12)
}

// write puts a text to the right of a point.
func write(p *plot.Plot, x, y float64, words string) error {
	labels, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: x, Y: y}}, Labels: []string{words}})
	if err != nil {
		return err
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i].Font, labels.TextStyle[i].YAlign = font.From(typeface, textSize), text.YCenter
	}
	labels.Offset = vg.Point{X: vg.Points(8)}
	p.Add(labels)
	return nil
}

// speed is a scenario with this addon and what it replaces.
type speed struct {
	scenario, words, other string
}

// speeds says how many times as fast the addon is as what it replaces.
func speeds(run *Run) (*plot.Plot, error) {
	p := newPlot(fmt.Sprintf("How many times as fast as OCM's own gates, with %d clusters", run.Clusters))
	var names []string
	var factors plotter.Values
	var values []string
	for _, s := range []speed{ // from the bottom
		{Rotation, "all tokens rotated", Syncer},
		{FirstCopies, "first tokens", Syncer},
		{EditAll, "every cluster edited", Gate},
		{Swap, "half the fleet swapped", Gate},
		{Unbind, "a namespace unbound", Gate},
		{Bind, "a namespace bound", Gate},
	} {
		ours, others := stats.Median(seconds(run.of(s.scenario, Addon))), stats.Median(seconds(run.of(s.scenario, s.other)))
		if ours > 0 && others > 0 {
			names, factors = append(names, s.words), append(factors, others/ours)
			values = append(values, fmt.Sprintf("%.1f  (%.1f s, not %.1f s)", others/ours, ours, others))
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	bars, err := plotter.NewBarChart(factors, vg.Points(16))
	if err != nil {
		return nil, err
	}
	bars.Horizontal, bars.Color, bars.LineStyle.Width = true, colors[Addon], 0
	p.Add(bars)
	rows(p, names)
	highest := 0.0
	for i, factor := range factors {
		highest = max(highest, factor)
		if err := write(p, factor, float64(i), values[i]); err != nil {
			return nil, err
		}
	}
	p.X.Max = highest * 1.45 // for the text
	return p, nil
}

// latencies shows how long single edits took, on a logarithmic scale.
func latencies(run *Run) (*plot.Plot, error) {
	p := newPlot(fmt.Sprintf("At 100 edits a second, until a profile shows its edit, with %d clusters", run.Clusters))
	p.X.Scale = plot.LogScale{}
	lowest, highest := math.Inf(1), 0.0
	for _, writer := range []string{Addon, Gate} {
		steps := run.of(EditStream, writer)
		if len(steps) == 0 || steps[0].Latency == nil || steps[0].Latency.N == 0 {
			continue
		}
		l := steps[0].Latency
		dots, err := plotter.NewScatter(plotter.XYs{{X: l.P50, Y: 2}, {X: l.P90, Y: 1}, {X: l.P99, Y: 0}})
		if err != nil {
			return nil, err
		}
		dots.Color, dots.Shape, dots.Radius = colors[writer], draw.CircleGlyph{}, vg.Points(5)
		p.Add(dots)
		p.Legend.Add(writer, dots)
		for i, ms := range []float64{l.P99, l.P90, l.P50} {
			lowest, highest = min(lowest, ms), max(highest, ms)
			if err := write(p, ms, float64(i), duration(ms)); err != nil {
				return nil, err
			}
		}
	}
	if highest == 0 {
		return nil, nil
	}
	rows(p, []string{"99 of 100 within", "90 of 100 within", "half of them within"})
	p.X.Min, p.X.Max = lowest/2, highest*4 // for the text
	p.Y.Max++                              // for the legend
	p.Legend.XOffs = vg.Points(8)
	return p, nil
}

// duration writes milliseconds as people do.
func duration(ms float64) string {
	if ms < 1000 {
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}

// cpus shows the CPU time that binding a set takes, by process.
func cpus(run *Run) (*plot.Plot, error) {
	p := newPlot(fmt.Sprintf("CPU seconds to bind a set of %d clusters", run.Clusters))
	processes := []struct {
		name string
		of   func(writer string) func(Step) float64
	}{
		{"the writer", func(writer string) func(Step) float64 {
			return func(s Step) float64 { return s.CPU[processOf(writer)] }
		}},
		{"API server", func(string) func(Step) float64 { return func(s Step) float64 { return s.CPU["apiserver"] } }},
		{"etcd", func(string) func(Step) float64 { return func(s Step) float64 { return s.CPU["etcd"] } }},
		{"OCM", func(writer string) func(Step) float64 { return ocmCPU(processOf(writer)) }},
	}
	names := []string{Gate, Addon, Raw} // from the bottom
	sums := make([]float64, len(names))
	var below *plotter.BarChart
	for i, process := range processes {
		var values plotter.Values
		for k, writer := range names {
			value := 0.0
			if steps := run.of(Bind, writer); len(steps) > 0 {
				value = median(steps, process.of(writer))
			}
			values, sums[k] = append(values, value), sums[k]+value
		}
		bars, err := plotter.NewBarChart(values, vg.Points(24))
		if err != nil {
			return nil, err
		}
		bars.Horizontal, bars.Color, bars.LineStyle.Width = true, shades[i], 0
		if below != nil {
			bars.StackOn(below)
		}
		below = bars
		p.Add(bars)
		p.Legend.Add(process.name, bars)
	}
	highest := max(sums[0], sums[1], sums[2])
	if highest == 0 {
		return nil, nil
	}
	rows(p, names)
	for k, sum := range sums {
		if err := write(p, sum, float64(k), fmt.Sprintf("%.1f", sum)); err != nil {
			return nil, err
		}
	}
	p.X.Max = highest * 1.15
	p.Legend.XOffs = width - 8*vg.Centimeter // where no bar is
	return p, nil
}

func growths(runs []Run) (*plot.Plot, error) {
	p := newPlot("Seconds to bind a namespace as the fleet grows")
	p.X.Label.Text = "clusters (both axes are logarithmic)"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	var sizes plot.ConstantTicks
	for i := range runs {
		n := runs[i].Clusters
		if i > 0 && n == runs[i-1].Clusters {
			continue
		}
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
	p := newPlot("MiB of memory of the manager at rest, two namespaces")
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
