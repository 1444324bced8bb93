// Package picture draws the panels of a dashboard, with values that Prometheus' engine
// computes from recorded scrapes by the dashboard's own queries. It draws lines and legends;
// Grafana does that better, but is not needed here.
package picture

import (
	"context"
	"fmt"
	"image/color"
	"io"
	"slices"
	"time"

	"github.com/prometheus/prometheus/promql"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgimg" // the format png
	_ "gonum.org/v1/plot/vg/vgsvg" // the format svg

	"open-cluster-management.io/cluster-inventory-addon/test/monitoring"
)

const (
	// columns is how wide Grafana's grid is, column and row the size of its cells.
	columns = 24
	column  = 1.4 * vg.Centimeter
	row     = 0.95 * vg.Centimeter
	margin  = 0.25 * vg.Centimeter
)

// colors are told apart by people who see red and green alike.
var colors = []color.Color{
	color.RGBA{R: 0, G: 114, B: 178, A: 255},
	color.RGBA{R: 213, G: 94, B: 0, A: 255},
	color.RGBA{R: 0, G: 158, B: 115, A: 255},
	color.RGBA{R: 204, G: 121, B: 167, A: 255},
	color.RGBA{R: 230, G: 159, B: 0, A: 255},
	color.RGBA{R: 86, G: 180, B: 233, A: 255},
	color.Gray{Y: 90},
}

// Run is a time of which there are scrapes.
type Run struct {
	Store       *monitoring.Store
	From, Until time.Time

	// Step is how far apart the points of a line are, Rates over what rates are taken.
	Step, Rates time.Duration
}

// Draw draws the panels, in a format: svg or png.
func Draw(ctx context.Context, out io.Writer, format string, panels []monitoring.Panel, run Run) error {
	rows := 0
	for _, panel := range panels {
		rows = max(rows, panel.Place.Y+panel.Place.H)
	}
	picture, err := draw.NewFormattedCanvas(columns*column, vg.Length(rows)*row, format)
	if err != nil {
		return err
	}
	whole := draw.New(picture)
	whole.SetColor(color.White)
	whole.Fill(whole.Path())
	for _, panel := range panels {
		p, err := run.plot(ctx, panel)
		if err != nil {
			return fmt.Errorf("panel %s: %w", panel.Title, err)
		}
		at := panel.Place
		p.Draw(draw.Crop(whole,
			vg.Length(at.X)*column+margin, -vg.Length(columns-at.X-at.W)*column-margin,
			vg.Length(rows-at.Y-at.H)*row+margin, -vg.Length(at.Y)*row-margin))
	}
	_, err = picture.WriteTo(out)
	return err
}

// plot draws one panel.
func (r Run) plot(ctx context.Context, panel monitoring.Panel) (*plot.Plot, error) {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text = panel.Title
	p.Title.Padding = vg.Points(4)
	p.X.Label.Text = "minutes"
	p.X.Min, p.X.Max = 0, r.Until.Sub(r.From).Minutes()
	p.X.Tick.Marker = minutes(p.X.Max)
	var factor float64
	p.Y.Label.Text, factor = unit(panel.Unit())
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.TextStyle.Font.Size, p.Legend.Padding = vg.Points(8), vg.Points(1.5)
	p.Add(plotter.NewGrid())
	highest, drawn := 0.0, 0
	for _, target := range panel.Targets {
		found, err := r.Store.Range(ctx, target.Query(r.Rates), r.From, r.Until, r.Step)
		if err != nil {
			return nil, err
		}
		for _, series := range found {
			var legend plot.Thumbnailer
			for _, piece := range r.pieces(series.Floats, factor) {
				for _, point := range piece {
					highest = max(highest, point.Y)
				}
				line, points, err := plotter.NewLinePoints(piece)
				if err != nil {
					return nil, err
				}
				line.Color, line.Width = colors[drawn%len(colors)], vg.Points(1.4)
				p.Add(line)
				if len(piece) == 1 {
					points.Color, points.Radius, points.Shape = line.Color, vg.Points(0.7), draw.CircleGlyph{}
					p.Add(points)
				}
				legend = line
			}
			if legend != nil {
				p.Legend.Add(target.Legend(series.Metric.Map()), legend)
				drawn++
			}
		}
	}
	// The legend is above the lines.
	p.Y.Min, p.Y.Max = 0, max(highest, 1e-9)*(1.15+0.16*float64(drawn))
	if highest == 0 {
		p.Y.Max = 1
	}
	return p, nil
}

// minutes are whole ones.
func minutes(until float64) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for i := 0; float64(i) <= until; i++ {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: fmt.Sprint(i)})
	}
	return ticks
}

// pieces are the parts of a series between which it has no value.
func (r Run) pieces(points []promql.FPoint, factor float64) []plotter.XYs {
	var all []plotter.XYs
	last := int64(0)
	for _, point := range points {
		if len(all) == 0 || point.T-last > r.Step.Milliseconds() {
			all = append(all, nil)
		}
		last = point.T
		if point.F != point.F { // NaN: of nothing there is no quantile
			continue
		}
		at := plotter.XY{X: time.UnixMilli(point.T).Sub(r.From).Minutes(), Y: point.F * factor}
		all[len(all)-1] = append(all[len(all)-1], at)
	}
	return slices.DeleteFunc(all, func(piece plotter.XYs) bool { return len(piece) == 0 })
}

// unit names a unit of Grafana's, and says by what values are multiplied.
func unit(grafanas string) (name string, factor float64) {
	switch grafanas {
	case "s":
		return "seconds", 1
	case "bytes":
		return "MiB", 1.0 / (1 << 20)
	case "reqps":
		return "per second", 1
	default:
		return "", 1
	}
}
