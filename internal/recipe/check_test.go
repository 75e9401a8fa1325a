package recipe

import (
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Whatever the settings, a run works, and can be looked at again, or is refused
// before it begins.
func TestOddSettings(t *testing.T) {
	choices := map[string][]string{
		"data.sft": {"0", "1", "4"}, "data.rl": {"0", "1", "6"}, "data.few_shot": {"none", "past", "all"},
		"base.steps": {"0", "0", "1"}, "base.copy": {"0", "1", "2"}, "base.batch": {"1", "2"}, "base.copy_only": {"0", "9"},
		"sft.steps": {"0", "1", "2"}, "sft.batch": {"1", "2", "3"}, "sft.copy": {"0", "1", "2"}, "sft.warmup": {"0", "1", "9"},
		"rl.steps": {"0", "1", "2"}, "rl.batch": {"1", "7"}, "rl.group": {"1", "3"}, "rl.minibatch": {"0", "1", "99"},
		"rl.temperature": {"0", "1"}, "rl.max_tokens": {"1", "4"}, "rl.messages": {"0", "1"}, "rl.seconds": {"0", "100"}, "model.thinking": {"", "on", "off"}, "model.history": {"", "split"}, "rl.kl": {"0", "0.1"},
		"eval.every": {"0", "1", "2"}, "eval.curve": {"0", "1", "3"}, "eval.tasks": {"0", "1", "2"}, "eval.held_out": {"0", "1"},
		"eval.rehearse": {"0", "1", "2"}, "eval.save": {"0", "1", "3"}, "model.lora": {"0", "0", "2"}, "memory": {"0", "0.2"}, "cache": {"0", "256"},
		"with": {"[]", `["real"]`, `["sft-more"]`, `["sft-more", "real"]`},
	}
	var keys []string
	for key := range choices {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	n := 20
	if testing.Short() {
		n = 5
	}
	model := "model.path=" + tinyModel(t, 1024)
	went := 0
	for i := range n {
		r := rand.New(rand.NewPCG(uint64(i), 1))
		set := []string{model}
		for _, key := range keys {
			if r.IntN(3) == 0 {
				set = append(set, key+"="+choices[key][r.IntN(len(choices[key]))])
			}
		}
		if ok := t.Run(fmt.Sprint(i), func(t *testing.T) {
			if carriedOut(t, tiny(t, set...)) {
				went++
			}
		}); !ok {
			t.Logf("settings: %s", strings.Join(set, " "))
		}
	}
	t.Logf("%d of %d were carried out", went, n)
	if went < n/4 {
		t.Error("nearly all were refused")
	}
}

// carriedOut reports whether s was not refused.
func carriedOut(t *testing.T, s Settings) bool {
	out := filepath.Join(t.TempDir(), "run")
	if err := carryOut(t.Context(), s, out, false, io.Discard); err != nil {
		if begun(out) || strings.Contains(err.Error(), "panic") {
			t.Errorf("failed during the run: %v", err)
		}
		t.Logf("refused: %v", err)
		return false
	}
	if err := carryOut(t.Context(), s, out, true, io.Discard); err != nil {
		t.Errorf("looked at again: %v", err)
	}
	return true
}
