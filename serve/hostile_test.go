package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"envace/internal/openai"
	"envace/render"

	"go.uber.org/goleak"
)

// smallBuffers is a listener whose connections have small send buffers.
type smallBuffers struct{ net.Listener }

func (n smallBuffers) Accept() (net.Conn, error) {
	conn, err := n.Listener.Accept()
	if err == nil {
		conn.(*net.TCPConn).SetWriteBuffer(8 << 10) //nolint:errcheck // it makes the test sharper, no more
	}
	return conn, err
}

// startServer serves p like envace serve, with short timeouts, and returns the address.
func startServer(t *testing.T, p *fakeSampler, change func(*Options)) (addr string, h *Handler) {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	o := Options{Name: "m", Chat: p.chat, Sampler: p, Window: 1 << 20, Timeouts: Timeouts{time.Second, 300 * time.Millisecond, 300 * time.Millisecond, time.Minute}}
	if change != nil {
		change(&o)
	}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := h.Server(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(smallBuffers{l}) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		server.Close()
		<-ended
		eventually(t, "no goroutine is left", func() bool { return goleak.Find(leaks) == nil }) // Go lets broken connections linger
	})
	return l.Addr().String(), h
}

// send opens a connection and sends text.
func send(t *testing.T, addr, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.(*net.TCPConn).SetReadBuffer(4 << 10) //nolint:errcheck // it makes the test sharper, no more
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

func rawChatRequest(body string) string {
	return fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// eventually waits until so returns true, and returns how long that took.
func eventually(t *testing.T, what string, so func() bool) time.Duration {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		switch took := time.Since(began); {
		case so():
			return took
		case took > 10*time.Second:
			t.Fatalf("after %v, still not: %s", took, what)
		}
	}
}

func free(h *Handler) int {
	h.admission.mu.Lock()
	defer h.admission.mu.Unlock()
	return h.admission.free
}

// large makes a response larger than the socket buffers.
const large = `,"logprobs":true,"top_logprobs":20,"return_token_ids":true,"n":2`

// A client that does not read, or reads too slowly, loses its slots, and others are served
func TestSlowReaders(t *testing.T) {
	byteWise := func(conn net.Conn) {
		var b [1]byte
		for err := error(nil); err == nil; time.Sleep(time.Millisecond) {
			_, err = conn.Read(b[:])
		}
	}
	for _, tt := range []struct {
		name, extra string
		pace        time.Duration
		read        func(net.Conn)
	}{
		{"a stream, never read", large + `,"stream":true`, 0, nil},
		{"a stream with time between tokens, never read", large + `,"stream":true`, time.Millisecond, nil},
		{"a stream, a byte at a time", large + `,"stream":true`, time.Millisecond, byteWise},
		{"a body, never read", large, 0, nil},
		{"a body, a byte at a time", large, 0, byteWise},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newFakeSampler(baseChat(t))
			p.text, p.pace = strings.Repeat("word ", 80), tt.pace
			addr, h := startServer(t, p, func(o *Options) { o.Slots = 3 })
			conn := send(t, addr, rawChatRequest(ask(tt.extra)))
			eventually(t, "the answers are under way", func() bool { return free(h) == 1 })
			var reading sync.WaitGroup
			if tt.read != nil {
				reading.Go(func() { tt.read(conn) })
			}
			began := time.Now()
			if status, answer := post(t, "http://"+addr+"/v1/chat/completions", ask(`,"max_tokens":2`)); status != 200 {
				t.Errorf("another client: %d %s", status, answer)
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("another client is answered after %v", took)
			}
			if took := eventually(t, "the slots are free", func() bool { return free(h) == 3 }); took > 3*time.Second {
				t.Errorf("the slots are free after %v", took)
			}
			eventually(t, "no answer is being sampled", func() bool { return p.active.Load() == 0 })
			conn.Close()
			reading.Wait()
		})
	}
}

