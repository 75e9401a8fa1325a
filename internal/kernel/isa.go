package kernel

import (
	"fmt"
	"os"
	"strings"
)

// ISA is an instruction set supported by the kernels. The zero ISA is the default.
type ISA int

// The instruction sets, from slowest to fastest. All give bit-identical results.
const (
	Generic ISA = iota + 1 // plain Go, any processor
	AVX2                   // AVX2 and FMA
	AVX512                 // AVX-512 F, VL, BW and DQ, and AVX2
)

// String returns the name that ENVACE_CPU takes.
func (s ISA) String() string {
	switch s {
	case Generic:
		return "generic"
	case AVX2:
		return "avx2"
	case AVX512:
		return "avx512"
	}
	return "default"
}

// Select returns the instruction set that the kernels use: the one named by the
// environment variable ENVACE_CPU (generic, avx2 or avx512), else the best one that
// the processor supports. An unknown or unsupported name is an error. The variable is
// read when the program starts; kernels panic with that error, so a program should
// call Select first and report it.
func Select() (ISA, error) {
	return choose(os.Getenv("ENVACE_CPU"), available())
}

func choose(name string, have []ISA) (ISA, error) {
	if name == "" {
		return have[len(have)-1], nil
	}
	var names []string
	for _, s := range have {
		if s.String() == name {
			return s, nil
		}
		names = append(names, s.String())
	}
	return 0, fmt.Errorf("instruction set ENVACE_CPU=%q is not available: set one of %s, or unset it",
		name, strings.Join(names, ", "))
}

var start, errStart = Select()

// selected returns the instruction set selected at program start.
func selected() ISA {
	if errStart != nil {
		panic(errStart)
	}
	return start
}
