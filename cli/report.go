package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"envace/internal/run"
)

func reportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "report DIR",
		Short: "Print a run's results and write its report.html anew",
		Long: `Print the results of the run in DIR as a table, and write its report.html anew
from report.json. Rates and intervals are computed anew from the outcome of each
task, where report.json has them. The page is one file: it can be mailed, printed
and read without a network.`,
		Example: "  envace report runs/first",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			r, err := run.ReadReport(given[0])
			if err != nil {
				return err
			}
			changed, err := r.Recompute()
			if err != nil {
				return fmt.Errorf("report of %s: %w", given[0], err)
			}
			for _, figure := range changed {
				fmt.Fprintf(cmd.ErrOrStderr(), "note: by the outcomes in report.json the figures of %s are others than written there; shown are those by the outcomes\n", figure)
			}
			if err := run.WritePage(given[0], r); err != nil {
				return err
			}
			printReport(cmd.OutOrStdout(), r)
			fmt.Fprintf(cmd.OutOrStdout(), "\nwrote %s\n", filepath.Join(given[0], run.PageFile))
			return nil
		},
	}
}

// printReport prints the success rates, the comparisons and the limitations.
func printReport(w io.Writer, r run.Report) {
	fmt.Fprintf(w, "%s\n", r.Title)
	if r.Summary != "" {
		fmt.Fprintf(w, "%s\n", r.Summary)
	}
	if len(r.Systems) > 0 {
		fmt.Fprintln(w)
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "SPLIT\tSYSTEM\tWORLD\tTASKS\tSUCCESS\t95 % INTERVAL")
		for _, s := range r.Systems {
			fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%.1f %%\t%.1f – %.1f %%\n", s.Split, s.Name, s.World, s.N, 100*s.Success, 100*s.CI95[0], 100*s.CI95[1])
		}
		table.Flush()
	}
	for i, c := range r.Comparisons {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s − %s, %s: %+.1f points (95 %%: %+.1f … %+.1f)\n", c.A, c.B, c.Split, 100*c.Diff, 100*c.CI95[0], 100*c.CI95[1])
	}
	if len(r.Notes) > 0 {
		fmt.Fprintf(w, "\nLimitations:\n- %s\n", strings.Join(r.Notes, "\n- "))
	}
}
