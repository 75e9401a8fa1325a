package run

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed page
var pageFiles embed.FS

// WritePage writes report.html for r into dir: a self-contained file without network
// access.
func WritePage(dir string, r Report) error {
	page, err := Page(r)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, PageFile), page)
}

// Page renders report.html.
func Page(r Report) ([]byte, error) {
	style, err := pageFiles.ReadFile("page/page.css")
	if err != nil {
		return nil, err
	}
	t, err := template.New("").Funcs(pageFuncs).ParseFS(pageFiles, "page/*.html")
	if err != nil {
		return nil, fmt.Errorf("report page: %w", err)
	}
	var buf bytes.Buffer
	err = t.ExecuteTemplate(&buf, "page.html", pageData{
		Report: r, Style: template.CSS(style), Splits: bySplit(r.Systems), Charts: charts(r.Curve), Others: others(r.Curve),
	})
	if err != nil {
		return nil, fmt.Errorf("report page: %w", err)
	}
	return buf.Bytes(), nil
}

type pageData struct {
	Report
	Style  template.CSS
	Splits []split
	Charts []chart
	Others []measure
}

// split is the part of the result table for one split.
type split struct {
	Name    string
	Systems []System
}

func bySplit(systems []System) []split {
	var out []split
	for _, s := range systems {
		i := slices.IndexFunc(out, func(sp split) bool { return sp.Name == s.Split })
		if i < 0 {
			out, i = append(out, split{Name: s.Split}), len(out)
		}
		out[i].Systems = append(out[i].Systems, s)
	}
	return out
}

// measure summarises a metric of the curve that no chart shows.
type measure struct {
	Name                   string
	First, Last, Low, High float64
}

func others(curve []Point) []measure {
	charted := map[string]bool{}
	for _, p := range panels {
		for _, s := range p.series {
			charted[s.key] = true
		}
	}
	found := map[string]measure{}
	for _, p := range curve {
		for name, v := range p.Values {
			if charted[name] || math.IsNaN(v) {
				continue
			}
			m, ok := found[name]
			if !ok {
				m = measure{name, v, v, v, v}
			}
			m.Last, m.Low, m.High = v, min(m.Low, v), max(m.High, v)
			found[name] = m
		}
	}
	var out []measure
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[name])
	}
	return out
}

var pageFuncs = template.FuncMap{
	"percent": percent,
	"points":  signedPoints,
	"grouped": grouped,
	"short":   short,
	"took":    func(seconds float64) string { return Duration(time.Duration(seconds * float64(time.Second))) },
	"when":    func(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") },
	"scale":   func(v, width float64) float64 { return round(v * width) },
	"sub":     func(a, b float64) float64 { return a - b },
	"tenths":  tenths,
	"spread":  spread,
	"half":    func(v, spread float64) float64 { return 0.5 + max(-0.5, min(0.5, v/spread/2)) },
	"pretty":  pretty,
	"total":   totalSampled,
	"ratio":   func(a, b int) float64 { return float64(a) / float64(max(b, 1)) },
	"reward": func(r *float64) string {
		if r == nil {
			return "–"
		}
		return short(*r)
	},
	"legend":  legend,
	"sign":    Sign,
	"mark":    func(index int, x, y float64) markAt { return markAt{index, x, y} },
	"decided": func(c Comparison) bool { return c.CI95[0] > 0 || c.CI95[1] < 0 },
}

// percent formats a rate with one decimal.
func percent(v float64) string { return tenths(v) + "\u202f%" }

func tenths(v float64) string { return strconv.FormatFloat(v*100, 'f', 1, 64) }

func signedPoints(v float64) string {
	text := strconv.FormatFloat(math.Abs(v)*100, 'f', 1, 64)
	switch {
	case text == "0.0":
		return text
	case v < 0:
		return "−" + text
	}
	return "+" + text
}

// grouped formats 1234567 as 1 234 567, with narrow no-break spaces.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// short formats a number with three significant digits.
func short(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case v == math.Trunc(v) && a < 1e15:
		return grouped(int(v))
	case a >= 1000:
		return grouped(int(math.Round(v)))
	case a >= 0.001:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return strconv.FormatFloat(v, 'e', 1, 64)
}

// spread is the range of the difference bars on either side of 0.
func spread(cs []Comparison) float64 {
	most := 0.05
	for _, c := range cs {
		most = max(most, math.Abs(c.CI95[0]), math.Abs(c.CI95[1]), math.Abs(c.Diff))
	}
	return min(nice(most), 1)
}

func totalSampled(roles []RoleCost) int {
	n := 0
	for _, r := range roles {
		n += r.Sampled
	}
	return n
}

// pretty indents JSON that is too long for a line and leaves other text unchanged.
func pretty(text string) string {
	var buf bytes.Buffer
	if len(text) < 160 || !strings.ContainsAny(text[:1], "{[") || json.Indent(&buf, []byte(text), "", "  ") != nil {
		return text
	}
	return buf.String()
}

// markAt is one mark of a line on a chart.
type markAt struct {
	Index int
	X, Y  float64
}
