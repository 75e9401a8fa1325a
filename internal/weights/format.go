package weights

import (
	"encoding/binary"
	"fmt"
	"math"
)

// format is a storage format: blocks of a fixed number of elements and bytes.
// decode widens len(dst)/block blocks of src.
type format struct {
	name   string
	ggml   int // type number in GGUF files; -1: none
	block  int // elements per block
	size   int // bytes per block
	decode func(dst []float32, src []byte)

	integer bool // not allowed for model weights
}

var formats = []format{
	{name: "F32", ggml: 0, block: 1, size: 4, decode: decodeF32},
	{name: "F16", ggml: 1, block: 1, size: 2, decode: decodeF16},
	{name: "BF16", ggml: 30, block: 1, size: 2, decode: decodeBF16},
	{name: "F64", ggml: 28, block: 1, size: 8, decode: decodeF64},
	{name: "I64", ggml: 27, block: 1, size: 8, decode: decodeI64, integer: true},
	{name: "I32", ggml: 26, block: 1, size: 4, decode: decodeI32, integer: true},
	{name: "U8", ggml: -1, block: 1, size: 1, decode: decodeU8, integer: true},

	{name: "Q4_0", ggml: 2, block: 32, size: 18, decode: each(32, 18, q4v0)},
	{name: "Q4_1", ggml: 3, block: 32, size: 20, decode: each(32, 20, q4v1)},
	{name: "Q5_0", ggml: 6, block: 32, size: 22, decode: each(32, 22, q5v0)},
	{name: "Q5_1", ggml: 7, block: 32, size: 24, decode: each(32, 24, q5v1)},
	{name: "Q8_0", ggml: 8, block: 32, size: 34, decode: each(32, 34, q8v0)},
	{name: "IQ4_NL", ggml: 20, block: 32, size: 18, decode: each(32, 18, iq4nl)},
	{name: "Q2_K", ggml: 10, block: 256, size: 84, decode: each(256, 84, q2k)},
	{name: "Q3_K", ggml: 11, block: 256, size: 110, decode: each(256, 110, q3k)},
	{name: "Q4_K", ggml: 12, block: 256, size: 144, decode: each(256, 144, q4k)},
	{name: "Q5_K", ggml: 13, block: 256, size: 176, decode: each(256, 176, q5k)},
	{name: "Q6_K", ggml: 14, block: 256, size: 210, decode: each(256, 210, q6k)},
	{name: "IQ4_XS", ggml: 23, block: 256, size: 136, decode: each(256, 136, iq4xs)},
}

// each decodes block by block.
func each(block, size int, one func(dst []float32, src []byte)) func(dst []float32, src []byte) {
	return func(dst []float32, src []byte) {
		for ; len(dst) > 0; dst, src = dst[block:], src[size:] {
			one(dst[:block], src[:size])
		}
	}
}

// ggmlNames are the unsupported GGUF types by number, for error messages.
var ggmlNames = map[int]string{
	9: "Q8_1", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 21: "IQ3_S",
	22: "IQ2_S", 24: "I8", 25: "I16", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
}

// ggmlName returns the name of a GGUF type, with its number if it is unsupported.
func ggmlName(n int) string {
	for i := range formats {
		if formats[i].ggml == n {
			return formats[i].name
		}
	}
	if name, ok := ggmlNames[n]; ok {
		return fmt.Sprintf("%s (ggml type %d)", name, n)
	}
	return fmt.Sprintf("number %d", n)
}

// formatOf returns nil for an unsupported type.
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

// bf16 rounds to the nearest bfloat16, ties to even; NaN stays NaN.
func bf16(v float32) uint16 {
	b := math.Float32bits(v)
	if v != v {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
