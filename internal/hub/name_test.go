package hub

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseName(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Name
		ok   bool
	}{
		{"Qwen/Qwen3-0.6B", Name{Owner: "Qwen", Repo: "Qwen3-0.6B"}, true},
		{"a/b@main", Name{Owner: "a", Repo: "b", Revision: "main"}, true},
		{"a/b@refs/pr/1", Name{Owner: "a", Repo: "b", Revision: "refs/pr/1"}, true},
		{"a/b/c/d.gguf@v1", Name{Owner: "a", Repo: "b", File: "c/d.gguf", Revision: "v1"}, true},
		{"gpt2", Name{}, false},
		{"", Name{}, false},
		{"/a/b", Name{}, false},
		{"./a", Name{}, false},
		{"../a", Name{}, false},
		{"a/..", Name{}, false},
		{"a--b/c", Name{}, false},
		{"a/b..c", Name{}, false},
		{"a/b/../c", Name{}, false},
		{"a/b/", Name{}, false},
		{"a/b@", Name{}, false},
		{"a/b@../../x", Name{}, false},
		{"a/b@/x", Name{}, false},
		{`a/b/c\..\d`, Name{}, false},
		{"a b/c", Name{}, false},
		{"a/b\x00", Name{}, false},
	} {
		got, err := ParseName(tt.text)
		if (err == nil) != tt.ok || got != tt.want && tt.ok {
			t.Errorf("%q is %+v, %v", tt.text, got, err)
		}
		if tt.ok && got.String() != tt.text {
			t.Errorf("%q is written %q", tt.text, got)
		}
	}
}

func FuzzParseName(f *testing.F) {
	for _, s := range []string{"a/b", "a/b/c.gguf@v1", "a/b@refs/pr/1", "../a/b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseName(text)
		if err != nil {
			return
		}
		if n.String() != text {
			t.Errorf("%q is written %q", text, n)
		}
		c := Cache{filepath.FromSlash("/cache")}
		for _, path := range []string{c.repo(n), c.ref(n), filepath.Join(c.snapshot(n, "0"), n.File)} {
			if rel, err := filepath.Rel(c.Dir, path); err != nil || !filepath.IsLocal(rel) {
				t.Errorf("%q lies at %s", text, path)
			}
		}
	})
}

func TestFromEnv(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte(" hf_file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		env   map[string]string
		want  Hub
		wrong string
	}{
		{"nothing set", map[string]string{"HOME": "/h"}, Hub{Endpoint: "https://huggingface.co", Cache: Cache{"/h/.cache/huggingface/hub"}}, ""},
		{"mirror", map[string]string{"HOME": "/h", "HF_ENDPOINT": "http://mirror:8080/hf/"}, Hub{Endpoint: "http://mirror:8080/hf", Cache: Cache{"/h/.cache/huggingface/hub"}}, ""},
		{"home with its token", map[string]string{"HF_HOME": dir}, Hub{Endpoint: "https://huggingface.co", Cache: Cache{dir + "/hub"}, Token: "hf_file"}, ""},
		{"token wins over file", map[string]string{"HF_HOME": dir, "HF_TOKEN": "hf_env\n"}, Hub{Endpoint: "https://huggingface.co", Cache: Cache{dir + "/hub"}, Token: "hf_env"}, ""},
		{"token file elsewhere", map[string]string{"HOME": "/h", "HF_TOKEN_PATH": dir + "/token"}, Hub{Endpoint: "https://huggingface.co", Cache: Cache{"/h/.cache/huggingface/hub"}, Token: "hf_file"}, ""},
		{"cache", map[string]string{"HOME": "/h", "HF_HUB_CACHE": "~/models"}, Hub{Endpoint: "https://huggingface.co", Cache: Cache{"/h/models"}}, ""},
		{"XDG", map[string]string{"XDG_CACHE_HOME": "/x"}, Hub{Endpoint: "https://huggingface.co", Cache: Cache{"/x/huggingface/hub"}}, ""},
		{"bad endpoint", map[string]string{"HOME": "/h", "HF_ENDPOINT": "huggingface.co"}, Hub{}, "HF_ENDPOINT"},
		{"homeless", map[string]string{}, Hub{}, "HF_HOME"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := FromEnv(func(key string) string { return tt.env[key] })
			if tt.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wrong) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Endpoint != tt.want.Endpoint || got.Cache != tt.want.Cache || got.Token != tt.want.Token {
				t.Errorf("got %+v", got)
			}
		})
	}
}
