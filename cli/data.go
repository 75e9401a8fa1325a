package cli

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"envace/task"
)

func dataCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "data",
		Short:   "Check a file of dialogues before training on it",
		Long:    "Check files of recorded dialogues and checklists without a model.",
		Example: "  envace data check talks.jsonl --checklists lists.jsonl",
		Args:    args(noSuchCommand),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(dataCheckCommand())
	return cmd
}

func dataCheckCommand() *cobra.Command {
	var checklists string
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "List the bad lines of a file of dialogues, and count what is in it",
		Long: `Read dialogues as train and bench do, and list every bad line: its number, what is
wrong, where, and what to do. Then count what is good. The exit code is 1 if any line is
bad.`,
		Example: `  envace data check talks.jsonl
  envace data check talks.jsonl --checklists lists.jsonl`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			return checkData(cmd.OutOrStdout(), given[0], checklists)
		},
	}
	cmd.Flags().StringVar(&checklists, "checklists", "", "JSONL `file` with the checklists of the dialogues")
	return cmd
}

// checkData lists the bad lines of the files and summarises the good ones.
func checkData(w io.Writer, path, checklists string) error {
	tasks, err := task.Load(path, true)
	bad, err := listBad(w, err)
	if err != nil {
		return err
	}
	s := survey{bad: bad, tools: map[string]bool{}, writing: map[string]bool{}}
	if checklists != "" && len(tasks) > 0 {
		tasks, s.bare, err = task.AddChecklists(tasks, checklists, true)
		if bad, err = listBad(w, err); err != nil {
			return err
		}
		s.bad += bad
	}
	if s.bad > 0 {
		fmt.Fprintln(w)
	}
	s.print(w, tasks, checklists != "")
	if s.bad > 0 {
		return hinted{fmt.Errorf("%s", count(s.bad, "bad line")), "correct these lines; train and bench skip them with --skip-bad"}
	}
	return nil
}

// listBad prints the bad lines that err lists, and returns their number. Any other error
// is returned.
func listBad(w io.Writer, err error) (int, error) {
	var list *task.LinesError
	if err == nil || !errors.As(err, &list) {
		return 0, err
	}
	for _, l := range list.Lines {
		fmt.Fprintf(w, "%s: line %d: %s\n", list.Path, l.N, l.Text)
	}
	return len(list.Lines), nil
}

// survey counts what is in a file of dialogues.
type survey struct {
	bad, bare int // bad lines; dialogues without a good checklist

	turns, items, machine, reader, unpaid int
	tools, writing                        map[string]bool
}

func (s *survey) add(t task.Task) {
	t.Relate()
	for _, f := range t.Tools {
		s.tools[f.Name] = true
		if f.Write {
			s.writing[f.Name] = true
		}
	}
	s.turns += len(t.Turns)
	for _, turn := range t.Turns {
		for _, item := range turn.Checklist {
			s.items++
			switch c := item.Check; {
			case c == nil, c.Type == task.Reply && len(c.Contains)+len(c.AnyOf) == 0:
				s.reader++
			case c.Type == task.ToolResult && !c.ExpectError:
				s.unpaid++
			default:
				s.machine++
			}
		}
	}
}

func (s *survey) print(w io.Writer, tasks []task.Task, joined bool) {
	for _, t := range tasks {
		s.add(t)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "dialogues\t%d", len(tasks))
	if joined {
		fmt.Fprintf(table, ", and %d without a good checklist", s.bare)
	}
	fmt.Fprintf(table, "\nuser turns\t%d\n", s.turns)
	fmt.Fprintf(table, "items\t%d: %d checked by machine, %d for a reader", s.items, s.machine, s.reader)
	if s.unpaid > 0 {
		fmt.Fprintf(table, ", %d not paid (results that are no error)", s.unpaid)
	}
	fmt.Fprintf(table, "\ntools\t%d, of which %d marked as writing\n", len(s.tools), len(s.writing))
	fmt.Fprintf(table, "bad lines\t%d\n", s.bad)
	table.Flush()
}

// count names a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
