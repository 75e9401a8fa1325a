package kernel

import (
	"fmt"
	"os"
	"strings"
)

// ISA is an instruction set that the kernels have a version for. The zero ISA
// stands for the default one.
type ISA int

// The instruction sets, from the slowest to the fastest. Every one of them gives
// the same bits.
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

// Select returns the instruction set that the kernels run on: the one that the
// environment variable ENVACE_CPU names (generic, avx2 or avx512), else the best
// that this processor has. It is an error to name an unknown set or one that the
// processor lacks. Kernels go by what the environment was when the program began,
// and panic with that error: a program should call Select at its start and report it.
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
	return 0, fmt.Errorf("choose instruction set ENVACE_CPU=%q: this processor can run %s: set one of these or unset it",
		name, strings.Join(names, ", "))
}

var start, errStart = Select()

// selected is the instruction set that the program began with.
func selected() ISA {
	if errStart != nil {
		panic(errStart)
	}
	return start
}
