package run

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestWriteReport(t *testing.T) {
	d := create(t)
	want := madeUpReport()
	if err := d.WriteReport(want); err != nil {
		t.Fatal(err)
	}
	r, err := ReadReport(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Page(r)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(d.Path, PageFile))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, again) {
		t.Error("the page of report.json read back is another one")
	}
}

func TestPageTellsAll(t *testing.T) {
	page := pageOf(t, madeUpReport())
	for _, want := range []string{
		"Rehearsal on a made-up desk", "3\u202f412\u202f992 parameters", "Made-up CPU 9000", "1h20m", // head
		"83.7\u202f%", "79.1 – 87.4\u202f%", "+15.7", // results
		"Reward in rehearsal", "Fidelity of imagined results", "SFT loss", "Other metrics", "<code>kl</code>", // curves
		"2\u202f030\u202f411", "48m20s", // cost
		"◇ imagined", "■ real", "▣ recorded", "! harness", "Ada &lt;Lovelace&gt;", "&lt;tool_call&gt;", "no word of 118", // episodes
		"Source: report.json, systems", "metrics.jsonl", "episodes.jsonl", "config.json", // where numbers come from
		"No other model size was tried.",
	} {
		if !strings.Contains(page, strings.ReplaceAll(want, "+", "&#43;")) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(page, "never_finite") {
		t.Error("a number that is never finite is shown")
	}
}

// The page asks for nothing outside itself: no address, no script, no file.
func TestPageIsSelfContained(t *testing.T) {
	page := pageOf(t, madeUpReport())
	if m := regexp.MustCompile(`(?i)(https?:|src=|href=|@import|url\(|<script|<link|<iframe)`).FindString(page); m != "" {
		t.Errorf("the page holds %q", m)
	}
}

func TestPageOfLittle(t *testing.T) {
	page := pageOf(t, Report{Title: "Nothing yet"})
	for _, absent := range []string{"<h2>", "ZgotmplZ", "NaN"} {
		if strings.Contains(page, absent) {
			t.Errorf("the page of an empty report holds %q", absent)
		}
	}
}

// Whatever a report says, it stays text, and the markup stays well formed.
func TestPageEscapes(t *testing.T) {
	r := madeUpReport()
	evil := `"><script>alert(1)</script>`
	r.Title, r.Summary, r.Recipe, r.Notes = evil, evil, evil, []string{evil}
	r.Systems[0].Name, r.Systems[0].Split, r.Comparisons[0].A = evil, evil, evil
	r.Examples[0].Task, r.Examples[0].Detail = evil, evil
	r.Examples[0].Entries[0].Message.Content = evil
	r.Curve[0].Stage = evil
	page := pageOf(t, r)
	if strings.Contains(page, "<script>") {
		t.Fatal("a script came through")
	}
	wellFormed(t, page)
}

// wellFormed checks that the elements of the body nest.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(page[strings.Index(page, "<body>"):strings.Index(page, "</html>")]))
	dec.Entity = xml.HTMLEntity
	for {
		if _, err := dec.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("markup: %v", err)
		}
	}
}

func pageOf(t *testing.T, r Report) string {
	t.Helper()
	page, err := Page(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestChartsStayInTheFrame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var curve []Point
		for _, stage := range []string{"sft", "rl"}[:rapid.IntRange(1, 2).Draw(t, "stages")] {
			first := rapid.IntRange(0, 500).Draw(t, "first")
			for s := range rapid.IntRange(1, 30).Draw(t, "steps") {
				v := rapid.OneOf(rapid.Float64Range(0, 1), rapid.Just(math.NaN()), rapid.Just(math.Inf(1))).Draw(t, "v")
				curve = append(curve, Point{Stage: stage, Step: first + s, Values: map[string]float64{"reward_act": v, "fidelity_exact": v, "tokens_act": v * 1e6}})
			}
		}
		for _, c := range charts(curve) {
			var at []dot
			for _, l := range c.Lines {
				at = append(at, l.Points...)
			}
			for _, x := range c.XTicks {
				at = append(at, dot{X: x.At, Y: top})
			}
			for _, d := range at {
				if !(left <= d.X && d.X <= right && top <= d.Y && d.Y <= bottom) {
					t.Fatalf("%s: point %+v outside", c.Title, d)
				}
			}
		}
	})
}

func TestNumbersForPeople(t *testing.T) {
	for got, want := range map[string]string{
		grouped(1234567): "1\u202f234\u202f567", grouped(-1234): "-1\u202f234", grouped(999): "999", grouped(-999): "-999",
		short(0.12345): "0.123", short(2): "2", short(12345.6): "12\u202f346", short(0.00001234): "1.2e-05", short(math.NaN()): "–", short(-0.5): "-0.5",
		signedPoints(-0.04): "−4.0", signedPoints(0.0001): "0.0", signedPoints(0.157): "+15.7", percent(0.6): "60.0\u202f%",
		pretty(""): "", pretty("plain"): "plain", pretty(`{"a":1}`): `{"a":1}`,
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
