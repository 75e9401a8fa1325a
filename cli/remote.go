package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"envace/engine"
	"envace/internal/openai/client"
	"envace/rollout"
)

// remoteOptions are the flags of commands that can use a remote model in place of
// --model.
type remoteOptions struct {
	Policy string // openai:URL#MODEL; "" is none
	Log    string // file; "" is none
	Budget int    // tokens; 0 is unlimited
}

const scheme = "openai:"

func (o *remoteOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.Policy, "policy", "", "remote model to use instead of --model: `openai:URL#MODEL` (API key in OPENAI_API_KEY)")
	f.StringVar(&o.Log, "policy-log", "", "log the requests to --policy and its responses to this `file`, as JSON lines")
	f.IntVar(&o.Budget, "policy-budget", 0, "stop after --policy has used this many `tokens` (0: unlimited)")
}

// check requires exactly one of --model and --policy.
func (o remoteOptions) check(m modelOptions) error {
	switch {
	case o.Policy == "" && (o.Log != "" || o.Budget != 0):
		return usageError{errors.New("--policy-log and --policy-budget require --policy")}
	case o.Policy == "" && m.Model == "":
		return usageError{errors.New("--model or --policy is required")}
	case o.Policy == "":
		return nil
	case m.Model != "" || m.Adapter != "":
		return usageError{errors.New("--policy cannot be combined with --model or --adapter")}
	case o.Budget < 0:
		return usageError{fmt.Errorf("--policy-budget is %d: want at least 0", o.Budget)}
	case !strings.HasPrefix(o.Policy, scheme):
		return usageError{fmt.Errorf("--policy is %q: want openai:URL#MODEL", o.Policy)}
	}
	return nil
}

// openSpeaker opens the policy that the flags name. The caller must call done.
func openSpeaker(ctx context.Context, m modelOptions, o remoteOptions) (p rollout.Policy, done func() error, err error) {
	done = func() error { return nil }
	if o.Policy == "" {
		p, err = openPolicy(ctx, m)
		return p, done, err
	}
	c, err := remoteClient(ctx, o)
	if err != nil {
		return p, done, err
	}
	if o.Log != "" {
		f, err := os.OpenFile(o.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return p, done, fmt.Errorf("--policy-log: %w", err)
		}
		c.Log, done = f, f.Close
	}
	return rollout.Policy{Completer: c, Params: engine.Params{MaxTokens: m.MaxTokens}}, done, nil
}

// remoteClient returns the client of --policy. #MODEL may be omitted if the server has
// one model only.
func remoteClient(ctx context.Context, o remoteOptions) (*client.Client, error) {
	base, model, err := client.ParseTarget(strings.TrimPrefix(o.Policy, scheme))
	if err != nil {
		return nil, usageError{fmt.Errorf("--policy: %w", err)}
	}
	c := &client.Client{BaseURL: base, Model: model, APIKey: os.Getenv("OPENAI_API_KEY")}
	if o.Budget > 0 {
		c.Budget = &client.Budget{MaxTokens: o.Budget}
	}
	if model != "" {
		return c, nil
	}
	list, err := c.Models(ctx)
	if err != nil {
		return nil, fmt.Errorf("--policy: %w", err)
	}
	if len(list) != 1 {
		var names []string
		for _, m := range list {
			names = append(names, m.ID)
		}
		return nil, usageError{fmt.Errorf("--policy %s: the server has %d models: add #MODEL, one of %s", o.Policy, len(list), strings.Join(names, ", "))}
	}
	c.Model = list[0].ID
	return c, nil
}