// A slow client that keeps up gets the whole response. The time that one response was
// blocked does not count for the next.
func TestSteadyReader(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	p.text, p.pace = strings.Repeat("word ", 20), 5*time.Millisecond
	addr, _ := startServer(t, p, nil)
	body := ask(`,"stream":true`)
	conn := send(t, addr, rawChatRequest(body))
	for range 2 {
		var got strings.Builder
		var b [1]byte
		for !strings.HasSuffix(got.String(), "0\r\n\r\n") {
			if _, err := conn.Read(b[:]); err != nil {
				t.Fatalf("%v after %d bytes", err, got.Len())
			}
			got.Write(b[:])
		}
		if !strings.Contains(got.String(), "[DONE]") {
			t.Errorf("%q", got.String())
		}
		time.Sleep(500 * time.Millisecond) // for longer than the bounds on bodies and reading
		if _, err := io.WriteString(conn, rawChatRequest(body)); err != nil {
			t.Fatal(err)
		}
	}
}

// Five hundred half-open connections block nobody, and are closed by the timeouts.
func TestHalfOpenConnections(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	p.text = "ok"
	addr, h := startServer(t, p, func(o *Options) { o.APIKey = "secret" })
	whole := rawChatRequest(ask(""))
	head := "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n%s\r\n"
	key := "Authorization: Bearer secret\r\n"
	texts := []string{"", "POST", whole[:40], fmt.Sprintf(head, "/v1/chat/completions", key), fmt.Sprintf(head, "/v1/chat/completions", key) + `{"model":`,
		fmt.Sprintf(head, "/v1/chat/completions", "") + "{", fmt.Sprintf(head, "/v1/models", key) + "x", fmt.Sprintf(head, "/nothing", key), fmt.Sprintf(head, "/", ""),
		"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n" + key + "\r\n40\r\n{"}
	before, bytes := runtime.NumGoroutine(), heap()
	for i := range 500 {
		send(t, addr, texts[i%len(texts)])
	}
	began := time.Now()
	req, err := http.NewRequest("POST", "http://"+addr+"/v1/chat/completions", strings.NewReader(ask("")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer secret")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if took := time.Since(began); resp.StatusCode != 200 || took > 3*time.Second {
		t.Errorf("a client among them: %s after %v", resp.Status, took)
	}
	eventually(t, "all but the client are gone", func() bool { return h.conns.open() <= 1 })
	http.DefaultClient.CloseIdleConnections()
	eventually(t, "their goroutines are gone", func() bool { return runtime.NumGoroutine() <= before })
	if held, now := h.bodyBytes.Load(), heap(); held != 0 || now > bytes+4<<20 {
		t.Errorf("%d bytes of bodies are still counted; the heap has grown by %d", held, now-bytes)
	}
}

// heap returns the bytes in use.
func heap() int {
	var m runtime.MemStats
	for range 3 { // pools are emptied by the second
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// blockedWriter is the response to a client that does not read until resume is closed.
type blockedWriter struct {
	http.ResponseWriter
	once            *sync.Once
	writing, resume chan struct{}
}

func (s blockedWriter) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.writing) })
	<-s.resume
	return len(p), nil
}

// A client that requests the metrics and does not read them blocks nobody.
func TestUnreadMetrics(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	h, err := New(Options{Name: "m", Chat: p.chat, Sampler: p, Window: 100})
	if err != nil {
		t.Fatal(err)
	}
	w := blockedWriter{httptest.NewRecorder(), &sync.Once{}, make(chan struct{}), make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/metrics", nil))
	}()
	<-w.writing
	other := httptest.NewRecorder()
	h.ServeHTTP(other, httptest.NewRequest("GET", "http://localhost/metrics", nil)) // it would wait for ever
	if other.Code != http.StatusOK || !strings.Contains(other.Body.String(), "envace_requests_active 2") {
		t.Errorf("%d %s", other.Code, other.Body)
	}
	close(w.resume)
	<-ended
}

