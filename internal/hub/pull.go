package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"envace/internal/retry"
)

// Pulled describes a model that is complete in the cache.
type Pulled struct {
	Path   string // its folder, or the requested file
	Commit string // 40 hexadecimal digits
	Files  int
	Bytes  int64 // total size of its files
	Got    int64 // bytes downloaded by this call
}

// Pull downloads the files of n that the engine needs: configuration, tokenizer,
// templates and safetensors, or an adapter, or one GGUF file. Files already in the
// cache are not downloaded again. Find sees the model only when it is complete; an
// interrupted pull resumes where it stopped. Pulls may run concurrently.
func (h *Hub) Pull(ctx context.Context, n Name) (Pulled, error) {
	in, err := h.info(ctx, n)
	if err != nil {
		return Pulled{}, err
	}
	text, large, err := choose(n, in.names())
	if err != nil {
		return Pulled{}, err
	}
	if err := h.Cache.writable(n); err != nil {
		return Pulled{}, err
	}
	out := Pulled{Commit: in.commit}
	files, err := h.stage(ctx, n, in, "settings", text, &out)
	if err != nil {
		return Pulled{}, err
	}
	if large == nil {
		if large, err = h.listed(n, files); err != nil {
			return Pulled{}, err
		}
	}
	more, err := h.stage(ctx, n, in, "weights", large, &out)
	if err != nil {
		return Pulled{}, err
	}
	files = append(files, more...)
	if err := h.Cache.link(n, in.commit, files); err != nil {
		return Pulled{}, fmt.Errorf("model %s: %w", n, err)
	}
	out.Files = len(files)
	out.Path = filepath.Join(h.Cache.snapshot(n, in.commit), filepath.FromSlash(n.File))
	return out, nil
}

// listed returns the shards listed in the index file among files.
func (h *Hub) listed(n Name, files []file) ([]string, error) {
	for _, f := range files {
		if f.path == indexName {
			list, err := shards(h.Cache.blob(n, f.sum))
			if err != nil {
				return nil, fmt.Errorf("model %s: %w", n, err)
			}
			return list, nil
		}
	}
	return nil, fmt.Errorf("model %s: no index of the weights", n)
}

// stage downloads the given files one after the other.
func (h *Hub) stage(ctx context.Context, n Name, in info, name string, paths []string, out *Pulled) ([]file, error) {
	var files []file
	var total, there int64
	for _, path := range paths {
		if _, ok := in.sizes[path]; !ok {
			return nil, fmt.Errorf("model %s: file %q listed in the index: %w", n, path, ErrMissing)
		}
		f, err := h.head(ctx, n, in, path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		files = append(files, f)
		total, there = total+f.size, there+h.present(n, f)
	}
	if err := h.room(n, total-there); err != nil {
		return nil, err
	}
	if h.Watch != nil && len(files) > 0 {
		h.Watch.Stage(name, there, total)
	}
	var before int64
	for _, f := range files {
		at := func(have int64) {
			if h.Watch != nil {
				h.Watch.At(before+have, f.path)
			}
		}
		if err := h.blob(ctx, n, in.commit, f, at); err != nil {
			return nil, err
		}
		before += f.size
	}
	out.Bytes, out.Got = out.Bytes+total, out.Got+total-there
	return files, nil
}

// present returns the number of bytes of f already downloaded.
func (h *Hub) present(n Name, f file) int64 {
	path := h.Cache.blob(n, f.sum)
	if size(path) == f.size {
		return f.size
	}
	return min(max(0, size(path+".incomplete")), f.size)
}

// room returns ErrSpace if the disk has no room for need more bytes.
func (h *Hub) room(n Name, need int64) error {
	const spare = 16 << 20 // for folders, links and other processes
	if h.Free == nil || need == 0 {
		return nil
	}
	if free, ok := h.Free(h.Cache.repo(n)); ok && free < need+spare {
		return fmt.Errorf("model %s: %w: %.1f GB free in %s, %.1f GB needed", n, ErrSpace, float64(free)/1e9, h.Cache.Dir, float64(need)/1e9)
	}
	return nil
}

// lock locks the blob of f in the same way as Hugging Face's tools.
func (h *Hub) lock(ctx context.Context, n Name, f file) (unlock func(), err error) {
	lock, err := os.OpenFile(h.Cache.lockFile(n, f.sum), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	for told := false; ; told = true {
		err := tryLock(lock)
		if err == nil {
			return func() { lock.Close() }, nil
		}
		if !errors.Is(err, errLocked) {
			return nil, errors.Join(err, lock.Close())
		}
		if !told {
			h.note(f.path + ": waiting for another pull of the same file")
		}
		if err := retry.Sleep(ctx, 200*time.Millisecond); err != nil {
			return nil, errors.Join(err, lock.Close())
		}
	}
}

var errLocked = errors.New("locked by another process")
