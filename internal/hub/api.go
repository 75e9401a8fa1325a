package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"envace/internal/retry"
)

// file is a file of a model on the hub.
type file struct {
	path string
	sum  string // 64 digits: SHA-256 of the content; 40: git's SHA-1 of it as a blob
	size int64
}

// info describes a revision on the hub.
type info struct {
	commit string
	sizes  map[string]int64 // by path; -1 if unknown
}

// names are the paths of all files, sorted.
func (i info) names() []string {
	set := map[string]bool{}
	for name := range i.sizes {
		set[name] = true
	}
	return sorted(set)
}

// info requests the file list of n's revision.
func (h *Hub) info(ctx context.Context, n Name) (info, error) {
	var answer struct {
		SHA      string `json:"sha"`
		Siblings []struct {
			Name string `json:"rfilename"`
			Size *int64 `json:"size"`
		} `json:"siblings"`
	}
	at := h.Endpoint + "/api/models/" + n.ID() + "/revision/" + url.PathEscape(n.revision()) + "?blobs=true"
	err := h.again(ctx, func() (bool, error) {
		resp, err := h.ask(ctx, http.MethodGet, at, 0)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return false, h.refusal(n, resp)
		}
		const most = 16 << 20
		data, err := io.ReadAll(io.LimitReader(resp.Body, most))
		if err != nil {
			return false, retry.Retryable(fmt.Errorf("model %s: read file list: %w", n.ID(), err), 0)
		}
		if err := json.Unmarshal(data, &answer); err != nil {
			return false, fmt.Errorf("model %s: %s does not respond like a Hugging Face hub: %w", n.ID(), h.Endpoint, err)
		}
		return false, nil
	})
	if err != nil {
		return info{}, err
	}
	if !isCommit(answer.SHA) {
		return info{}, fmt.Errorf("model %s: %s gave %q as the commit of %s: want 40 hexadecimal digits", n.ID(), h.Endpoint, answer.SHA, n.revision())
	}
	out := info{commit: answer.SHA, sizes: map[string]int64{}}
	for _, s := range answer.Siblings {
		if out.sizes[s.Name] = -1; s.Size != nil {
			out.sizes[s.Name] = *s.Size
		}
	}
	return out, nil
}

// head requests the checksum and size of one file.
func (h *Hub) head(ctx context.Context, n Name, in info, path string) (file, error) {
	f := file{path: path, size: in.sizes[path]}
	err := h.again(ctx, func() (bool, error) {
		resp, err := h.ask(ctx, http.MethodHead, h.resolve(n, in.commit, path), 0)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		if resp.StatusCode >= 400 {
			return false, h.refusal(n, resp)
		}
		return false, f.read(resp)
	})
	if err != nil {
		return file{}, err
	}
	return f, nil
}

// read takes checksum and size from the headers. For large files, which are stored
// on another host, they are in the X-Linked headers of the hub's own response.
func (f *file) read(resp *http.Response) error {
	tag := cmp.Or(resp.Header.Get("X-Linked-Etag"), resp.Header.Get("ETag"))
	f.sum = strings.Trim(strings.TrimPrefix(tag, "W/"), `"`)
	if !hexadecimal(f.sum) || len(f.sum) != 40 && len(f.sum) != 64 {
		return fmt.Errorf("file %s: the ETag %q is not a checksum, so the file cannot be verified", f.path, tag)
	}
	if linked := resp.Header.Get("X-Linked-Size"); linked != "" {
		if _, err := fmt.Sscan(linked, &f.size); err != nil {
			return fmt.Errorf("file %s: invalid X-Linked-Size %q", f.path, linked)
		}
	} else if resp.StatusCode == http.StatusOK && resp.ContentLength >= 0 {
		f.size = resp.ContentLength
	}
	if f.size < 0 {
		return fmt.Errorf("file %s: the hub does not report its size", f.path)
	}
	return nil
}

func hexadecimal(text string) bool {
	return strings.Trim(text, "0123456789abcdef") == ""
}

// resolve returns the URL of a file.
func (h *Hub) resolve(n Name, commit, path string) string {
	return h.Endpoint + "/" + n.ID() + "/resolve/" + commit + "/" + strings.ReplaceAll(url.PathEscape(path), "%2F", "/")
}

// ask sends a request for the bytes from offset from on. A HEAD request does not
// follow redirects to another host, so that the response is the hub's own.
func (h *Hub) ask(ctx context.Context, method, at string, from int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, at, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "envace")
	req.Header.Set("Accept-Encoding", "identity") // sizes and ranges are those of the file
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	resp, err := retry.Send(h.client(method), req, h.patience())
	if err != nil {
		return nil, fmt.Errorf("hub %s: %w", req.URL.Host, err)
	}
	return resp, nil
}

// again retries on temporary errors.
func (h *Hub) again(ctx context.Context, try func() (moved bool, err error)) error {
	return retry.Policy{InitialInterval: h.Pause, OnRetry: h.note}.Do(ctx, try)
}

func (h *Hub) note(text string) {
	if h.Watch != nil {
		h.Watch.Note(text)
	}
}

func (h *Hub) patience() time.Duration {
	if h.Patience > 0 {
		return h.Patience
	}
	return time.Minute
}

// client returns a client that sends the token only to the hub's own host, whatever
// the redirects.
func (h *Hub) client(method string) *http.Client {
	base := http.DefaultTransport
	if h.HTTP != nil && h.HTTP.Transport != nil {
		base = h.HTTP.Transport
	}
	c := &http.Client{Transport: &bearer{base, h.Endpoint, h.Token}}
	if method == http.MethodHead {
		c.CheckRedirect = func(req *http.Request, via []*http.Request) error {
			if req.URL.Host != via[0].URL.Host || len(via) > 5 {
				return http.ErrUseLastResponse
			}
			return nil
		}
	}
	return c
}

// bearer adds the token to requests for one origin: scheme, host and port. (The
// standard client would also send it to another port and to subdomains.)
type bearer struct {
	base     http.RoundTripper
	endpoint string
	token    string
}

// RoundTrip sends req, with the token if it goes to the hub.
func (b *bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	own, err := url.Parse(b.endpoint)
	if err == nil && b.token != "" && req.URL.Scheme == own.Scheme && req.URL.Host == own.Host {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.base.RoundTrip(req)
}
