package weights

import (
	"path/filepath"
	"testing"

	"envace/internal/oracle"
)

// TestGoldenEngineModels opens every small reference model.
func TestGoldenEngineModels(t *testing.T) {
	for _, path := range oracle.Glob(t, "engine/*/model.safetensors") {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			m, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			n := 0
			for _, info := range m.Infos() {
				dst := make([]float32, info.Len())
				if err := m.Read(info.Name, dst); err != nil {
					t.Fatal(err)
				}
				n += len(dst)
			}
			if n != m.Config.Params() || m.Bytes() != int64(4*n) {
				t.Errorf("%d numbers in %d bytes, Params says %d", n, m.Bytes(), m.Config.Params())
			}
		})
	}
}
