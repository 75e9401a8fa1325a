package weights

import (
	"encoding/binary"
	"math"
)

// format is how numbers are stored: in blocks of so many numbers and bytes.
// decode widens len(dst)/block blocks of src.
type format struct {
	name   string
	ggml   int // number in a GGUF file; -1: none
	block  int // numbers
	size   int // bytes
	decode func(dst []float32, src []byte)

	integer bool // not for a model's weights
}

var formats = []format{
	{name: "F32", ggml: 0, block: 1, size: 4, decode: decodeF32},
	{name: "F16", ggml: 1, block: 1, size: 2, decode: decodeF16},
	{name: "BF16", ggml: 30, block: 1, size: 2, decode: decodeBF16},
	{name: "F64", ggml: 28, block: 1, size: 8, decode: decodeF64},
	{name: "I64", ggml: 27, block: 1, size: 8, decode: decodeI64, integer: true},
	{name: "I32", ggml: 26, block: 1, size: 4, decode: decodeI32, integer: true},
	{name: "U8", ggml: -1, block: 1, size: 1, decode: decodeU8, integer: true},
}

// formatOf is nil for a type that cannot be read.
func formatOf(name string) *format {
	for i := range formats {
		if formats[i].name == name {
			return &formats[i]
		}
	}
	return nil
}

func decodeF32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

func decodeF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = half(src[2*i:])
	}
}

func decodeBF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16)
	}
}

func decodeF64(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
	}
}

func decodeI64(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(int64(binary.LittleEndian.Uint64(src[8*i:])))
	}
}

func decodeI32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(int32(binary.LittleEndian.Uint32(src[4*i:])))
	}
}

func decodeU8(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(src[i])
	}
}

// half widens the IEEE half-precision number at b.
func half(b []byte) float32 {
	h := uint32(binary.LittleEndian.Uint16(b))
	sign, exp, frac := h>>15<<31, h>>10&31, h&1023
	switch exp {
	case 0: // zero and subnormals: frac · 2⁻²⁴
		return math.Float32frombits(sign | math.Float32bits(float32(frac)*0x1p-24))
	case 31: // infinity, or not a number
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// bf16 rounds to the nearest bfloat16, ties to even; what is not a number stays so.
func bf16(v float32) uint16 {
	b := math.Float32bits(v)
	if v != v {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