// Beyond the limit on connections, idle ones are closed.
func TestTooManyConnections(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	p.text, p.pace = "a b c d e f g", 50*time.Millisecond
	addr, h := startServer(t, p, func(o *Options) { o.MaxConns, o.Timeouts.Header = 5, time.Minute })
	conn := send(t, addr, rawChatRequest(ask(`,"stream":true`)))
	eventually(t, "the answer is under way", func() bool { return p.active.Load() == 1 })
	for range 50 {
		send(t, addr, "GET /health HTTP/1.1\r\n")
	}
	if status, answer := post(t, "http://"+addr+"/v1/chat/completions", ask(`,"max_tokens":1`)); status != 200 {
		t.Errorf("a client among them: %d %s", status, answer)
	}
	if n := h.conns.open(); n > 5 {
		t.Errorf("%d connections", n)
	}
	answer, err := io.ReadAll(untilDone(conn))
	if err != nil || !strings.Contains(string(answer), "[DONE]") {
		t.Errorf("the answer under way: %v\n%s", err, answer)
	}
}

// untilDone reads a stream up to [DONE].
func untilDone(r io.Reader) io.Reader {
	out, in := io.Pipe()
	go func() {
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			fmt.Fprintln(in, lines.Text())
			if lines.Text() == "data: [DONE]" {
				break
			}
		}
		in.CloseWithError(lines.Err())
	}()
	return out
}

// The memory of all request bodies is limited; beyond it requests get status 429.
func TestTooManyBytes(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	p.text = "ok"
	addr, h := startServer(t, p, func(o *Options) { o.MaxBody, o.Timeouts.Body = 10_000, time.Minute })
	head := "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000\r\n\r\n"
	var held []net.Conn
	for range maxInFlight {
		held = append(held, send(t, addr, head+strings.Repeat(" ", 9990)))
	}
	eventually(t, "they are held", func() bool { return h.bodyBytes.Load() == 9990*maxInFlight })
	url := "http://" + addr + "/v1/chat/completions"
	status, answer := post(t, url, strings.Repeat(" ", 1000)+ask(""))
	if status != 429 || !strings.Contains(answer, "large requests") {
		t.Errorf("%d %s", status, answer)
	}
	for _, conn := range held {
		conn.Close()
	}
	eventually(t, "they are forgotten", func() bool { return h.bodyBytes.Load() == 0 })
	if status, answer := post(t, url, ask("")); status != 200 {
		t.Errorf("afterwards: %d %s", status, answer)
	}
}

// Shutdown waits for completions in progress, not for half-open connections.
func TestDrainAmongHalfOpenConnections(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	p.text, p.pace = "a b c d e f g", 20*time.Millisecond
	addr, h := startServer(t, p, func(o *Options) { o.Timeouts = Timeouts{} })
	conn := send(t, addr, rawChatRequest(ask(`,"stream":true`)))
	for _, text := range []string{"", "GET /hea", rawChatRequest(ask(""))[:120]} {
		send(t, addr, text)
	}
	eventually(t, "all are there", func() bool { return h.conns.open() == 4 && p.active.Load() == 1 })
	h.drain()
	eventually(t, "those that wait are gone", func() bool { return h.conns.open() == 1 })
	answer, err := io.ReadAll(untilDone(conn))
	if err != nil || !strings.Contains(string(answer), "[DONE]") {
		t.Errorf("the answer under way: %v\n%s", err, answer)
	}
	if status, answer := post(t, "http://"+addr+"/v1/chat/completions", ask("")); status != http.StatusServiceUnavailable {
		t.Errorf("a new request: %d %s", status, answer)
	}
}

