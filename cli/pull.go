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
		Short: "Download a model from the Hugging Face Hub",
		Long: `Download a model from the Hugging Face Hub into the cache that Hugging Face's own
tools use. Only the files that envace reads are downloaded: configuration, tokenizer,
chat templates and safetensors, or an adapter, or one GGUF file. Each file is verified
against the hub's checksum. An interrupted download resumes where it stopped. The
model can then be used with --model OWNER/NAME.

Set HF_ENDPOINT to use another hub, HF_HOME or HF_HUB_CACHE to use another cache, and
HF_TOKEN to your access token for gated or private models.`,
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
	f.StringVar(&file, "file", "", "download only this `file`, such as one of several GGUF files")
	return cmd
}

// pullName returns the name with the revision and file from the flags.
func pullName(text, revision, file string) (hub.Name, error) {
	n, err := hub.ParseName(text)
	if err != nil {
		return n, err
	}
	if revision != "" && n.Revision != "" || file != "" && n.File != "" {
		return n, fmt.Errorf("%q already names a revision or file: remove the flag", text)
	}
	put(&n.Revision, revision)
	put(&n.File, file)
	return hub.ParseName(n.String()) // validates the flags
}

// pull downloads a model and prints its path.
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
		return hinted{err, "choose one with: envace model pull " + n.String() + " --file FILE.gguf"}
	}
	if errors.Is(err, syscall.ENOSPC) {
		return hinted{err, "free some space, and continue with: envace model pull " + shellQuoted(n.String())}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s\n", got.Path)
	return nil
}

// pullWatch shows the progress of a pull in bytes.
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

// At updates the progress, at most ten times a second.
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

// Note prints a line above the progress line.
func (w *pullWatch) Note(text string) { w.Printf("%s", text) }
