package cli

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"envace/internal/weights"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata/script")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"envace": func() { Main() }})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"tinymodel": tinyModel, "cut": cut, "spoilt": spoilt, "oddgguf": oddGGUF, "odddata": oddData, "hub": startHub, "peer": startPeer},
	})
}

// tinyModel writes a model folder without tokenizer: tinymodel DIR.
func tinyModel(ts *testscript.TestScript, _ bool, args []string) {
	c := weights.Config{
		Arch: weights.Qwen3, Vocab: 40, Width: 16, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 8, MLP: 24,
		Eps: 1e-6, RopeTheta: 10000, Tied: true, Context: 128, BOS: -1, EOS: []int{1}, PAD: -1,
	}
	zeros := make([]float32, 40*16)
	sizes := map[string]int{}
	for _, t := range c.Tensors() {
		sizes[t.Name] = t.Len()
	}
	get := func(name string) ([]float32, error) { return zeros[:sizes[name]], nil }
	ts.Check(weights.Save(ts.MkAbs(args[0]), c, get, weights.SaveOptions{BF16: true}))
}

// cut shortens a file by a quarter: cut FILE.
func cut(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	st, err := os.Stat(path)
	ts.Check(err)
	ts.Check(os.Truncate(path, st.Size()*3/4))
}

func TestHintsReachThroughWrapping(t *testing.T) {
	err := fmt.Errorf("outer: %w", hinted{errors.New("inner"), "do this"})
	if got := hints(err); len(got) != 1 || got[0] != "do this" {
		t.Errorf("hints %q", got)
	}
	if err.Error() != "outer: inner" {
		t.Errorf("the advice is part of the error: %q", err)
	}
}