// Truncated and malformed requests get status 400 and have no other effect.
func TestBrokenBodies(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	p.text = "ok"
	addr, h := startServer(t, p, nil)
	good := ask("")
	line := "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
	for _, tt := range []struct {
		name, text string
		status     int
	}{
		{"cut by the client", line + "Content-Length: 500\r\n\r\n" + good[:20], 400},
		{"cut in the head", line + "Content-Le", 400},
		{"chunks that are no chunks", line + "Transfer-Encoding: chunked\r\n\r\nnot hex\r\n", 400},
		{"a chunk cut short", line + "Transfer-Encoding: chunked\r\n\r\n40\r\n{", 400},
		{"two lengths", line + "Content-Length: 3\r\nContent-Length: 4\r\n\r\n{}", 400},
		{"a negative length", line + "Content-Length: -1\r\n\r\n", 400},
		{"no HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400},
		{"a long head", line + "X: " + strings.Repeat("x", 100<<10) + "\r\n\r\n", 431},
		{"half of the JSON", line + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(good)/2) + good[:len(good)/2], 400},
		{"more than it says", line + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(good)-1) + good, 400},
		{"no body", line + "\r\n", 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn := send(t, addr, "")
			go func() {
				io.WriteString(conn, tt.text)    //nolint:errcheck // the server may have had enough
				conn.(*net.TCPConn).CloseWrite() //nolint:errcheck // the same
			}()
			answer, _ := io.ReadAll(conn)
			if !strings.HasPrefix(string(answer), "HTTP/1.1 "+strconv.Itoa(tt.status)) {
				t.Errorf("got %q", answer)
			}
			if _, body, ok := strings.Cut(string(answer), "\r\n\r\n{"); ok {
				var e openai.ErrorResponse
				if err := json.NewDecoder(strings.NewReader("{" + body)).Decode(&e); err != nil || e.Error.Type == "" {
					t.Errorf("%s: %v", body, err)
				}
			}
		})
	}
	if status, answer := post(t, "http://"+addr+"/v1/chat/completions", good); status != 200 {
		t.Errorf("afterwards: %d %s", status, answer)
	}
	eventually(t, "nothing is left of them", func() bool { return h.bodyBytes.Load() == 0 && free(h) == 32 })
}

// A client that disconnects in mid-stream, in whatever way, releases its slot immediately.
func TestGoneInMidStream(t *testing.T) {
	for _, how := range []string{"closes", "resets", "half closes"} {
		t.Run(how, func(t *testing.T) {
			p := newFakeSampler(baseChat(t))
			p.text, p.pace = strings.Repeat("word ", 1000), 2*time.Millisecond
			addr, h := startServer(t, p, func(o *Options) { o.Timeouts.Write = time.Minute })
			conn := send(t, addr, rawChatRequest(ask(`,"stream":true`))).(*net.TCPConn)
			if _, err := io.ReadFull(conn, make([]byte, 500)); err != nil {
				t.Fatal(err)
			}
			switch how {
			case "resets":
				conn.SetLinger(0) //nolint:errcheck // a socket of this machine
				conn.Close()
			case "closes":
				conn.Close()
			default:
				conn.CloseWrite() //nolint:errcheck // a socket of this machine
			}
			if took := eventually(t, "the slot is free", func() bool { return free(h) == 32 && p.active.Load() == 0 }); took > 3*time.Second {
				t.Errorf("the slot is free after %v", took)
			}
		})
	}
}

// A client that leaves while its dialogue is rendered frees its slot at once.
func TestLeavesWhileRendered(t *testing.T) {
	base := baseChat(t)
	var loop strings.Builder // a template that takes a second
	loop.WriteString(`{% for i in range(20) %}{% for m in messages %}{% set x = m.content | replace("l", "ll") | upper | lower %}{% endfor %}{% endfor %}`)
	loop.WriteString(`{% for m in messages %}<|im_start|>{{ m.role }} {{ m.content }}<|im_end|>{% endfor %}`)
	c, err := render.New(base.Tokenizer(), render.Config{Template: loop.String(), EOS: base.Stop(), MaxCalls: -1})
	if err != nil {
		t.Fatal(err)
	}
	p := newFakeSampler(c)
	p.text = "ok"
	addr, h := startServer(t, p, func(o *Options) { o.Slots, o.Timeouts = 1, Timeouts{} })
	large := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("hello ", 1<<15) + `"}]}`
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/chat/completions", strings.NewReader(large))
	if err != nil {
		t.Fatal(err)
	}
	free := func() int { n, _ := h.admission.load(); return n }
	done := make(chan struct{})
	go func() {
		defer close(done)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
			t.Error("the dialogue was rendered too soon to test anything")
		}
	}()
	eventually(t, "the slot is taken", func() bool { return free() == 0 })
	cancel()
	<-done
	left := time.Now()
	eventually(t, "the slot is free", func() bool { return free() == 1 })
	if took := time.Since(left); took > 300*time.Millisecond {
		t.Errorf("the slot was held for %v", took)
	}
	if h.bodyBytes.Load() == 0 {
		t.Error("the dialogue was rendered too soon to test anything")
	}
	eventually(t, "the memory is free", func() bool { return h.bodyBytes.Load() == 0 })
}
