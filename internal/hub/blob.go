package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"strings"

	"envace/internal/retry"
)

// partial is a blob being downloaded, with the checksum of the bytes so far. The
// bytes are in BLOB.incomplete, from which a later process can resume.
type partial struct {
	want   file
	f      *os.File
	sum    hash.Hash
	n      int64 // bytes downloaded
	broken error // disk error
	at     func(n int64)
}

// openPartial resumes from what an earlier attempt left.
func openPartial(path string, want file, at func(int64)) (*partial, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	p := &partial{want: want, f: f, at: at}
	p.start()
	p.n, err = io.Copy(p.sum, f)
	if err == nil && p.n > want.size {
		err = p.restart()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	p.at(p.n)
	return p, nil
}

// start begins the checksum.
func (p *partial) start() {
	if p.sum = sha256.New(); len(p.want.sum) == 40 {
		p.sum = sha1.New()
		fmt.Fprintf(p.sum, "blob %d\x00", p.want.size)
	}
}

// restart discards the bytes downloaded so far.
func (p *partial) restart() error {
	p.start()
	p.n = 0
	p.at(0)
	if err := p.f.Truncate(0); err != nil {
		return err
	}
	_, err := p.f.Seek(0, io.SeekStart)
	return err
}

// Write adds to the file and its checksum.
func (p *partial) Write(b []byte) (int, error) {
	n, err := p.f.Write(b)
	p.sum.Write(b[:n])
	p.n += int64(n)
	p.at(p.n)
	p.broken = err
	return n, err
}

func (p *partial) whole() bool { return p.n == p.want.size }

func (p *partial) right() bool { return hex.EncodeToString(p.sum.Sum(nil)) == p.want.sum }

// blob downloads f unless it is in the cache, holding a lock.
func (h *Hub) blob(ctx context.Context, n Name, commit string, f file, at func(int64)) error {
	final := h.Cache.blob(n, f.sum)
	if size(final) == f.size {
		at(f.size)
		return nil
	}
	unlock, err := h.lock(ctx, n, f)
	if err != nil {
		return err
	}
	defer unlock()
	if size(final) == f.size {
		at(f.size)
		return nil
	}
	p, err := openPartial(final+".incomplete", f, at)
	if err != nil {
		return err
	}
	if err := h.fill(ctx, n, commit, p); err != nil {
		return errors.Join(err, p.f.Close())
	}
	if err := errors.Join(p.f.Sync(), p.f.Close()); err != nil {
		return err
	}
	return os.Rename(final+".incomplete", final)
}

// fill completes p and verifies its checksum. If p was resumed and the checksum is
// wrong, fill downloads the whole file once more.
func (h *Hub) fill(ctx context.Context, n Name, commit string, p *partial) error {
	for resumed := p.n > 0; ; resumed = false {
		err := h.again(ctx, func() (bool, error) {
			before := p.n
			err := h.more(ctx, n, commit, p)
			return p.n > before, err
		})
		if err != nil || p.right() {
			return err
		}
		got := hex.EncodeToString(p.sum.Sum(nil))
		if err := p.restart(); err != nil {
			return err
		}
		if !resumed {
			return fmt.Errorf("file %s of model %s: %w: got %s, want %s: the file is modified in transit, or the hub's copy is corrupt",
				p.want.path, n.ID(), ErrChecksum, got, p.want.sum)
		}
		h.note(p.want.path + ": checksum mismatch in the partial download; starting over")
	}
}

// more sends one request for the missing bytes.
func (h *Hub) more(ctx context.Context, n Name, commit string, p *partial) error {
	if p.whole() {
		return nil
	}
	resp, err := h.ask(ctx, http.MethodGet, h.resolve(n, commit, p.want.path), p.n)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := h.begin(n, p, resp); err != nil {
		return err
	}
	_, err = io.CopyBuffer(p, io.LimitReader(resp.Body, p.want.size-p.n+1), make([]byte, 256<<10))
	switch {
	case p.broken != nil:
		return fmt.Errorf("file %s: %w", p.want.path, p.broken)
	case p.n > p.want.size:
		return errors.Join(fmt.Errorf("file %s: %s sent more than the announced %d bytes", p.want.path, resp.Request.URL.Host, p.want.size), p.restart())
	case !p.whole():
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return retry.Retryable(fmt.Errorf("file %s: connection lost after %d of %d bytes: %w", p.want.path, p.n, p.want.size, err), 0)
	}
	return nil
}

// begin prepares p for the response: the missing range, or, if the server does not
// support ranges, the whole file.
func (h *Hub) begin(n Name, p *partial, resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusOK:
		if p.n > 0 {
			if err := p.restart(); err != nil {
				return err
			}
		}
	case http.StatusPartialContent:
		if want := fmt.Sprintf("bytes %d-", p.n); !strings.HasPrefix(resp.Header.Get("Content-Range"), want) {
			return errors.Join(fmt.Errorf("file %s: requested %s, got Content-Range %q", p.want.path, want, resp.Header.Get("Content-Range")), p.restart())
		}
	case http.StatusRequestedRangeNotSatisfiable:
		return errors.Join(retry.Retryable(fmt.Errorf("file %s: the server has no bytes after offset %d", p.want.path, p.n), 0), p.restart())
	default:
		return h.refusal(n, resp)
	}
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return fmt.Errorf("file %s: %s sent an unrequested Content-Encoding %s", p.want.path, resp.Request.URL.Host, enc)
	}
	return nil
}

// size returns the size of a file, -1 if it does not exist.
func size(path string) int64 {
	st, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return st.Size()
}
