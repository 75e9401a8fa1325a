package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"envace/engine/cpu"
	"envace/internal/recipe"
	"envace/internal/run"
	"envace/internal/weights"
	"envace/render"
	"envace/serve"
)

// keyVariable keeps the key out of the process list.
const keyVariable = "ENVACE_KEY"

// serveOptions are the flags of envace serve.
type serveOptions struct {
	modelOptions
	Listen string
	Key    string
	Name   string // default: that of the file or folder
	Slots  int
	Queue  int
	Drain  time.Duration

	Fallback bool // to an earlier checkpoint of a run whose last one is damaged
	Stderr   io.Writer
}

func serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve MODEL",
		Short: "Serve a model over the OpenAI API, with a chat page",
		Long: `Serve a model over the OpenAI API: chat completions with tools, text completions,
streaming and structured outputs. MODEL is a run folder, of which the last checkpoint
is served, a Hugging Face folder, a GGUF file, or the name of a pulled model. A
checkpoint that is damaged is not served: --fallback then takes the last whole one of
the run. The same address has a chat page. Listening on anything but localhost requires an API key, from
--key or the environment variable ` + keyVariable + `.`,
		Example: `  envace serve runs/first
  envace serve smollm2-135m-instruct.Q4_1.gguf --listen 127.0.0.1:9000
  envace serve models/qwen3 --adapter runs/mine/checkpoints/rl --name mine`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			o.Stderr = cmd.ErrOrStderr()
			o.Model, o.Key = given[0], cmp.Or(o.Key, os.Getenv(keyVariable))
			if err := o.check(); err != nil {
				return usageError{err}
			}
			return runServer(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Listen, "listen", "127.0.0.1:8080", "`address` to listen on")
	f.StringVar(&o.Key, "key", "", "API `key` that clients must send")
	f.StringVar(&o.Name, "name", "", "model `name` in the API (default: that of the file or folder)")
	f.StringVar(&o.Adapter, "adapter", "", "`folder` of a LoRA adapter for the model, in PEFT format")
	f.IntVar(&o.MaxTokens, "max-tokens", 0, "default limit of completion `tokens` in chats (0: the rest of the context window)")
	f.IntVar(&o.Threads, "threads", 0, "`number` of threads (0: one per core)")
	f.IntVar(&o.Cache, "cache-tokens", 0, cacheUsage)
	f.IntVar(&o.Slots, "slots", 32, "`number` of completions generated concurrently")
	f.IntVar(&o.Queue, "queue", 256, "`number` of requests that may wait for a slot; more get status 429")
	f.BoolVar(&o.Fallback, "fallback", false, "serve the last whole checkpoint of a run whose last one is damaged")
	f.DurationVar(&o.Drain, "drain", 30*time.Second, "grace `period` for completions in progress at shutdown")
	return cmd
}

func (o serveOptions) check() error {
	host, _, err := net.SplitHostPort(o.Listen)
	switch ip := net.ParseIP(host); {
	case err != nil:
		return fmt.Errorf("--listen: %w", err)
	case o.Key == "" && host != "localhost" && (ip == nil || !ip.IsLoopback()):
		return fmt.Errorf("--listen %s is reachable from other machines: set --key, or listen on 127.0.0.1", o.Listen)
	case o.Slots < 1 || o.Queue < 0 || o.MaxTokens < 0 || o.Drain < 0:
		return fmt.Errorf("--slots is %d: want at least 1; --queue is %d, --max-tokens %d, --drain %v: must not be negative", o.Slots, o.Queue, o.MaxTokens, o.Drain)
	}
	return nil
}

// runServer serves until ctx ends, and then waits for completions in progress.
func runServer(ctx context.Context, o serveOptions, out io.Writer) error {
	h, notes, err := openHandler(ctx, o)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	requests, cancelRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelRequests()
	server := h.Server(requests)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	fmt.Fprintf(out, "serving at http://%s\n", listener.Addr())
	for _, note := range notes {
		fmt.Fprintf(out, "note: %s\n", note)
	}
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(requests, o.Drain)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		cancelRequests()
		return errors.Join(fmt.Errorf("serve: requests in progress were cancelled after %v (--drain)", o.Drain), server.Close())
	}
	fmt.Fprintln(out, "stopped")
	return nil
}

// openHandler loads the model, and returns what is to be known of its template.
func openHandler(ctx context.Context, o serveOptions) (h *serve.Handler, notes []string, err error) {
	name := cmp.Or(o.Name, servedName(o.Model))
	if err := o.resolve(); err != nil {
		return nil, nil, err
	}
	const unlimited = -1
	chat, err := render.Open(o.Model, render.Config{MaxCalls: unlimited})
	if err != nil {
		return nil, nil, err
	}
	e, err := cpu.Open(o.Model, cpu.Options{Threads: o.Threads, Adapter: o.Adapter, CacheTokens: o.Cache})
	if err != nil {
		return nil, nil, err
	}
	sampler, err := e.Sampler(ctx)
	if err != nil {
		return nil, nil, err
	}
	queue := o.Queue
	if queue == 0 {
		queue = -1
	}
	h, err = serve.New(serve.Options{Name: name, Chat: chat, Sampler: sampler, Window: e.Window(), MaxTokens: o.MaxTokens, APIKey: o.Key, Slots: o.Slots, Queue: queue})
	return h, chat.Notes(), err
}

// servedName is the default model name in the API.
func servedName(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return strings.TrimSuffix(filepath.Base(filepath.Clean(path)), ".gguf")
}

// resolve finds the folder or file of the model: a path, the last checkpoint of a
// run folder, or a pulled model. A checkpoint that is an adapter brings its base.
func (o *serveOptions) resolve() (err error) {
	folder := o.Model
	if o.Model, err = o.lastCheckpoint(folder); err != nil {
		return err
	}
	if o.Adapter, err = pulledPath(o.Adapter); err != nil {
		return err
	}
	if base, ok := weights.AdapterBase(o.Model); ok && o.Adapter == "" {
		if own := filepath.Join(folder, "base"); o.Model != folder && isDir(own) {
			base = own
		}
		if base != "" {
			o.Model, o.Adapter = base, o.Model
		}
	}
	o.Model, err = modelPath(o.Model)
	return err
}

// lastCheckpoint returns the last checkpoint of a run folder; any other path as it is.
// One that is damaged is told of, and passed over only where that was asked for.
func (o *serveOptions) lastCheckpoint(path string) (string, error) {
	if !isDir(filepath.Join(path, run.Checkpoints)) {
		return path, nil
	}
	checkpoint, damaged, err := recipe.LastWhole(path)
	if err != nil {
		return "", fmt.Errorf("serve run %s: %w", path, err)
	}
	if len(damaged) == 0 {
		return checkpoint, nil
	}
	told := errors.Join(damaged...)
	if !o.Fallback {
		return "", hinted{fmt.Errorf("serve run %s: %w", path, told), fmt.Sprintf("serve %s instead with --fallback, or make the run whole again with: envace train --resume --out %s", checkpoint, shellQuoted(path))}
	}
	fmt.Fprintf(o.Stderr, "%s; serving %s\n", strings.ReplaceAll(told.Error(), "\n", "; "), checkpoint)
	return checkpoint, nil
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
