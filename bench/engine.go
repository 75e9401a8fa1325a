//go:build ignore

// Command engine is our side of the comparisons in this folder: it reads
// requests, a JSON object a line, and answers each with one. Times are those of
// the work alone, without reading files.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/pprof"
	"time"

	"golang.org/x/sys/unix"

	"envace/engine"
	"envace/engine/cpu"
	"envace/internal/kernel"
	"envace/internal/weights"
)

// request is one line of the input. Do names the work.
type request struct {
	Do      string          `json:"do"`      // open, export, rows, step, sample, logprobs, profile
	Path    string          `json:"path"`    // open, export: a model; rows: a file; profile: where to, "" to stop
	Config  *weights.Config `json:"config"`  // open: a model with random weights instead
	Rank    int             `json:"rank"`    // open: of an adapter; 0 trains all weights
	Alpha   float64         `json:"alpha"`   // open: of that adapter
	Adapter string          `json:"adapter"` // open: the adapter to go on with
	Threads int             `json:"threads"` // open
	Loss    engine.Loss     `json:"loss"`    // step
	Adam    engine.Adam     `json:"adam"`    // step; a rate of 0 moves no weight
	Apart   bool            `json:"apart"`   // step: each row in a call of its own
	Show    bool            `json:"show"`    // step: answer the log-probabilities too
	Prompts [][]int         `json:"prompts"` // sample; logprobs: rows
	Count   int             `json:"count"`   // sample: continuations of each prompt
	Tokens  int             `json:"tokens"`  // sample: of each continuation
	Heat    float64         `json:"heat"`    // sample: temperature
	Seed    uint64          `json:"seed"`    // sample
}

// answer is one line of the output.
type answer struct {
	Error    string      `json:"error,omitempty"`
	Seconds  float64     `json:"seconds"`
	CPU      float64     `json:"cpu"` // seconds of all threads
	ISA      string      `json:"isa,omitempty"`
	Params   int         `json:"params,omitempty"`
	Trained  int         `json:"trained,omitempty"`
	Loss     float64     `json:"loss"`
	Norm     float64     `json:"norm"`
	Rows     int         `json:"rows,omitempty"`
	Computed int         `json:"computed,omitempty"`
	Logprobs [][]float32 `json:"logprobs,omitempty"`
	Tokens   [][]int     `json:"tokens,omitempty"`
}

// side is what requests work on.
type side struct {
	engine *cpu.Engine
	data   []engine.Datum
	file   *os.File // of the profile under way
}

func main() {
	in, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	var s side
	for lines := json.NewDecoder(in); lines.More(); {
		var q request
		if err := lines.Decode(&q); err != nil {
			fmt.Fprintln(os.Stderr, "read a request:", err)
			os.Exit(1)
		}
		a, err := s.answer(q)
		if err != nil {
			a = answer{Error: fmt.Sprintf("%s: %v", q.Do, err)}
		}
		if err := out.Encode(a); err != nil {
			os.Exit(1) // nobody listens any more
		}
	}
}

func (s *side) answer(q request) (answer, error) {
	switch q.Do {
	case "open":
		return s.open(q)
	case "export":
		return answer{}, s.engine.Export(q.Path, cpu.ExportOptions{})
	case "rows":
		return s.rows(q.Path)
	case "step":
		return s.step(q)
	case "sample":
		return s.sample(q)
	case "logprobs":
		return s.logprobs(q)
	case "profile":
		return answer{}, s.profile(q.Path)
	}
	return answer{}, fmt.Errorf("there is no such request")
}

func (s *side) open(q request) (a answer, err error) {
	o := cpu.Options{Threads: q.Threads, Adapter: q.Adapter, Seed: 1}
	if q.Rank > 0 {
		o.LoRA = &cpu.LoRA{Rank: q.Rank, Alpha: q.Alpha}
	}
	s.engine = nil // its memory is free for the next one
	if q.Config != nil {
		s.engine, err = cpu.New(*q.Config, o)
	} else {
		s.engine, err = cpu.Open(q.Path, o)
	}
	if err != nil {
		return a, err
	}
	isa, err := kernel.Select()
	a.ISA = isa.String()
	a.Params, a.Trained = s.engine.Params()
	return a, err
}

