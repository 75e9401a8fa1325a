package kernel

import "golang.org/x/sys/cpu"

// available lists the supported instruction sets of this processor, best last.
func available() []ISA {
	have := []ISA{Generic}
	x := &cpu.X86
	if x.HasAVX2 && x.HasFMA {
		have = append(have, AVX2)
		if x.HasAVX512F && x.HasAVX512VL && x.HasAVX512BW && x.HasAVX512DQ {
			have = append(have, AVX512)
		}
	}
	return have
}
