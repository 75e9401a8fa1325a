package client

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"envace/internal/retry"
)

// maxEvent limits the bytes of one event.
const maxEvent = 16 << 20

// events parses a text/event-stream and calls on with the data of each event, until it
// returns false or an error.
func events(r io.Reader, on func(data []byte) (more bool, err error)) error {
	s := bufio.NewScanner(&limitedReader{r, maxResponse})
	s.Buffer(make([]byte, 64<<10), maxEvent)
	var data []byte
	has := false
	flush := func() (bool, error) {
		if !has {
			return true, nil
		}
		more, err := on(data)
		data, has = data[:0], false
		return more, err
	}
	for s.Scan() {
		line := s.Bytes() // without line end
		if len(line) == 0 {
			if more, err := flush(); !more || err != nil {
				return err
			}
			continue
		}
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if has {
				data = append(data, '\n')
			}
			data, has = append(data, bytes.TrimPrefix(rest, []byte(" "))...), true
		}
	}
	switch err := s.Err(); {
	case errors.Is(err, errResponseTooLarge):
		return err
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("an event of the stream is larger than %d bytes", maxEvent)
	case err != nil:
		return retry.Retryable(fmt.Errorf("the stream was cut off: %w", err), 0)
	}
	_, err := flush() // some servers omit the last blank line
	return err
}

// readStream reads a stream and calls on, if not nil, with its deltas. shown reports
// whether it did. A stream without a finish_reason is an error.
func (a *accumulator) readStream(r io.Reader, on func(content, thinking string)) (shown bool, err error) {
	*a = accumulator{}
	err = events(r, func(data []byte) (bool, error) {
		if string(bytes.TrimSpace(data)) == "[DONE]" {
			return false, nil
		}
		var chunk response
		if err := json.Unmarshal(data, &chunk); err != nil {
			return false, retry.Retryable(fmt.Errorf("invalid chunk in the stream: %w: %s", err, oneLine(string(data))), 0)
		}
		if err := chunk.err(); err != nil {
			return false, err
		}
		a.setUsage(chunk.Usage)
		for _, choice := range chunk.Choices {
			shown = a.addChoice(choice, on) || shown
		}
		return true, nil
	})
	if err == nil && a.finish == "" {
		err = retry.Retryable(errors.New("the stream was cut off: it ended without a finish_reason"), 0)
	}
	return shown, err
}

// addChoice adds a choice of a chunk.
func (a *accumulator) addChoice(choice choice, on func(content, thinking string)) (shown bool) {
	if choice.Index != 0 {
		return false
	}
	content, thinking := len(a.content), len(a.thinking)
	a.add(choice.Delta)
	if choice.FinishReason != "" {
		a.finish = string(choice.FinishReason)
	}
	if on == nil || len(a.content) == content && len(a.thinking) == thinking {
		return false
	}
	on(string(a.content[content:]), string(a.thinking[thinking:]))
	return true
}
