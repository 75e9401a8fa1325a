package kernel

// Rope rotates each head of one token by its position's angles, in place. Element i
// of a head pairs with i + D/2, as in Hugging Face's layout. x is (heads, D); cos and
// sin are (D/2).
func Rope(x, cos, sin []float32, heads, d int) {
	half := d / 2
	cos, sin = cos[:half], sin[:half]
	for h := range heads {
		a, b := x[h*d:h*d+half], x[h*d+half:(h+1)*d]
		for i, c := range cos {
			s, u, v := sin[i], a[i], b[i]
			a[i] = float32(u*c) - float32(v*s)
			b[i] = float32(v*c) + float32(u*s)
		}
	}
}

// RopeBack is the backward pass of Rope: its transpose, which is also its inverse.
func RopeBack(dx, cos, sin []float32, heads, d int) {
	half := d / 2
	cos, sin = cos[:half], sin[:half]
	for h := range heads {
		a, b := dx[h*d:h*d+half], dx[h*d+half:(h+1)*d]
		for i, c := range cos {
			s, u, v := sin[i], a[i], b[i]
			a[i] = float32(u*c) + float32(v*s)
			b[i] = float32(v*c) - float32(u*s)
		}
	}
}
