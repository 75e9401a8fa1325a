package kernel

//go:generate go -C asm run ./gemm -out ../gemm_amd64.s
//go:generate go -C asm run ./vec -out ../vec_amd64.s -stubs ../vec_stub_amd64.go -pkg kernel

// rows is the greatest number of rows of a tile.
func (s ISA) rows() int {
	switch s {
	case AVX512:
		return len(gemm512) - 1
	case AVX2:
		return len(gemm256) - 1
	}
	return 8
}

// panels returns the number of panels that a tile of m rows spans: with few rows,
// more panels keep the multipliers busy.
func (s ISA) panels(m int) int {
	switch {
	case s == AVX512 && m == 1:
		return 4
	case s == AVX512 && m <= 3, s == AVX2 && m == 1:
		return 2
	}
	return 1
}

// multiply computes m rows by cols columns of the tile in s; cols is at most one
// panel, or the panels that panels(m) gives.
func (s ISA) multiply(x *scratch, m, cols int) {
	switch s {
	case AVX512:
		multiply512(&x.tile, m, cols)
	case AVX2:
		multiply256(x, m, cols)
	default:
		multiplyGo(&x.tile, m, cols)
	}
}

// transpose packs 8 contiguous columns of k numbers, ld apart, as rows of a panel, and
// returns the number of rows written; the caller handles the rest.
func (s ISA) transpose(dst, src []float32, ld, k int) int {
	if s == Generic || k < 8 {
		return 0
	}
	_, _ = dst[(k-1)*panelCols+7], src[7*ld+k-1]
	transpose256(&dst[0], &src[0], ld, k/8)
	return k - k%8
}

func multiply512(t *tile, m, cols int) {
	last := (cols-1)%panelCols + 1
	t.mask = 1<<last - 1
	if cols > panelCols {
		wide512[m](t)
		return
	}
	gemm512[m](t)
}

// multiply256 splits the tile to the width of its kernel and computes the remainder in
// a scratch tile of full width.
func multiply256(x *scratch, m, cols int) {
	if cols > panelCols {
		gemm256x1wide(&x.tile)
		return
	}
	width := panelCols
	if m > 3 {
		width = panelCols / 2
	}
	for ; cols >= width; cols -= width {
		gemm256[m](&x.tile)
		if cols == width {
			return
		}
		x.c, x.b = x.c[width:], x.b[width:]
	}
	c, ldc := x.c, x.ldc
	x.c, x.ldc = x.edge[:], width
	for i := range m {
		copy(x.edge[i*width:], c[i*ldc:][:cols])
	}
	gemm256[m](&x.tile)
	for i := range m {
		copy(c[i*ldc:][:cols], x.edge[i*width:])
	}
	x.c, x.ldc = c, ldc
}

var gemm512 = [...]func(*tile){nil, gemm512x1, gemm512x2, gemm512x3, gemm512x4, gemm512x5, gemm512x6, gemm512x7,
	gemm512x8, gemm512x9, gemm512x10, gemm512x11, gemm512x12, gemm512x13, gemm512x14}

var wide512 = [...]func(*tile){nil, gemm512x1wide, gemm512x2wide, gemm512x3wide}

var gemm256 = [...]func(*tile){nil, gemm256x1, gemm256x2, gemm256x3, gemm256x4, gemm256x5, gemm256x6}

// The micro-kernels in gemm_amd64.s, named for the bits of a vector and the rows
// of a tile. They are one panel wide, those of 256 bits with more than three rows
// half a panel, and the wide ones as panels says.

func gemm512x1(t *tile)
func gemm512x2(t *tile)
func gemm512x3(t *tile)
func gemm512x4(t *tile)
func gemm512x5(t *tile)
func gemm512x6(t *tile)
func gemm512x7(t *tile)
func gemm512x8(t *tile)
func gemm512x9(t *tile)
func gemm512x10(t *tile)
func gemm512x11(t *tile)
func gemm512x12(t *tile)
func gemm512x13(t *tile)
func gemm512x14(t *tile)
func gemm512x1wide(t *tile)
func gemm512x2wide(t *tile)
func gemm512x3wide(t *tile)
func gemm256x1(t *tile)
func gemm256x2(t *tile)
func gemm256x3(t *tile)
func gemm256x4(t *tile)
func gemm256x5(t *tile)
func gemm256x6(t *tile)
func gemm256x1wide(t *tile)

//go:noescape
func transpose256(dst, src *float32, ld, blocks int)
