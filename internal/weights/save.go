package weights

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// SaveOptions configure Save. The zero value stores float32 and no text files.
type SaveOptions struct {
	BF16  bool              // store bfloat16, rounded to nearest, ties to even
	Files map[string][]byte // other files, keyed by name as in Text.Files
}

// Save writes a Hugging Face folder atomically (see [ReplaceDir]): config.json,
// model.safetensors and the given files. get is called once for each of
// cfg.Tensors, in that order, and returns the tensor's values, valid until the
// next call. A value that is not finite is an error, because Open would reject it.
func Save(dir string, cfg Config, get func(name string) ([]float32, error), o SaveOptions) error {
	config, err := cfg.Marshal()
	if err != nil {
		return fmt.Errorf("save %s: %w", dir, err)
	}
	infos := cfg.Tensors()
	for i := range infos {
		if infos[i].Type = "F32"; o.BF16 {
			infos[i].Type = "BF16"
		}
	}
	return ReplaceDir(dir, func(tmp string) error {
		if err := writeFiles(tmp, o.Files); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(tmp, "config.json"), config, 0o666); err != nil {
			return err
		}
		return writeFile(filepath.Join(tmp, weightsName), func(w io.Writer) error {
			return WriteTensors(w, infos, get)
		})
	})
}

func writeFiles(dir string, files map[string][]byte) error {
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("file %q is outside the folder", name)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// WriteTensors writes a safetensors file with the tensors infos, of which it
// reads Name, Shape and Type ("F32" or "BF16"), in that order. get is as for [Save].
func WriteTensors(w io.Writer, infos []Info, get func(name string) ([]float32, error)) error {
	header, err := header(infos)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	for _, info := range infos {
		x, err := get(info.Name)
		if err != nil {
			return fmt.Errorf("tensor %s: %w", info.Name, err)
		}
		if len(x) != info.Len() {
			return fmt.Errorf("tensor %s%s has %d elements, want %d", info.Name, shapeText(info.Shape), len(x), info.Len())
		}
		limit := uint32(0x7f800000)
		if info.Type == "BF16" {
			limit = 0x7f7f8000 // would be rounded to infinity
		}
		if err := (&stored{Info: info}).finite(x, limit); err != nil {
			return fmt.Errorf("tensor %s: %w", info.Name, err)
		}
		if err := writeNumbers(w, info.Type, x); err != nil {
			return err
		}
	}
	return nil
}

// header returns a header for tensors stored one after another, padded so that the
// data begins at a multiple of eight bytes.
func header(infos []Info) ([]byte, error) {
	var b strings.Builder
	b.WriteString(`{"__metadata__":{"format":"pt"}`)
	at, seen := uint64(0), map[string]bool{}
	for _, info := range infos {
		if seen[info.Name] {
			return nil, fmt.Errorf("duplicate tensor %s", info.Name)
		}
		seen[info.Name] = true
		size := uint64(info.Len())
		switch info.Type {
		case "F32":
			size *= 4
		case "BF16":
			size *= 2
		default:
			return nil, fmt.Errorf("tensor %s: type %q cannot be written: want F32 or BF16", info.Name, info.Type)
		}
		e := entry{Type: info.Type, Offsets: []uint64{at, at + size}, Shape: []int64{}}
		for _, d := range info.Shape {
			e.Shape = append(e.Shape, int64(d))
		}
		name, _ := json.Marshal(info.Name)
		body, _ := json.Marshal(e)
		fmt.Fprintf(&b, ",%s:%s", name, body)
		at += size
	}
	b.WriteString("}")
	b.WriteString(strings.Repeat(" ", -b.Len()&7))
	return append(binary.LittleEndian.AppendUint64(nil, uint64(b.Len())), b.String()...), nil
}

func writeNumbers(w io.Writer, kind string, x []float32) error {
	buf := make([]byte, 0, chunk)
	for len(x) > 0 {
		n := min(len(x), chunk/4)
		buf = buf[:0]
		for _, v := range x[:n] {
			if kind == "BF16" {
				buf = binary.LittleEndian.AppendUint16(buf, bf16(v))
			} else {
				buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(v))
			}
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
		x = x[n:]
	}
	return nil
}
