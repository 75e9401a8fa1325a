package run

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"envace/rollout"
)

// Step appends the metrics of one step to metrics.jsonl. The names stage, step and
// time are reserved.
func (d *Dir) Step(stage string, step int, m map[string]float64) error {
	line, err := json.Marshal(Point{Stage: stage, Step: step, Time: time.Now(), Values: m})
	if err != nil {
		return fmt.Errorf("metrics of step %d: %w", step, err)
	}
	return appendLines(d.metrics, append(line, '\n'))
}

// Episodes appends the episodes of one step to episodes.jsonl, with d.Labels.
func (d *Dir) Episodes(stage string, step int, eps []*rollout.Episode) error {
	var buf bytes.Buffer
	for _, ep := range eps {
		line, err := NewEpisode(stage, step, d.Labels, ep, d.Text).encode()
		if err != nil {
			return err
		}
		buf.Write(line)
	}
	return appendLines(d.episodes, buf.Bytes())
}

// appendLines writes whole lines in one call, so that a killed run leaves at
// most one incomplete line, which Truncate drops.
func appendLines(f *os.File, lines []byte) error {
	if _, err := f.Write(lines); err != nil {
		return fmt.Errorf("append to run folder: %w", err)
	}
	return nil
}

// Truncate prepares d for resuming from a checkpoint: it cuts metrics.jsonl and
// episodes.jsonl before the first line that is incomplete or whose (stage, step) was
// not yet written when the checkpoint was made, as reported by before. The files
// then end up as if the run had never been interrupted.
func (d *Dir) Truncate(before func(stage string, step int) bool) error {
	for _, f := range []*os.File{d.metrics, d.episodes} {
		if err := truncate(f, before); err != nil {
			return fmt.Errorf("truncate %s: %w", f.Name(), err)
		}
	}
	return nil
}

func truncate(f *os.File, before func(stage string, step int) bool) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReader(f)
	var keep int64
	for {
		line, err := r.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return err
		}
		var head pointHead
		if err == io.EOF || json.Unmarshal(line, &head) != nil || !before(head.Stage, head.Step) {
			return f.Truncate(keep)
		}
		keep += int64(len(line))
	}
}

// ReadMetrics reads metrics.jsonl of the run in dir; an incomplete last line is
// ignored.
func ReadMetrics(dir string) ([]Point, error) {
	var points []Point
	err := eachLine(dir, MetricsFile, func(line []byte) (bool, error) {
		var p Point
		if err := json.Unmarshal(line, &p); err != nil {
			return false, err
		}
		points = append(points, p)
		return true, nil
	})
	return points, err
}

// eachLine calls do with every complete line of a file in dir until it returns
// false. A missing file has no lines.
func eachLine(dir, name string, do func(line []byte) (more bool, err error)) error {
	path := filepath.Join(dir, name)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if more, err := do(line); err != nil {
			return fmt.Errorf("%s: line %d: %w", path, n, err)
		} else if !more {
			return nil
		}
	}
}
