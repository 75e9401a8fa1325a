package model

import (
	"math"
	"slices"
	"testing"

	"envace/internal/kernel"
	"envace/internal/weights"
	"pgregory.net/rapid"
)

// small returns a small random model.
func small(t testing.TB, arch string, trained bool) *Model {
	t.Helper()
	c := weights.Config{Arch: arch, Vocab: 17, Width: 12, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 4, MLP: 20,
		Eps: 1e-5, RopeTheta: 100, Tied: arch == weights.Llama, Context: 512}
	n := uint64(0)
	m, err := New(c, kernel.NewPool(2), trained, func(name string, dst []float32) error {
		n++
		r := NewRand(n)
		for i := range dst {
			dst[i] = float32(r.Normal() * 0.4)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func closeAll(list []*Seq) {
	for _, s := range list {
		s.Close()
	}
}

func TestCacheShares(t *testing.T) {
	d := NewDecoder(small(t, weights.Qwen3, false), 1<<12)
	c := d.Cache()
	step := func(s ...*Seq) {
		if err := d.Step(s, 1<<10, func(int, []float32) {}); err != nil {
			t.Fatal(err)
		}
	}
	ids := make([]int, 150)
	for i := range ids {
		ids[i] = i % 17
	}
	a := c.Open(ids, 0, false)
	b := c.Open(ids, 0, false)
	step(a, b)
	if d.Computed() != 150 {
		t.Errorf("two sequences of the same 150 tokens compute %d", d.Computed())
	}
	fork := c.Open(append(slices.Clone(ids[:100]), 16, 16), 0, false)
	step(fork)
	if got := d.Computed() - 150; got != 2 {
		t.Errorf("a fork of 2 new tokens computes %d", got)
	}
	a.Append(3, false)
	b.Append(4, false)
	step(a, b)
	closeAll([]*Seq{a, b, fork})
	before := d.Computed()
	again := c.Open(append(slices.Clone(ids), 4, 5), 0, false)
	step(again)
	if got := d.Computed() - before; got != 1 {
		t.Errorf("a sequence that goes on by one token computes %d", got)
	}
}

func TestCacheEvicts(t *testing.T) {
	c := NewDecoder(small(t, weights.Llama, false), 4*nodeTokens).Cache()
	long := func(first int) []int { return append([]int{first}, make([]int, 2*nodeTokens-1)...) }
	a, b := c.Open(long(1), 0, false), c.Open(long(2), 0, false)
	if a == nil || b == nil {
		t.Fatal("four nodes do not hold two sequences of two")
	}
	if c.Open(long(3), 0, false) != nil {
		t.Error("there is memory where all nodes are held")
	}
	if a.Append(1, false) {
		t.Error("a sequence grows where all nodes are held")
	}
	a.Close()
	if d := c.Open(long(3), 1, false); d != nil {
		t.Error("a reserve is not kept")
	}
	d := c.Open(long(3), 0, false)
	if d == nil || c.Tokens() != 4*nodeTokens {
		t.Fatalf("no memory after a sequence was closed; %d tokens", c.Tokens())
	}
	if e := c.Open(long(4), 0, true); e == nil || c.Tokens() != 6*nodeTokens {
		t.Errorf("force does not go beyond the limit: %d tokens", c.Tokens())
	}
}

// known is how many of the first ids the cache has.
func known(c *Cache, ids []int) int {
	n := 0
	for _, l := range c.match(&c.root, 0, ids, nil) {
		n += l.n
	}
	return n
}

// The longest unused goes first, and what is in use stays.
func TestCacheDropsTheLongestUnused(t *testing.T) {
	c := NewCache(small(t, weights.Llama, false), 4*nodeTokens)
	row := func(first, n int) []int { return append([]int{first}, make([]int, n-1)...) }
	open := func(first, n int) *Seq {
		s := c.Open(row(first, n), 0, false)
		if s == nil {
			t.Fatalf("no memory for %d", first)
		}
		return s
	}
	a, b, _, d := open(1, 10), open(2, 10), open(3, 10), open(4, 10)
	closeAll([]*Seq{b, a, d})
	open(2, 5).Close()
	there := map[int]bool{1: true, 2: true, 3: true, 4: true}
	for i, gone := range []int{1, 4, 2} {
		open(5+i, 10)
		delete(there, gone)
		for first := range 4 {
			if has := known(c, row(first+1, 10)) == 10; has != there[first+1] {
				t.Errorf("after %d more: %d is there: %v, want %v", i+1, first+1, has, there[first+1])
			}
		}
	}
	if c.Open(row(9, 10), 0, false) != nil {
		t.Error("what is in use was dropped")
	}
}

// Whatever the order in which sequences come, grow and go, the decoder's logits
// are those of a forward pass over the whole row, bit for bit.
func TestDecoderEqualsForward(t *testing.T) {
	models := map[string]*Model{weights.Qwen3: small(t, weights.Qwen3, false), weights.Llama: small(t, weights.Llama, false)}
	rapid.Check(t, func(t *rapid.T) {
		m := models[rapid.SampledFrom([]string{weights.Qwen3, weights.Llama}).Draw(t, "arch")]
		d := NewDecoder(m, rapid.SampledFrom([]int{256, 1 << 14}).Draw(t, "tokens"))
		runner := NewRunner(m, 1<<12, false)
		var live []*Seq
		var rows [][]int
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			for range rapid.IntRange(0, 3).Draw(t, "new") {
				row := rapid.SliceOfN(rapid.IntRange(0, 1), 1, 90).Draw(t, "row")
				live, rows = append(live, d.Cache().Open(row, 0, true)), append(rows, row)
			}
			if len(live) > 0 && rapid.Bool().Draw(t, "close") {
				live[0].Close()
				live, rows = live[1:], rows[1:]
			}
			checkStep(t, d, runner, live, rows, rapid.SampledFrom([]int{7, 1000}).Draw(t, "budget"))
		}
	})
}

// checkStep advances all sequences and appends a token to those that are ready.
func checkStep(t *rapid.T, d *Decoder, r *Runner, live []*Seq, rows [][]int, budget int) {
	got := make([][]float32, len(live))
	if err := d.Step(live, budget, func(i int, z []float32) { got[i] = slices.Clone(z) }); err != nil {
		t.Fatal(err)
	}
	for i, z := range got {
		if z == nil {
			continue
		}
		soft := kernel.SoftmaxExp(slices.Clone(z))
		var asks []Ask
		for id := range z {
			asks = append(asks, Ask{Row: 0, At: len(rows[i]) - 1, Target: id})
		}
		_, err := r.Run(t.Context(), [][]int{rows[i]}, asks, func(id int, lp float32) float32 {
			if want := soft.Logprob(z[id]); math.Float32bits(lp) != math.Float32bits(want) {
				t.Fatalf("token %d after %v: %g in one pass, %g from the cache", id, rows[i], lp, want)
			}
			return 0
		})
		if err != nil {
			t.Fatal(err)
		}
		rows[i] = append(slices.Clip(rows[i]), len(rows[i])%2)
		live[i].Append(len(rows[i])%2^1, true)
	}
}
