package hub

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"envace/internal/oracle"
)

// disk mounts a disk of its own for a test.
func disk(t *testing.T, flags uintptr, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", flags, "size="+size); err != nil {
		oracle.Missing(t, "a small disk to fill (mount: "+err.Error()+")")
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A disk that fills up under way keeps what came; once there is room, the rest is
// fetched.
func TestPullFillsTheDisk(t *testing.T) {
	_, h := start(t)
	h.Cache.Dir = disk(t, 0, "200k")
	filler := filepath.Join(h.Cache.Dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 120<<10), 0o666); err != nil {
		t.Fatal(err)
	}
	n := name(t, "acme/tiny")
	if _, err := h.Pull(t.Context(), n); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got %v", err)
	}
	if _, err := h.Cache.Find(n); !errors.Is(err, ErrNotPulled) {
		t.Errorf("found nevertheless: %v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	got, err := h.Pull(t.Context(), n)
	if err != nil || got.Got == 0 || got.Got == got.Bytes {
		t.Errorf("the rest: %+v %v", got, err)
	}
	clean(t, h.Cache)
}

func TestPullToADiskThatCannotBeWritten(t *testing.T) {
	_, h := start(t)
	h.Cache.Dir = disk(t, unix.MS_RDONLY, "200k")
	if _, err := h.Pull(t.Context(), name(t, "acme/tiny")); !errors.Is(err, ErrReadOnly) || !errors.Is(err, syscall.EROFS) {
		t.Errorf("got %v", err)
	}
}
