package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"envace/suite"
)

// benchOptions is the command line of envace bench.
type benchOptions struct {
	modelOptions
	remoteOptions
	Suite string
	Files suite.Options
	N     int // tasks per part and split
	Seed  uint64
	Brief bool
	JSON  bool

	Stdout, Stderr io.Writer
}

func (a app) benchCommand() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench SUITE",
		Short: "Score a model on a suite of tasks",
		Long: `Run the test tasks of a suite with greedy sampling and score them. If the suite has
real tools, they are called; if not, the model imagines their results. Suites:

` + a.describe(),
		Example: `  envace bench workbench --model runs/first/checkpoints/rl
  envace bench workbench:orders,bank --model models/qwen3 --n 50 --json
  envace bench workbench --policy openai:http://localhost:8080/v1#qwen3 --n 20
  envace bench dialogues:talks.jsonl --model models/qwen3`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if err := o.remoteOptions.check(o.modelOptions); err != nil {
				return err
			}
			if o.N < 1 {
				return usageError{fmt.Errorf("--n is %d: want at least 1", o.N)}
			}
			o.Suite, o.Files.HeldOut = given[0], 1 // every task is a test task
			s, err := suite.Open(a.suites, o.Suite, o.Files)
			if err != nil {
				return err
			}
			o.Stdout, o.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return runBench(cmd.Context(), o, s)
		},
	}
	f := cmd.Flags()
	o.modelOptions.flags(f)
	o.remoteOptions.flags(f)
	f.IntVar(&o.N, "n", 100, "`number` of tasks per part of the suite and split")
	f.Uint64Var(&o.Seed, "seed", 1, "random `seed` of the tasks")
	f.BoolVar(&o.Brief, "brief", false, "imagine tool results with the short prompts of the small recipes")
	f.StringVar(&o.Files.Checklists, "checklists", "", "JSONL `file` with the checklists of the dialogues")
	f.BoolVar(&o.Files.SkipBad, "skip-bad", false, "skip bad lines of the dialogue files instead of failing")
	f.BoolVar(&o.JSON, "json", false, "print one JSON object per line for each part and split")
	return cmd
}

// describe lists the suites, one per line.
func (a app) describe() string {
	text := ""
	for _, f := range a.suites {
		text += fmt.Sprintf("  %-24s %s\n", f.Usage(), f.About)
	}
	return text
}
