package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"envace/internal/hub"
	"envace/internal/run"
)

func pullCommand() *cobra.Command {
	var revision, file string
	cmd := &cobra.Command{
		Use:   "pull OWNER/NAME",
		Short: "Fetch a model from the Hugging Face hub",
		Long: `Fetch a model from the Hugging Face hub into the cache that Hugging Face's own
tools use. Only the files that envace reads are fetched: configuration, tokenizer,
templates and safetensors, or an adapter, or one GGUF file. Each is checked against
the hub's checksum. What was interrupted goes on where it ended. Afterwards --model
OWNER/NAME finds it.

HF_ENDPOINT names another hub, HF_HOME or HF_HUB_CACHE another place, and HF_TOKEN
a token for models that are not open to all.`,
		Example: `  envace model pull Qwen/Qwen3-0.6B
  envace model pull Qwen/Qwen3-0.6B --revision refs/pr/1
  envace model pull Qwen/Qwen3-0.6B-GGUF --file Qwen3-0.6B-Q8_0.gguf`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			n, err := pullName(given[0], revision, file)
			if err != nil {
				return usageError{err}
			}
			return pull(cmd.Context(), n, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&revision, "revision", "", "`branch`, tag or commit (default: main)")
	f.StringVar(&file, "file", "", "fetch this `file` alone, such as one of several GGUF files")
	return cmd
}

// pullName is the name with what the flags say of it.
func pullName(text, revision, file string) (hub.Name, error) {
	n, err := hub.ParseName(text)
	if err != nil {
		return n, err
	}
	if revision != "" && n.Revision != "" || file != "" && n.File != "" {
		return n, fmt.Errorf("%q already names a revision or file: leave out the flag", text)
	}
	put(&n.Revision, revision)
	put(&n.File, file)
	return hub.ParseName(n.String()) // checks what the flags said
}

// pull fetches a model and prints where it lies.
func pull(ctx context.Context, n hub.Name, stdout, stderr io.Writer) error {
	h, err := hub.FromEnv(os.Getenv)
	if err != nil {
		return err
	}
	watch := &pullWatch{Progress: run.NewProgress(stderr)}
	h.Watch, h.Free = watch, run.Free
	got, err := h.Pull(ctx, n)
	watch.Close()
	if errors.Is(err, hub.ErrManyFiles) {
		return hinted{err, "name it: envace model pull " + n.String() + " --file FILE.gguf"}
	}
	if errors.Is(err, syscall.ENOSPC) {
		return hinted{err, "free some space, and go on with: envace model pull " + shellQuoted(n.String())}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s\n", got.Path)
	return nil
}

// pullWatch shows a pull as stages of bytes.
type pullWatch struct {
	*run.Progress
	began, shown time.Time
	from, total  int64
}

// Stage begins a part of the pull.
func (w *pullWatch) Stage(name string, from, total int64) {
	w.began, w.shown, w.from, w.total = time.Now(), time.Time{}, from, total
	w.StageBytes(name, from, total)
}

// At tells how far it is, at most ten times a second.
func (w *pullWatch) At(done int64, file string) {
	const often = 100 * time.Millisecond
	now := time.Now()
	if done < w.total && now.Sub(w.shown) < often {
		return
	}
	w.shown = now
	parts := []string{file}
	if s := now.Sub(w.began).Seconds(); s > 1 && done > w.from {
		parts = []string{run.Bytes(int64(float64(done-w.from)/s)) + "/s", file}
	}
	w.Done(int(done), parts...)
}

// Note is a line above the progress.
func (w *pullWatch) Note(text string) { w.Printf("%s", text) }
