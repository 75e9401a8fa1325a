package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The server's settings. Few slots, so that requests wait and are refused; a cache
// that is full before the server is weighed.
const (
	served = "soaked"
	slots  = "8"
	queue  = "8"
	cached = "20000"
)

// server is envace serve as a process.
type server struct {
	cmd    *exec.Cmd
	base   string
	last   figures
	folder string
	lines  *bufio.Reader
	mu     sync.Mutex
	errors bytes.Buffer
}

// Write keeps what the server complains of.
func (s *server) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.errors.Write(p)
}

func (s *server) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.errors.String()
}

// confess makes a server that has done something wrong tell what its goroutines are
// at, and ends it. What it said is written to a file, whose name is returned.
func (s *server) confess() string {
	s.cmd.Process.Signal(syscall.SIGQUIT) //nolint:errcheck // it may have ended
	s.cmd.Wait()                          //nolint:errcheck // it ends with an error
	path := filepath.Join(os.TempDir(), fmt.Sprintf("soak-%d.txt", os.Getpid()))
	if err := os.WriteFile(path, []byte(s.said()), 0o600); err != nil {
		return err.Error()
	}
	return path
}

// start builds the program, unless one is given, and runs it.
func start(ctx context.Context, o options) (*server, error) {
	folder, err := os.MkdirTemp("", "soak-")
	if err != nil {
		return nil, err
	}
	s := &server{folder: folder}
	program := o.envace
	if program == "" {
		program = filepath.Join(folder, "envace")
		build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/envace")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build envace in the folder of the source: %w\n%s", err, out)
		}
	}
	s.cmd = exec.Command(program, "serve", o.model, "--name", served, "--listen", "127.0.0.1:0", "--slots", slots, "--queue", queue, "--cache-tokens", cached)
	s.cmd.Stderr = s
	pipe, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	s.lines = bufio.NewReader(pipe)
	line, err := s.lines.ReadString('\n')
	base, ok := strings.CutPrefix(strings.TrimSpace(line), "serving at ")
	if !ok {
		s.kill()
		return nil, fmt.Errorf("start the server: it said %q (%v)\n%s", line, err, s.said())
	}
	s.base = base
	return s, nil
}

// kill ends the process, if it has not ended.
func (s *server) kill() {
	s.cmd.Process.Kill()   //nolint:errcheck // it has ended
	s.cmd.Wait()           //nolint:errcheck // the same
	os.RemoveAll(s.folder) //nolint:errcheck // a folder for files of the moment
}

// figures are what a server that leaks has more and more of.
type figures struct {
	memory     int // bytes that lie in memory
	files      int // open
	goroutines int
	active     int // requests under way
}

// String writes the figures for people.
func (f figures) String() string {
	return fmt.Sprintf("%d MiB, %d files, %d goroutines", f.memory>>20, f.files, f.goroutines)
}

// grown says what is more than it may be after before, a time at rest like this one.
func (f figures) grown(before figures) error {
	const few = 4
	switch {
	case f.memory > before.memory*5/4+64<<20:
		return fmt.Errorf("memory has grown beyond a quarter and 64 MiB: %v, before %v", f, before)
	case f.files > before.files+few:
		return fmt.Errorf("open files have grown by more than %d: %v, before %v", few, f, before)
	case f.goroutines > before.goroutines+few:
		return fmt.Errorf("goroutines have grown by more than %d: %v, before %v", few, f, before)
	}
	return nil
}

// weigh measures the server.
func (s *server) weigh() (f figures, err error) {
	proc := filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid))
	status, err := os.ReadFile(filepath.Join(proc, "statm"))
	if err != nil {
		return f, err
	}
	if parts := strings.Fields(string(status)); len(parts) > 1 {
		pages, _ := strconv.Atoi(parts[1])
		f.memory = pages * os.Getpagesize()
	}
	open, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		return f, err
	}
	f.files = len(open)
	client := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(s.base + "/metrics")
	if err != nil {
		return f, fmt.Errorf("metrics: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return f, fmt.Errorf("metrics: %s (%v)", resp.Status, err)
	}
	for line := range strings.Lines(string(text)) {
		for name, to := range map[string]*int{"envace_goroutines ": &f.goroutines, "envace_requests_active ": &f.active} {
			if value, ok := strings.CutPrefix(line, name); ok {
				*to, _ = strconv.Atoi(strings.TrimSpace(value))
			}
		}
	}
	if f.goroutines == 0 || f.active == 0 { // the request for the metrics is one
		return f, errors.New("metrics lack goroutines or requests")
	}
	return f, nil
}

// atRest weighs the server once nothing is under way, which must be soon after the
// last client has gone.
func (s *server) atRest(ctx context.Context) (figures, error) {
	const soon = 10 * time.Second
	began, lingering := time.Now(), time.Second // Go keeps broken connections for half of that
	for {
		select {
		case <-time.After(lingering):
		case <-ctx.Done():
			return figures{}, ctx.Err()
		}
		f, err := s.weigh()
		if err != nil {
			return f, err
		}
		if f.active == 1 {
			s.last = f
			return f, nil
		}
		if time.Since(began) > soon {
			return f, fmt.Errorf("all clients went %v ago, and %d requests are still under way", soon, f.active-1)
		}
	}
}

// stop asks the process to end, and waits until it has.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	rest, _ := io.ReadAll(s.lines)
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("the server ends with %w", err)
	}
	if string(rest) != "stopped\n" {
		return fmt.Errorf("the server said %q in the end", rest)
	}
	return nil
}
