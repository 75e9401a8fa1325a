package run

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A panel is one small chart: a few series of the curve against the step.
type panel struct {
	Title  string
	Note   string
	rate   bool   // values are in [0, 1] and shown as percentages
	stage  string // the only stage to show; "" is all
	series []series
}

// A series is the metric key, divided by the metric of if set.
type series struct{ key, label, of string }

func (s series) value(p Point) float64 {
	v := p.Value(s.key)
	if s.of != "" {
		v /= p.Value(s.of)
	}
	if math.IsInf(v, 0) {
		return math.NaN()
	}
	return v
}

// panels are the charts of the page; those without data are omitted.
var panels = []panel{
	{Title: "Success with real tools", Note: "on tasks used neither in training nor in tests", rate: true, series: []series{
		{key: "success", label: "validation"}}},
	{Title: "Reward in rehearsal", Note: "mean over the rows of a step, by role", series: []series{
		{key: "reward_act", label: "act"}, {key: "reward_rehearse", label: "rehearse"}}},
	{Title: "Fidelity of imagined results", Note: "share that matches the real tool", rate: true, series: []series{
		{key: "fidelity_class", label: "same outcome (ok or error)"}, {key: "fidelity_exact", label: "same value"}}},
	{Title: "Errors among imagined results", Note: "close to 0, the policy may imagine only favourable results", rate: true, series: []series{
		{key: "imagined_errors", label: "errors"}}},
	{Title: "Groups without a signal", Note: "share of groups whose rows all have the same reward", rate: true, series: []series{
		{key: "groups_dead", label: "dead groups", of: "groups"}}},
	{Title: "Tokens sampled per step", Note: "by role", series: []series{
		{key: "tokens_act", label: "act"}, {key: "tokens_rehearse", label: "rehearse"}}},
	{Title: "SFT loss", Note: "cross entropy of the expert tokens", stage: "sft", series: []series{
		{key: "loss", label: "loss"}}},
}

// chart is the layout of a panel, in a viewBox of chartW × chartH.
type chart struct {
	Title, Note                  string
	Lines                        []line
	YTicks, XTicks               []tick
	Stages                       []tick // the beginning of each stage; none if there is only one
	Left, Right, Top, Bottom     float64
	Width, Height, TickY, LabelX float64
}

type line struct {
	Index  int // selects colour, dash and mark
	Label  string
	Last   string
	Path   string
	Points []dot
	Marks  bool // few enough points to mark each
}

type dot struct {
	X, Y  float64
	Title string
}

type tick struct {
	At   float64
	Text string
}

const (
	chartW, chartH = 480, 216
	left, right    = 46, 468
	top, bottom    = 18, 188
	mostMarks      = 40
)

// charts lays out the panels that have data.
func charts(curve []Point) []chart {
	var out []chart
	for _, p := range panels {
		if c, ok := p.layout(curve); ok {
			out = append(out, c)
		}
	}
	return out
}

func (p panel) layout(curve []Point) (chart, bool) {
	points := p.having(curve)
	if len(points) == 0 {
		return chart{}, false
	}
	c := chart{Title: p.Title, Note: p.Note, Left: left, Right: right, Top: top, Bottom: bottom,
		Width: chartW, Height: chartH, TickY: bottom + 16, LabelX: left - 7}
	ax := newAxis(points)
	c.XTicks, c.Stages = ax.ticks()
	high, unit := p.scale(points)
	for v := 0.0; v <= high*1.0001; v += unit {
		c.YTicks = append(c.YTicks, tick{yAt(v, high), p.text(v, unit)})
	}
	for i, s := range p.series {
		if l := p.line(s, points, ax, high); len(l.Points) > 0 {
			l.Index = i
			c.Lines = append(c.Lines, l)
		}
	}
	return c, true
}

// having returns the points with a value for the panel.
func (p panel) having(curve []Point) []Point {
	var out []Point
	for _, pt := range curve {
		if p.stage != "" && p.stage != pt.Stage {
			continue
		}
		for _, s := range p.series {
			if !math.IsNaN(s.value(pt)) {
				out = append(out, pt)
				break
			}
		}
	}
	return out
}

