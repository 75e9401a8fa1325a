package weights

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"testing"

	"envace/internal/oracle"
)

// TestGoldenDequant decodes every block format bit for bit.
func TestGoldenDequant(t *testing.T) {
	for _, path := range oracle.Glob(t, "gguf/*.json") {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var cases []struct {
			Type  string
			Ggml  int    `json:"ggml_type"`
			Block int    `json:"block"`
			Size  int    `json:"type_size"`
			Data  []byte `json:"data_b64"`
			Want  []byte `json:"f32_b64"`
		}
		if err := json.Unmarshal(data, &cases); err != nil {
			t.Fatal(err)
		}
		for _, tt := range cases {
			t.Run(tt.Type, func(t *testing.T) {
				f := formatOf(tt.Type)
				if f == nil || f.ggml != tt.Ggml || f.block != tt.Block || f.size != tt.Size {
					t.Fatalf("format %+v does not agree with %s %d %d %d", f, tt.Type, tt.Ggml, tt.Block, tt.Size)
				}
				got := make([]float32, len(tt.Data)/f.size*f.block)
				f.decode(got, tt.Data)
				if len(got)*4 != len(tt.Want) {
					t.Fatalf("%d numbers, want %d", len(got), len(tt.Want)/4)
				}
				for i, v := range got {
					want := math.Float32frombits(binary.LittleEndian.Uint32(tt.Want[4*i:]))
					if v != want && !(v != v && want != want) {
						t.Fatalf("number %d is %g, want %g (block starts % x)", i, v, want, tt.Data[i/f.block*f.size:][:8])
					}
				}
			})
		}
	}
}

// TestQuantByHand decodes one small block whose numbers are easy to see.
func TestQuantByHand(t *testing.T) {
	src, err := base64.StdEncoding.DecodeString("ADwAEDIAAAAAAAAAAAAAAAAA")
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]float32, 32)
	formatOf("Q4_0").decode(dst, src) // d = 1; bytes 0x00 0x10 0x32 0x00…
	for i, want := range map[int]float32{0: -8, 1: -8, 2: -6, 16: -8, 17: -7, 18: -5, 31: -8} {
		if dst[i] != want {
			t.Errorf("number %d is %g, want %g", i, dst[i], want)
		}
	}
}
