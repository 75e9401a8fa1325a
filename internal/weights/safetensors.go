package weights

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
)

// maxHeader is the largest header the safetensors format allows.
const maxHeader = 100_000_000

// Tensors is a set of stored tensors from one or more files. Concurrent reads are
// safe.
type Tensors struct {
	list   []*stored
	byName map[string]*stored
	files  []io.Closer
}

// OpenTensors opens one safetensors file, with any set of tensors of float and
// integer types. Large integers are rounded to float32.
func OpenTensors(path string) (*Tensors, error) {
	t := &Tensors{byName: map[string]*stored{}}
	if err := t.addSafetensors(path); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Infos lists the tensors in the order of their data.
func (t *Tensors) Infos() []Info {
	infos := make([]Info, len(t.list))
	for i, s := range t.list {
		infos[i] = s.Info
	}
	return infos
}

// Info finds a tensor by name.
func (t *Tensors) Info(name string) (Info, bool) {
	s, ok := t.byName[name]
	if !ok {
		return Info{}, false
	}
	return s.Info, true
}

// Bytes is the size of all tensors as stored.
func (t *Tensors) Bytes() int64 {
	n := int64(0)
	for _, s := range t.list {
		n += s.Bytes
	}
	return n
}

// Close closes the files. Tensors cannot be read afterwards.
func (t *Tensors) Close() error {
	var errs []error
	for _, f := range t.files {
		errs = append(errs, f.Close())
	}
	t.files = nil
	return errors.Join(errs...)
}

func (t *Tensors) addSafetensors(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	t.files = append(t.files, f)
	st, err := f.Stat()
	if err != nil {
		return err
	}
	list, err := parseSafetensors(f, st.Size())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, s := range list {
		s.path = path
		if err := t.add(s); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tensors) add(s *stored) error {
	if old := t.byName[s.Name]; old != nil {
		return fmt.Errorf("tensor %s is stored twice: in %s and %s", s.Name, old.path, s.path)
	}
	t.byName[s.Name] = s
	t.list = append(t.list, s)
	return nil
}

// entry is one tensor of a safetensors header.
type entry struct {
	Type    string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets []uint64 `json:"data_offsets"`
}

// parseSafetensors reads the header of a file of size bytes and checks that
// its tensors fill the data exactly, without gap or overlap.
func parseSafetensors(f io.ReaderAt, size int64) ([]*stored, error) {
	header, err := safetensorsHeader(f, size)
	if err != nil {
		return nil, err
	}
	entries, err := headerEntries(header)
	if err != nil {
		return nil, fmt.Errorf("safetensors header: %w", err)
	}
	start := int64(8 + len(header))
	list := make([]*stored, 0, len(entries))
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e := entries[name]
		if f := formatOf(e.Type); f != nil && f.block > 1 {
			return nil, fmt.Errorf("tensor %s: %s is not a safetensors type", name, e.Type)
		}
		if e.Shape == nil || len(e.Offsets) != 2 {
			return nil, fmt.Errorf("tensor %s has no shape, or data_offsets %v that are not two: the file is corrupt", name, e.Offsets)
		}
		s, err := newStored(name, e.Type, e.Shape)
		if err != nil {
			return nil, err
		}
		if e.Offsets[0] > uint64(size-start) || e.Offsets[1] > uint64(size-start) {
			return nil, fmt.Errorf("tensor %s: data_offsets %v exceed the %d bytes of data: the file is truncated or corrupt, download it again", name, e.Offsets, size-start)
		}
		if e.Offsets[1]-e.Offsets[0] != uint64(s.Bytes) {
			return nil, fmt.Errorf("tensor %s: data_offsets %v span %d bytes, but %s%s needs %d", name, e.Offsets, int64(e.Offsets[1]-e.Offsets[0]), s.Type, shapeText(s.Shape), s.Bytes)
		}
		s.file, s.at = f, start+int64(e.Offsets[0])
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *stored) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return list, checkFilled(list, start, size)
}

func safetensorsHeader(f io.ReaderAt, size int64) ([]byte, error) {
	var head [8]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return nil, fmt.Errorf("not a safetensors file: only %d bytes long", size)
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n > maxHeader || n > uint64(size-8) {
		return nil, fmt.Errorf("safetensors header of %d bytes does not fit in a file of %d bytes: the file is truncated or not safetensors", n, size)
	}
	header := make([]byte, n)
	if _, err := f.ReadAt(header, 8); err != nil {
		return nil, fmt.Errorf("safetensors header: %w", err)
	}
	return header, nil
}

// headerEntries decodes the header key by key to detect duplicate names: decoding
// into a map would silently keep the last one.
func headerEntries(header []byte) (map[string]entry, error) {
	dec := json.NewDecoder(bytes.NewReader(header))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, errors.New("want a JSON object")
	}
	entries := map[string]entry{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string)
		if name == "__metadata__" {
			var meta map[string]string
			if err := dec.Decode(&meta); err != nil {
				return nil, fmt.Errorf("__metadata__: %w", err)
			}
			continue
		}
		var e entry
		if err := dec.Decode(&e); err != nil {
			return nil, fmt.Errorf("tensor %s: %w", name, err)
		}
		if _, ok := entries[name]; ok {
			return nil, fmt.Errorf("tensor %s is listed twice", name)
		}
		entries[name] = e
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	return entries, nil
}

// checkFilled checks that the sorted list covers start to size without gap or overlap.
func checkFilled(list []*stored, start, size int64) error {
	at := start
	for _, s := range list {
		if s.at != at {
			return fmt.Errorf("tensor %s starts at byte %d of the data, the one before it ends at %d: gap or overlap, the file is corrupt", s.Name, s.at-start, at-start)
		}
		at += s.Bytes
	}
	if at != size {
		return fmt.Errorf("%d bytes after the last tensor: the file is corrupt", size-at)
	}
	return nil
}
