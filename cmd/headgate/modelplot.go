package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/headgate/headgate/dataplane/queueing"
)

// The drawing's size, and the frame of its curves, in pixels.
const (
	plotWidth, plotHeight               = 720, 440
	plotLeft, plotRight, plotTop, plotB = 80, 700, 50, 380
)

// svg draws the mean response time over the load, by both models.
func (p *plan) svg() []byte {
	idle, err := p.pipeline.At(0, queueing.Queue.GGc)
	if err != nil {
		return nil // the plan itself would have failed
	}
	top := ceiling(max(8*idle, 1.25*p.Target, 1.25*p.KneeTime))
	right := ceiling(p.Capacity)
	x := func(load float64) float64 { return plotLeft + (plotRight-plotLeft)*load/right }
	y := func(time float64) float64 { return plotB - (plotB-plotTop)*time/top }

	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="12">`+"\n",
		plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", plotWidth, plotHeight)
	line := func(x1, y1, x2, y2 float64, style string) {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" %s/>`+"\n", x1, y1, x2, y2, style)
	}
	text := func(x, y float64, anchor, s string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, html.EscapeString(s))
	}
	text(plotLeft, 24, "start", "Mean response time over load: "+p.describe())
	for i := range 6 {
		part := float64(i) / 5
		line(x(part*right), plotTop, x(part*right), plotB, `stroke="#ddd"`)
		line(plotLeft, y(part*top), plotRight, y(part*top), `stroke="#ddd"`)
		text(x(part*right), plotB+18, "middle", fmt.Sprintf("%.4g", part*right))
		text(plotLeft-8, y(part*top)+4, "end", seconds(part*top))
	}
	text((plotLeft+plotRight)/2, plotB+40, "middle", "requests per second")

	curve := func(m queueing.Model, color string) {
		var points []string
		for i := range 400 {
			load := p.Capacity * float64(i) / 400
			w, err := p.pipeline.At(load, m)
			if err != nil || w > top {
				break
			}
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(load), y(w)))
		}
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>`+"\n", color, strings.Join(points, " "))
	}
	line(x(p.Capacity), plotTop, x(p.Capacity), plotB, `stroke="#888" stroke-dasharray="2 3"`)
	line(plotLeft, y(p.Target), plotRight, y(p.Target), `stroke="#888" stroke-dasharray="6 3"`)
	curve(queueing.Queue.MMc, "#1f77b4")
	curve(queueing.Queue.GGc, "#d62728")
	fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="4" fill="#d62728"/>`+"\n", x(p.Knee), y(p.KneeTime))

	for i, e := range []struct{ color, dash, label string }{
		{"#1f77b4", "", "M/M/c"},
		{"#d62728", "", fmt.Sprintf("G/G/c; dot: knee, %.4g/s", p.Knee)},
		{"#888", "6 3", "target " + seconds(p.Target)},
		{"#888", "2 3", fmt.Sprintf("capacity %.4g/s", p.Capacity)},
	} {
		h := float64(plotTop + 14 + 18*i)
		line(plotLeft+12, h, plotLeft+36, h, fmt.Sprintf(`stroke="%s" stroke-width="2" stroke-dasharray="%s"`, e.color, e.dash))
		text(plotLeft+44, h+4, "start", e.label)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// describe names the stages.
func (p *plan) describe() string {
	var parts []string
	for _, s := range p.Stages {
		parts = append(parts, fmt.Sprintf("%d %s of %s, CV %.3g", s.Servers, s.Name, seconds(1/s.Mu), s.ServiceCV))
	}
	return strings.Join(parts, "; ")
}

// ceiling returns the next number that reads well on an axis of five parts.
func ceiling(v float64) float64 {
	scale := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 1.5, 2, 2.5, 3, 4, 5, 7.5} {
		if v <= m*scale {
			return m * scale
		}
	}
	return 10 * scale
}
