package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"envace/rollout"
)

func create(t *testing.T) *Dir {
	t.Helper()
	d, err := Create(filepath.Join(t.TempDir(), "out"), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestCreateRefuses(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "notes.txt"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		open func() (*Dir, error)
		want error
	}{
		{"folder that is not empty", func() (*Dir, error) { return Create(full, 0) }, ErrNotEmpty},
		{"more than any disk holds", func() (*Dir, error) { return Create(filepath.Join(t.TempDir(), "new"), math.MaxInt64) }, ErrSpace},
		{"below a file", func() (*Dir, error) { return Create(filepath.Join(full, "notes.txt", "new"), 0) }, ErrReadOnly},
		{"a file", func() (*Dir, error) { return Create(filepath.Join(full, "notes.txt"), 0) }, ErrReadOnly},
		{"resume of no run", func() (*Dir, error) { return OpenExisting(full, 0) }, ErrNoRun},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := tt.open(); !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
		})
	}
	empty := t.TempDir()
	d, err := Create(empty, 0)
	if err != nil {
		t.Fatalf("an empty folder that is there already: %v", err)
	}
	if info, err := os.Stat(filepath.Join(empty, Checkpoints)); err != nil || !info.IsDir() {
		t.Errorf("no folder for checkpoints: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// A run that cannot begin leaves everything as it found it.
func TestDiscard(t *testing.T) {
	given := t.TempDir()
	absent := filepath.Join(t.TempDir(), "deep", "down")
	for _, dir := range []string{given, absent} {
		if _, err := Create(dir, math.MaxInt64); !errors.Is(err, ErrSpace) {
			t.Fatal(err)
		}
		d, err := Create(dir, 1)
		if err != nil {
			t.Fatalf("after a refusal: %v", err)
		}
		if err := errors.Join(d.WriteConfig(1), d.Room(math.MaxInt64/2)); !errors.Is(err, ErrSpace) {
			t.Fatal(err)
		}
		if err := d.Discard(); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(given); err != nil || len(left) > 0 {
		t.Errorf("the folder that was there holds %v, %v", left, err)
	}
	if exists(absent) {
		t.Error("the folder that Create made is still there")
	}
}

// What lies in the folder already is part of what the run leaves there.
func TestRoomCountsWhatIsThere(t *testing.T) {
	d := create(t)
	free, ok := freeBytes(d.Path)
	if !ok {
		t.Skip("this system does not tell how much is free")
	}
	f, err := os.Create(filepath.Join(d.Path, "weights"))
	if err != nil {
		t.Fatal(err)
	}
	const sparse = 1 << 40
	if err := errors.Join(f.Truncate(sparse), f.Close()); err != nil {
		t.Fatal(err)
	}
	if err := d.Room(sparse + free/2); err != nil {
		t.Error(err)
	}
	if err := d.Room(sparse + 2*free + 1<<30); !errors.Is(err, ErrSpace) {
		t.Errorf("got %v, want %v", err, ErrSpace)
	}
}

func TestConfig(t *testing.T) {
	d := create(t)
	type settings struct{ Steps int }
	if err := d.WriteConfig(settings{7}); err != nil {
		t.Fatal(err)
	}
	var got settings
	if err := ReadConfig(d.Path, &got); err != nil || got.Steps != 7 {
		t.Errorf("read back %+v, %v", got, err)
	}
	left, _ := filepath.Glob(filepath.Join(d.Path, ".*"))
	if len(left) > 0 {
		t.Errorf("left behind %v", left)
	}
}

func TestPoint(t *testing.T) {
	line, err := json.Marshal(Point{Stage: "rl", Step: 3, Values: map[string]float64{"loss": 0.5, "kl": math.NaN(), "big": math.Inf(1)}})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"stage":"rl","step":3,"big":null,"kl":null,"loss":0.5}`; string(line) != want {
		t.Errorf("got  %s\nwant %s", line, want)
	}
	var p Point
	if err := json.Unmarshal(line, &p); err != nil {
		t.Fatal(err)
	}
	if p.Value("loss") != 0.5 || !math.IsNaN(p.Value("kl")) || !math.IsNaN(p.Value("absent")) || p.Step != 3 {
		t.Errorf("read back %+v", p)
	}
	if _, err := json.Marshal(Point{Values: map[string]float64{"step": 1}}); err == nil {
		t.Error("a metric called step was accepted")
	}
}

// A run that is cut off at any byte and resumed from a checkpoint has the files
// of one that was not.
func TestTruncate(t *testing.T) {
	play := func(d *Dir, from, to int) {
		for s := from; s < to; s++ {
			eps := []*rollout.Episode{madeUpEpisode("t", rollout.FromImagined, 1), madeUpEpisode("u", rollout.FromReal, 0.5)}
			if err := errors.Join(d.Episodes("rl", s, eps), d.Step("rl", s, map[string]float64{"loss": float64(s)})); err != nil {
				t.Fatal(err)
			}
		}
	}
	read := func(d *Dir, name string) string {
		data, err := os.ReadFile(filepath.Join(d.Path, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	whole := create(t)
	play(whole, 0, 6)
	for _, cut := range []int64{0, 1, 40, 1 << 20} {
		d := create(t)
		play(d, 0, 5)
		for _, f := range []*os.File{d.metrics, d.episodes} {
			st, _ := f.Stat()
			if err := f.Truncate(max(st.Size()-cut, st.Size()*4/5)); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Truncate(func(stage string, step int) bool { return stage == "sft" || step < 3 }); err != nil {
			t.Fatal(err)
		}
		play(d, 3, 6)
		if read(d, EpisodesFile) != read(whole, EpisodesFile) {
			t.Errorf("cut by %d: episodes differ from an uninterrupted run", cut)
		}
		if a, b := timeless(t, d), timeless(t, whole); a != b {
			t.Errorf("cut by %d: metrics differ from an uninterrupted run:\n%s\n%s", cut, a, b)
		}
	}
}

func timeless(t *testing.T, d *Dir) string {
	points, err := ReadMetrics(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, p := range points {
		p.Time = p.Time.AddDate(-p.Time.Year(), 0, 0)
		line, _ := json.Marshal(Point{Stage: p.Stage, Step: p.Step, Values: p.Values})
		b.Write(append(line, '\n'))
	}
	return b.String()
}

func TestEpisodesWhole(t *testing.T) {
	d := create(t)
	d.Labels = Labels{"rehearsed", "known domains"}
	d.Text = func(ids []int) string { return strings.Repeat("x", len(ids)) }
	eps := []*rollout.Episode{madeUpEpisode("t", rollout.FromImagined, 1), madeUpEpisode("u", rollout.FromReal, math.NaN())}
	if err := d.Episodes("rl", 4, eps); err != nil {
		t.Fatal(err)
	}
	var got []Episode
	if err := ReadEpisodes(d.Path, func(e Episode) bool { got = append(got, e); return true }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 {
		t.Fatalf("read %d episodes, want 2", len(got))
	}
	a, b := got[0], got[1]
	if a.World != Rehearsal || !a.Success || *a.Reward != 1 || a.System != "rehearsed" || a.Domain != "hotel" || a.Step != 4 {
		t.Errorf("imagined episode %+v", a)
	}
	if b.World != Real || b.Success || b.Reward != nil {
		t.Errorf("real episode without reward %+v", b)
	}
	call, reply := a.Entries[1], a.Entries[2]
	if call.Tokens != 31 || call.PromptTokens != 212 || len(call.Text) != 31 || call.Message.Thinking == "" ||
		string(call.Message.Calls[0].Arguments) != `{"name":"Ada <Lovelace>","day":"friday"}` {
		t.Errorf("call %+v", call)
	}
	if reply.Source != rollout.FromImagined || reply.Message.CallID != "call_1" || reply.Tokens != 44 {
		t.Errorf("answer %+v", reply)
	}
	if _, ok := a.Metrics["undefined"]; ok || a.Metrics["fidelity_class"] != 1 {
		t.Errorf("metrics %v", a.Metrics)
	}
}

func TestReadersNameTheLine(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(MetricsFile, "{\"stage\":\"rl\",\"step\":0}\n{\"stage\":\"rl\",\"st\n")
	if _, err := ReadMetrics(dir); err == nil || !strings.Contains(err.Error(), "metrics.jsonl: line 2") {
		t.Errorf("broken line: %v", err)
	}
	write(MetricsFile, "{\"stage\":\"rl\",\"step\":0}\n{\"stage\":\"rl\",\"st")
	if points, err := ReadMetrics(dir); err != nil || len(points) != 1 {
		t.Errorf("torn line: %v, %v", points, err)
	}
	if err := ReadEpisodes(dir, func(Episode) bool { return true }); err != nil {
		t.Errorf("no episodes: %v", err)
	}
}

func TestChoose(t *testing.T) {
	list := []Episode{
		{Task: "a", Success: true}, {Task: "b", Success: true}, {Task: "c", Success: true},
		{Task: "d", Success: false}, {Task: "e", Success: true, World: Real},
	}
	for n, want := range map[int]string{0: "", 3: "ade", 4: "adeb", 9: "adebc"} {
		got := ""
		for _, e := range Choose(list, n) {
			got += e.Task
		}
		if got != want {
			t.Errorf("Choose %d: %s, want %s", n, got, want)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 9_960: "10 kB", 1_500_000: "1.5 MB", 999_700: "1.0 MB", 3 << 40: "3.3 TB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %s, want %s", n, got, want)
		}
	}
}

// A run that cannot begin removes what it wrote, and nothing that somebody else put
// there in the meantime.
func TestDiscardSparesOthers(t *testing.T) {
	given := t.TempDir()
	absent := filepath.Join(t.TempDir(), "new")
	for _, dir := range []string{given, absent} {
		d, err := Create(dir, 1)
		if err != nil {
			t.Fatal(err)
		}
		theirs := []string{"notes.txt", "base/notes.txt", "checkpoints/mine/model", "models/x"}
		for _, name := range theirs {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte("dear"), 0o666)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(d.WriteConfig(1), os.WriteFile(filepath.Join(dir, StateFile), nil, 0o666), d.Discard()); err != nil {
			t.Fatal(err)
		}
		for _, name := range theirs {
			if !exists(filepath.Join(dir, filepath.FromSlash(name))) {
				t.Errorf("%s is lost", name)
			}
		}
		for _, name := range []string{ConfigFile, StateFile, MetricsFile, EpisodesFile} {
			if exists(filepath.Join(dir, name)) {
				t.Errorf("%s was left", name)
			}
		}
	}
}

// What a run made for itself goes with it.
func TestDiscardWhatWasMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	d, err := Create(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	d.Made("base")
	base := filepath.Join(dir, "base")
	if err := errors.Join(os.Mkdir(base, 0o777), os.WriteFile(filepath.Join(base, "model"), nil, 0o666), d.Discard()); err != nil {
		t.Fatal(err)
	}
	if exists(dir) {
		t.Error("the folder was left")
	}
}

// A line that is damaged among those to keep is no reason to lose the ones behind it:
// nothing is cut, in either file.
func TestTruncateRefusesDamage(t *testing.T) {
	before := func(stage string, step int) bool { return stage == "sft" || step < 3 }
	line := func(stage string, step int) string { return fmt.Sprintf("{\"stage\":%q,\"step\":%d}\n", stage, step) }
	good := line("sft", 9) + line("rl", 0) + line("rl", 1) + line("rl", 2)
	for _, tt := range []struct{ name, text, keep string }{ // no keep: refused
		{"whole", good, good},
		{"later steps", good + line("rl", 3) + line("test rl", 4), good},
		{"a torn end", good + `{"stage":"rl","st`, good},
		{"a torn line and a later step", good + "{\"stage\"\n" + line("rl", 4), good},
		{"zeros of a crash", good + "\x00\x00\x00\n\x00\x00", good},
		{"a damaged line in the middle", line("sft", 9) + "{\"stage\":\"rl\",\"st\n" + line("rl", 1), ""},
		{"zeros in the middle", line("sft", 9) + strings.Repeat("\x00", 30) + "\n" + line("rl", 1), ""},
		{"a damaged first line", "x\n" + line("rl", 1), ""},
		{"a foreign line in the middle", line("sft", 9) + "\n" + line("rl", 1), ""},
		{"a later step in the middle", line("sft", 9) + line("rl", 7) + line("rl", 1), ""},
	} {
		for _, name := range []string{MetricsFile, EpisodesFile} {
			d := create(t)
			for _, file := range []string{MetricsFile, EpisodesFile} {
				text := good + line("rl", 5)
				if file == name {
					text = tt.text
				}
				if err := os.WriteFile(filepath.Join(d.Path, file), []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			err := d.Truncate(before)
			for _, file := range []string{MetricsFile, EpisodesFile} {
				want := good
				switch {
				case tt.keep != "" && file == name:
					want = tt.keep
				case tt.keep == "" && file == name:
					want = tt.text
				case tt.keep == "":
					want = good + line("rl", 5)
				}
				if got, _ := os.ReadFile(filepath.Join(d.Path, file)); string(got) != want {
					t.Errorf("%s in %s: %s holds\n%q, want\n%q", tt.name, name, file, got, want)
				}
			}
			if (err == nil) != (tt.keep != "") || err != nil && !strings.Contains(err.Error(), name) {
				t.Errorf("%s in %s: %v", tt.name, name, err)
			}
		}
	}
}

// Lines that were there once and are gone are missed.
func TestLinesThatAreGone(t *testing.T) {
	d := create(t)
	if err := d.Step("rl", 0, nil); err != nil {
		t.Fatal(err)
	}
	had, err := d.Lines()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Step("rl", 1, nil), d.Has(had), d.Has(nil)); err != nil {
		t.Error(err)
	}
	if err := d.metrics.Truncate(3); err != nil {
		t.Fatal(err)
	}
	if err := d.Has(had); err == nil || !strings.Contains(err.Error(), MetricsFile) {
		t.Errorf("got %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteConfig(1); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{EpisodesFile, MetricsFile} {
		path := filepath.Join(d.Path, name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenExisting(d.Path, 0); err == nil || !strings.Contains(err.Error(), name) || exists(path) {
			t.Errorf("opened without %s: %v", name, err)
		}
	}
}
