package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Model is an opened model whose tensors have been checked against its
// configuration. Its Tensors are named and laid out as in Hugging Face files.
type Model struct {
	*Tensors
	Path   string // the folder or file that holds it
	Config Config
	Text   Text
}

// Open opens a Hugging Face folder, a .gguf file, or a folder with one .gguf file.
// The caller must close the model.
func Open(path string) (*Model, error) {
	m, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("open model: %w", err)
	}
	if err := m.check(); err != nil {
		return nil, errors.Join(fmt.Errorf("open model %s: %w", m.Path, err), m.Close())
	}
	return m, nil
}

func open(path string) (*Model, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		return openFile(path)
	}
	ggufs, err := filesEnding(path, ".gguf")
	if err != nil {
		return nil, err
	}
	switch {
	case len(ggufs) == 0 || exists(filepath.Join(path, weightsName)) || exists(filepath.Join(path, indexName)):
		return openFolder(path)
	case len(ggufs) == 1:
		return openFile(ggufs[0])
	}
	return nil, fmt.Errorf("%s holds %d .gguf files: give the path of one of them", path, len(ggufs))
}

func openFolder(dir string) (*Model, error) {
	data, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s holds neither config.json nor a .gguf file: give the path of a model folder or file", dir)
	}
	if err != nil {
		return nil, err
	}
	m := &Model{Path: dir, Tensors: &Tensors{byName: map[string]*stored{}}}
	if m.Config, err = ParseConfig(data); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if m.Text, err = readText(dir, m.Config); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if err := m.addFolder(dir); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

const (
	weightsName = "model.safetensors"
	indexName   = "model.safetensors.index.json"
)

// addFolder adds the tensors of a folder: one file, or the shards of an index.
func (t *Tensors) addFolder(dir string) error {
	if exists(filepath.Join(dir, weightsName)) {
		return t.addSafetensors(filepath.Join(dir, weightsName))
	}
	data, err := os.ReadFile(filepath.Join(dir, indexName))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s holds neither %s nor %s: convert the weights to safetensors", dir, weightsName, indexName)
	}
	if err != nil {
		return err
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, indexName), err)
	}
	if index.WeightMap == nil {
		return fmt.Errorf("%s has no weight_map: download it again", filepath.Join(dir, indexName))
	}
	if err := t.addShards(dir, index.WeightMap); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, indexName), err)
	}
	return nil
}

func (t *Tensors) addShards(dir string, weightMap map[string]string) error {
	var shards []string
	for _, name := range slices.Sorted(maps.Keys(weightMap)) {
		file := weightMap[name]
		if !filepath.IsLocal(file) {
			return fmt.Errorf("tensor %s is in %q, outside the folder", name, file)
		}
		shards = append(shards, file)
	}
	slices.Sort(shards)
	var missing, elsewhere []string
	var broken []error
	for _, file := range slices.Compact(shards) {
		if !exists(filepath.Join(dir, file)) {
			missing = append(missing, file)
			continue
		}
		broken = append(broken, t.addSafetensors(filepath.Join(dir, file)))
	}
	if len(missing) > 0 {
		broken = append(broken, fmt.Errorf("missing files (download the model again): %s", strings.Join(missing, ", ")))
	}
	if err := errors.Join(broken...); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(weightMap)) {
		file := weightMap[name]
		if s := t.byName[name]; s == nil || s.path != filepath.Join(dir, file) {
			elsewhere = append(elsewhere, fmt.Sprintf("%s is not in %s", name, file))
		}
	}
	return complain("tensors are not where the index says (the download is incomplete or inconsistent, download it again)", elsewhere)
}

// check compares the tensors with those the architecture needs.
func (m *Model) check() error {
	need := map[string]bool{}
	var missing, wrong, unknown []string
	for _, want := range m.Config.Tensors() {
		need[want.Name] = true
		s := m.byName[want.Name]
		switch {
		case s == nil:
			missing = append(missing, want.Name)
		case !slices.Equal(s.Shape, want.Shape):
			wrong = append(wrong, fmt.Sprintf("%s is %s, want %s", want.Name, shapeText(s.Shape), shapeText(want.Shape)))
		case s.format.integer:
			wrong = append(wrong, fmt.Sprintf("%s is %s, want a float type", want.Name, s.Type))
		}
	}
	for _, s := range m.list {
		if !need[s.Name] && !ignored(s.Name, m.Config) {
			unknown = append(unknown, s.Name)
		}
	}
	return errors.Join(complain("missing tensors (download the model again)", missing),
		complain("tensors do not match the configuration", wrong),
		complain("unknown tensors (not supported)", unknown))
}

// ignored reports whether a tensor only repeats what the configuration determines.
func ignored(name string, c Config) bool {
	return strings.HasSuffix(name, "rotary_emb.inv_freq") || c.Tied && name == outputName
}

// complain returns an error that lists the first few names, or nil if there are none.
func complain(what string, names []string) error {
	const most = 8
	switch n := len(names); {
	case n == 0:
		return nil
	case n > most:
		names = append(names[:most:most], fmt.Sprintf("and %d more", n-most))
	}
	return fmt.Errorf("%s: %s", what, strings.Join(names, "; "))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// filesEnding lists the files of a folder whose names end in suffix, sorted.
func filesEnding(dir, suffix string) ([]string, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range list {
		if !e.IsDir() && strings.HasSuffix(e.Name(), suffix) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, nil
}
