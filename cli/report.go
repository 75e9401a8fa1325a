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
		Short: "Print a run's results and rebuild its report.html",
		Long: `Print the results of the run in DIR as a table, and rebuild its report.html from
report.json. The page is a single file that can be mailed, printed and read offline.`,
		Example: "  envace report runs/first",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			r, err := run.ReadReport(given[0])
			if err != nil {
				return err
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
