// Package hub downloads models by name from a server with Hugging Face's HTTP
// interface, and finds downloaded ones. It uses the same cache, in the same layout,
// as Hugging Face's own tools, so that downloads are shared.
//
// Not supported: data sets, uploads, and deduplicated transfer (Xet; the hub
// serves the same files over plain HTTP).
package hub

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Hub is a model server and the cache of downloads from it.
type Hub struct {
	Endpoint string // base URL, without a trailing slash
	Token    string // "" is anonymous
	Cache    Cache

	HTTP     *http.Client                            // only its Transport is used; nil is the default
	Free     func(dir string) (bytes int64, ok bool) // free disk space at dir; nil skips the check
	Watch    Watcher                                 // nil reports to nobody
	Patience time.Duration                           // idle timeout of a response; 0 is a minute
	Pause    time.Duration                           // before the first retry, doubled for each further one; 0 is a second
}

// Watcher receives the progress of a pull.
type Watcher interface {
	// Stage begins a part of the pull, of which from bytes of total are already there.
	Stage(name string, from, total int64)
	// At reports the bytes of the stage done and the current file. It is called for
	// every read, so often.
	At(done int64, file string)
	// Note is a message for the user, such as a wait or a retry.
	Note(text string)
}

// FromEnv returns the hub configured by the environment: HF_ENDPOINT, HF_HUB_CACHE,
// HF_HOME, XDG_CACHE_HOME, and the token in HF_TOKEN, or else in the file
// HF_TOKEN_PATH or HF_HOME/token, where Hugging Face's login stores it.
func FromEnv(getenv func(string) string) (*Hub, error) {
	endpoint := strings.TrimRight(cmp.Or(getenv("HF_ENDPOINT"), "https://huggingface.co"), "/")
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("HF_ENDPOINT is %q: want a URL such as https://huggingface.co", endpoint)
	}
	cache, err := CacheFromEnv(getenv)
	if err != nil {
		return nil, err
	}
	token, err := token(getenv)
	if err != nil {
		return nil, err
	}
	return &Hub{Endpoint: endpoint, Token: token, Cache: cache}, nil
}

// CacheFromEnv returns the cache that FromEnv uses.
func CacheFromEnv(getenv func(string) string) (Cache, error) {
	if dir := cmp.Or(getenv("HF_HUB_CACHE"), getenv("HUGGINGFACE_HUB_CACHE")); dir != "" {
		return Cache{expand(dir, getenv)}, nil
	}
	home, err := home(getenv)
	return Cache{filepath.Join(home, "hub")}, err
}

func home(getenv func(string) string) (string, error) {
	if dir := getenv("HF_HOME"); dir != "" {
		return expand(dir, getenv), nil
	}
	if dir := getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(expand(dir, getenv), "huggingface"), nil
	}
	user := cmp.Or(getenv("HOME"), getenv("USERPROFILE"))
	if user == "" {
		return "", errors.New("model cache: neither HF_HOME nor HOME is set: set HF_HOME to the folder for models")
	}
	return filepath.Join(user, ".cache", "huggingface"), nil
}

func token(getenv func(string) string) (string, error) {
	if t := cmp.Or(getenv("HF_TOKEN"), getenv("HUGGING_FACE_HUB_TOKEN")); strings.TrimSpace(t) != "" {
		return strings.TrimSpace(t), nil
	}
	path := expand(getenv("HF_TOKEN_PATH"), getenv)
	if path == "" {
		dir, err := home(getenv)
		if err != nil {
			return "", err
		}
		path = filepath.Join(dir, "token")
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("token file: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// expand replaces ~ and variables in a path, as Hugging Face's tools do.
func expand(path string, getenv func(string) string) string {
	path = os.Expand(path, getenv)
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
		return getenv("HOME") + rest
	}
	return path
}
