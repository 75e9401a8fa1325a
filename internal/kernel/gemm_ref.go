package kernel

// multiplyGo is the micro-kernel in plain Go: m rows by cols columns of a tile,
// four columns at a time.
func multiplyGo(t *tile, m, cols int) {
	for i := range m {
		for j := 0; j < cols; j += 4 {
			c := t.c[i*t.ldc+j:]
			w := min(4, cols-j)
			c = c[:w]
			var s [4]float32
			if t.add != 0 {
				copy(s[:], c)
			}
			copy(c, chains(s, t, i, j, w))
		}
	}
}

// chains runs through k for row i and the w columns from j.
func chains(s [4]float32, t *tile, i, j, w int) []float32 {
	a, b := t.a[i*t.aRow:], t.b[j:]
	if w < 4 {
		for l := range t.k {
			x := a[l*t.aCol]
			for v := range w {
				s[v] = fma32(x, b[l*t.bRow+v], s[v])
			}
		}
		return s[:w]
	}
	s0, s1, s2, s3 := s[0], s[1], s[2], s[3]
	for l := range t.k {
		x, y := a[l*t.aCol], b[l*t.bRow:]
		y = y[:4]
		s0 = fma32(x, y[0], s0)
		s1 = fma32(x, y[1], s1)
		s2 = fma32(x, y[2], s2)
		s3 = fma32(x, y[3], s3)
	}
	s = [4]float32{s0, s1, s2, s3}
	return s[:]
}
