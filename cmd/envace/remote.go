package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"envace/engine"
	"envace/internal/openai"
	"envace/rollout"
)

// remoteOptions are the flags of commands in which a model behind a server may
// speak in the place of --model.
type remoteOptions struct {
	Policy string // openai:URL#MODEL; "" is none
	Log    string // file of requests; "" is none
	Budget int    // tokens; 0 is no bound
}

const scheme = "openai:"

func (o *remoteOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.Policy, "policy", "", "a model behind a server, instead of --model: `openai:URL#MODEL` (key in OPENAI_API_KEY)")
	f.StringVar(&o.Log, "policy-log", "", "append each request to the server of --policy and its answer to this `file` of JSON lines")
	f.IntVar(&o.Budget, "policy-budget", 0, "stop after so many `tokens` of requests to the server of --policy (0: no bound)")
}

// check wants one of --model and --policy.
func (o remoteOptions) check(m modelOptions) error {
	switch {
	case o.Policy == "" && (o.Log != "" || o.Budget != 0):
		return usageError{errors.New("--policy-log and --policy-budget are for --policy")}
	case o.Policy == "" && m.Model == "":
		return usageError{errors.New("--model or --policy is required")}
	case o.Policy == "":
		return nil
	case m.Model != "" || m.Adapter != "":
		return usageError{errors.New("--policy speaks instead of --model and --adapter: leave them out")}
	case o.Budget < 0:
		return usageError{fmt.Errorf("--policy-budget is %d: want at least 0", o.Budget)}
	case !strings.HasPrefix(o.Policy, scheme):
		return usageError{fmt.Errorf("--policy is %q: want openai:URL#MODEL", o.Policy)}
	}
	return nil
}

// openSpeaker opens the policy that the flags name. done ends its use.
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

// remoteClient is the client of --policy. Without #MODEL it takes the only model
// that the server has.
func remoteClient(ctx context.Context, o remoteOptions) (*openai.Client, error) {
	base, model, err := openai.ParseTarget(strings.TrimPrefix(o.Policy, scheme))
	if err != nil {
		return nil, usageError{fmt.Errorf("--policy: %w", err)}
	}
	c := &openai.Client{BaseURL: base, Model: model, APIKey: os.Getenv("OPENAI_API_KEY")}
	if o.Budget > 0 {
		c.Budget = &openai.Budget{MaxTokens: o.Budget}
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
		return nil, usageError{fmt.Errorf("--policy %s names no model of its %d: add #MODEL, one of %s", o.Policy, len(list), strings.Join(names, ", "))}
	}
	c.Model = list[0].ID
	return c, nil
}
