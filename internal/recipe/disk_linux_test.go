package recipe

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"envace/internal/oracle"
	"envace/internal/run"
)

// disk mounts a disk of its own for a test.
func disk(t *testing.T, flags uintptr) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", flags, "size=20m"); err != nil {
		oracle.Missing(t, "a small disk to fill (mount: "+err.Error()+")")
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill leaves so many bytes free on the disk that path is to lie on.
func fill(t *testing.T, path string, free int64) {
	f, err := os.Create(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	var n int64
	for block := make([]byte, 64<<10); err == nil; {
		var k int
		k, err = f.Write(block)
		n += int64(k)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	if err := f.Truncate(n - free); err != nil {
		t.Error(err)
	}
}

// A disk that fills up during a run ends the run with the reason; once there is room,
// the run continues from the last checkpoint to the same end.
func TestFullDisk(t *testing.T) {
	s := tiny(t)
	want := files(t, whole(t, s))
	for _, tt := range []struct {
		name string
		free int64
		says string
	}{{"no line fits", 0, "append to run folder: "}, {"no checkpoint fits", 64 << 10, "checkpoint: "}} {
		t.Run(tt.name, func(t *testing.T) {
			dir := disk(t, 0)
			out, filler := filepath.Join(dir, "run"), filepath.Join(dir, "filler")
			err := carryOut(t.Context(), s, out, false, &trigger{on: "sft  ", do: func() { fill(t, filler, tt.free) }})
			if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("got %v", err)
			}
			t.Log(err)
			if err := carryOut(t.Context(), s, out, true, io.Discard); !errors.Is(err, run.ErrSpace) {
				t.Fatalf("resumed on a full disk: %v", err)
			}
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			if err := carryOut(t.Context(), s, out, true, io.Discard); err != nil {
				t.Fatal(err)
			}
			same(t, files(t, out), want)
		})
	}
}

// Errors that can be foreseen are reported before anything is done.
func TestRunFolderThatWillNotDo(t *testing.T) {
	full := disk(t, 0)
	fill(t, filepath.Join(full, "filler"), 1<<20)
	for _, tt := range []struct {
		name, dir string
		want      error
	}{{"disk too full", full, run.ErrSpace}, {"disk that cannot be written", disk(t, unix.MS_RDONLY), run.ErrReadOnly}} {
		t.Run(tt.name, func(t *testing.T) {
			out := filepath.Join(tt.dir, "run")
			if err := carryOut(t.Context(), tiny(t), out, false, io.Discard); !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("the folder was left")
			}
		})
	}
}