// scale returns the top of the value axis and the distance between its ticks.
func (p panel) scale(points []Point) (high, unit float64) {
	for _, pt := range points {
		for _, s := range p.series {
			if v := s.value(pt); v > high {
				high = v
			}
		}
	}
	if high <= 0 {
		high = 1
	}
	unit = nice(high / 5)
	high = unit * math.Ceil(high/unit-1e-9)
	if p.rate {
		high = min(high, 1)
	}
	return high, unit
}

func (p panel) line(s series, points []Point, ax axis, high float64) line {
	l := line{Label: s.label}
	var path strings.Builder
	for _, pt := range points {
		v := s.value(pt)
		if math.IsNaN(v) {
			continue
		}
		d := dot{X: ax.at(pt), Y: yAt(max(v, 0), high)}
		l.Last = p.text(v, 0)
		d.Title = fmt.Sprintf("%s, %s step %d: %s", s.label, pt.Stage, pt.Step, l.Last)
		verb := "L"
		if len(l.Points) == 0 {
			verb = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", verb, d.X, d.Y)
		l.Points = append(l.Points, d)
	}
	l.Path, l.Marks = path.String(), len(l.Points) <= mostMarks
	return l
}

// text formats a value; unit is the distance between ticks, 0 for values off the axis.
func (p panel) text(v, unit float64) string {
	switch {
	case p.rate && unit >= 0.01:
		return strconv.FormatFloat(v*100, 'f', 0, 64) + "\u202f%"
	case p.rate && unit == 0:
		return percent(v)
	case v >= 1000:
		return grouped(int(math.Round(v)))
	case unit > 0:
		return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64)
	}
	return short(v)
}

func yAt(v, high float64) float64 { return round(bottom - v/high*(bottom-top)) }

// axis lays out the steps of consecutive stages side by side.
type axis struct {
	stages []span
	total  float64
}

type span struct {
	name        string
	first, last int
	offset      float64 // of its first step from the left
}

func newAxis(points []Point) axis {
	var ax axis
	for _, p := range points {
		s := ax.stage(p.Stage)
		if s == nil {
			ax.stages = append(ax.stages, span{name: p.Stage, first: p.Step, last: p.Step})
			continue
		}
		s.first, s.last = min(s.first, p.Step), max(s.last, p.Step)
	}
	for i := range ax.stages {
		s := &ax.stages[i]
		s.offset = ax.total
		ax.total += float64(s.last - s.first)
		if i < len(ax.stages)-1 {
			ax.total++
		}
	}
	return ax
}

func (ax axis) stage(name string) *span {
	for i := range ax.stages {
		if ax.stages[i].name == name {
			return &ax.stages[i]
		}
	}
	return nil
}

func (ax axis) at(p Point) float64 {
	s := ax.stage(p.Stage)
	return ax.x(s.offset + float64(p.Step-s.first))
}

func (ax axis) x(units float64) float64 {
	if ax.total == 0 {
		return (left + right) / 2
	}
	return round(left + 6 + units/ax.total*(right-left-12))
}

// ticks labels whole steps, counted per stage, and the stages.
func (ax axis) ticks() (steps, stages []tick) {
	unit := max(1, int(nice(ax.total/6)))
	for i, s := range ax.stages {
		if len(ax.stages) > 1 {
			stages = append(stages, tick{ax.x(s.offset), s.name})
		}
		for n := (s.first + unit - 1) / unit * unit; n <= s.last; n += unit {
			at := s.offset + float64(n-s.first)
			if i < len(ax.stages)-1 && ax.stages[i+1].offset-at < float64(unit)/2 {
				continue // would run into the next stage's first label
			}
			steps = append(steps, tick{ax.x(at), strconv.Itoa(n)})
		}
	}
	return steps, stages
}

// nice returns the smallest number of the form 1, 2 or 5 × 10ⁿ that is at least v.
func nice(v float64) float64 {
	if v <= 0 {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*p*1.0001 {
			return m * p
		}
	}
	return 10 * p
}

func round(v float64) float64 { return math.Round(v*10) / 10 }
