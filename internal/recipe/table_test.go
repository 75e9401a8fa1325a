package recipe

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"envace/engine"
	"envace/internal/run"
	"envace/internal/weights"
	"envace/suite"
	"envace/workbench/domains"
)

// bigram is an engine that is a table of logits: the next token given the last one.
type bigram struct {
	vocab        int
	logits, grad []float32
	version      atomic.Int64
	restarts     int
	saved        []string
}

const tableWindow = 1024

func newBigram(path string) (*bigram, error) {
	m, err := weights.Open(path) // for the size of its vocabulary alone
	if err != nil {
		return nil, err
	}
	defer m.Close()
	v := m.Config.Vocab
	return &bigram{vocab: v, logits: make([]float32, v*v), grad: make([]float32, v*v)}, nil
}

// logps are the log-probabilities of all tokens after last.
func (b *bigram) logps(last int) []float32 {
	row := b.logits[last*b.vocab:][:b.vocab]
	sum, most := 0.0, float64(slices.Max(row))
	for _, l := range row {
		sum += math.Exp(float64(l) - most)
	}
	out := make([]float32, b.vocab)
	for i, l := range row {
		out[i] = float32(float64(l) - most - math.Log(sum))
	}
	return out
}

func (b *bigram) ForwardBackward(_ context.Context, data []engine.Datum, loss engine.Loss) (engine.Result, error) {
	var out engine.Result
	for _, d := range data {
		out.TokensRows += len(d.Input)
		out.TokensComputed += len(d.Input)
		lps := make([]float32, len(d.Input))
		for i, w := range d.Weight {
			if w == 0 {
				continue
			}
			all := b.logps(d.Input[i])
			lps[i] = all[d.Target[i]]
			slope := -1.0 // of cross entropy, by log-probability
			if loss.Objective == engine.PPO {
				r := math.Exp(float64(lps[i] - d.Logprobs[i]))
				out.RatioMax = max(out.RatioMax, math.Abs(r-1))
				slope = -float64(d.Advantage[i]) * r
			}
			out.Loss -= float64(w) * float64(lps[i])
			row := b.grad[d.Input[i]*b.vocab:][:b.vocab]
			for j, lp := range all {
				row[j] -= w * float32(slope*math.Exp(float64(lp)))
			}
			row[d.Target[i]] += w * float32(slope)
		}
		out.Logprobs = append(out.Logprobs, lps)
	}
	return out, nil
}

func (b *bigram) OptimStep(_ context.Context, adam engine.Adam) (float64, error) {
	const rate = 5e4 // for adam.LR, which is that of another rule
	norm := 0.0
	for i, g := range b.grad {
		norm += float64(g) * float64(g)
		b.logits[i] -= float32(adam.LR*rate) * g
	}
	clear(b.grad)
	b.version.Add(1)
	return math.Sqrt(norm), nil
}

func (b *bigram) BitExact() bool { return true }

func (b *bigram) Sampler(context.Context) (engine.Sampler, error) {
	return &bigramSampler{b, b.version.Load()}, nil
}

func (b *bigram) Snapshot(context.Context) (engine.Sampler, error) {
	still := &bigram{vocab: b.vocab, logits: slices.Clone(b.logits)}
	return &bigramSampler{still, 0}, nil
}

func (b *bigram) Save(_ context.Context, path string) error {
	b.saved = append(b.saved, filepath.Base(path))
	return weights.ReplaceDir(path, func(tmp string) error {
		var buf bytes.Buffer
		if err := binary.Write(&buf, binary.LittleEndian, b.logits); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(tmp, "table"), buf.Bytes(), 0o666)
	})
}

func (b *bigram) Load(_ context.Context, path string) error {
	data, err := os.ReadFile(filepath.Join(path, "table"))
	if err != nil {
		return err
	}
	b.version.Add(1)
	return binary.Read(bytes.NewReader(data), binary.LittleEndian, b.logits)
}

func (b *bigram) Restart()                     { b.restarts++ }
func (b *bigram) Export(string, bool) error    { return errors.New("a table has no folder of weights") }
func (b *bigram) Window() int                  { return tableWindow }
func (b *bigram) Params() (total, trained int) { return len(b.logits), len(b.logits) }

