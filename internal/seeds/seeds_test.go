package seeds

import (
	"slices"
	"testing"
)

func TestSeedDependsOnEachPartAndItsPlace(t *testing.T) {
	base := []uint64{1, 2, 3, 4}
	seen := map[uint64]int{Derive(base...): -1, Derive(4, 3, 2, 1): -2, Derive(1, 2, 3): -3, Derive(): -4, Derive(0): -5, Derive(0, 0): -6}
	for i := range base {
		parts := slices.Clone(base)
		parts[i]++
		if j, ok := seen[Derive(parts...)]; ok {
			t.Errorf("parts %v give the seed of %d", parts, j)
		}
		seen[Derive(parts...)] = i
	}
	if len(seen) != 10 || Of("act") == Of("rehearse") {
		t.Errorf("only %d seeds", len(seen))
	}
}

// Recorded, because what is drawn from them must not change.
func TestValues(t *testing.T) {
	for name, tt := range map[string][2]uint64{
		"derive":     {Derive(1, 2, 3), 0xD56D0264932A233F},
		"of":         {Of("act"), 0xE723B5190545606B},
		"splitmix64": {At(0, 1), 0xE220A8397B1DCDAF}, // the first number of Vigna's test vector for seed 0
	} {
		if tt[0] != tt[1] {
			t.Errorf("%s gives %#x, want %#x", name, tt[0], tt[1])
		}
	}
}
