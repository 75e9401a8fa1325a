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
			s = chains(s, t, i, j, w)
			copy(c, s[:])
		}
	}
}

// chains runs through k for row i and the w columns from j.
func chains(s [4]float32, t *tile, i, j, w int) [4]float32 {
	a, b := t.a[i*t.aRow:], t.b[j:]
	if w < 4 {
		for l := range t.k {
			x := a[l*t.aCol]
			for v := range w {
				s[v] = fma32(x, b[l*t.bRow+v], s[v])
			}
		}
		return s
	}
	s0, s1, s2, s3 := s[0], s[1], s[2], s[3]
	for l := range t.k {
		x, y := a[l*t.aCol], b[l*t.bRow:]
		y = y[:4]
		n0 := float64(x)*float64(y[0]) + float64(s0) // fma32 by hand, four abreast
		n1 := float64(x)*float64(y[1]) + float64(s1)
		n2 := float64(x)*float64(y[2]) + float64(s2)
		n3 := float64(x)*float64(y[3]) + float64(s3)
		if twice(n0) || twice(n1) || twice(n2) || twice(n3) {
			s0, s1, s2, s3 = fma32(x, y[0], s0), fma32(x, y[1], s1), fma32(x, y[2], s2), fma32(x, y[3], s3)
			continue
		}
		s0, s1, s2, s3 = float32(n0), float32(n1), float32(n2), float32(n3)
	}
	return [4]float32{s0, s1, s2, s3}
}
