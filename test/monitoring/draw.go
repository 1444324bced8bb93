package monitoring

import (
	"context"
	"fmt"
	"image/color"
	"math"
	"os"
	"time"

	"github.com/prometheus/prometheus/promql"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// perRow is how many panels are drawn side by side, as in the dashboard.
const perRow = 3

// shades are told apart by people who see red and green alike.
var shades = []color.Color{
	color.RGBA{R: 0, G: 114, B: 178, A: 255},
	color.RGBA{R: 213, G: 94, B: 0, A: 255},
	color.RGBA{R: 0, G: 158, B: 115, A: 255},
	color.RGBA{R: 204, G: 121, B: 167, A: 255},
	color.RGBA{R: 230, G: 159, B: 0, A: 255},
	color.RGBA{R: 86, G: 180, B: 233, A: 255},
	color.Gray{Y: 130},
	color.Black,
}

// Draw draws panels into an SVG file, of the time from first to last.
func (s *Store) Draw(
	ctx context.Context, panels []Panel, first, last time.Time, rates time.Duration, file string,
) error {
	rows := (len(panels) + perRow - 1) / perRow
	plots := make([][]*plot.Plot, rows)
	for i, panel := range panels {
		p, err := s.drawPanel(ctx, panel, first, last, rates)
		if err != nil {
			return fmt.Errorf("%s: %w", panel.Title, err)
		}
		plots[i/perRow] = append(plots[i/perRow], p)
	}
	for len(plots[rows-1]) < perRow {
		plots[rows-1] = append(plots[rows-1], nil)
	}
	canvas := vgsvg.New(perRow*11*vg.Centimeter, vg.Length(rows)*7*vg.Centimeter)
	background := draw.New(canvas)
	background.SetColor(color.White)
	background.Fill(background.Rectangle.Path())
	tiles := draw.Tiles{Rows: rows, Cols: perRow, PadX: vg.Centimeter / 2, PadY: vg.Centimeter / 2}
	for row, canvases := range plot.Align(plots, tiles, background) {
		for column, one := range canvases {
			if plots[row][column] != nil {
				plots[row][column].Draw(one)
			}
		}
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(out); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}

func (s *Store) drawPanel(
	ctx context.Context, panel Panel, first, last time.Time, rates time.Duration,
) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = panel.Title
	p.Title.Padding = vg.Points(4)
	p.X.Label.Text = "minutes"
	p.Y.Label.Text = unitOf(panel.FieldConfig.Defaults.Unit)
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	drawn := 0
	for _, target := range panel.Targets {
		step := last.Sub(first) / 300
		matrix, err := s.Between(ctx, target.Query(rates.String()), first, last, max(step, time.Second))
		if err != nil {
			return nil, err
		}
		for _, one := range matrix {
			line, err := plotter.NewLine(pointsOf(one, first, panel.FieldConfig.Defaults.Unit))
			if err != nil {
				continue // it has no numbers
			}
			line.Color, line.Width = shades[drawn%len(shades)], vg.Points(1.5)
			p.Add(line)
			p.Legend.Add(target.Legend(one.Metric.Map()), line)
			drawn++
		}
	}
	p.Y.Min = 0
	p.Y.Max = max(p.Y.Max*1.5, 1e-3) // room for the legend
	p.X.Min, p.X.Max = 0, last.Sub(first).Minutes()
	return p, nil
}

// pointsOf leaves out what is no number: a rate of nothing, for instance.
func pointsOf(one promql.Series, first time.Time, unit string) plotter.XYs {
	var points plotter.XYs
	for _, point := range one.Floats {
		if math.IsNaN(point.F) || math.IsInf(point.F, 0) {
			continue
		}
		value := point.F
		if unit == "bytes" {
			value /= 1 << 20
		}
		points = append(points, plotter.XY{X: time.UnixMilli(point.T).Sub(first).Minutes(), Y: value})
	}
	return points
}

func unitOf(unit string) string {
	switch unit {
	case "s":
		return "seconds"
	case "reqps":
		return "requests per second"
	case "bytes":
		return "MiB"
	default:
		return ""
	}
}
