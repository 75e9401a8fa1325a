//go:build !amd64

package kernel

func available() []ISA { return []ISA{Generic} }
