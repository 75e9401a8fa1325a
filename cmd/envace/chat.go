package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"envace/chat"
	"envace/rollout"
	"envace/task"
	"envace/workbench"
)

// chatOptions is the command line of envace chat.
type chatOptions struct {
	modelOptions
	remoteOptions
	Domain      string
	Seed        uint64
	Imagine     bool
	Brief       bool
	Temperature float64
}

func chatCommand() *cobra.Command {
	var o chatOptions
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Talk to a model that has the tools of a workbench domain",
		Long: `Talk to a model that has the tools of a workbench domain, and see each call and
what it is answered: by the real tool, or with --imagine by the model itself in
place of the tool. A line of input is a message; an empty one, or the end of
input, ends the talk.`,
		Example: `  envace chat --model runs/first/checkpoints/rl
  envace chat --model runs/first/checkpoints/rl --domain orders --imagine --brief
  envace chat --policy openai:http://localhost:8080/v1#qwen3`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.remoteOptions.check(o.modelOptions); err != nil {
				return err
			}
			t, err := workbench.Generate(o.Domain, o.Seed)
			if err != nil {
				return usageError{fmt.Errorf("--domain: %w", err)}
			}
			policy, done, err := openSpeaker(cmd.Context(), o.modelOptions, o.remoteOptions)
			if err != nil {
				return err
			}
			defer done()
			policy.Params.Temperature = o.Temperature
			return converse(cmd.Context(), o, policy, t, cmd.InOrStdin(), newScreen(cmd.OutOrStdout()))
		},
	}
	f := cmd.Flags()
	o.modelOptions.flags(f)
	o.remoteOptions.flags(f)
	f.StringVar(&o.Domain, "domain", "orders", "`name` of the workbench domain whose tools the model has")
	f.Uint64Var(&o.Seed, "seed", 1, "`number` that the domain's state and the sampling draw from")
	f.BoolVar(&o.Imagine, "imagine", false, "let the model imagine what the tools answer")
	f.BoolVar(&o.Brief, "brief", false, "imagine with the short prompts of the small recipes")
	f.Float64Var(&o.Temperature, "temperature", 0, "`degree` of chance in sampling (0: the likeliest token)")
	return cmd
}

// converse plays an episode whose user sits at in. t gives the tools and the
// state; what its own user would say is shown as an idea.
func converse(ctx context.Context, o chatOptions, policy rollout.Policy, t task.Task, in io.Reader, out *screen) error {
	talk := &talk{lines: lines(in), out: out}
	real, err := workbench.Worlds{}.Open(ctx, t, o.Seed)
	if err != nil {
		return err
	}
	if talk.tools = real; o.Imagine {
		talk.tools = rollout.Rehearsal{Policy: policy, FewShot: rollout.FewShotNone, Brief: o.Brief}
	}
	out.note("tools: %s", strings.Join(names(t), ", "))
	out.note("you could say: %s", t.Turns[0].User)
	first, err := talk.ask(ctx)
	if err != nil || first == "" {
		return err
	}
	t.Turns = []task.Turn{{User: first}}
	talk.shown = 1 // the user has just typed it
	const endless = 1 << 30
	game := rollout.Game{Policy: policy, World: talk, Seed: o.Seed, Step: -1, Limits: rollout.Limits{Messages: endless, User: endless}}
	ep, err := game.Play(ctx, t)
	if err != nil {
		return err
	}
	talk.show(ep)
	if ep.Stop != rollout.StopDone {
		out.note("the talk ended: %s", whyEnded(ep, o.MaxTokens))
	}
	return nil
}

func whyEnded(ep *rollout.Episode, most int) string {
	switch {
	case ep.Stop == rollout.StopTokens:
		return fmt.Sprintf("a message came to --max-tokens %d", most)
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

// talk is the world of a person at a terminal, with tools behind it.
type talk struct {
	tools rollout.World
	lines <-chan string
	out   *screen
	shown int // entries of the episode that are on the screen
}

// Reply lets the tools answer open calls, and the person everything else.
func (w *talk) Reply(ctx context.Context, ep *rollout.Episode) (rollout.Reply, error) {
	w.show(ep)
	if len(ep.Open()) > 0 {
		return w.tools.Reply(ctx, ep)
	}
	text, err := w.ask(ctx)
	if err != nil || text == "" {
		return rollout.Reply{Done: true}, err
	}
	w.shown++
	m := chat.Message{Role: chat.User, Content: text}
	return rollout.Reply{Entries: []rollout.Entry{{Message: m, Source: rollout.FromUser, User: ep.User + 1}}}, nil
}

// show prints the entries of ep that are new.
func (w *talk) show(ep *rollout.Episode) {
	for ; w.shown < len(ep.Entries); w.shown++ {
		w.out.entry(ep.Entries[w.shown])
	}
}

// ask reads the person's next message; "" ends the talk.
func (w *talk) ask(ctx context.Context) (string, error) {
	w.out.prompt()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case text := <-w.lines: // "" once it is closed
		return text, nil
	}
}

// lines reads lines on a goroutine of its own, because a terminal's read cannot
// be cancelled; it ends with the program.
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
