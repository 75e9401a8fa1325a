package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"envace/chat"
	"envace/rollout"
	"envace/suite"
	"envace/task"
)

// chatOptions is the command line of envace chat.
type chatOptions struct {
	modelOptions
	remoteOptions
	Suite       string
	Seed        uint64
	Imagine     bool
	Brief       bool
	Temperature float64
}

func (a app) chatCommand() *cobra.Command {
	var o chatOptions
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Chat with a model that can call the tools of a suite",
		Long: `Chat with a model that can call the tools of a suite. Each call is shown with its
result: from the real tool or, with --imagine, imagined by the model itself. Each
line of input is one message. An empty line or end of input ends the dialogue.`,
		Example: `  envace chat --model runs/first/checkpoints/rl
  envace chat --model runs/first/checkpoints/rl --suite workbench:orders --imagine --brief
  envace chat --policy openai:http://localhost:8080/v1#qwen3`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.remoteOptions.check(o.modelOptions); err != nil {
				return err
			}
			t, worlds, err := a.setting(o)
			if err != nil {
				return err
			}
			policy, done, err := openSpeaker(cmd.Context(), o.modelOptions, o.remoteOptions)
			if err != nil {
				return err
			}
			defer done()
			policy.Params.Temperature = o.Temperature
			return converse(cmd.Context(), o, policy, t, worlds, cmd.InOrStdin(), newScreen(cmd.OutOrStdout()))
		},
	}
	f := cmd.Flags()
	o.modelOptions.flags(f)
	o.remoteOptions.flags(f)
	f.StringVar(&o.Suite, "suite", "workbench:orders", "`name` of the suite whose tools the model can call")
	f.Uint64Var(&o.Seed, "seed", 1, "random `seed` for the world's state and for sampling")
	f.BoolVar(&o.Imagine, "imagine", false, "let the model imagine tool results instead of calling the tools")
	f.BoolVar(&o.Brief, "brief", false, "imagine tool results with the short prompts of the small recipes")
	f.Float64Var(&o.Temperature, "temperature", 0, "sampling `temperature` (0: greedy)")
	return cmd
}

// setting returns a task of the suite, which supplies the tools and the initial state,
// and the suite's real worlds.
func (a app) setting(o chatOptions) (task.Task, rollout.Worlds, error) {
	s, err := suite.Open(a.suites, o.Suite, suite.Options{HeldOut: 1})
	if err != nil {
		return task.Task{}, nil, usageError{fmt.Errorf("--suite: %w", err)}
	}
	worlds := s.Worlds()
	if worlds == nil && !o.Imagine {
		return task.Task{}, nil, usageError{fmt.Errorf("suite %s has no real tools: use --imagine", o.Suite)}
	}
	for _, split := range []suite.Split{suite.Test, suite.HeldOut} {
		tasks, err := s.Tasks(split, 1, o.Seed)
		if err != nil {
			return task.Task{}, nil, fmt.Errorf("suite %s: %w", o.Suite, err)
		}
		if len(tasks) > 0 {
			return tasks[0], worlds, nil
		}
	}
	return task.Task{}, nil, fmt.Errorf("suite %s has no tasks", o.Suite)
}

// converse plays an episode whose user types at in. t supplies the tools and the
// state; its recorded first message is shown as a suggestion.
func converse(ctx context.Context, o chatOptions, policy rollout.Policy, t task.Task, real rollout.Worlds, in io.Reader, out *screen) error {
	view := &terminal{lines: lines(in), out: out}
	worlds := rollout.Worlds(seated{real, view})
	if o.Imagine {
		tools := rollout.Rehearsal{Policy: policy, FewShot: rollout.FewShotNone, Brief: o.Brief}
		worlds = seated{rollout.Pair{Tools: tools}, view}
	}
	if r, ok := policy.Renderer.(interface{ Notes() []string }); ok {
		for _, note := range r.Notes() {
			out.note("note: %s", note)
		}
	}
	out.note("tools: %s", strings.Join(names(t), ", "))
	if len(t.Turns) > 0 {
		out.note("you could say: %s", t.Turns[0].User)
	}
	t.Turns = nil // the person at the terminal replaces them
	const endless = 1 << 30
	game := rollout.Game{Policy: policy, Worlds: worlds, Seed: o.Seed, Step: -1, Limits: rollout.Limits{Messages: endless, User: endless}}
	ep, err := game.Play(ctx, t)
	if err != nil {
		return err
	}
	view.show(ep)
	if ep.Stop != rollout.StopDone {
		out.note("the dialogue ended: %s", whyEnded(ep, o.MaxTokens))
	}
	return nil
}

func whyEnded(ep *rollout.Episode, most int) string {
	switch {
	case ep.Stop == rollout.StopTokens:
		return fmt.Sprintf("a message reached the limit of --max-tokens %d", most)
	case ep.Detail != "":
		return string(ep.Stop) + ", " + ep.Detail
	}
	return string(ep.Stop)
}

func names(t task.Task) []string {
	var out []string
	for _, f := range t.Tools {
		out = append(out, f.Name)
	}
	return out
}

// seated wraps worlds so that the user is the person at the terminal.
type seated struct {
	worlds rollout.Worlds
	user   *terminal
}

// Open opens a world, replaces its user, and shows each call before its tools answer it.
func (s seated) Open(ctx context.Context, t task.Task, seed uint64) (rollout.World, error) {
	w, err := s.worlds.Open(ctx, t, seed)
	if err != nil {
		return w, err
	}
	if w.User != nil {
		err = w.User.Close()
	}
	return rollout.World{Tools: shown{w.Tools, s.user}, User: s.user}, err
}

// shown wraps tools and shows each call on the terminal.
type shown struct {
	rollout.Tools
	view *terminal
}

// Call shows the call, then passes it to the tools.
func (s shown) Call(ctx context.Context, ep *rollout.Episode, call chat.Call) (rollout.Result, error) {
	s.view.show(ep)
	return s.Tools.Call(ctx, ep, call)
}

// terminal is a rollout.User typing at the terminal.
type terminal struct {
	lines <-chan string
	out   *screen
	shown int // entries of the episode already printed
}

// Say reads the next message from the terminal; an empty one ends the dialogue.
func (w *terminal) Say(ctx context.Context, ep *rollout.Episode) (rollout.Utterance, error) {
	w.show(ep)
	text, err := w.ask(ctx)
	if err != nil || text == "" {
		return rollout.Utterance{Done: true}, err
	}
	w.shown++ // the person has just typed it
	return rollout.Utterance{Text: text}, nil
}

// Close does nothing: the terminal stays open.
func (w *terminal) Close() error { return nil }

// show prints the entries of ep that are new.
func (w *terminal) show(ep *rollout.Episode) {
	for ; w.shown < len(ep.Entries); w.shown++ {
		w.out.entry(ep.Entries[w.shown])
	}
}

// ask reads the next message; "" ends the dialogue.
func (w *terminal) ask(ctx context.Context) (string, error) {
	w.out.prompt()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case text := <-w.lines: // "" once it is closed
		return text, nil
	}
}

// lines reads lines in its own goroutine, because a read from a terminal cannot be
// cancelled. The goroutine lives as long as the program.
func lines(in io.Reader) <-chan string {
	out := make(chan string)
	go func() {
		defer close(out)
		s := bufio.NewScanner(in)
		for s.Scan() {
			out <- strings.TrimSpace(s.Text())
		}
	}()
	return out
}
