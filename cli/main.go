// Package cli is envace's command line. A program that calls [Main] with its own suites
// gets every command (train, bench, chat, serve and so on) for those suites as well as
// the built-in ones.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"envace/suite"
	"envace/workbench/domains"
)

// Main runs the command line with the built-in suites and the given ones, and exits.
func Main(suites ...suite.Family) { os.Exit(execute(suites)) }

// app is the command line for one set of suites.
type app struct {
	suites []suite.Family
}

// ours is the command line with the built-in suites only.
var ours = app{[]suite.Family{domains.Family(), suite.Dialogues()}}

// with returns a with further suites.
func (a app) with(own []suite.Family) (app, error) {
	for _, f := range own {
		if slices.ContainsFunc(a.suites, func(g suite.Family) bool { return g.Name == f.Name }) {
			return a, fmt.Errorf("two suites are named %q: rename yours", f.Name)
		}
		a.suites = append(slices.Clone(a.suites), f)
	}
	return a, nil
}

// execute runs the command line and returns the exit code.
func execute(own []suite.Family) int {
	a, err := ours.with(own)
	if err != nil {
		fmt.Fprintf(os.Stderr, "envace: error: %s\n", err)
		return failed
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C kills the program at once
	cmd, err := a.root().ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	return printError(os.Stderr, cmd, err)
}

// The exit codes of errors.
const (
	failed  = 1
	misused = 2
)

// printError prints an error and its hints, and usage after a wrong command line. It
// returns the exit code.
func printError(w io.Writer, cmd *cobra.Command, err error) int {
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(w, "envace: error: interrupted")
		return failed
	}
	fmt.Fprintf(w, "envace: error: %s\n", err)
	for _, hint := range hints(err) {
		fmt.Fprintf(w, "envace: hint: %s\n", hint)
	}
	var usage usageError
	if !errors.As(err, &usage) {
		return failed
	}
	fmt.Fprintf(w, "\n%s", cmd.UsageString())
	return misused
}

// usageError is the error of an invalid command line.
type usageError struct{ error }

// args makes check's errors usageErrors.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if err := check(cmd, given); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// required returns a usageError if the flag has no value.
func required(flag, value string) error {
	if value == "" {
		return usageError{fmt.Errorf("--%s is required", flag)}
	}
	return nil
}

func (a app) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "envace",
		Short: "Train tool-using language models by world rehearsal",
		Long: `Envace trains tool-using language models without calling tools: one policy acts and
also imagines the results of its tool calls.`,
		Example: `  envace train --recipe quickstart --out runs/first
  envace report runs/first
  envace bench workbench --model runs/first/checkpoints/rl`,
		Args:          args(noSuchCommand),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	cmd.CompletionOptions.HiddenDefaultCmd = true
	cmd.SetHelpCommand(&cobra.Command{Hidden: true})
	cmd.AddCommand(a.trainCommand(), a.benchCommand(), dataCommand(), reportCommand(), modelCommand(), a.chatCommand(), serveCommand(), versionCommand())
	return cmd
}

// noSuchCommand rejects a first argument that is not a command.
func noSuchCommand(cmd *cobra.Command, given []string) error {
	if len(given) == 0 {
		return nil
	}
	near := cmd.SuggestionsFor(given[0])
	if len(near) == 0 {
		return fmt.Errorf("unknown command %q", given[0])
	}
	return fmt.Errorf("unknown command %q: did you mean %s?", given[0], strings.Join(near, " or "))
}
