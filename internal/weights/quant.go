package weights

import "encoding/binary"

// The block formats of GGUF files. Each function decodes one block: d is the
// block's scale, m its minimum, and the bytes of quants follow. The products
// are converted explicitly so that no compiler fuses them with the sum: the
// numbers are the same on every machine.

// q4v0: d·(q − 8), q the low nibbles, then the high ones.
func q4v0(dst []float32, src []byte) {
	d := half(src)
	for i, q := range src[2:18] {
		dst[i] = d * float32(int(q&15)-8)
		dst[i+16] = d * float32(int(q>>4)-8)
	}
}

// q4v1: d·q + m.
func q4v1(dst []float32, src []byte) {
	d, m := half(src), half(src[2:])
	for i, q := range src[4:20] {
		dst[i] = float32(d*float32(q&15)) + m
		dst[i+16] = float32(d*float32(q>>4)) + m
	}
}

// q5v0: as q4v0 with a fifth bit from a word of 32.
func q5v0(dst []float32, src []byte) {
	d, high := half(src), binary.LittleEndian.Uint32(src[2:])
	for i, q := range src[6:22] {
		dst[i] = d * float32(int(uint32(q&15)|high>>i&1<<4)-16)
		dst[i+16] = d * float32(int(uint32(q>>4)|high>>(i+16)&1<<4)-16)
	}
}

// q5v1: as q4v1 with a fifth bit from a word of 32.
func q5v1(dst []float32, src []byte) {
	d, m, high := half(src), half(src[2:]), binary.LittleEndian.Uint32(src[4:])
	for i, q := range src[8:24] {
		dst[i] = float32(d*float32(uint32(q&15)|high>>i&1<<4)) + m
		dst[i+16] = float32(d*float32(uint32(q>>4)|high>>(i+16)&1<<4)) + m
	}
}

// q8v0: d·q, q signed.
func q8v0(dst []float32, src []byte) {
	d := half(src)
	for i, q := range src[2:34] {
		dst[i] = d * float32(int8(q))
	}
}

// iq4Values are the levels of the non-linear four-bit formats.
var iq4Values = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// iq4nl: d·level.
func iq4nl(dst []float32, src []byte) {
	iq4(dst, src[2:18], half(src))
}

func iq4(dst []float32, quants []byte, d float32) {
	for i, q := range quants {
		dst[i] = d * iq4Values[q&15]
		dst[i+16] = d * iq4Values[q>>4]
	}
}

// iq4xs: eight groups of iq4nl whose six-bit scales share d.
func iq4xs(dst []float32, src []byte) {
	d, high := half(src), binary.LittleEndian.Uint16(src[2:])
	for g := range 8 {
		low := src[4+g/2] >> (g % 2 * 4) & 15
		scale := int(low) | int(high>>(2*g)&3)<<4
		iq4(dst[32*g:][:32], src[8+16*g:][:16], d*float32(scale-32))
	}
}

// q2k: sixteen groups of sixteen, d·scale·q − dmin·min, scale and min in the
// nibbles of a byte.
func q2k(dst []float32, src []byte) {
	scales, quants, d, dmin := src[:16], src[16:80], half(src[80:]), half(src[82:])
	for i := range dst {
		s := scales[i/16]
		q := quants[i/128*32+i%32] >> (i % 128 / 32 * 2) & 3
		dst[i] = float32(float32(d*float32(s&15))*float32(q)) - float32(dmin*float32(s>>4))
	}
}

// q3k: sixteen groups of sixteen, d·scale·(q − 4); the third bit of q is stored separately.
func q3k(dst []float32, src []byte) {
	high, quants, packed, d := src[:32], src[32:96], src[96:108], half(src[108:])
	var scales [16]float32
	for g := range scales {
		low := packed[g%8] >> (g / 8 * 4) & 15
		top := packed[8+g%4] >> (g / 4 * 2) & 3
		scales[g] = d * float32(int(low|top<<4)-32)
	}
	for i := range dst {
		q := quants[i/128*32+i%32]>>(i%128/32*2)&3 | high[i%32]>>(i/32)&1<<2
		dst[i] = scales[i/16] * float32(int(q)-4)
	}
}

// sixBits unpacks the scale and minimum of group g of the q4k and q5k formats.
func sixBits(packed []byte, g int) (scale, low float32) {
	if g < 4 {
		return float32(packed[g] & 63), float32(packed[g+4] & 63)
	}
	return float32(packed[g+4]&15 | packed[g-4]>>6<<4), float32(packed[g+4]>>4 | packed[g]>>6<<4)
}

// q4k: eight groups of 32, d·scale·q − dmin·min.
func q4k(dst []float32, src []byte) {
	d, dmin, packed, quants := half(src), half(src[2:]), src[4:16], src[16:144]
	for g := range 8 {
		scale, low := sixBits(packed, g)
		scale, low = d*scale, dmin*low
		for i, q := range quants[g/2*32:][:32] {
			dst[32*g+i] = float32(scale*float32(q>>(g%2*4)&15)) - low
		}
	}
}

// q5k: as q4k; the fifth bits are stored separately, group g in bit g.
func q5k(dst []float32, src []byte) {
	d, dmin, packed, high, quants := half(src), half(src[2:]), src[4:16], src[16:48], src[48:176]
	for g := range 8 {
		scale, low := sixBits(packed, g)
		scale, low = d*scale, dmin*low
		for i, q := range quants[g/2*32:][:32] {
			q = q>>(g%2*4)&15 | high[i]>>g&1<<4
			dst[32*g+i] = float32(scale*float32(q)) - low
		}
	}
}

// q6k: sixteen groups of sixteen, d·scale·(q − 32); the upper two bits are stored separately.
func q6k(dst []float32, src []byte) {
	quants, high, scales, d := src[:128], src[128:192], src[192:208], half(src[208:])
	for i := range dst {
		part, quarter, lane := i/128, i%128/32, i%32
		low := quants[part*64+quarter%2*32+lane] >> (quarter / 2 * 4) & 15
		top := high[part*32+lane] >> (2 * quarter) & 3
		dst[i] = float32(d*float32(int8(scales[i/16]))) * float32(int(low|top<<4)-32)
	}
}
