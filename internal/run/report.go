package run

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Report is the content of report.json: a run's settings and results. Rates are in
// [0, 1]; intervals are 95 % confidence intervals.
type Report struct {
	Title       string             `json:"title"`
	Summary     string             `json:"summary,omitempty"` // one sentence: what this run shows
	Recipe      string             `json:"recipe"`
	Version     string             `json:"version,omitempty"` // of the binary
	Seed        uint64             `json:"seed"`
	Started     time.Time          `json:"started"`
	Seconds     float64            `json:"seconds"`
	Machine     Machine            `json:"machine"`
	Model       Model              `json:"model"`
	Systems     []System           `json:"systems"`
	Comparisons []Comparison       `json:"comparisons,omitempty"`
	Fidelity    map[string]float64 `json:"fidelity,omitempty"` // of the final policy, by measure
	Curve       []Point            `json:"curve,omitempty"`
	Cost        Cost               `json:"cost"`
	Examples    []Episode          `json:"examples,omitempty"`
	Notes       []string           `json:"notes,omitempty"` // limitations
}

// Machine describes the computer a run ran on.
type Machine struct {
	CPU     string `json:"cpu"`
	ISA     string `json:"isa"` // instruction set of the kernels
	Threads int    `json:"threads"`
}

// Model describes the trained model.
type Model struct {
	Name   string `json:"name,omitempty"`
	Arch   string `json:"arch,omitempty"`
	Params int    `json:"params"`
	Layers int    `json:"layers,omitempty"`
	Width  int    `json:"width,omitempty"`
	Vocab  int    `json:"vocab,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// System is the success rate of one policy on one split in one world.
type System struct {
	Name    string     `json:"name"`
	World   string     `json:"world"`
	Split   string     `json:"split"`
	N       int        `json:"n"`
	Success float64    `json:"success"`
	CI95    [2]float64 `json:"ci95"`
	Seed    uint64     `json:"seed"`
	Tokens  float64    `json:"tokens,omitempty"` // mean tokens sampled per task
	// Undecided is how many episodes more could not be scored. They are in no figure.
	Undecided int `json:"undecided,omitempty"`
	// Outcomes say by task whether it succeeded: all that the interval depends on.
	Outcomes Outcomes `json:"outcomes,omitempty"`
}

// Outcomes are the successes of one system on one split, by task id.
type Outcomes map[string]bool

// NewOutcomes pairs tasks with their success. A task that comes again is told apart by
// its number: "id", "id#2", ….
func NewOutcomes(tasks []string, success []bool) Outcomes {
	out := Outcomes{}
	for i, id := range tasks {
		name := id
		for n := 2; ; n++ {
			if _, ok := out[name]; !ok {
				break
			}
			name = fmt.Sprintf("%s#%d", id, n)
		}
		out[name] = success[i]
	}
	return out
}

// Success lists the outcomes in the order of the task ids, in which systems are
// compared.
func (o Outcomes) Success() []bool {
	var out []bool
	for _, id := range slices.Sorted(maps.Keys(o)) {
		out = append(out, o[id])
	}
	return out
}

// both returns the outcomes of the tasks that other has too.
func (o Outcomes) both(other Outcomes) Outcomes {
	out := maps.Clone(o)
	maps.DeleteFunc(out, func(id string, _ bool) bool { _, ok := other[id]; return !ok })
	return out
}

// without counts the tasks that other does not have.
func (o Outcomes) without(other Outcomes) int { return len(o) - len(o.both(other)) }

// NewSystem returns the success rate of one system with its Wilson interval.
func NewSystem(name, world, split string, seed uint64, success []bool) System {
	k := 0
	for _, ok := range success {
		if ok {
			k++
		}
	}
	s := System{Name: name, World: world, Split: split, N: len(success), Seed: seed}
	if s.N > 0 {
		s.Success = float64(k) / float64(s.N)
	}
	s.CI95[0], s.CI95[1] = Wilson(k, s.N)
	return s
}

// Comparison is the difference A − B of two systems on the same tasks.
type Comparison struct {
	A      string     `json:"a"`
	B      string     `json:"b"`
	World  string     `json:"world,omitempty"`
	Split  string     `json:"split"`
	N      int        `json:"n"`
	Diff   float64    `json:"diff"`
	CI95   [2]float64 `json:"ci95"`
	Method string     `json:"method"`
}

// NewComparison compares two systems by a paired bootstrap. Their outcomes are on
// the same tasks, in the same order.
func NewComparison(a, b, split string, seed uint64, outcomesA, outcomesB []bool) Comparison {
	c := Comparison{A: a, B: b, Split: split, N: len(outcomesA), Method: "paired bootstrap"}
	c.Diff, c.CI95[0], c.CI95[1] = PairedBootstrap(outcomesA, outcomesB, seed, Resamples)
	return c
}

// Compare compares two systems of the same world and split by their outcomes, on the
// tasks that are decided for both.
func Compare(a, b System, seed uint64) (Comparison, error) {
	onlyA, onlyB := a.Outcomes.without(b.Outcomes), b.Outcomes.without(a.Outcomes)
	if onlyA > b.Undecided || onlyB > a.Undecided {
		return Comparison{}, fmt.Errorf("%s and %s, %s: their outcomes are not of the same tasks", a.Name, b.Name, a.Split)
	}
	c := NewComparison(a.Name, b.Name, a.Split, seed, a.Outcomes.both(b.Outcomes).Success(), b.Outcomes.both(a.Outcomes).Success())
	c.World = a.World
	return c, nil
}

// Recompute computes rates, differences and intervals anew from the outcomes in r, and
// says which figures were others. Those of systems without outcomes, as older versions
// wrote them, stay.
func (r *Report) Recompute() (changed []string, err error) {
	for i, s := range r.Systems {
		if len(s.Outcomes) == 0 {
			continue
		}
		now := NewSystem(s.Name, s.World, s.Split, s.Seed, s.Outcomes.Success())
		if now.N != s.N || math.Abs(now.Success-s.Success) > 1e-6 || !near(now.CI95, s.CI95) {
			changed = append(changed, fmt.Sprintf("%s, %s, %s", s.Name, s.World, s.Split))
		}
		now.Tokens, now.Outcomes, now.Undecided = s.Tokens, s.Outcomes, s.Undecided
		r.Systems[i] = now
	}
	for i, c := range r.Comparisons {
		a, b := r.system(c.A, c), r.system(c.B, c)
		if a == nil || b == nil {
			continue
		}
		now, err := Compare(*a, *b, r.Seed)
		if err != nil {
			return changed, err
		}
		if now.N != c.N || math.Abs(now.Diff-c.Diff) > 1e-6 || !near(now.CI95, c.CI95) {
			changed = append(changed, fmt.Sprintf("%s − %s, %s", c.A, c.B, c.Split))
		}
		r.Comparisons[i] = now
	}
	return changed, nil
}

// system finds one side of a comparison, nil if its outcomes are not in r.
func (r *Report) system(name string, c Comparison) *System {
	for i, s := range r.Systems {
		if s.Name == name && s.World == c.World && s.Split == c.Split && len(s.Outcomes) > 0 {
			return &r.Systems[i]
		}
	}
	return nil
}

// near allows for figures that were rounded, and for the last bits of another architecture.
func near(a, b [2]float64) bool {
	return math.Abs(a[0]-b[0]) < 1e-6 && math.Abs(a[1]-b[1]) < 1e-6
}

// Cost is the cost of a run.
type Cost struct {
	Roles  []RoleCost  `json:"roles,omitempty"`
	Stages []StageCost `json:"stages,omitempty"`
}

// RoleCost counts the tokens of one role: act, rehearse, …
type RoleCost struct {
	Role    string `json:"role"`
	Turns   int    `json:"turns"`
	Prompt  int    `json:"prompt_tokens"` // tokens read by the model, shared prefixes counted each time
	Sampled int    `json:"sampled_tokens"`
}

// StageCost is the time of one stage: sft, play, train, evaluate, …
type StageCost struct {
	Stage   string  `json:"stage"`
	Seconds float64 `json:"seconds"`
	Tokens  int     `json:"tokens"`
}

// PerSecond returns the tokens per second, 0 if no time was measured.
func (s StageCost) PerSecond() float64 {
	if s.Seconds <= 0 {
		return 0
	}
	return float64(s.Tokens) / s.Seconds
}

// WriteReport writes report.json and report.html.
func (d *Dir) WriteReport(r Report) error {
	if err := writeJSON(filepath.Join(d.Path, ReportFile), r); err != nil {
		return err
	}
	return WritePage(d.Path, r)
}

// ReadReport reads report.json of the run in dir. The error is ErrNoReport if the
// run has not finished, and ErrNoRun if dir holds no run.
func ReadReport(dir string) (Report, error) {
	var r Report
	err := readJSON(filepath.Join(dir, ReportFile), &r)
	switch {
	case err == nil:
		return r, nil
	case !errors.Is(err, fs.ErrNotExist):
		return r, fmt.Errorf("read report: %w", err)
	case exists(filepath.Join(dir, ConfigFile)):
		return r, fmt.Errorf("read report of %s: %w", dir, ErrNoReport)
	}
	return r, fmt.Errorf("read report of %s: %w: it has neither %s nor %s", dir, ErrNoRun, ConfigFile, ReportFile)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
