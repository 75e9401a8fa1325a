package main

import (
	"cmp"
	"context"
	"encoding/json"
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
	"envace/internal/openai"
	"envace/internal/run"
	"envace/internal/weights"
	"envace/render"
)

// keyVariable may hold the key, so that it is not seen in a list of processes.
const keyVariable = "ENVACE_KEY"

// serveOptions is the command line of envace serve.
type serveOptions struct {
	modelOptions
	Listen string
	Key    string
	Name   string // "" is the name of the file or folder
	Slots  int
	Queue  int
	Drain  time.Duration
}

func serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve MODEL",
		Short: "Serve a model by OpenAI's protocol, and a page to chat with it",
		Long: `Serve a model by OpenAI's protocol: chats with tools, completions, streams. MODEL
is a run folder, whose last checkpoint is served, a folder of Hugging Face files, a
GGUF file, or the name of a pulled model. A page to chat with it is at the same
address. Any address but this machine's own needs a key, which may stand in the
environment as ` + keyVariable + `.`,
		Example: `  envace serve runs/first
  envace serve smollm2-135m-instruct.Q4_1.gguf --listen 127.0.0.1:9000
  envace serve models/qwen3 --adapter runs/mine/checkpoints/rl --name mine`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			o.Model, o.Key = given[0], cmp.Or(o.Key, os.Getenv(keyVariable))
			if err := o.check(); err != nil {
				return usageError{err}
			}
			return serve(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Listen, "listen", "127.0.0.1:8080", "`address` and port to serve at")
	f.StringVar(&o.Key, "key", "", "`secret` that clients must send")
	f.StringVar(&o.Name, "name", "", "`name` of the model in requests (default: that of its file or folder)")
	f.StringVar(&o.Adapter, "adapter", "", "`folder` of a LoRA adapter of that model, in peft's form")
	f.IntVar(&o.MaxTokens, "max-tokens", 0, "most `tokens` of a chat's answer where the request does not say (0: as the window allows)")
	f.IntVar(&o.Threads, "threads", 0, "`number` of processor threads (0: every core)")
	f.IntVar(&o.Cache, "cache-tokens", 0, cacheUsage)
	f.IntVar(&o.Slots, "slots", 32, "`number` of answers under way at once")
	f.IntVar(&o.Queue, "queue", 256, "`number` of requests that may wait; those beyond are refused with status 429")
	f.DurationVar(&o.Drain, "drain", 30*time.Second, "`time` that answers under way get when the server is stopped")
	return cmd
}

func (o serveOptions) check() error {
	host, _, err := net.SplitHostPort(o.Listen)
	switch ip := net.ParseIP(host); {
	case err != nil:
		return fmt.Errorf("--listen: %w", err)
	case o.Key == "" && host != "localhost" && (ip == nil || !ip.IsLoopback()):
		return fmt.Errorf("--listen %s can be reached from other machines: give a --key, or listen on 127.0.0.1", o.Listen)
	case o.Slots < 1 || o.Queue < 0 || o.MaxTokens < 0 || o.Drain < 0:
		return fmt.Errorf("--slots is %d: want at least 1; --queue is %d, --max-tokens %d, --drain %v: none may be negative", o.Slots, o.Queue, o.MaxTokens, o.Drain)
	}
	return nil
}

// serve serves until ctx ends, and then lets answers under way finish.
func serve(ctx context.Context, o serveOptions, out io.Writer) error {
	h, err := openServed(ctx, o)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	requests, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	server := h.Server(requests)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	fmt.Fprintf(out, "serving at http://%s\n", listener.Addr())
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	h.Drain()
	grace, cancel := context.WithTimeout(requests, o.Drain)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		giveUp()
		return errors.Join(fmt.Errorf("serve: answers under way were given up after %v", o.Drain), server.Close())
	}
	fmt.Fprintln(out, "stopped")
	return nil
}

// openServed opens the model and makes a handler of it.
func openServed(ctx context.Context, o serveOptions) (*openai.Handler, error) {
	name := cmp.Or(o.Name, servedName(o.Model))
	if err := o.resolve(); err != nil {
		return nil, err
	}
	m, err := weights.Open(o.Model)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	const unbounded = -1
	format, err := render.Open(m, render.Config{MaxCalls: unbounded})
	if err != nil {
		return nil, err
	}
	e, err := cpu.Open(o.Model, cpu.Options{Threads: o.Threads, Adapter: o.Adapter, CacheTokens: o.Cache})
	if err != nil {
		return nil, err
	}
	sampler, err := e.Sampler(ctx)
	if err != nil {
		return nil, err
	}
	queue := o.Queue
	if queue == 0 {
		queue = -1
	}
	return openai.New(openai.Options{Name: name, Chat: format, Sampler: sampler, Window: e.Window(), MaxTokens: o.MaxTokens, Key: o.Key, Slots: o.Slots, Queue: queue})
}

// servedName is how a model is called in requests unless a name is given.
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
	if o.Model, err = lastCheckpoint(folder); err != nil {
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
func lastCheckpoint(path string) (string, error) {
	if !isDir(filepath.Join(path, run.Checkpoints)) {
		return path, nil
	}
	data, err := os.ReadFile(filepath.Join(path, "state.json"))
	var state struct{ Checkpoint string }
	if err == nil {
		err = json.Unmarshal(data, &state)
	}
	if err == nil && state.Checkpoint == "" {
		err = errors.New("it has no checkpoint yet")
	}
	if err != nil {
		return "", fmt.Errorf("serve the run in %s: %w", path, err)
	}
	return filepath.Join(path, filepath.FromSlash(state.Checkpoint)), nil
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
