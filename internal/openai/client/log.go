package client

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"envace/chat"
)

// logEntry is a line of Client.Log.
type logEntry struct {
	Time     time.Time       `json:"time"`
	URL      string          `json:"url"`
	Attempt  int             `json:"attempt"`
	Status   int             `json:"status,omitempty"` // 0: no response
	Seconds  float64         `json:"seconds"`
	Request  json.RawMessage `json:"request"`
	Response any             `json:"response,omitempty"`
	Error    string          `json:"error,omitempty"`
}

// log writes one line, without headers and with the API key redacted.
func (c *Client) log(entry logEntry, err error) {
	if c.Log == nil {
		return
	}
	entry.Seconds = time.Since(entry.Time).Seconds()
	if err != nil {
		entry.Error, entry.Response = err.Error(), nil
	}
	data, err := chat.Marshal(entry)
	if err != nil {
		return
	}
	data = append(bytes.TrimSpace([]byte(c.redact(string(data)))), '\n')
	c.logMu.Lock()
	defer c.logMu.Unlock()
	_, _ = c.Log.Write(data)
}

// redact removes the API key from text.
func (c *Client) redact(text string) string {
	if c.APIKey == "" {
		return text
	}
	return strings.ReplaceAll(text, c.APIKey, "[key]")
}
