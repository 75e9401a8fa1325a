package weights

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
)

// left lists what is in a folder, by name.
func left(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func wantText(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is %q, %v, want %q", path, got, err, want)
	}
}

func TestWriteAtomic(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	for _, text := range []string{"one", "two"} {
		if err := WriteAtomic(path, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
			t.Fatal(err)
		}
		wantText(t, path, text)
	}
	err := WriteAtomic(path, func(w io.Writer) error { io.WriteString(w, "half"); return syscall.ENOSPC })
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v, want that of the full disk", err)
	}
	wantError(t, err, path)
	wantText(t, path, "two")
	wantError(t, WriteAtomic(filepath.Join(path, "x"), func(io.Writer) error { return nil }), "state.json")
	if got := left(t, dir); !slices.Equal(got, []string{"state.json"}) {
		t.Errorf("left %v", got)
	}
}

func TestReplaceDir(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "deep", "checkpoint")
	fill := func(text string) func(string) error {
		return func(tmp string) error { return os.WriteFile(filepath.Join(tmp, "a"), []byte(text), 0o666) }
	}
	if err := ReplaceDir(dir, fill("one")); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "old"), "")
	if err := ReplaceDir(dir, fill("two")); err != nil {
		t.Fatal(err)
	}
	wantText(t, filepath.Join(dir, "a"), "two")

	err := ReplaceDir(dir, func(tmp string) error {
		put(t, filepath.Join(tmp, "a"), "half")
		return syscall.ENOSPC
	})
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v, want that of the full disk", err)
	}
	wantError(t, err, dir)
	wantText(t, filepath.Join(dir, "a"), "two")
	if got := left(t, dir); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the folder holds %v", got)
	}
	if got := left(t, filepath.Dir(dir)); !slices.Equal(got, []string{"checkpoint"}) {
		t.Errorf("left %v", got)
	}
}

func TestReplaceDirRefuses(t *testing.T) {
	parent := t.TempDir()
	home, file := filepath.Join(parent, "home"), filepath.Join(parent, "file")
	if err := os.MkdirAll(home, 0o777); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(home, "diary"), "dear")
	put(t, file, "")
	fill := func(tmp string) error { return os.WriteFile(filepath.Join(tmp, "a"), nil, 0o666) }
	wantError(t, ReplaceDir(home, fill), "home", "unrelated files")
	wantText(t, filepath.Join(home, "diary"), "dear")
	wantError(t, ReplaceDir(file, fill), "of that name exists")
	wantError(t, ReplaceDir(filepath.Join(file, "x"), fill), "file")
	if got := left(t, parent); !slices.Equal(got, []string{"file", "home"}) {
		t.Errorf("left %v", got)
	}
}

func TestSwapByNames(t *testing.T) {
	parent := t.TempDir()
	tmp, dir := filepath.Join(parent, "tmp"), filepath.Join(parent, "dir")
	if err := errors.Join(os.Mkdir(tmp, 0o777), os.Mkdir(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "a"), "old")
	put(t, filepath.Join(tmp, "a"), "new")
	wantError(t, swapByNames(filepath.Join(parent, "absent"), dir), "absent")
	wantText(t, filepath.Join(dir, "a"), "old")
	if err := swapByNames(tmp, dir); err != nil {
		t.Fatal(err)
	}
	wantText(t, filepath.Join(dir, "a"), "new")
	if got := left(t, parent); !slices.Equal(got, []string{"dir"}) {
		t.Errorf("left %v", got)
	}
}

// TestReplaceDirLink replaces what a link points at and keeps the link.
func TestReplaceDirLink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need privileges")
	}
	parent := t.TempDir()
	real, link := filepath.Join(parent, "real"), filepath.Join(parent, "link")
	if err := errors.Join(os.Mkdir(real, 0o777), os.Symlink(real, link)); err != nil {
		t.Fatal(err)
	}
	if err := ReplaceDir(link, func(tmp string) error { return os.WriteFile(filepath.Join(tmp, "a"), []byte("x"), 0o666) }); err != nil {
		t.Fatal(err)
	}
	wantText(t, filepath.Join(real, "a"), "x")
	if st, err := os.Lstat(link); err != nil || st.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", st, err)
	}
}

