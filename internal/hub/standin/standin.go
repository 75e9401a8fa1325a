// Package standin is a model hub for tests: the part of Hugging Face's HTTP interface
// that downloads need, with simulated network faults. Large files are on a second
// server, as on the real hub.
package standin

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Hub serves models. Its fields must be set before the first request.
type Hub struct {
	Models  map[string]map[string][]byte // "OWNER/NAME" → path → content; all of revision main
	Private map[string]string            // model → required token
	Gated   bool                         // the conditions have not been accepted

	Fault  func(r *http.Request) *Fault             // the fault of a request, or nil
	Served func(path string, content []byte) []byte // replaces the content sent, if not nil

	URL   string // of the hub
	hub   *httptest.Server
	store *httptest.Server

	mu       sync.Mutex
	requests []Request
}

// Fault is a simulated fault of a request.
type Fault struct {
	Status     int    // sent instead, if not 0
	RetryAfter string // sent along with Status
	Cut        bool   // the connection breaks after After bytes of the body
	After      int
	Silent     bool // nothing is sent after After bytes until the client disconnects
	NoRanges   bool // Range headers are ignored
}

// Request is a received request.
type Request struct {
	Method, Path, Range, Token string
	Store                      bool // it went to the second server
}

// Start starts the servers, which run until Close.
func (h *Hub) Start() {
	h.store = httptest.NewServer(http.HandlerFunc(h.serveStore))
	h.hub = httptest.NewServer(http.HandlerFunc(h.serveHub))
	h.URL = h.hub.URL
}

// Close stops both servers.
func (h *Hub) Close() {
	h.hub.CloseClientConnections()
	h.store.CloseClientConnections()
	h.hub.Close()
	h.store.Close()
}

// Requests returns the requests received so far.
func (h *Hub) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

// Commit returns the commit of a model's main branch.
func (h *Hub) Commit(id string) string {
	sum := sha1.New()
	for _, path := range slices.Sorted(maps.Keys(h.Models[id])) {
		fmt.Fprintf(sum, "%s %s\n", path, Sum(path, h.Models[id][path]))
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// large reports whether a file is on the second server.
func large(path string) bool {
	return strings.HasSuffix(path, ".safetensors") || strings.HasSuffix(path, ".gguf") || path == "tokenizer.json"
}

// Sum returns the name of a file's blob.
func Sum(path string, content []byte) string {
	if large(path) {
		return fmt.Sprintf("%x", sha256.Sum256(content))
	}
	return fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content)))
}

func (h *Hub) keep(r *http.Request, store bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests = append(h.requests, Request{r.Method, r.URL.Path, r.Header.Get("Range"), r.Header.Get("Authorization"), store})
}

func (h *Hub) serveHub(w http.ResponseWriter, r *http.Request) {
	h.keep(r, false)
	w, served := h.spoil(w, r)
	if served {
		return
	}
	if rest, ok := strings.CutPrefix(r.URL.EscapedPath(), "/api/models/"); ok {
		h.serveAPI(w, r, rest)
		return
	}
	id, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/resolve/")
	revision, path, _ := strings.Cut(rest, "/")
	if !h.allowed(w, r, id, revision) {
		return
	}
	content, ok := h.Models[id][path]
	if !ok {
		refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
		return
	}
	w.Header().Set("X-Repo-Commit", h.Commit(id))
	if !large(path) {
		w.Header().Set("ETag", `"`+Sum(path, content)+`"`)
		h.send(w, r, path, content)
		return
	}
	w.Header().Set("X-Linked-Etag", `"`+Sum(path, content)+`"`)
	w.Header().Set("X-Linked-Size", fmt.Sprint(len(content)))
	http.Redirect(w, r, h.store.URL+"/"+id+"/"+path, http.StatusFound)
}

func (h *Hub) serveAPI(w http.ResponseWriter, r *http.Request, rest string) {
	id, revision, isTree := strings.Cut(rest, "/tree/") // also requested by the official client
	if !isTree {
		id, revision, _ = strings.Cut(rest, "/revision/")
	}
	revision, _ = url.PathUnescape(revision)
	if !h.allowed(w, r, id, revision) {
		return
	}
	var answer any = h.describe(id)
	if isTree {
		answer = h.tree(id)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func (h *Hub) allowed(w http.ResponseWriter, r *http.Request, id, revision string) bool {
	switch {
	case h.Private[id] != "" && r.Header.Get("Authorization") != "Bearer "+h.Private[id]:
		refuse(w, http.StatusUnauthorized, "RepoNotFound", "Invalid username or password.")
	case h.Models[id] == nil:
		refuse(w, http.StatusNotFound, "RepoNotFound", "Repository not found")
	case h.Gated:
		refuse(w, http.StatusForbidden, "GatedRepo", "Access to this model is restricted")
	case revision != "main" && revision != h.Commit(id):
		refuse(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id")
	default:
		return true
	}
	return false
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("X-Error-Code", code)
	w.Header().Set("X-Error-Message", message)
	w.WriteHeader(status)
}

func (h *Hub) describe(id string) map[string]any {
	type sibling struct {
		Name string `json:"rfilename"`
		Size int    `json:"size"`
	}
	var files []sibling
	for _, path := range slices.Sorted(maps.Keys(h.Models[id])) {
		files = append(files, sibling{path, len(h.Models[id][path])})
	}
	return map[string]any{"id": id, "modelId": id, "sha": h.Commit(id), "private": false, "tags": []string{}, "downloads": 0, "siblings": files}
}

func (h *Hub) tree(id string) (out []map[string]any) {
	for _, path := range slices.Sorted(maps.Keys(h.Models[id])) {
		content := h.Models[id][path]
		entry := map[string]any{"type": "file", "path": path, "size": len(content), "oid": Sum("", content)}
		if large(path) {
			entry["lfs"] = map[string]any{"oid": Sum(path, content), "size": len(content), "pointerSize": 130}
		}
		out = append(out, entry)
	}
	return out
}

func (h *Hub) serveStore(w http.ResponseWriter, r *http.Request) {
	h.keep(r, true)
	w, served := h.spoil(w, r)
	if served {
		return
	}
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 3)
	h.send(w, r, parts[2], h.Models[parts[0]+"/"+parts[1]][parts[2]])
}

func (h *Hub) send(w http.ResponseWriter, r *http.Request, path string, content []byte) {
	if h.Served != nil {
		content = h.Served(path, content)
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// spoil applies the fault of r.
func (h *Hub) spoil(w http.ResponseWriter, r *http.Request) (out http.ResponseWriter, served bool) {
	if h.Fault == nil {
		return w, false
	}
	f := h.Fault(r)
	if f == nil {
		return w, false
	}
	if f.NoRanges {
		r.Header.Del("Range")
	}
	if f.Status != 0 {
		w.Header().Set("Retry-After", f.RetryAfter)
		w.WriteHeader(f.Status)
		return w, true
	}
	if f.Cut || f.Silent {
		return &cutter{ResponseWriter: w, r: r, fault: *f, left: f.After}, false
	}
	return w, false
}

// cutter truncates or stalls a body.
type cutter struct {
	http.ResponseWriter
	r     *http.Request
	fault Fault
	left  int
}

// Write passes on the part that may still be sent.
func (c *cutter) Write(b []byte) (int, error) {
	if len(b) <= c.left {
		c.left -= len(b)
		return c.ResponseWriter.Write(b)
	}
	_, _ = c.ResponseWriter.Write(b[:c.left])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	if c.fault.Silent {
		<-c.r.Context().Done()
	}
	panic(http.ErrAbortHandler)
}
