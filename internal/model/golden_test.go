package model

import (
	"path/filepath"
	"testing"

	"envace/internal/kernel"
	"envace/internal/oracle"
	"envace/internal/weights"
)

// tensor reads one tensor of a safetensors file.
func tensor(t *testing.T, ts *weights.Tensors, name string) []float32 {
	t.Helper()
	info, ok := ts.Info(name)
	if !ok {
		t.Fatalf("no tensor %s", name)
	}
	x := make([]float32, info.Len())
	if err := ts.Read(name, x); err != nil {
		t.Fatal(err)
	}
	return x
}

// openGolden opens a golden model and its expectations.
func openGolden(t *testing.T, dir string, trained bool) (*Model, *weights.Tensors) {
	t.Helper()
	f, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := New(f.Config, kernel.NewPool(2), trained, f.Read)
	if err != nil {
		t.Fatal(err)
	}
	ts, err := weights.OpenTensors(filepath.Join(dir, "expect.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ts.Close() })
	return m, ts
}

// logitsOf computes the logits of every row of ids at once.
func logitsOf(t *testing.T, m *Model, rows [][]int) [][]float32 {
	t.Helper()
	r := &worker{m: m, budget: 1 << 20}
	n := 0
	for _, row := range rows {
		n += len(row)
	}
	r.fit(n)
	r.forest.fill(rows, Cut(rows, 1<<20, 1<<20)[0], r.pass.keys)
	if err := r.pass.forward(t.Context(), &r.forest.Batch, r.pass.stride); err != nil {
		t.Fatal(err)
	}
	x, c := r.pass.after(len(m.layers)-1), m.Config
	out := make([][]float32, len(rows))
	for i, row := range r.forest.Rows {
		for _, node := range r.forest.Paths[i] {
			r.head.rows(1, func(int) []float32 { return x[node*c.Width : (node+1)*c.Width] })
			out[row] = append(out[row], r.head.logits[:c.Vocab]...)
		}
	}
	return out
}

func idRows(t *testing.T, ts *weights.Tensors, name string) [][]int {
	t.Helper()
	info, _ := ts.Info(name)
	flat := tensor(t, ts, name)
	rows := make([][]int, info.Shape[0])
	for i, v := range flat {
		rows[i/info.Shape[1]] = append(rows[i/info.Shape[1]], int(v))
	}
	return rows
}

func TestGoldenLogits(t *testing.T) {
	for _, dir := range oracle.Glob(t, "engine/*/config.json") {
		dir = filepath.Dir(dir)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			m, ts := openGolden(t, dir, false)
			want := tensor(t, ts, "logits")
			var got []float32
			for _, row := range logitsOf(t, m, idRows(t, ts, "ids")) {
				got = append(got, row...)
			}
			oracle.Near(t, "logits", got, want, 1e-4)
		})
	}
}
