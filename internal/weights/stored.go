package weights

import (
	"fmt"
	"io"
	"math"
)

// stored is a tensor in a file: its location and encoding.
type stored struct {
	Info
	format *format
	path   string
	file   io.ReaderAt
	at     int64 // of the first byte
	heads  int   // > 0: each head's rows are interleaved as GGUF keeps Llama's, see unpermuted
}

// newStored checks a tensor's type and shape before anything is allocated for it.
func newStored(name, kind string, shape []int64) (*stored, error) {
	f := formatOf(kind)
	if f == nil {
		return nil, fmt.Errorf("tensor %s has unsupported type %s: use a BF16, F16, F32, Q8_0 or Q4_K version of the model", name, kind)
	}
	s := &stored{Info: Info{Name: name, Type: kind, Shape: make([]int, len(shape))}, format: f}
	n := int64(1)
	for i, d := range shape {
		if d < 0 || d > 0 && n > math.MaxInt64/16/d {
			return nil, fmt.Errorf("tensor %s has invalid shape %v", name, shape)
		}
		n *= d
		s.Shape[i] = int(d)
	}
	if n%int64(f.block) != 0 || f.block > 1 && s.row()%f.block != 0 {
		return nil, fmt.Errorf("tensor %s: row length %d is not a multiple of the %s block size %d", name, s.row(), kind, f.block)
	}
	s.Bytes = n / int64(f.block) * int64(f.size)
	return s, nil
}

// row is the length of the last axis.
func (s *stored) row() int {
	if len(s.Shape) == 0 {
		return 1
	}
	return s.Shape[len(s.Shape)-1]
}

// Read writes the tensor into dst as float32, dequantised and in Hugging Face
// layout. dst must have exactly Info.Len elements. A value that is not finite is
// an error that gives its position.
func (t *Tensors) Read(name string, dst []float32) error {
	s, ok := t.byName[name]
	if !ok {
		return fmt.Errorf("no tensor %s", name)
	}
	if len(dst) != s.Len() {
		return fmt.Errorf("tensor %s%s has %d elements, the destination has %d", name, shapeText(s.Shape), s.Len(), len(dst))
	}
	if err := s.read(dst); err != nil {
		return fmt.Errorf("%s: tensor %s: %w", s.path, name, err)
	}
	return nil
}

// chunk is the number of bytes read at a time, unless a row is longer.
const chunk = 1 << 18

// read decodes whole rows, so that permuted rows can be put back in order.
func (s *stored) read(dst []float32) error {
	if len(dst) == 0 {
		return nil
	}
	width := s.row()
	if s.heads == 0 {
		width = s.format.block
	}
	size := width / s.format.block * s.format.size
	buf := make([]byte, min(int64(max(1, chunk/size)*size), s.Bytes))
	for done := int64(0); done < s.Bytes; done += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), s.Bytes-done)]
		if _, err := s.file.ReadAt(buf, s.at+done); err != nil {
			return fmt.Errorf("read %d bytes at %d: %w", len(buf), s.at+done, err)
		}
		row := int(done / int64(size))
		if s.heads == 0 {
			s.format.decode(dst[row*width:][:len(buf)/size*width], buf)
			continue
		}
		for i := range len(buf) / size {
			to := unpermuted(row+i, len(dst)/width/s.heads)
			s.format.decode(dst[to*width:][:width], buf[i*size:][:size])
		}
	}
	return s.finite(dst, 0x7f800000) // exponent bits all set: infinite or not a number
}

// unpermuted returns the Hugging Face row of a GGUF row of Llama's q or k matrix.
// GGUF rotates neighbouring channels (2i, 2i+1) of a head, Hugging Face channels
// (i, i+dim/2), so GGUF interleaves the rows of each head.
func unpermuted(row, dim int) int {
	head, c := row/dim, row%dim
	return head*dim + c%2*(dim/2) + c/2
}

// finite checks that the magnitude of every number, as bits, is below limit.
func (s *stored) finite(x []float32, limit uint32) error {
	for i, v := range x {
		if math.Float32bits(v)&0x7fffffff >= limit {
			return fmt.Errorf("element %d (row %d, column %d) is %g: the weights are corrupt or training has diverged", i, i/s.row(), i%s.row(), v)
		}
	}
	return nil
}