// bigramSampler is the table as it was.
type bigramSampler struct {
	*bigram
	made int64
}

func (s *bigramSampler) Sample(_ context.Context, prompt []int, n int, p engine.Params) ([]engine.Sequence, error) {
	if s.version.Load() != s.made {
		return nil, engine.ErrStale
	}
	if len(prompt) >= tableWindow {
		return nil, engine.ErrWindow
	}
	out := make([]engine.Sequence, n)
	for i := range out {
		q, last := engine.Sequence{Stop: engine.StopLength}, prompt[len(prompt)-1]
		r := rand.New(rand.NewPCG(p.Seed, uint64(i)))
		for len(q.Tokens) < p.MaxTokens && len(prompt)+len(q.Tokens) < tableWindow {
			all := s.logps(last)
			last = pick(all, p.Temperature, r)
			q.Tokens, q.Logprobs = append(q.Tokens, last), append(q.Logprobs, all[last])
			if slices.Contains(p.Stop, last) {
				q.Stop = engine.StopToken
				break
			}
		}
		out[i] = q
	}
	return out, nil
}

func pick(logps []float32, temperature float64, r *rand.Rand) int {
	if temperature == 0 {
		return slices.Index(logps, slices.Max(logps))
	}
	u := r.Float64()
	for i, lp := range logps {
		if u -= math.Exp(float64(lp)); u < 0 {
			return i
		}
	}
	return len(logps) - 1
}

func (s *bigramSampler) Logprobs(_ context.Context, rows [][]int) ([][]float32, error) {
	out := make([][]float32, len(rows))
	for i, row := range rows {
		for j := 1; j < len(row); j++ {
			out[i] = append(out[i], s.logps(row[j-1])[row[j]])
		}
	}
	return out, nil
}

// The pipeline knows no more of an engine than its interface: a table of logits goes
// through every stage of the smoke recipe.
func TestATableOfLogitsIsAnEngine(t *testing.T) {
	play := func(set ...string) (*bigram, string) {
		t.Helper()
		s, err := Load("smoke", append([]string{`with=["sft-more", "sft-all", "real"]`, "rl.max_tokens=12", "rl.kl=0.1", "rl.kl_kind=k3", "eval.tasks=6", "eval.held_out=2", "eval.curve=2"}, set...))
		if err != nil {
			t.Fatal(err)
		}
		var table *bigram
		out := filepath.Join(t.TempDir(), "run")
		err = Run(t.Context(), s, Options{
			Out: out, Progress: io.Discard, Suites: []suite.Family{domains.Family()},
			engines: func(_, path string, _ EngineOptions) (Engine, error) {
				if table != nil {
					return nil, errors.New("opened twice")
				}
				table, err = newBigram(path)
				return table, err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return table, out
	}
	table, out := play()
	if _, err := run.ReadReport(out); err != nil {
		t.Error(err)
	}
	if want := []string{"sft", "rl", "sft-more", "sft-all", "real"}; !subset(want, table.saved) || table.restarts != 3 {
		t.Errorf("saved %v, %d times with fresh moments", table.saved, table.restarts)
	}
	points, err := run.ReadMetrics(out)
	if err != nil {
		t.Fatal(err)
	}
	loss := map[string][]float64{}
	for _, p := range points {
		if p.Stage == "rl" && p.Value("ratio_fresh") != 0 {
			t.Errorf("step %d: ratios of fresh samples are off by %g", p.Step, p.Value("ratio_fresh"))
		}
		loss[p.Stage] = append(loss[p.Stage], p.Value("loss"))
	}
	if sft := loss["sft"]; len(sft) != 12 || sft[11] > 0.75*sft[0] {
		t.Errorf("SFT's losses are %.2f", sft)
	}
	_, again := play()
	a, erra := os.ReadFile(filepath.Join(out, run.EpisodesFile))
	b, errb := os.ReadFile(filepath.Join(again, run.EpisodesFile))
	if erra != nil || errb != nil || !bytes.Equal(a, b) {
		t.Errorf("the same seed plays other episodes: %v %v", erra, errb)
	}
	if !strings.Contains(string(a), fmt.Sprintf("%q:%q", "stage", "test real")) {
		t.Error("no episode of the last test is kept")
	}
}

func subset(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}
