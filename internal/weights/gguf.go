package weights

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// gguf is a parsed GGUF header: its metadata and the table of its tensors,
// under their GGUF names.
type gguf struct {
	meta map[string]any // int64, float64, bool, string, []int, []float32, []bool, []string
	list []*stored
}

// ggufReader reads the little-endian fields of a GGUF header. After an error
// it gives zeros, so that only the ends of loops need to look.
type ggufReader struct {
	r    *bufio.Reader
	at   int64
	size int64 // of the whole file: nothing longer is ever allocated
	err  error
}

func parseGGUF(f io.ReaderAt, size int64) (*gguf, error) {
	r := &ggufReader{r: bufio.NewReaderSize(io.NewSectionReader(f, 0, size), 1<<16), size: size}
	if magic := r.bytes(4); r.err != nil || string(magic) != "GGUF" {
		return nil, errors.New("not a GGUF file")
	}
	if v := r.u32(); v != 2 && v != 3 {
		return nil, fmt.Errorf("GGUF version %d is not supported: want 2 or 3, little-endian", v)
	}
	tensors, pairs := r.count(24, maxTable), r.count(13, maxTable)
	g := &gguf{meta: map[string]any{}}
	for i := 0; i < pairs && r.err == nil; i++ {
		key := r.text()
		if _, ok := g.meta[key]; ok {
			return nil, fmt.Errorf("metadata %q is there twice", key)
		}
		v := r.value(r.u32())
		if r.err != nil {
			return nil, fmt.Errorf("metadata %q: %w", key, r.err)
		}
		g.meta[key] = v
	}
	for i := 0; i < tensors && r.err == nil; i++ {
		if err := g.tensor(r); err != nil {
			return nil, err
		}
	}
	if r.err != nil {
		return nil, fmt.Errorf("GGUF header: %w", r.err)
	}
	return g, g.place(f, r.at, size)
}

// tensor reads one row of the table; GGUF lists the contiguous axis first.
func (g *gguf) tensor(r *ggufReader) error {
	name, axes := r.text(), r.u32()
	if axes > 4 {
		return fmt.Errorf("tensor %s has %d axes: want at most 4", name, axes)
	}
	shape := make([]int64, axes)
	for i := range shape {
		shape[len(shape)-1-i] = int64(min(r.u64(), math.MaxInt64))
	}
	kind, at := r.u32(), r.u64()
	if r.err != nil {
		return fmt.Errorf("table of tensors: %w", r.err)
	}
	s, err := newStored(name, ggmlName(int(kind)), shape)
	if err != nil {
		return err
	}
	if at > math.MaxInt64/2 {
		return fmt.Errorf("tensor %s begins at %d: the file is damaged", name, at)
	}
	s.at = int64(at)
	g.list = append(g.list, s)
	return nil
}

// place turns the offsets into places in the file, whose data begin at the
// first aligned byte after the header, and checks that they lie inside it and
// apart.
func (g *gguf) place(f io.ReaderAt, header, size int64) error {
	align := int64(32)
	if v, ok := g.meta["general.alignment"].(int64); ok {
		align = v
	}
	if align < 1 || align > 1<<20 {
		return fmt.Errorf("general.alignment is %d: want 1 to %d", align, 1<<20)
	}
	start := (header + align - 1) / align * align
	for _, s := range g.list {
		if s.at%align != 0 {
			return fmt.Errorf("tensor %s begins at %d, which is no multiple of the alignment %d: the file is damaged", s.Name, s.at, align)
		}
		if start > size || s.Bytes > size-start || s.at > size-start-s.Bytes {
			return fmt.Errorf("tensor %s of %d bytes at %d lies beyond the end of the file: it is cut short, fetch it again", s.Name, s.Bytes, start+s.at)
		}
		s.file, s.at = f, start+s.at
	}
	sorted := slices.Clone(g.list)
	slices.SortFunc(sorted, func(a, b *stored) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.Bytes, b.Bytes)) })
	for i := 1; i < len(sorted); i++ {
		if a, b := sorted[i-1], sorted[i]; a.at+a.Bytes > b.at {
			return fmt.Errorf("tensors %s and %s overlap: the file is damaged", a.Name, b.Name)
		}
	}
	return nil
}

