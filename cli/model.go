package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"envace/engine/cpu"
	"envace/internal/run"
	"envace/internal/weights"
	"envace/render"
)

func modelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "model PATH",
		Short: "Describe a model folder or GGUF file",
		Long: `Describe a model: its architecture and sizes, the data types of its tensors, its
tokenizer and chat template, and the memory that sampling and training need. PATH is
a Hugging Face model folder, a checkpoint, a GGUF file, or the name of a pulled model.`,
		Example: `  envace model models/qwen3
  envace model smollm2-135m-instruct.Q4_1.gguf
  envace model runs/first/checkpoints/rl
  envace model pull Qwen/Qwen3-0.6B`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			path, err := modelPath(given[0])
			if err != nil {
				return err
			}
			m, err := weights.Open(path)
			if err != nil {
				return err
			}
			defer m.Close()
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			describeShape(w, m)
			describeStorage(w, m)
			describeChat(w, m)
			describeMemory(w, m.Config)
			return w.Flush()
		},
	}
	cmd.AddCommand(pullCommand())
	return cmd
}

func describeShape(w io.Writer, m *weights.Model) {
	c := m.Config
	fmt.Fprintf(w, "model\t%s\n", m.Path)
	fmt.Fprintf(w, "architecture\t%s\n", c.Arch)
	fmt.Fprintf(w, "parameters\t%d\n", c.Params())
	fmt.Fprintf(w, "layers\t%d, hidden size %d, MLP size %d\n", c.Layers, c.Width, c.MLP)
	fmt.Fprintf(w, "attention\t%d heads of size %d, %d key-value heads\n", c.Heads, c.HeadDim, c.KVHeads)
	output := "separate"
	if c.Tied {
		output = "tied to the embedding"
	}
	fmt.Fprintf(w, "vocabulary\t%d, output matrix %s\n", c.Vocab, output)
	fmt.Fprintf(w, "context\t%d tokens\n", c.Context)
	rope := fmt.Sprintf("rotary, base %g", c.RopeTheta)
	if c.RopeScaling != nil {
		rope += fmt.Sprintf(", scaled by %g", c.RopeScaling.Factor)
	}
	fmt.Fprintf(w, "positions\t%s\n", rope)
}

// describeStorage lists the data types of the tensors, the largest share first.
func describeStorage(w io.Writer, m *weights.Model) {
	type share struct {
		name            string
		tensors, params int
		bytes           int64
	}
	by := map[string]share{}
	for _, t := range m.Infos() {
		s := by[t.Type]
		by[t.Type] = share{t.Type, s.tensors + 1, s.params + t.Len(), s.bytes + t.Bytes}
	}
	shares := slices.SortedFunc(maps.Values(by), func(a, b share) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.name, b.name))
	})
	for i, s := range shares {
		label := ""
		if i == 0 {
			label = "stored as"
		}
		fmt.Fprintf(w, "%s\t%s: %d tensors, %d elements, %s\n", label, s.name, s.tensors, s.params, run.Bytes(s.bytes))
	}
}

// describeChat describes the tokenizer and the chat template. A model without them can
// still be described.
func describeChat(w io.Writer, m *weights.Model) {
	c, err := render.Open(m.Path, render.Config{})
	if err != nil {
		fmt.Fprintf(w, "chat\tnone: %s\n", err)
		return
	}
	fmt.Fprintf(w, "tokenizer\t%d tokens\n", c.Tokenizer().Size())
	var stop []string
	for _, id := range c.Stop() {
		stop = append(stop, fmt.Sprintf("%s (%d)", c.Tokenizer().Token(id), id))
	}
	fmt.Fprintf(w, "messages end with\t%s\n", strings.Join(stop, ", "))
	fmt.Fprintf(w, "chat templates\t%s\n", strings.Join(slices.Sorted(maps.Keys(m.Text.Templates)), ", "))
	for _, note := range c.Notes() {
		fmt.Fprintf(w, "\t%s\n", note)
	}
}

// describeMemory estimates the memory of an engine with default options.
func describeMemory(w io.Writer, c weights.Config) {
	const rank = 16
	full := cpu.MemoryEstimate(c, cpu.Options{})
	lora := cpu.MemoryEstimate(c, cpu.Options{LoRA: &cpu.LoRA{Rank: rank}})
	fmt.Fprintf(w, "memory, at most\tsampling: %s (weights %s, keys and values %s)\n",
		run.Bytes(full.Weights+full.Scratch+full.Cache), run.Bytes(full.Weights), run.Bytes(full.Cache))
	fmt.Fprintf(w, "\ttraining a LoRA of rank %d: %s\n", rank, run.Bytes(lora.Total()))
	fmt.Fprintf(w, "\ttraining all weights: %s (gradients %s, optimiser %s, activations %s)\n",
		run.Bytes(full.Total()), run.Bytes(full.Gradients), run.Bytes(full.Optimiser), run.Bytes(full.Activations))
}
