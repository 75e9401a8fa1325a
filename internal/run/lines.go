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

// Lines returns the sizes of the appended files, by name.
func (d *Dir) Lines() (map[string]int64, error) {
	out := map[string]int64{}
	for _, f := range []*os.File{d.metrics, d.episodes} {
		st, err := f.Stat()
		if err != nil {
			return nil, err
		}
		out[filepath.Base(f.Name())] = st.Size()
	}
	return out, nil
}

// Has returns an error if one of the appended files is shorter than it was once,
// according to Lines: what was written then is lost.
func (d *Dir) Has(lines map[string]int64) error {
	now, err := d.Lines()
	if err != nil {
		return err
	}
	for _, name := range []string{MetricsFile, EpisodesFile} {
		if now[name] < lines[name] {
			return fmt.Errorf("%s has %d bytes, but the run had written %d: put the old file back, or start a new run", filepath.Join(d.Path, name), now[name], lines[name])
		}
	}
	return nil
}

// Truncate prepares d for resuming from a checkpoint: it cuts metrics.jsonl and
// episodes.jsonl before the first line that is incomplete or whose (stage, step) was
// not yet written when the checkpoint was made, as reported by before. The files
// then end up as if the run had never been interrupted. It is an error, and nothing
// is cut, if that would lose a line written before the checkpoint.
func (d *Dir) Truncate(before func(stage string, step int) bool) error {
	files := []*os.File{d.metrics, d.episodes}
	var keep [2]int64
	for i, f := range files {
		var err error
		if keep[i], err = extent(f, before); err != nil {
			return fmt.Errorf("truncate %s: %w", f.Name(), err)
		}
	}
	for i, f := range files {
		if err := f.Truncate(keep[i]); err != nil {
			return fmt.Errorf("truncate %s: %w", f.Name(), err)
		}
	}
	return nil
}

// extent returns how many bytes of f are lines written before.
func extent(f *os.File, before func(stage string, step int) bool) (int64, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	r := bufio.NewReader(f)
	var keep int64
	other := 0 // number of the first line that is not to be kept
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return keep, nil
		}
		if err != nil {
			return 0, err
		}
		var head pointHead
		switch ours := json.Unmarshal(line, &head) == nil && head.Stage != "" && before(head.Stage, head.Step); {
		case ours && other > 0:
			return 0, fmt.Errorf("line %d is damaged or out of place, and line %d, which it would take with it, was written before the last checkpoint: put the old file back, or start a new run", other, n)
		case ours:
			keep += int64(len(line))
		case other == 0:
			other = n
		}
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