// rows reads the rows of the steps to come, a Datum a line.
func (s *side) rows(path string) (answer, error) {
	f, err := os.Open(path)
	if err != nil {
		return answer{}, err
	}
	defer f.Close()
	s.data = nil
	for lines := json.NewDecoder(bufio.NewReader(f)); lines.More(); {
		var d engine.Datum
		if err := lines.Decode(&d); err != nil {
			return answer{}, fmt.Errorf("%s, row %d: %w", path, len(s.data), err)
		}
		s.data = append(s.data, d)
	}
	return answer{Rows: len(s.data)}, nil
}

// step is one forward and backward pass over the rows, and the optimiser's step.
func (s *side) step(q request) (a answer, err error) {
	ctx, watch := context.Background(), start()
	calls := [][]engine.Datum{s.data}
	if q.Apart {
		calls = nil
		for i := range s.data {
			calls = append(calls, s.data[i:i+1])
		}
	}
	for _, data := range calls {
		r, err := s.engine.ForwardBackward(ctx, data, q.Loss)
		if err != nil {
			return a, err
		}
		a.Loss, a.Rows, a.Computed = a.Loss+r.Loss, a.Rows+r.TokensRows, a.Computed+r.TokensComputed
		if q.Show {
			a.Logprobs = append(a.Logprobs, r.Logprobs...)
		}
	}
	a.Norm, err = s.engine.OptimStep(ctx, q.Adam)
	watch.stop(&a)
	return a, err
}

// sample continues all prompts at once.
func (s *side) sample(q request) (a answer, err error) {
	ctx := context.Background()
	sampler, err := s.engine.Sampler(ctx)
	if err != nil {
		return a, err
	}
	type result struct {
		seqs []engine.Sequence
		err  error
	}
	watch, results := start(), make([]chan result, len(q.Prompts))
	for i, prompt := range q.Prompts {
		results[i] = make(chan result, 1)
		go func() {
			p := engine.Params{MaxTokens: q.Tokens, Temperature: q.Heat, Seed: q.Seed + uint64(i)}
			seqs, err := sampler.Sample(ctx, prompt, q.Count, p)
			results[i] <- result{seqs, err}
		}()
	}
	for _, c := range results {
		r := <-c
		if r.err != nil {
			return a, r.err
		}
		for _, seq := range r.seqs {
			a.Tokens, a.Logprobs = append(a.Tokens, seq.Tokens), append(a.Logprobs, seq.Logprobs)
		}
	}
	watch.stop(&a)
	return a, nil
}

func (s *side) logprobs(q request) (a answer, err error) {
	ctx := context.Background()
	sampler, err := s.engine.Sampler(ctx)
	if err != nil {
		return a, err
	}
	watch := start()
	a.Logprobs, err = sampler.Logprobs(ctx, q.Prompts)
	watch.stop(&a)
	return a, err
}

// watch knows when work began.
type watch struct {
	wall time.Time
	cpu  float64
}

func start() watch { return watch{time.Now(), cpuSeconds()} }

func (w watch) stop(a *answer) {
	a.Seconds, a.CPU = time.Since(w.wall).Seconds(), cpuSeconds()-w.cpu
}

// cpuSeconds is what this process has used of all processors.
func cpuSeconds() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// profile begins a CPU profile, or ends the one under way.
func (s *side) profile(path string) (err error) {
	if s.file != nil {
		pprof.StopCPUProfile()
		err, s.file = s.file.Close(), nil
	}
	if path == "" || err != nil {
		return err
	}
	if s.file, err = os.Create(path); err != nil {
		return err
	}
	return pprof.StartCPUProfile(s.file)
}
