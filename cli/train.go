package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"envace/recipes"
)

// trainOptions is the command line of envace train.
type trainOptions struct {
	Recipe     string   // name of a built-in recipe; "": depends on Suite and Data
	Config     string   // config.json of an earlier run, instead of a recipe
	Set        []string // key=value, overriding the recipe
	Model      string   // folder, GGUF file or name; "": the recipe's
	Suite      string   // NAME or NAME:ARG; "": the recipe's
	Data       string   // JSONL of dialogues, short for the suite dialogues:FILE
	Checklists string   // JSONL of their checklists
	FewShot    string   // recorded calls in REHEARSE's prompt; "": the recipe's
	With       []string // optional baselines
	Out        string
	Resume     bool
	Seed       uint64
	SeedGiven  bool
	Threads    int     // 0: one per core
	Memory     float64 // GiB; 0: unlimited
	Cache      int     // size of the KV cache in tokens; 0: the engine's default
	LoRA       int     // rank; 0: train all weights
	SkipBad    bool

	Stdout, Stderr io.Writer
}

func (a app) trainCommand() *cobra.Command {
	var o trainOptions
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train a model with a recipe",
		Long: `Train a model with a recipe: fine-tune both roles on expert episodes, then improve
the policy by RL on episodes it imagines from start to finish. The run folder holds
the settings, metrics, all episodes, checkpoints and a report.

Flags override --set, and --set overrides the recipe. Continue an interrupted run with
--resume: it produces the same files as an uninterrupted one. Suites:

` + a.describe(),
		Example: `  envace train
  envace train --recipe quickstart --out runs/first
  envace train --recipe quickstart --out runs/short --set rl.steps=10 --seed 2
  envace train --resume --out runs/first
  envace train --suite workbench:orders,bank --out runs/two
  envace train --model models/qwen3 --data tasks.jsonl --lora 16 --out runs/mine
  envace train --config runs/first/config.json --out runs/again`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			o.SeedGiven = cmd.Flags().Changed("seed")
			o.Stdout, o.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return a.runTrain(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Recipe, "recipe", "", "`name` of a built-in recipe: "+strings.Join(recipes.Names(), ", ")+" (default: quickstart, or dialogues for recorded dialogues)")
	f.StringVar(&o.Config, "config", "", "config.json `file` of an earlier run, to use its settings instead of a recipe")
	f.StringArrayVar(&o.Set, "set", nil, "override a setting of the recipe: `key=value`, such as rl.steps=20 (repeatable)")
	f.StringVar(&o.Model, "model", "", "model to start from: Hugging Face model `folder`, GGUF file, or name of a pulled model")
	f.StringVar(&o.Suite, "suite", "", "`name` of the suite to train and test on (default: workbench)")
	f.StringVar(&o.Data, "data", "", "JSONL `file` of dialogues to train on: short for --suite dialogues:FILE")
	f.StringVar(&o.Checklists, "checklists", "", "JSONL `file` with the checklists of the dialogues")
	f.StringVar(&o.FewShot, "few-shot", "", "`which` recorded calls of the task to put into REHEARSE's prompt: none, past (up to the current user turn) or all")
	f.StringSliceVar(&o.With, "with", nil, "`baselines` to train as well: sft-more, sft-all, real")
	f.BoolVar(&o.SkipBad, "skip-bad", false, "skip bad lines of --data and --checklists instead of failing")
	f.StringVar(&o.Out, "out", "", "run `folder`, new or empty (default: a new folder under runs/)")
	f.BoolVar(&o.Resume, "resume", false, "continue the run in --out from its last checkpoint")
	f.Uint64Var(&o.Seed, "seed", 0, "random `seed` (default: the recipe's)")
	f.IntVar(&o.Threads, "threads", 0, "`number` of threads (0: one per core)")
	f.Float64Var(&o.Memory, "memory", 0, "memory limit in `GiB` for weights, training and sampling together (0: no limit)")
	f.IntVar(&o.Cache, "cache-tokens", 0, cacheUsage)
	f.IntVar(&o.LoRA, "lora", 0, "train a LoRA adapter of this `rank` instead of all weights")
	return cmd
}

// check rejects flags that contradict each other.
func (o trainOptions) check(f *pflag.FlagSet) error {
	if f.Changed("config") && f.Changed("recipe") {
		return usageError{errors.New("--config and --recipe both set the settings: remove one")}
	}
	if f.Changed("suite") && f.Changed("data") {
		return usageError{errors.New("--suite and --data both name the training data: remove one")}
	}
	if !o.Resume {
		return nil
	}
	var surplus []string
	f.Visit(func(flag *pflag.Flag) {
		if flag.Name != "resume" && flag.Name != "out" {
			surplus = append(surplus, "--"+flag.Name)
		}
	})
	if len(surplus) > 0 {
		return usageError{fmt.Errorf("--resume uses the settings of the run in --out: remove %s", strings.Join(surplus, ", "))}
	}
	return required("out", o.Out)
}
