package recipe

import (
	"cmp"
	"fmt"

	"envace/engine"
	"envace/engine/cpu"
	"envace/internal/weights"
)

// Engine is what a pipeline asks of whatever holds the weights.
type Engine interface {
	engine.Trainer
	engine.Snapshotter
	engine.Checkpointer
	// Restart gives the optimiser fresh moments.
	Restart()
	// Export writes the weights as a model folder, in bfloat16 or float32.
	Export(path string, bf16 bool) error
	// Window is the most tokens of a row.
	Window() int
	// Params counts the parameters, and those that are trained.
	Params() (total, trained int)
}

// EngineOptions say how an engine holds a model. Zero values leave the choice to
// the engine.
type EngineOptions struct {
	Threads int
	Seed    uint64
	Memory  int64 // bytes at most
	Cache   int   // tokens whose keys and values sampling keeps
	LoRA    int   // rank of an adapter that is trained instead of the weights
	Alpha   float64
	InitStd float64           // of a new model's random matrices
	Files   map[string][]byte // tokenizer and template, to be written into each checkpoint
	// Config is the shape of a new model, which has random weights; nil opens the model
	// at the given path.
	Config *weights.Config
}

// openEngine opens the engine called name with the model at path.
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

// cpuEngine is the engine of this process as a pipeline sees it.
type cpuEngine struct{ *cpu.Engine }

func (e cpuEngine) Export(path string, bf16 bool) error {
	return e.Engine.Export(path, cpu.ExportOptions{BF16: bf16})
}
