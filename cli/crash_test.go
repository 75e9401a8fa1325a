package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"envace/chat"
	"envace/internal/openai/client"
	"envace/internal/retry"
)

// A server that is killed in mid-stream leaves nothing behind on the disk. Who has
// seen a part of an answer hears that it was cut; who has not gets the answer from
// the next server, which starts at once at the same address.
func TestKilledServer(t *testing.T) {
	dir := t.TempDir()
	baseCopy(t, filepath.Join(dir, "base"))
	before := contents(t, dir)
	s := startServer(t, dir, "base", "--listen", "127.0.0.1:0", "--name", "base")
	var log, watcherLog bytes.Buffer
	c := &client.Client{BaseURL: s.base + "/v1", Model: "base", Log: &log, Retry: retry.Policy{InitialInterval: 50 * time.Millisecond, MaxAttempts: 20}}
	hi := []chat.Message{{Role: chat.User, Content: "hello"}}
	seed, ctx := uint64(7), context.Background()
	o := chat.Options{Seed: &seed, Schema: []byte(longAnswer)}
	var clients sync.WaitGroup
	defer clients.Wait()
	var waited chat.Message
	clients.Go(func() {
		var err error
		if waited, _, err = c.Complete(ctx, hi, nil, o); err != nil {
			t.Errorf("the client that waits: %v", err)
		}
	})
	underWay(t, s.base)

	watcher := &client.Client{BaseURL: c.BaseURL, Model: c.Model, Log: &watcherLog, Retry: c.Retry}
	shown := ""
	_, _, err := watcher.Stream(ctx, hi, nil, o, func(content, _ string) {
		if shown += content; len(shown) > 20 && s.cmd.ProcessState == nil {
			s.cmd.Process.Kill() //nolint:errcheck // Wait tells
			s.cmd.Wait()         //nolint:errcheck // it was killed
		}
	})
	if err == nil || !strings.Contains(err.Error(), "the stream was cut off") || !strings.Contains(err.Error(), "not retried") || strings.Count(watcherLog.String(), "\n") != 1 {
		t.Errorf("the client that watches: %v\n%s", err, watcherLog.String())
	}
	if after := contents(t, dir); !reflect.DeepEqual(after, before) {
		t.Errorf("on the disk: %v\nbefore: %v", after, before)
	}

	startServer(t, dir, "base", "--listen", strings.TrimPrefix(s.base, "http://"), "--name", "base")
	clients.Wait()
	if strings.Count(log.String(), "\n") < 2 {
		t.Errorf("the client that waits was not cut off:\n%s", log.String())
	}
	again, _, err := watcher.Complete(ctx, hi, nil, o)
	if err != nil || again.Content == "" || again.Content != waited.Content || !strings.HasPrefix(again.Content, shown) {
		t.Errorf("the second server answers %q, %v\nafter waiting %q\nthe first began %q", again.Content, err, waited.Content, shown)
	}
}

// underWay waits until the server at base samples.
func underWay(t *testing.T, base string) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(time.Millisecond) {
		resp, err := http.Get(base + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		text.ReadFrom(resp.Body) //nolint:errcheck // what lacks is not found
		resp.Body.Close()
		if strings.Contains(text.String(), "\nenvace_slots_free 31\n") {
			return
		}
	}
	t.Fatal("no response is in progress")
}

// contents is what lies below dir.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			out[path] = "a folder"
			return err
		}
		data, err := os.ReadFile(path)
		out[path] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
