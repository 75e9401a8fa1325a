package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"envace/workbench"
)

// benchOptions is the command line of envace bench workbench.
type benchOptions struct {
	modelOptions
	remoteOptions
	Domains []string // at least one
	N       int      // tasks of each domain
	Seed    uint64
	JSON    bool

	Stdout, Stderr io.Writer
}

func benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "bench",
		Short:   "Score a model on a benchmark",
		Example: "  envace bench workbench --model runs/first/checkpoints/rl",
		Args:    args(noSuchCommand),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(workbenchCommand())
	return cmd
}

func workbenchCommand() *cobra.Command {
	o := benchOptions{}
	cmd := &cobra.Command{
		Use:   "workbench",
		Short: "Score a model on the executable example worlds",
		Long: fmt.Sprintf(`Play tasks of the workbench with real tools, greedily, and score the final state
and the replies. Domains for training: %s.
Held out: %s.`, strings.Join(workbench.Train(), ", "), strings.Join(workbench.HeldOut(), ", ")),
		Example: `  envace bench workbench --model runs/first/checkpoints/rl
  envace bench workbench --model models/qwen3 --domains orders,bank --n 50 --json
  envace bench workbench --policy openai:http://localhost:8080/v1#qwen3 --n 20`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.remoteOptions.check(o.modelOptions); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			o.Stdout, o.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return runBench(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	o.modelOptions.flags(f)
	o.remoteOptions.flags(f)
	f.StringSliceVar(&o.Domains, "domains", allDomains(), "`names` of the domains to play")
	f.IntVar(&o.N, "n", 100, "`number` of tasks of each domain")
	f.Uint64Var(&o.Seed, "seed", 1, "`number` that the tasks draw from")
	f.BoolVar(&o.JSON, "json", false, "print an object of JSON for each domain, a line each")
	return cmd
}

func allDomains() []string { return append(workbench.Train(), workbench.HeldOut()...) }

func (o benchOptions) check() error {
	if o.N < 1 {
		return usageError{fmt.Errorf("--n is %d: want at least 1", o.N)}
	}
	if len(o.Domains) == 0 {
		return usageError{fmt.Errorf("--domains names none of %s", strings.Join(allDomains(), ", "))}
	}
	for _, d := range o.Domains {
		if !slices.Contains(allDomains(), d) {
			return usageError{fmt.Errorf("--domains: no domain is called %q (there are %s)", d, strings.Join(allDomains(), ", "))}
		}
	}
	return nil
}
