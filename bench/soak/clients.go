package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"envace/internal/openai"
)

// live does one thing after another until the round is over.
func (c *client) live() error {
	kinds := []struct {
		name   string
		weight int
		do     func() error
	}{
		{"ask", 10, c.ask}, {"complete", 3, c.complete}, {"talk", 3, c.talk}, {"ask wrongly", 3, c.askWrongly}, {"look", 2, c.look},
		{"leave", 3, c.leave}, {"read slowly", 1, c.readSlowly}, {"read nothing", 1, c.readNothing}, {"say half", 2, c.sayHalf},
	}
	sum := 0
	for _, k := range kinds {
		sum += k.weight
	}
	for c.ctx.Err() == nil {
		at := c.rnd.IntN(sum)
		for _, k := range kinds {
			if at -= k.weight; at >= 0 {
				continue
			}
			if err := k.do(); err != nil && !errors.Is(err, errBusy) && !over(c.ctx) {
				return fmt.Errorf("a client that would %s: %w", k.name, err)
			}
			break
		}
	}
	return nil
}

// complete asks for raw completions.
func (c *client) complete() error {
	k := c.rnd.IntN(questions)
	body := fmt.Sprintf(`{"model":%q,"prompt":["Order %d","A%d"],"max_tokens":%d,"seed":%d,"logprobs":%d,"echo":%t}`, c.model, k, k, 1+k%20, k, k%2*2, k%2 == 0)
	status, answer, err := c.post("/v1/completions", []byte(body))
	if err != nil {
		return err
	}
	var r openai.Completion
	if err := strictly(answer, &r); err != nil || status != http.StatusOK || len(r.Choices) != 2 {
		return fmt.Errorf("%d %s to %s (%v)", status, answer, body, err)
	}
	return c.same(fmt.Sprint("completion ", k), r.Choices)
}

// talk has a call made, answers it and hears the reply.
func (c *client) talk() error {
	q := c.question(2 + 6*c.rnd.IntN(questions/6))
	r, err := c.chat(q)
	if err != nil {
		return err
	}
	if err := check(q, r); err != nil {
		return fmt.Errorf("%w in %+v", err, r)
	}
	m := r.Choices[0].Message
	result := openai.Content(`{"status":"shipped"}`)
	q.Messages = append(q.Messages, m, openai.Message{Role: "tool", ToolCallID: m.ToolCalls[0].ID, Content: &result})
	q.ToolChoice, q.MaxTokens, q.Stream = nil, to(30), true
	if r, err = c.chat(q); err != nil {
		return err
	}
	return c.same(fmt.Sprint("talk ", *q.Seed), plain(r))
}

// over reports whether ctx is done, or its deadline has passed: connections notice that
// a moment before ctx does.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// askWrongly sends what must be refused, in the protocol's form.
func (c *client) askWrongly() error {
	good := `{"model":"` + c.model + `","messages":[{"role":"user","content":"x"}]`
	wrong := []struct {
		path, body string
		status     int
	}{
		{"chat/completions", good, 400}, {"chat/completions", good + `,"max_tokens":0}`, 400}, {"chat/completions", good + `,"max_tokens":99999999}`, 400},
		{"chat/completions", good + `,"sede":1}`, 400}, {"chat/completions", good + `,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"pattern":"(a)\\1"}}}}`, 400},
		{"chat/completions", strings.Repeat("[", 10_000), 400}, {"chat/completions", "{\"model\":\"\xff\"}", 400}, {"chat/completions", strings.Repeat(" ", 9<<20), 413},
		{"chat/completions", `{"model":"other","messages":[]}`, 404}, {"completions", `{"model":"` + c.model + `","prompt":[-1]}`, 400}, {"embeddings", `{}`, 400}, {"nothing", `{}`, 404}, {"models", `{}`, 405},
		{"chat/completions", `{"model":"` + c.model + `","messages":[{"role":"user","content":"` + strings.Repeat("many words ", 5000) + `"}]}`, 400},
	}
	w := wrong[c.rnd.IntN(len(wrong))]
	status, answer, err := c.post("/v1/"+w.path, []byte(w.body))
	if err != nil && w.status == http.StatusRequestEntityTooLarge { // the server need not listen to the end
		return nil
	}
	if err != nil {
		return err
	}
	var e openai.ErrorResponse
	if err := strictly(answer, &e); err != nil || status != w.status || e.Error.Message == "" {
		return fmt.Errorf("%d %s to %.200s: want status %d", status, answer, w.body, w.status)
	}
	c.count(refused)
	return nil
}

