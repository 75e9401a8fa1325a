package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"envace/internal/weights"
)

// Cache is the model cache shared with Hugging Face's own tools, in their layout:
// models--OWNER--NAME/ holds blobs/ (files named by checksum), snapshots/COMMIT/
// (the model's files, as links to blobs) and refs/ (the commit of each branch or
// tag).
type Cache struct{ Dir string }

func (c Cache) repo(n Name) string {
	return filepath.Join(c.Dir, "models--"+n.Owner+"--"+n.Repo)
}

func (c Cache) blob(n Name, sum string) string { return filepath.Join(c.repo(n), "blobs", sum) }

func (c Cache) snapshot(n Name, commit string) string {
	return filepath.Join(c.repo(n), "snapshots", commit)
}

// lockFile is the file that Hugging Face's tools lock while they write a blob.
func (c Cache) lockFile(n Name, sum string) string {
	return filepath.Join(c.Dir, ".locks", filepath.Base(c.repo(n)), sum+".lock")
}

func (c Cache) ref(n Name) string {
	return filepath.Join(c.repo(n), "refs", filepath.FromSlash(n.revision()))
}

// Find returns the path of a pulled model: its snapshot folder, or the file named
// in n. The error is ErrNotPulled if it is missing or incomplete. Find does not use
// the network.
func (c Cache) Find(n Name) (string, error) {
	commit := n.Revision
	if !isCommit(commit) {
		data, err := os.ReadFile(c.ref(n))
		if err != nil {
			return "", fmt.Errorf("model %s: %w", n, ErrNotPulled)
		}
		if commit = strings.TrimSpace(string(data)); !isCommit(commit) {
			return "", fmt.Errorf("model %s: %s does not hold a commit: %w", n, c.ref(n), ErrNotPulled)
		}
	}
	path := c.snapshot(n, commit)
	var missing []string
	if n.File != "" {
		if path = filepath.Join(path, filepath.FromSlash(n.File)); !exists(path) {
			missing = []string{n.File}
		}
	} else {
		missing = lacks(path)
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("model %s: file %s: %w", n, strings.Join(missing, ", "), ErrNotPulled)
	}
	return path, nil
}

// lacks returns the files missing from the folder of a model, adapter or GGUF file.
// Other tools may leave snapshots with only some of the files.
func lacks(dir string) (missing []string) {
	if found, err := filepath.Glob(filepath.Join(dir, "*.gguf")); err == nil && len(found) > 0 && !exists(filepath.Join(dir, indexName)) {
		return nil
	}
	need := []string{"config.json", weightsName}
	switch {
	case exists(filepath.Join(dir, adapterConfig)) && !exists(filepath.Join(dir, "config.json")):
		need = []string{adapterWeights}
	case !exists(filepath.Join(dir, weightsName)) && exists(filepath.Join(dir, indexName)):
		shards, err := shards(filepath.Join(dir, indexName))
		if err != nil {
			return []string{indexName}
		}
		need = append(shards, "config.json")
	}
	for _, name := range need {
		if !exists(filepath.Join(dir, filepath.FromSlash(name))) {
			missing = append(missing, name)
		}
	}
	return missing
}

// shards lists the files named in a safetensors index, each once.
func shards(path string) ([]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("%s: %w", indexName, err)
	}
	seen := map[string]bool{}
	for _, file := range index.WeightMap {
		if !safe(file) {
			return nil, fmt.Errorf("%s: file %q is outside the folder", indexName, file)
		}
		seen[file] = true
	}
	return sorted(seen), nil
}

// link creates the snapshot's links to the blobs and, last, points the revision at
// the snapshot, which makes the model visible to Find.
func (c Cache) link(n Name, commit string, files []file) error {
	for _, f := range files {
		path := filepath.Join(c.snapshot(n, commit), filepath.FromSlash(f.path))
		if err := c.linkFile(path, c.blob(n, f.sum)); err != nil {
			return err
		}
	}
	if isCommit(n.Revision) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(c.ref(n)), 0o777); err != nil {
		return err
	}
	if data, err := os.ReadFile(c.ref(n)); err == nil && string(data) == commit {
		return nil
	}
	return weights.WriteAtomic(c.ref(n), func(w io.Writer) error {
		_, err := io.WriteString(w, commit)
		return err
	})
}

// linkFile creates a relative symbolic link to blob at path, replacing any
// existing file. Where symbolic links are not allowed, as often on Windows, it
// creates a hard link.
func (c Cache) linkFile(path, blob string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	target, err := filepath.Rel(filepath.Dir(path), blob)
	if err != nil {
		return err
	}
	if old, err := os.Readlink(path); err == nil && old == target {
		return nil
	}
	// Created in a temporary folder first, so that concurrent pulls do not collide.
	aside, err := os.MkdirTemp(filepath.Dir(path), ".link-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(aside)
	tmp := filepath.Join(aside, "link")
	if os.Symlink(target, tmp) != nil {
		if err := os.Link(blob, tmp); err != nil {
			return err
		}
	}
	return os.Rename(tmp, path)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// writable creates the cache's folders for n and checks that they are writable.
func (c Cache) writable(n Name) error {
	for _, dir := range []string{filepath.Dir(c.blob(n, "x")), filepath.Dir(c.lockFile(n, "x"))} {
		err := os.MkdirAll(dir, 0o777)
		if err == nil {
			err = probe(dir)
		}
		if err != nil {
			return fmt.Errorf("model cache %s: %w: %w", c.Dir, ErrReadOnly, err)
		}
	}
	return nil
}

// probe writes a file and removes it.
func probe(dir string) error {
	f, err := os.CreateTemp(dir, ".probe-")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
