package recipe

import (
	"cmp"
	"fmt"

	"envace/engine"
	"envace/engine/cpu"
	"envace/internal/weights"
)

// Engine holds the weights of a run.
type Engine interface {
	engine.Trainer
	engine.Snapshotter
	engine.Checkpointer
	// Restart resets the optimiser's moments.
	Restart()
	// Export writes the weights as a model folder, in bfloat16 or float32.
	Export(path string, bf16 bool) error
	// Window is the context window in tokens.
	Window() int
	// Params returns the number of all parameters and of the trained ones.
	Params() (total, trained int)
}

// EngineOptions are the options of an engine. Zero values select the engine's defaults.
type EngineOptions struct {
	Threads int
	Seed    uint64
	Memory  int64 // limit in bytes
	Cache   int   // size of the KV cache in tokens
	LoRA    int   // rank of the adapter to train; 0: train all weights
	Alpha   float64
	InitStd float64           // standard deviation of a new model's weights
	Files   map[string][]byte // tokenizer and template, copied into each checkpoint
	// Config is the shape of a new model with random weights; nil: open the model at the
	// given path.
	Config *weights.Config
}

// openEngine opens the named engine with the model at path.
func openEngine(name, path string, o EngineOptions) (Engine, error) {
	switch name {
	case "", "cpu":
		return openCPU(path, o)
	}
	return nil, fmt.Errorf("setting engine is %q: want cpu", name)
}

func openCPU(path string, o EngineOptions) (Engine, error) {
	c := cpu.Options{Threads: o.Threads, Seed: o.Seed, Memory: o.Memory, CacheTokens: o.Cache, InitStd: o.InitStd, Files: o.Files}
	if o.LoRA > 0 {
		c.LoRA = &cpu.LoRA{Rank: o.LoRA, Alpha: cmp.Or(o.Alpha, 2*float64(o.LoRA))}
	}
	var e *cpu.Engine
	var err error
	if o.Config != nil {
		e, err = cpu.New(*o.Config, c)
	} else {
		e, err = cpu.Open(path, c)
	}
	if err != nil {
		return nil, err
	}
	return cpuEngine{e}, nil
}

// cpuEngine adapts cpu.Engine to Engine.
type cpuEngine struct{ *cpu.Engine }

func (e cpuEngine) Export(path string, bf16 bool) error {
	return e.Engine.Export(path, cpu.ExportOptions{BF16: bf16})
}