// look asks for what is there beside answers.
func (c *client) look() error {
	for _, path := range []string{"/", "/chat.js", "/health", "/metrics", "/v1/models", "/v1/models/" + c.model} {
		req, err := http.NewRequestWithContext(c.ctx, http.MethodGet, c.base+path, nil)
		if err != nil {
			return err
		}
		resp, err := c.http.Do(req)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || len(text) == 0 {
			return fmt.Errorf("%s: %s %.200s (%v)", path, resp.Status, text, err)
		}
	}
	return nil
}

// leave goes away before the answer, or in the midst of it.
func (c *client) leave() error {
	ctx, cancel := context.WithTimeout(c.ctx, time.Duration(c.rnd.IntN(300))*time.Millisecond)
	defer cancel()
	q := c.question(c.rnd.IntN(questions))
	q.Stream, q.MaxTokens = c.rnd.IntN(4) > 0, to(500)
	body, err := json.Marshal(q)
	if err != nil {
		return err
	}
	resp, err := c.send(ctx, "/v1/chat/completions", body)
	if err != nil && over(ctx) {
		c.count(gone)
		return nil
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err = io.CopyN(io.Discard, resp.Body, int64(c.rnd.IntN(5000))); err != nil && err != io.EOF && !over(ctx) {
		return err
	}
	c.count(gone)
	return nil
}

// raw sends text over a connection of its own, which holds little that is not read.
func (c *client) raw(text string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(c.ctx, "tcp", strings.TrimPrefix(c.base, "http://"))
	if err != nil {
		return nil, err
	}
	conn.(*net.TCPConn).SetReadBuffer(4 << 10) //nolint:errcheck // the system may know better
	if _, err := io.WriteString(conn, text); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func (c *client) request(q openai.ChatRequest) (string, error) {
	body, err := json.Marshal(q)
	return fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", c.name, len(body), body), err
}

// readSlowly reads a stream with pauses, and still hears all of it.
func (c *client) readSlowly() error {
	q := c.question(c.rnd.IntN(questions))
	q.Stream = true
	text, err := c.request(q)
	if err != nil {
		return err
	}
	conn, err := c.raw(text)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(c.ctx, func() { conn.Close() })
	defer stop()
	resp, err := http.ReadResponse(bufio.NewReaderSize(slow{conn, c}, 16), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return fmt.Errorf("after %d bytes: %w", len(answer), err)
	case resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get("Retry-After") != "":
		return errBusy
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s %s", resp.Status, answer)
	}
	if _, err = joined(answer); err == nil {
		c.count(answered)
	}
	return err
}

// slow is a connection that is read in small pieces.
type slow struct {
	io.Reader
	c *client
}

// Read reads at most 256 bytes, and sometimes dawdles.
func (s slow) Read(p []byte) (int, error) {
	if s.c.rnd.IntN(8) == 0 {
		s.c.wait(time.Duration(s.c.rnd.IntN(100)) * time.Millisecond)
	}
	return s.Reader.Read(p[:min(len(p), 256)])
}

// readNothing asks for a large answer and never reads it.
func (c *client) readNothing() error {
	q := c.question(4)
	q.Stream, q.MaxTokens, q.TopLogprobs = c.rnd.IntN(2) == 0, to(500), to(20)
	text, err := c.request(q)
	if err != nil {
		return err
	}
	return c.hold(text)
}

// sayHalf opens a few connections and sends no whole request on any.
func (c *client) sayHalf() error {
	text, err := c.request(c.question(0))
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	errs := make([]error, 5)
	cuts := make([]int, len(errs))
	for i := range cuts {
		cuts[i] = c.rnd.IntN(len(text))
	}
	for i, cut := range cuts {
		all.Go(func() { errs[i] = c.hold(text[:cut]) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// hold sends text and does nothing for a moment.
func (c *client) hold(text string) error {
	conn, err := c.raw(text)
	if err != nil {
		return err
	}
	defer conn.Close()
	c.wait(time.Second)
	c.count(gone)
	return nil
}

// drain asks for answers, has the server stopped in their midst, and reads them to
// their end.
func (c *crowd) drain(s *server) error {
	const streams = 4
	begun, ended := make(chan error, streams), make(chan error, streams)
	for k := range streams {
		go func() { ended <- c.last(k, begun) }()
	}
	var errs []error
	for range streams {
		errs = append(errs, <-begun)
	}
	errs = append(errs, s.stop())
	for range streams {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// last reads one stream, and tells when it has begun.
func (c *crowd) last(k int, begun chan<- error) error {
	q := c.question(6 * k)
	q.Stream, q.MaxTokens = true, to(400)
	body, err := json.Marshal(q)
	if err != nil {
		begun <- err
		return nil
	}
	resp, err := http.Post(c.base+"/v1/chat/completions", "application/json", strings.NewReader(string(body)))
	begun <- err
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil {
		_, err = joined(answer)
	}
	if err != nil {
		return fmt.Errorf("%w in %s", err, answer)
	}
	return nil
}