// TestLeftovers removes the unfinished folder of a killed process, and not one
// that is being written.
func TestLeftovers(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "c")
	for _, name := range []string{".c.part-0", ".c.part-1"} {
		if err := os.Mkdir(filepath.Join(parent, name), 0o777); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(parent, name, "a"), "half")
	}
	old := time.Now().Add(-2 * stale)
	for _, path := range []string{".c.part-0/a", ".c.part-0"} {
		if err := os.Chtimes(filepath.Join(parent, path), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := ReplaceDir(dir, func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got := left(t, parent); !slices.Equal(got, []string{".c.part-1", "c"}) {
		t.Errorf("left %v", got)
	}
}

func TestSaveFailsWhole(t *testing.T) {
	c := tiny(Llama)
	dir := folder(t, c, SaveOptions{Files: map[string][]byte{"tokenizer.json": []byte("{}"), "additional_chat_templates/x.jinja": []byte("x")}})
	err := Save(dir, c, func(name string) ([]float32, error) {
		x, err := get(c)(name)
		if name == "model.norm.weight" {
			x[3] = float32(math.NaN())
		}
		return x, err
	}, SaveOptions{})
	wantError(t, err, dir, "model.norm.weight", "element 3")
	err = Save(dir, c, func(string) ([]float32, error) { return nil, nil }, SaveOptions{})
	wantError(t, err, "0 elements")
	err = Save(dir, c, get(c), SaveOptions{Files: map[string][]byte{"../x": nil}})
	wantError(t, err, "outside")
	err = Save(dir, Config{}, get(c), SaveOptions{})
	wantError(t, err, "architecture")
	checkModel(t, dir, c)
	if got := left(t, filepath.Dir(dir)); !slices.Equal(got, []string{"model"}) {
		t.Errorf("left %v", got)
	}
	wantText(t, filepath.Join(dir, "tokenizer.json"), "{}")
	wantText(t, filepath.Join(dir, "additional_chat_templates", "x.jinja"), "x")
}

// Only names that ReplaceDir makes, exactly, are those of its unfinished folders.
func TestUnfinished(t *testing.T) {
	for name, of := range map[string]string{
		".rl.part-0": "rl", ".rl-6.part-12": "rl-6", ".sft.old-3": "sft", "..rl.part-0.part-1": ".rl.part-0", ".a.b.part-0": "a.b", ".x.part-1.part-9999": "x.part-1",
		"rl.part-0": "", ".rl.part-": "", ".rl.part-x": "", ".rl.part-0x": "", ".rl.part-00": "", ".rl.part-+1": "", ".rl.part-10000": "", ".rl.PART-0": "", ".rl.part-0 ": "",
		".rl.part": "", ".rl": "", ".part-0": "", "..part-0": "", ".rl.parts-0": "", ".rl.old": "", ".rl.part-0.txt": "", ".rl.part--1": "", "": "",
	} {
		got, ok := Unfinished(name)
		if got != of || ok != (of != "") {
			t.Errorf("%q is an unfinished %q, %v; want %q", name, got, ok, of)
		}
	}
}

// What is merely named like an unfinished folder is somebody's own.
func TestLeftoversSpareOthers(t *testing.T) {
	parent := t.TempDir()
	names := []string{".c.part-mine", ".c.part-0.backup", ".c.part-01", ".c.part-"}
	old := time.Now().Add(-2 * stale)
	for _, name := range names {
		path := filepath.Join(parent, name)
		if err := os.Mkdir(path, 0o777); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(path, "a"), "dear")
		if err := errors.Join(os.Chtimes(filepath.Join(path, "a"), old, old), os.Chtimes(path, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	if err := ReplaceDir(filepath.Join(parent, "c"), func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		wantText(t, filepath.Join(parent, name, "a"), "dear")
	}
}
