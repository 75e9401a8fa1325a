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
	Recipe     string   // name of a built-in recipe; "" chooses by Data
	Config     string   // config.json of an earlier run, instead of a recipe
	Set        []string // key=value, over the recipe
	Model      string   // folder or GGUF; "" is what the recipe says
	Suite      string   // NAME or NAME:ARG; "" is what the recipe says
	Data       string   // JSONL of dialogues, short for the suite dialogues:FILE
	Checklists string   // JSONL of their checklists
	FewShot    string   // records that REHEARSE is shown; "" is what the recipe says
	With       []string // baselines outside the default time
	Out        string
	Resume     bool
	Seed       uint64
	SeedGiven  bool
	Threads    int     // 0 is every core
	Memory     float64 // GiB; 0 is no bound
	Cache      int     // tokens of the sampler's cache; 0 is the engine's own bound
	LoRA       int     // rank; 0 trains all weights
	SkipBad    bool

	Stdout, Stderr io.Writer
}

func (a app) trainCommand() *cobra.Command {
	var o trainOptions
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train a model by a recipe",
		Long: `Train a model by a recipe: fine-tune both roles on the experts' episodes, then
improve the policy on episodes that it imagines from end to end. The run folder
holds the settings, metrics, every episode, checkpoints and a report.

A flag wins over --set, and --set over the recipe. A run that was interrupted goes
on with --resume and ends with the same files. The suites:

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
	f.StringVar(&o.Config, "config", "", "settings of an earlier run, instead of a recipe: the `file` config.json")
	f.StringArrayVar(&o.Set, "set", nil, "override a setting of the recipe, such as rl.steps=20, by `key=value` (repeatable)")
	f.StringVar(&o.Model, "model", "", "model to start from: a `folder` of Hugging Face files, a GGUF file, or the name of a pulled model")
	f.StringVar(&o.Suite, "suite", "", "`name` of the suite to train and measure on (default: workbench)")
	f.StringVar(&o.Data, "data", "", "dialogues to learn from, a JSONL `file`: short for --suite dialogues:FILE")
	f.StringVar(&o.Checklists, "checklists", "", "checklists of the dialogues, a JSONL `file`")
	f.StringVar(&o.FewShot, "few-shot", "", "`which` recorded calls of a task REHEARSE is shown: none, past (up to the user turn under way) or all")
	f.StringSliceVar(&o.With, "with", nil, "`baselines` to train too: sft-more, sft-all, real")
	f.BoolVar(&o.SkipBad, "skip-bad", false, "leave out rows of --data that cannot be read, instead of stopping")
	f.StringVar(&o.Out, "out", "", "run `folder`, new or empty (default: a new one under runs/)")
	f.BoolVar(&o.Resume, "resume", false, "go on with the run in --out from its last checkpoint")
	f.Uint64Var(&o.Seed, "seed", 0, "random `seed`, instead of the recipe's")
	f.IntVar(&o.Threads, "threads", 0, "`number` of processor threads (0: every core)")
	f.Float64Var(&o.Memory, "memory", 0, "most `GiB` that weights, training and sampling take together (0: as much as the rows need)")
	f.IntVar(&o.Cache, "cache-tokens", 0, cacheUsage)
	f.IntVar(&o.LoRA, "lora", 0, "train a low-rank adapter of this `rank`, not all weights")
	return cmd
}

// check refuses flags that contradict each other.
func (o trainOptions) check(f *pflag.FlagSet) error {
	if f.Changed("config") && f.Changed("recipe") {
		return usageError{errors.New("--config and --recipe both give the settings: leave one out")}
	}
	if f.Changed("suite") && f.Changed("data") {
		return usageError{errors.New("--suite and --data both name what to train on: leave one out")}
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
		return usageError{fmt.Errorf("--resume goes on with the settings of the run in --out: leave out %s", strings.Join(surplus, ", "))}
	}
	return required("out", o.Out)
}
