package recipe

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"envace/engine"
	"envace/internal/seeds"
	"envace/internal/synth"
	"envace/internal/token"
	"envace/internal/weights"
	"envace/recipes"
	"envace/render"
	"envace/task"
	"envace/train"
)

// special are the control tokens of the small models' format.
var special = []string{"<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<execution_result>", "</execution_result>"}

// newModel is the model path that stands for a new model.
const newModel = "new"

// model opens the model to train and its chat format.
func (pl *pipeline) model() error {
	switch pl.Settings.Model.Path {
	case newModel:
		return pl.newModel()
	case "":
		dir := filepath.Join(pl.dir.Path, "base")
		if _, err := os.Stat(dir); err != nil {
			pl.dir.Made("base")
			unpack := func(tmp string) error { return os.CopyFS(tmp, recipes.Base()) }
			if err := weights.ReplaceDir(dir, unpack); err != nil {
				return fmt.Errorf("unpack the base model: %w", err)
			}
		}
		return pl.openModel(dir)
	}
	return pl.openModel(pl.Settings.Model.Path)
}

func (pl *pipeline) engineOptions() EngineOptions {
	m := pl.Settings.Model
	return EngineOptions{Threads: pl.Threads, Seed: pl.Seed, Memory: int64(pl.Memory * (1 << 30)), Cache: pl.Cache, LoRA: m.LoRA, Alpha: m.Alpha}
}

func (pl *pipeline) openModel(path string) error {
	m, err := weights.Open(path)
	if err != nil {
		return err
	}
	if err := m.Close(); err != nil {
		return err
	}
	if pl.renderer, err = render.Open(path, pl.Settings.Model.renderer()); err != nil {
		return err
	}
	o := pl.engineOptions()
	if m.Text.Vocabulary != nil { // a GGUF file: its checkpoints are folders
		if o.Files, err = pl.renderer.Files(); err != nil {
			return err
		}
	}
	pl.shape = m.Config
	pl.engine, err = pl.engines(pl.Engine, path, o)
	return err
}

// newModel trains a tokenizer and initialises random weights.
func (pl *pipeline) newModel() error {
	m := pl.Settings.Model
	tok, err := token.Train(synth.Corpus(), m.Vocab, token.Training{Special: special, Words: synth.Words()})
	if err != nil {
		return err
	}
	end, _ := tok.ID("<|im_end|>")
	format, err := render.New(tok, render.Config{Template: recipes.Template(), Special: render.Special{EOS: "<|im_end|>", PAD: "<|im_end|>"}})
	if err != nil {
		return err
	}
	files, err := format.Files()
	if err != nil {
		return err
	}
	cfg := weights.Config{
		Arch: weights.Qwen3, Vocab: tok.Size(), Width: m.Width, Layers: m.Layers, Heads: m.Heads,
		KVHeads: m.KVHeads, HeadDim: m.HeadDim, MLP: m.MLP, Eps: 1e-6, RopeTheta: 10000,
		Tied: true, Context: m.Context, BOS: -1, EOS: []int{end}, PAD: -1,
	}
	fresh, err := pl.engines(pl.Engine, "", EngineOptions{Threads: pl.Threads, Seed: pl.Seed, InitStd: m.InitStd, Files: files, Config: &cfg})
	if err != nil {
		return err
	}
	dir := filepath.Join(pl.dir.Path, "start")
	pl.dir.Made("start")
	if err := fresh.Export(dir, false); err != nil {
		return err
	}
	return pl.openModel(dir)
}

// base pretrains a new model: first on copying, then on the format of synthetic
// dialogues. Without copying, a model of this size learns nothing from later stages.
func (pl *pipeline) base(ctx context.Context) error {
	s := pl.Base
	form := pl.babbling(s.Batch - s.Copy)
	warm := pl.copying("base", 3*s.Batch, 1)
	mixed := pl.copying("base", s.Copy, float64(s.Copy)/float64(s.Batch))
	stage := train.SFT{
		Trainer: pl.engine, Steps: s.Steps, Start: pl.from("base"), Adam: s.schedule(), Stage: "base", Log: log{pl: pl}, After: pl.keep("base", s.Steps),
		Extra: func(step int) ([]engine.Datum, error) {
			if step < pl.Base.CopyOnly {
				return warm(step)
			}
			rows, err := form(step)
			if err != nil || s.Copy == 0 {
				return rows, err
			}
			copies, err := mixed(step)
			return append(rows, copies...), err
		},
	}
	pl.progress.Stage("base", stage.Start, s.Steps)
	if err := stage.Run(ctx); err != nil {
		return err
	}
	const bf16 = true
	return pl.engine.Export(filepath.Join(pl.dir.Path, "base"), bf16)
}

// babbling makes n synthetic dialogues per step, one row for each message of either role.
func (pl *pipeline) babbling(n int) func(step int) ([]engine.Datum, error) {
	teacher := train.Teacher{Renderer: pl.renderer, Options: pl.options(), FewShot: pl.Data.FewShot, Brief: pl.Model.Brief, Seed: pl.Seed}
	dialogues := synth.NewDialogues()
	return func(step int) ([]engine.Datum, error) {
		var examples []train.Example
		for i := range n {
			t := dialogues.Task(seeds.Derive(pl.Seed, seeds.Of("babble"), uint64(step), uint64(i)))
			for _, teach := range []func(task.Task) ([]train.Example, error){teacher.Act, teacher.Rehearse} {
				e, err := teach(t)
				if err != nil {
					return nil, err
				}
				examples = append(examples, e...)
			}
		}
		return train.Weigh(examples, 1), nil
	}
}

// copying makes n copying rows per step, with a total weight of share.
func (pl *pipeline) copying(stage string, n int, share float64) func(step int) ([]engine.Datum, error) {
	words := pl.wordTokens()
	return func(step int) ([]engine.Datum, error) {
		if len(words) == 0 {
			return nil, fmt.Errorf("no word of the workbench is a single token of this model, so there is nothing to copy: set %s.copy=0", stage)
		}
		r := rand.New(rand.NewPCG(seeds.Derive(pl.Seed, seeds.Of(stage)), uint64(step)))
		return synth.Copying(r, words, n, share), nil
	}
}

// wordTokens returns the words to copy that are single tokens of the model's vocabulary.
func (pl *pipeline) wordTokens() []int {
	var out []int
	for _, w := range synth.Words() {
		if ids := pl.renderer.Tokenizer().Encode(w); len(ids) == 1 {
			out = append(out, ids[0])
		}
	}
	return out
}
