package weights

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// summed is a folder with a few files and their checksums.
func summed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o777); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "model"), strings.Repeat("weights ", 1000))
	put(t, filepath.Join(dir, "moments"), "m and v")
	put(t, filepath.Join(dir, "empty"), "")
	put(t, filepath.Join(dir, "sub", "text"), "hello")
	if err := WriteSums(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestVerify(t *testing.T) {
	edit := func(name string, change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, filepath.FromSlash(name))
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			put(t, path, string(change(data)))
		}
	}
	remove := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
				t.Fatal(err)
			}
		}
	}
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	half := func(b []byte) []byte { return b[:len(b)/2] }
	for _, tt := range []struct {
		name   string
		damage func(*testing.T, string)
		want   []string // "" is whole
		model  bool     // it is damage for who only reads the model, without the moments
	}{
		{"nothing", func(*testing.T, string) {}, nil, false},
		{"a file of others beside", edit("../"+"x", nil), nil, false},
		{"one bit", edit("model", flip), []string{"model is not what was written"}, true},
		{"the first byte", edit("model", func(b []byte) []byte { b[0] = 0; return b }), []string{"model is not"}, true},
		{"the last byte", edit("model", func(b []byte) []byte { b[len(b)-1]++; return b }), []string{"model is not"}, true},
		{"zeroed", edit("model", func(b []byte) []byte { clear(b[100:]); return b }), []string{"model is not"}, true},
		{"cut", edit("model", half), []string{"model is cut short: 4000 of 8000 bytes are left"}, true},
		{"emptied", edit("model", func([]byte) []byte { return nil }), []string{"0 of 8000"}, true},
		{"longer", edit("model", func(b []byte) []byte { return append(b, 'x') }), []string{"model has 8001 bytes instead of 8000"}, true},
		{"no longer empty", edit("empty", func([]byte) []byte { return []byte("x") }), []string{"empty has 1 bytes"}, true},
		{"in a folder", edit("sub/text", flip), []string{"sub/text is not"}, true},
		{"moments", edit("moments", flip), []string{"moments is not"}, false},
		{"a missing file", remove("moments"), []string{"moments is missing"}, false},
		{"a missing folder", remove("sub"), []string{"sub/text is missing"}, false},
		{"two files", func(t *testing.T, dir string) { edit("model", half)(t, dir); remove("empty")(t, dir) }, []string{"empty is missing; model is cut"}, true},
		{"a folder in its place", func(t *testing.T, dir string) { remove("model")(t, dir); os.Mkdir(filepath.Join(dir, "model"), 0o777) }, []string{"model is not a file"}, true},
		{"no checksums", func(t *testing.T, dir string) { edit("model", flip)(t, dir); remove(SumsName)(t, dir) }, nil, false},
		{"a file", remove("moments"), nil, false},
		{"no folder", remove("."), nil, false},
		{"empty checksums", edit(SumsName, func([]byte) []byte { return nil }), []string{SumsName + " cannot be read"}, true},
		{"cut checksums", edit(SumsName, half), []string{SumsName + " cannot be read"}, true},
		{"zeroed checksums", edit(SumsName, func(b []byte) []byte { clear(b); return b }), []string{SumsName + " cannot be read"}, true},
		{"no checksum", edit(SumsName, func([]byte) []byte { return []byte(`{"format":1,"files":{}}`) }), []string{"names no file"}, true},
		{"other checksums", edit(SumsName, func([]byte) []byte { return []byte(`{"format":2,"files":{}}`) }), []string{"has format 2"}, true},
		{"checksums of elsewhere", edit(SumsName, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"model"`), []byte(`"../model"`)) }), []string{"outside the folder"}, true},
		{"a changed checksum", edit(SumsName, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("8000"), []byte("8001")) }), []string{"model is cut short"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := summed(t)
			if tt.name == "a file of others beside" {
				put(t, filepath.Join(dir, "notes"), "dear")
			} else if tt.name == "a file" {
				dir = filepath.Join(dir, "model")
			} else if tt.name == "no folder" {
				dir = filepath.Join(dir, "absent")
			} else {
				tt.damage(t, dir)
			}
			err := Verify(dir)
			var damage *DamageError
			if errors.As(err, &damage) != (tt.want != nil) || (err != nil) != (tt.want != nil) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if err != nil {
				wantError(t, err, append(tt.want, dir)...)
			}
			if err := VerifyModel(dir, "moments"); (err != nil) != tt.model {
				t.Errorf("as a model: %v", err)
			}
		})
	}
}

// Any bit that flips in a small folder is noticed, in the checksums too, or harmless.
func TestVerifyEveryByte(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a"), "alpha")
	put(t, filepath.Join(dir, "b"), "beta")
	if err := WriteSums(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", SumsName} {
		path := filepath.Join(dir, name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range data {
			for bit := range 8 {
				bad := bytes.Clone(data)
				bad[i] ^= 1 << bit
				put(t, path, string(bad))
				if err := Verify(dir); err == nil && name != SumsName {
					t.Errorf("%s: bit %d of byte %d", name, bit, i)
				}
			}
		}
		for n := range len(data) - 1 {
			put(t, path, string(data[:n]))
			if Verify(dir) == nil {
				t.Errorf("%s: cut to %d bytes", name, n)
			}
		}
		put(t, path, string(data))
	}
	if err := Verify(dir); err != nil {
		t.Error(err)
	}
}

func TestUnlisted(t *testing.T) {
	dir := summed(t)
	if got := Unlisted(dir); len(got) > 0 {
		t.Errorf("%q", got)
	}
	put(t, filepath.Join(dir, "sub", "notes"), "dear")
	put(t, filepath.Join(dir, "notes"), "dear")
	if got := Unlisted(dir); !slices.Equal(got, []string{"notes", "sub/notes"}) {
		t.Errorf("%q", got)
	}
}