// value reads one metadata value of the given type.
func (r *ggufReader) value(kind uint32) any {
	if kind == 9 {
		return r.array()
	}
	return r.scalar(kind)
}

func (r *ggufReader) scalar(kind uint32) any {
	switch kind {
	case 0:
		return int64(r.u8())
	case 1:
		return int64(int8(r.u8()))
	case 2:
		return int64(r.u16())
	case 3:
		return int64(int16(r.u16()))
	case 4:
		return int64(r.u32())
	case 5:
		return int64(int32(r.u32()))
	case 6:
		return shortest(math.Float32frombits(r.u32()))
	case 7:
		return r.u8() != 0
	case 8:
		return r.text()
	case 10:
		return int64(min(r.u64(), math.MaxInt64))
	case 11:
		return int64(r.u64())
	case 12:
		return math.Float64frombits(r.u64())
	}
	r.fail(fmt.Errorf("type %d is unknown", kind))
	return nil
}

// array reads a list; lists of lists, which no known key has, are refused.
func (r *ggufReader) array() any {
	kind := r.u32()
	sizes := [...]int64{1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8}
	if int(kind) >= len(sizes) || sizes[kind] == 0 {
		r.fail(fmt.Errorf("list of type %d is not supported", kind))
		return nil
	}
	n := r.count(sizes[kind], maxList)
	switch kind {
	case 8:
		return items(r, n, r.text)
	case 7:
		return items(r, n, func() bool { return r.u8() != 0 })
	case 6:
		return items(r, n, func() float32 { return math.Float32frombits(r.u32()) })
	case 12:
		return items(r, n, func() float32 { return float32(math.Float64frombits(r.u64())) })
	}
	return items(r, n, func() int {
		v, _ := r.scalar(kind).(int64)
		return int(v)
	})
}

func items[T any](r *ggufReader, n int, next func() T) []T {
	list := make([]T, 0, min(n, 1<<16)) // grows as the file really fills it
	for i := 0; i < n && r.err == nil; i++ {
		list = append(list, next())
	}
	return list
}

// Bounds far above any real file, so that what is allocated stays small even
// where a hostile file is large.
const (
	maxTable = 1 << 20 // tensors, metadata
	maxList  = 1 << 24 // elements of one list
	maxText  = 1 << 26 // bytes of one text
)

// count reads a number of things, at most most, that take at least each bytes.
func (r *ggufReader) count(each, most int64) int {
	n := r.u64()
	if r.err == nil && n > uint64(min(most, (r.size-r.at)/each)) {
		r.fail(fmt.Errorf("a count of %d cannot be true: the file is cut short or damaged", n))
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

func (r *ggufReader) text() string {
	n := r.count(1, maxText)
	return string(r.bytes(n))
}

func (r *ggufReader) u8() byte    { return r.bytes(1)[0] }
func (r *ggufReader) u16() uint16 { return binary.LittleEndian.Uint16(r.bytes(2)) }
func (r *ggufReader) u32() uint32 { return binary.LittleEndian.Uint32(r.bytes(4)) }
func (r *ggufReader) u64() uint64 { return binary.LittleEndian.Uint64(r.bytes(8)) }

// bytes reads n bytes, which the caller has bounded by the file's size.
func (r *ggufReader) bytes(n int) []byte {
	b := make([]byte, n)
	if r.err != nil {
		return b
	}
	if _, err := io.ReadFull(r.r, b); err != nil {
		r.fail(fmt.Errorf("ends at byte %d: the file is cut short, fetch it again", r.size))
		clear(b)
	}
	r.at += int64(n)
	return b
}

func (r *ggufReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}
