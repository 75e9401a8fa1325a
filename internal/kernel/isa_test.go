package kernel

import (
	"strings"
	"testing"
)

func TestChooseISA(t *testing.T) {
	all := []ISA{Generic, AVX2, AVX512}
	for _, tt := range []struct {
		name string
		have []ISA
		want ISA
	}{
		{"", all, AVX512},
		{"", all[:1], Generic},
		{"generic", all, Generic},
		{"avx2", all, AVX2},
		{"avx512", all, AVX512},
	} {
		if got, err := choose(tt.name, tt.have); err != nil || got != tt.want {
			t.Errorf("choose(%q, %v) = %v, %v, want %v", tt.name, tt.have, got, err, tt.want)
		}
	}
	for _, tt := range []struct {
		name string
		have []ISA
		want string
	}{
		{"avx512", all[:2], "set one of generic, avx2"},
		{"AVX2", all, "generic, avx2, avx512"},
		{"neon", all[:1], `ENVACE_CPU="neon"`},
	} {
		if _, err := choose(tt.name, tt.have); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("choose(%q, %v): error %v, want one with %q", tt.name, tt.have, err, tt.want)
		}
	}
}

func TestSelectReadsTheEnvironment(t *testing.T) {
	t.Setenv("ENVACE_CPU", "generic")
	if s, err := Select(); s != Generic || err != nil {
		t.Errorf("Select() = %v, %v, want generic", s, err)
	}
	t.Setenv("ENVACE_CPU", "z80")
	if _, err := Select(); err == nil {
		t.Error("Select() takes z80")
	}
}
