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

// Step appends the numbers of one step to metrics.jsonl. No number may be called
// stage, step or time.
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
// most one torn line, which Truncate drops.
func appendLines(f *os.File, lines []byte) error {
	if _, err := f.Write(lines); err != nil {
		return fmt.Errorf("append to run folder: %w", err)
	}
	return nil
}

// Truncate prepares d for going on from a checkpoint: metrics.jsonl and
// episodes.jsonl are cut before the first line of a (stage, step) for which
// before is false, or that is not whole. With before saying what had been
// written when the checkpoint was made, the files end as if the run had never
// been interrupted.
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

// ReadMetrics reads metrics.jsonl of the run in dir; a torn last line is left
// out.
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

// eachLine calls do with every whole line of a file of dir until it returns
// false. A file that is not there has no lines.
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
