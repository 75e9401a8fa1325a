//go:build race

package oracle

// Race reports whether the race detector is on. It allocates for itself, so
// tests that count allocations leave the counting out.
const Race = true
