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

// gguf is a parsed GGUF header: metadata and the tensor table, under GGUF names.
type gguf struct {
	meta map[string]any // int64, float64, bool, string, []int, []float32, []bool, []string
	list []*stored
}

// ggufReader reads the little-endian fields of a GGUF header. After an error it
// returns zeros, so that callers only need to check err at the end of a loop.
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
			return nil, fmt.Errorf("metadata key %q is duplicated", key)
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

// tensor reads one entry of the tensor table; GGUF lists the contiguous axis first.
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
		return fmt.Errorf("tensor table: %w", r.err)
	}
	s, err := newStored(name, ggmlName(int(kind)), shape)
	if err != nil {
		return err
	}
	if at > math.MaxInt64/2 {
		return fmt.Errorf("tensor %s has offset %d: the file is corrupt", name, at)
	}
	s.at = int64(at)
	g.list = append(g.list, s)
	return nil
}

// place converts offsets to file positions. The data begins at the first aligned
// byte after the header. Tensors must lie within the file and not overlap.
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
			return fmt.Errorf("tensor %s has offset %d, not a multiple of the alignment %d: the file is corrupt", s.Name, s.at, align)
		}
		if start > size || s.Bytes > size-start || s.at > size-start-s.Bytes {
			return fmt.Errorf("tensor %s of %d bytes at offset %d extends past the end of the file: the file is truncated, download it again", s.Name, s.Bytes, start+s.at)
		}
		s.file, s.at = f, start+s.at
	}
	sorted := slices.Clone(g.list)
	slices.SortFunc(sorted, func(a, b *stored) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.Bytes, b.Bytes)) })
	for i := 1; i < len(sorted); i++ {
		if a, b := sorted[i-1], sorted[i]; a.at+a.Bytes > b.at {
			return fmt.Errorf("tensors %s and %s overlap: the file is corrupt", a.Name, b.Name)
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
	r.fail(fmt.Errorf("unknown type %d", kind))
	return nil
}

// array reads a list. Nested lists, which no known key has, are not supported.
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

// Limits far above any real file, which bound allocations for hostile files.
const (
	maxTable = 1 << 20 // tensors, metadata
	maxList  = 1 << 24 // elements of one list
	maxText  = 1 << 26 // bytes of one string
)

// count reads the number of items that follow: at most most items, each of at
// least each bytes.
func (r *ggufReader) count(each, most int64) int {
	n := r.u64()
	if r.err == nil && n > uint64(min(most, (r.size-r.at)/each)) {
		r.fail(fmt.Errorf("count %d is too large: the file is truncated or corrupt", n))
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

// bytes reads n bytes; the caller has checked n against the file size.
func (r *ggufReader) bytes(n int) []byte {
	b := make([]byte, n)
	if r.err != nil {
		return b
	}
	if _, err := io.ReadFull(r.r, b); err != nil {
		r.fail(fmt.Errorf("unexpected end at byte %d: the file is truncated, download it again", r.size))
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
