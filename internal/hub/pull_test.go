package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"envace/internal/hub/standin"
	"envace/internal/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// random are n bytes that do not repeat.
func random(n int) []byte {
	r := rand.New(rand.NewPCG(7, uint64(n)))
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

// models are what the stand-in holds.
func models() map[string]map[string][]byte {
	return map[string]map[string][]byte{
		"acme/tiny": {
			"config.json": []byte("{}"), "tokenizer.json": random(3000), "chat_template.jinja": []byte("{{ x }}"),
			"additional_chat_templates/tools.jinja": []byte("{{ y }}"), "README.md": []byte("no"), "pytorch_model.bin": []byte("no"),
			"model.safetensors": random(100_000), "onnx/model.onnx": []byte("no"), ".gitattributes": []byte("no"),
		},
		"acme/shards": {
			"config.json":                      []byte("{ }"),
			"model.safetensors.index.json":     []byte(`{"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors","c":"model-00001-of-00002.safetensors"}}`),
			"model-00001-of-00002.safetensors": random(5000), "model-00002-of-00002.safetensors": random(6000), "other.safetensors": []byte("no"),
		},
		"acme/evil": {
			"config.json": []byte("{}"), "model.safetensors.index.json": []byte(`{"weight_map":{"a":"../../../../outside"}}`), "../../../../outside": []byte("x"),
		},
		"acme/gguf":    {"q4.gguf": random(4000), "q8.gguf": random(8000), "README.md": []byte("no")},
		"acme/one":     {"model.gguf": random(4001)},
		"acme/adapter": {"adapter_config.json": []byte(`{"base_model_name_or_path":"acme/tiny"}`), "adapter_model.safetensors": random(99), "tokenizer.json": []byte("{}")},
		"acme/pickle":  {"config.json": []byte("{}"), "pytorch_model.bin": []byte("no")},
		"acme/empty":   {"config.json": []byte("{}"), "model.safetensors": {}},
	}
}

// start runs a stand-in and a Hub that knows it.
func start(t *testing.T) (*standin.Hub, *Hub) {
	t.Helper()
	s := &standin.Hub{Models: models()}
	s.Start()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(func() { transport.CloseIdleConnections(); s.Close() })
	return s, &Hub{Endpoint: s.URL, Cache: Cache{t.TempDir()}, HTTP: &http.Client{Transport: transport}, Pause: time.Millisecond}
}

func name(t *testing.T, text string) Name {
	t.Helper()
	n, err := ParseName(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// content reads a folder of links.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPull(t *testing.T) {
	for _, tt := range []struct {
		name string
		want []string
	}{
		{"acme/tiny", []string{"additional_chat_templates/tools.jinja", "chat_template.jinja", "config.json", "model.safetensors", "tokenizer.json"}},
		{"acme/shards", []string{"config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"}},
		{"acme/one", []string{"model.gguf"}},
		{"acme/adapter", []string{"adapter_config.json", "adapter_model.safetensors"}},
		{"acme/empty", []string{"config.json", "model.safetensors"}},
		{"acme/gguf/q4.gguf", []string{"q4.gguf"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, h := start(t)
			n := name(t, tt.name)
			if _, err := h.Cache.Find(n); !errors.Is(err, ErrNotPulled) {
				t.Fatalf("found before it was pulled: %v", err)
			}
			got, err := h.Pull(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			dir := h.Cache.snapshot(n, s.Commit(n.ID()))
			have := content(t, dir)
			if names := slices.Sorted(maps.Keys(have)); !slices.Equal(names, tt.want) {
				t.Errorf("pulled %q, want %q", names, tt.want)
			}
			for path, text := range have {
				if text != string(s.Models[n.ID()][path]) {
					t.Errorf("%s differs", path)
				}
				if link, err := os.Readlink(filepath.Join(dir, path)); err != nil || filepath.IsAbs(link) {
					t.Errorf("%s is no relative link: %q %v", path, link, err)
				}
			}
			found, err := h.Cache.Find(n)
			if err != nil || found != got.Path {
				t.Errorf("found %q (%v), pulled to %q", found, err, got.Path)
			}
			again, err := h.Pull(t.Context(), n)
			if err != nil || again.Got != 0 || again.Path != got.Path || again.Bytes != got.Bytes {
				t.Errorf("a second pull: %+v %v, the first %+v", again, err, got)
			}
			clean(t, h.Cache)
		})
	}
}

// clean fails if anything unfinished is left.
func clean(t *testing.T, c Cache) {
	t.Helper()
	_ = filepath.WalkDir(c.Dir, func(path string, d os.DirEntry, err error) error {
		if base := filepath.Base(path); err != nil || strings.HasSuffix(base, ".incomplete") || strings.HasPrefix(base, ".probe") || strings.HasPrefix(base, ".link") {
			t.Errorf("left over: %s %v", path, err)
		}
		return nil
	})
}

func TestPullCommit(t *testing.T) {
	s, h := start(t)
	n := name(t, "acme/tiny@"+s.Commit("acme/tiny"))
	if _, err := h.Pull(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Cache.Find(n); err != nil {
		t.Error(err)
	}
	if _, err := h.Cache.Find(name(t, "acme/tiny")); !errors.Is(err, ErrNotPulled) {
		t.Errorf("a commit was taken for main: %v", err)
	}
}

func TestPullRefuses(t *testing.T) {
	for _, tt := range []struct {
		name    string
		model   string
		prepare func(*standin.Hub, *Hub)
		want    error
		says    string
	}{
		{"no such model", "acme/none", nil, ErrMissing, "model acme/none at http"},
		{"no such revision", "acme/tiny@v9", nil, ErrMissing, `revision "v9"`},
		{"no such file", "acme/gguf/q5.gguf", nil, ErrMissing, "q4.gguf, q8.gguf"},
		{"several files", "acme/gguf", nil, ErrManyFiles, "q4.gguf, q8.gguf"},
		{"no safetensors", "acme/pickle", nil, nil, "neither config.json with safetensors nor a GGUF file"},
		{"no token", "acme/tiny", func(s *standin.Hub, h *Hub) { s.Private = private("right") }, ErrDenied, "or private"},
		{"wrong token", "acme/tiny", func(s *standin.Hub, h *Hub) { s.Private, h.Token = private("right"), "hf_wrong" }, ErrDenied, "token rejected"},
		{"gated", "acme/tiny", func(s *standin.Hub, h *Hub) { s.Gated = true }, ErrGated, "/acme/tiny"},
		{"paths that leave the folder", "acme/evil", nil, nil, "outside the folder"},
		{"too little disk", "acme/tiny", func(s *standin.Hub, h *Hub) { h.Free = func(string) (int64, bool) { return 1000, true } }, ErrSpace, "GB needed"},
		{"always busy", "acme/tiny", always(&standin.Fault{Status: 503}), nil, "(after 6 attempts)"},
		{"busy for an hour", "acme/tiny", always(&standin.Fault{Status: 429, RetryAfter: "3600"}), nil, "asks to retry after 1h0m0s"},
		{"not a hub", "acme/tiny", func(s *standin.Hub, h *Hub) { h.Endpoint += "/elsewhere" }, ErrMissing, ""},
		{"wrong checksum", "acme/tiny", func(s *standin.Hub, h *Hub) { s.Served = flip("model.safetensors") }, ErrChecksum, "model.safetensors"},
		{"wrong checksum of a small file", "acme/tiny", func(s *standin.Hub, h *Hub) { s.Served = flip("config.json") }, ErrChecksum, "config.json"},
		{"longer than announced", "acme/tiny", func(s *standin.Hub, h *Hub) {
			s.Served = func(path string, b []byte) []byte {
				return append(bytes.Clone(b), make([]byte, len(b)*boolean(path == "model.safetensors"))...)
			}
		}, nil, "more than the announced 100000 bytes"},
		{"silent", "acme/tiny", func(s *standin.Hub, h *Hub) {
			h.Patience = 20 * time.Millisecond
			s.Fault = func(r *http.Request) *standin.Fault { return &standin.Fault{Silent: true} }
		}, retry.ErrIdleTimeout, "after 6 attempts"},
		{"nobody there", "acme/tiny", func(s *standin.Hub, h *Hub) { h.Endpoint = "http://127.0.0.1:1" }, nil, "(after 6 attempts)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, h := start(t)
			if tt.prepare != nil {
				tt.prepare(s, h)
			}
			n := name(t, tt.model)
			_, err := h.Pull(t.Context(), n)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("got %v, want %v saying %q", err, tt.want, tt.says)
			}
			t.Log(err)
			if strings.Contains(err.Error(), "hf_wrong") {
				t.Error("the error tells the token")
			}
			if _, err := h.Cache.Find(n); !errors.Is(err, ErrNotPulled) {
				t.Errorf("found nevertheless: %v", err)
			}
			if exists(filepath.Join(filepath.Dir(h.Cache.Dir), "outside")) {
				t.Error("wrote outside the cache")
			}
		})
	}
}

func always(f *standin.Fault) func(*standin.Hub, *Hub) {
	return func(s *standin.Hub, _ *Hub) { s.Fault = func(*http.Request) *standin.Fault { return f } }
}

func private(token string) map[string]string { return map[string]string{"acme/tiny": token} }

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// flip spoils a byte of one file.
func flip(which string) func(string, []byte) []byte {
	return func(path string, b []byte) []byte {
		if b = bytes.Clone(b); path == which {
			b[len(b)/2] ^= 1
		}
		return b
	}
}

// A download that is cut again and again, at any byte, ends with the right files,
// and what was there is not asked for again.
func TestPullGoesOnAfterCuts(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s, h := start(t)
			var mu sync.Mutex
			r := rand.New(rand.NewPCG(seed, 1))
			s.Fault = func(req *http.Request) *standin.Fault {
				mu.Lock()
				defer mu.Unlock()
				if req.Method != http.MethodGet {
					return nil
				}
				switch r.IntN(8) {
				case 0:
					return nil
				case 1:
					return &standin.Fault{Status: 500 + r.IntN(4)}
				case 2:
					return &standin.Fault{Status: 429, RetryAfter: "0.002"}
				}
				return &standin.Fault{Cut: true, After: r.IntN(50_000), NoRanges: r.IntN(10) == 0}
			}
			n := name(t, "acme/tiny")
			var err error
			for range 20 { // each call goes on where the last gave up
				if _, err = h.Pull(t.Context(), n); err == nil {
					break
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			path, err := h.Cache.Find(n)
			if err != nil {
				t.Fatal(err)
			}
			for file, text := range content(t, path) {
				if text != string(s.Models["acme/tiny"][file]) {
					t.Errorf("%s differs", file)
				}
			}
			clean(t, h.Cache)
		})
	}
}

func TestPullTakesUpWhatIsThere(t *testing.T) {
	whole := models()["acme/tiny"]["model.safetensors"]
	for _, tt := range []struct {
		name  string
		there []byte
		asks  string
	}{
		{"half", whole[:50_000], "bytes=50000-"},
		{"all", whole, "none"},
		{"something else", random(777), ""},
		{"too much", append(bytes.Clone(whole), 1), ""},
		{"all of it wrong", make([]byte, len(whole)), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, h := start(t)
			n := name(t, "acme/tiny")
			blob := h.Cache.blob(n, standin.Sum("model.safetensors", whole))
			if err := errors.Join(os.MkdirAll(filepath.Dir(blob), 0o777), os.WriteFile(blob+".incomplete", tt.there, 0o666)); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Pull(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			last := "none"
			for _, r := range s.Requests() {
				if r.Store && strings.HasSuffix(r.Path, "model.safetensors") {
					last = r.Range
				}
			}
			if last != tt.asks {
				t.Errorf("asked last for %q, want %q", last, tt.asks)
			}
			clean(t, h.Cache)
		})
	}
}

// The store knows what a token is worth: it must not see it.
func TestTokenGoesToTheHubAlone(t *testing.T) {
	s, h := start(t)
	s.Private, h.Token = private("hf_secret"), "hf_secret"
	if _, err := h.Pull(t.Context(), name(t, "acme/tiny")); err != nil {
		t.Fatal(err)
	}
	stored := 0
	for _, r := range s.Requests() {
		switch {
		case r.Store && r.Token != "":
			t.Errorf("the store got %q", r.Token)
		case !r.Store && r.Token != "Bearer hf_secret":
			t.Errorf("the hub got %q for %s", r.Token, r.Path)
		}
		stored += boolean(r.Store)
	}
	if stored == 0 {
		t.Error("nothing came from the store")
	}
}

func TestPullsAtOnce(t *testing.T) {
	s, h := start(t)
	var group sync.WaitGroup
	var got [6]Pulled
	var errs [6]error
	for i := range got {
		mine := *h // as other processes would have
		group.Go(func() { got[i], errs[i] = mine.Pull(t.Context(), name(t, "acme/tiny")) })
	}
	group.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	fetched := map[string]int{}
	for _, r := range s.Requests() {
		if r.Store {
			fetched[r.Path]++
		}
	}
	for path, n := range fetched {
		if n != 1 {
			t.Errorf("%s was fetched %d times", path, n)
		}
	}
	clean(t, h.Cache)
}

func TestPullIsInterrupted(t *testing.T) {
	s, h := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.Fault = func(r *http.Request) *standin.Fault {
		if strings.HasSuffix(r.URL.Path, "model.safetensors") && r.Method == http.MethodGet {
			time.AfterFunc(50*time.Millisecond, cancel)
			return &standin.Fault{Silent: true, After: 40_000}
		}
		return nil
	}
	if _, err := h.Pull(ctx, name(t, "acme/tiny")); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	s.Fault = nil
	got, err := h.Pull(t.Context(), name(t, "acme/tiny"))
	if err != nil || got.Got != 60_000 {
		t.Errorf("the rest: %+v %v", got, err)
	}
}

func TestCacheThatCannotBeWritten(t *testing.T) {
	_, h := start(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	h.Cache.Dir = filepath.Join(file, "hub")
	if _, err := h.Pull(t.Context(), name(t, "acme/tiny")); !errors.Is(err, ErrReadOnly) {
		t.Errorf("got %v", err)
	}
}

// A snapshot that another tool left with some files only is told from a whole one.
func TestFindWantsAllOfIt(t *testing.T) {
	_, h := start(t)
	n := name(t, "acme/shards")
	got, err := h.Pull(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	const first, second = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
	for _, files := range [][]string{{second}, {"config.json"}, {first, second}, {first, second, "config.json"}} {
		for _, file := range files {
			path := filepath.Join(got.Path, file)
			if err := os.Rename(path, path+".aside"); err != nil {
				t.Fatal(err)
			}
		}
		_, err := h.Cache.Find(n)
		for _, file := range files {
			if !errors.Is(err, ErrNotPulled) || !strings.Contains(err.Error(), file) {
				t.Errorf("without %s: %v", files, err)
			}
			path := filepath.Join(got.Path, file)
			if err := os.Rename(path+".aside", path); err != nil {
				t.Fatal(err)
			}
		}
	}
}
