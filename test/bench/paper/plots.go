//go:build linux

package main

import (
	"bytes"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/headgate/headgate/test/bench/rig"
)

// curve is one line of a plot.
type curve struct {
	name   string
	points plotter.XYs
}

// drawing is a plot before it is drawn.
type drawing struct {
	title, x, y string
	log         bool // the y axis
	curves      []curve
}

// plots draws what was measured, by file name.
func (r *result) plots() (map[string][]byte, error) {
	drawings := map[string]drawing{
		"latency.svg":    r.latencyPlot(),
		"errors.svg":     r.errorPlot(),
		"memory.svg":     r.memoryPlot(),
		"storm-slow.svg": r.stormPlot("slow"),
		"storm-hang.svg": r.stormPlot("hang"),
		"deadline.svg":   r.deadlinePlot(),
	}
	files := make(map[string][]byte)
	for name, d := range drawings {
		svg, err := d.svg()
		if err != nil {
			return nil, err
		}
		files[name] = svg
	}
	return files, nil
}

func (d drawing) svg() ([]byte, error) {
	p, err := d.plot()
	if err != nil {
		return nil, err
	}
	canvas := vgsvg.New(18*vg.Centimeter, 11*vg.Centimeter)
	p.Draw(draw.New(canvas))
	var b bytes.Buffer
	_, err = canvas.WriteTo(&b)
	return b.Bytes(), err
}

func (d drawing) plot() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = d.title, d.x, d.y
	p.BackgroundColor = color.White
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	drawn := 0
	for i, c := range d.curves {
		points := c.points
		if d.log { // there is no place for 0
			points = nil
			for _, xy := range c.points {
				if xy.Y > 0 {
					points = append(points, xy)
				}
			}
		}
		if len(points) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Dashes, line.Width = plotutil.Color(i), plotutil.Dashes(i), vg.Points(1.2)
		if len(points) > 30 {
			p.Add(line)
			p.Legend.Add(c.name, line)
		} else {
			dots.Color, dots.Shape = plotutil.Color(i), plotutil.Shape(i)
			p.Add(line, dots)
			p.Legend.Add(c.name, line, dots)
		}
		drawn++
	}
	// The legend is above the curves.
	switch {
	case drawn == 0:
	case d.log:
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		p.Y.Max *= math.Sqrt(p.Y.Max / p.Y.Min)
	default:
		p.Y.Min = 0
		p.Y.Max *= 1.5
	}
	return p, nil
}

func (r *result) latencyPlot() drawing {
	d := drawing{title: "P99 over load, one core", x: "load, % of the peak of nginx with its defaults", y: "P99, ms", log: true}
	for _, name := range []string{headgate, nginx, baseline} {
		c := curve{name: title(name)}
		for _, level := range levels {
			if m, n := r.level(baseline, level, name); n > 0 {
				c.points = append(c.points, plotter.XY{X: 100 * level, Y: m.Answers.P99 / 1000})
			}
		}
		d.curves = append(d.curves, c)
	}
	return d
}

func (r *result) errorPlot() drawing {
	d := drawing{title: "Errors at an upstream with 50 places", x: "offered utilisation U", y: "requests that failed, %"}
	for _, v := range variants {
		c := curve{name: strings.ReplaceAll(v.title, "`", "")}
		for _, u := range utilisations {
			if got := r.pressure(v.name, u); got.runs > 0 {
				c.points = append(c.points, plotter.XY{X: u, Y: 100 * got.errors})
			}
		}
		d.curves = append(d.curves, c)
	}
	erlang := curve{name: "Erlang B"}
	for _, u := range utilisations {
		erlang.points = append(erlang.points, plotter.XY{X: u, Y: 100 * erlangB(u*places, places)})
	}
	d.curves = append(d.curves, erlang)
	return d
}

func (r *result) memoryPlot() drawing {
	d := drawing{title: "Memory over active connections", x: "active connections", y: "RSS, MB", log: true}
	for _, name := range []string{headgate, nginx, apache, prefork} {
		c := curve{name: title(name)}
		for _, n := range activeCounts {
			if s, ok := r.memory(name, n); ok {
				c.points = append(c.points, plotter.XY{X: float64(s.Active), Y: s.RSS * 1.048576})
			}
		}
		d.curves = append(d.curves, c)
	}
	if constants, ok := r.constants(); ok {
		c := curve{name: "Eq. 12"}
		for _, n := range activeCounts {
			if model, err := constants.Async(n, 1); err == nil {
				c.points = append(c.points, plotter.XY{X: float64(n), Y: float64(model) / 1e6})
			}
		}
		d.curves = append(d.curves, c)
	}
	return d
}

func (r *result) stormPlot(name string) drawing {
	d := drawing{title: "Good answers in the storm", x: "seconds since it began", y: "good answers per second"}
	for _, st := range storms {
		if st.name == name {
			d.title += ": " + st.title
		}
	}
	for _, p := range peers {
		for _, s := range r.Storm {
			if s.Storm != name || s.Peer != p.name || s.Run != 0 {
				continue
			}
			d.curves = append(d.curves, curve{p.title, perSecond(s.During.Slots, s.Length)})
		}
	}
	return d
}

// perSecond are the good answers per second over a storm, each point the mean of
// the half second before it.
func perSecond(slots []rig.Slot, length float64) plotter.XYs {
	const width = 5 // slots
	var points plotter.XYs
	n := int(length/slotLength.Seconds() + 0.5)
	for end := width; end <= n; end += width {
		var good uint64
		for i := end - width; i < end && i < len(slots); i++ {
			good += slots[i].Good
		}
		points = append(points, plotter.XY{X: float64(end) * slotLength.Seconds(), Y: float64(good) / (width * slotLength.Seconds())})
	}
	return points
}

func (r *result) deadlinePlot() drawing {
	d := drawing{title: "The adaptive deadline in the storm", x: "seconds since it began", y: "ms"}
	for _, st := range storms {
		for _, s := range r.Storm {
			if s.Storm != st.name || s.Peer != headgate || s.Run != 0 {
				continue
			}
			c := curve{name: st.title}
			for _, one := range s.Deadlines {
				c.points = append(c.points, plotter.XY{X: one.At, Y: 1e3 * one.Timeout})
			}
			d.curves = append(d.curves, c)
			if st.slow == slowTime && len(s.Deadlines) > 0 {
				want := 1e3 * beta * s.Mean
				d.curves = append(d.curves, curve{"2.5 times the new mean", plotter.XYs{{X: 0, Y: want}, {X: s.Deadlines[len(s.Deadlines)-1].At, Y: want}}})
			}
		}
	}
	return d
}
