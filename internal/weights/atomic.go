package weights

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// WriteAtomic writes a file atomically: path holds either the old content or all
// of the new, even after a crash. On an error nothing is left behind.
func WriteAtomic(path string, write func(io.Writer) error) error {
	tmp, err := sibling(path, "part", func(name string) error {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if err != nil {
			return err
		}
		return f.Close()
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	err = writeFile(tmp, write)
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(tmp)))
	}
	return syncDir(filepath.Dir(path))
}

// writeFile writes and syncs path.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, chunk)
	err = write(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// ReplaceDir writes a folder atomically: fill writes into tmp, an empty sibling of
// dir, which is then renamed to dir. An existing folder is replaced with all its
// content, but only if it is empty or shares a file name with the new one, to
// guard against a wrong path. On an error the old folder is unchanged and nothing
// new is left behind. Of two concurrent calls for the same dir, one wins.
func ReplaceDir(dir string, fill func(tmp string) error) error {
	if err := replaceDir(dir, fill); err != nil {
		return fmt.Errorf("write folder %s: %w", dir, err)
	}
	return nil
}

func replaceDir(dir string, fill func(tmp string) error) error {
	dir, err := target(dir)
	if err != nil {
		return err
	}
	removeStale(dir)
	tmp, err := sibling(dir, "part", func(name string) error { return os.Mkdir(name, 0o777) })
	if err != nil {
		return err
	}
	if err := errors.Join(fill(tmp)); err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	if err := errors.Join(replaceable(dir, tmp), syncTree(tmp)); err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	if err := swap(tmp, dir); err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	return syncDir(filepath.Dir(dir))
}

// target resolves dir, and creates its parent. A symbolic link to a folder is kept.
func target(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real, nil
	}
	return dir, os.MkdirAll(filepath.Dir(dir), 0o777)
}

// replaceable returns an error if dir holds something that tmp should not replace.
func replaceable(dir, tmp string) error {
	st, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return errors.New("a file of that name exists: remove it or choose another name")
	}
	old, err := os.ReadDir(dir)
	if err != nil || len(old) == 0 {
		return err
	}
	for _, e := range old {
		if exists(filepath.Join(tmp, e.Name())) {
			return nil
		}
	}
	return errors.New("the folder holds unrelated files: empty it or choose another name")
}

// swap renames tmp to dir and removes the old dir.
func swap(tmp, dir string) error {
	if !exists(dir) {
		return os.Rename(tmp, dir)
	}
	if exchange(tmp, dir) == nil {
		return os.RemoveAll(tmp)
	}
	return swapByNames(tmp, dir)
}

// swapByNames is swap for systems that cannot exchange two names atomically.
// Between the two renames dir is missing; the old folder is next to it, with a
// telling name.
func swapByNames(tmp, dir string) error {
	old, err := sibling(dir, "old", func(name string) error { return os.Rename(dir, name) })
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return errors.Join(err, os.Rename(old, dir))
	}
	return os.RemoveAll(old)
}

// siblings is how many unfinished files or folders of one name there can be.
const siblings = 10_000

// Unfinished reports whether ReplaceDir calls a folder so while it writes or replaces
// one, and the name of that one.
func Unfinished(name string) (of string, ok bool) {
	name, hidden := strings.CutPrefix(name, ".")
	for _, kind := range []string{".part-", ".old-"} {
		at := strings.LastIndex(name, kind)
		if !hidden || at < 1 {
			continue
		}
		number := name[at+len(kind):]
		if n, err := strconv.Atoi(number); err == nil && strconv.Itoa(n) == number && n >= 0 && n < siblings {
			return name[:at], true
		}
	}
	return "", false
}

// sibling creates a new hidden file or folder next to path, ".NAME.KIND-N".
func sibling(path, kind string, create func(name string) error) (string, error) {
	for n := range siblings {
		name := siblingPrefix(path, kind) + strconv.Itoa(n)
		if exists(name) {
			continue
		}
		err := create(name)
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return name, err
		}
	}
	return "", fmt.Errorf("too many temporary files %s*: remove them", siblingPrefix(path, kind))
}

func siblingPrefix(path, kind string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+kind+"-")
}

// stale is the time without writes after which an unfinished folder is assumed to
// be left over from a killed process.
const stale = time.Hour

// removeStale removes abandoned unfinished folders of dir, ignoring errors.
func removeStale(dir string) {
	prefix := filepath.Base(siblingPrefix(dir, "part"))
	list, _ := os.ReadDir(filepath.Dir(dir))
	for _, e := range list {
		path := filepath.Join(filepath.Dir(dir), e.Name())
		of, ok := Unfinished(e.Name())
		if ok && of == filepath.Base(dir) && e.IsDir() && strings.HasPrefix(e.Name(), prefix) && time.Since(lastWrite(path)) > stale {
			_ = os.RemoveAll(path)
		}
	}
}

func lastWrite(dir string) time.Time {
	var last time.Time
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := e.Info(); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
		return nil
	})
	return last
}

// syncTree syncs every file and folder under dir.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			return syncDir(path)
		}
		if !e.Type().IsRegular() {
			return nil
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}
