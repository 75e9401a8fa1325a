package cli

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"envace/internal/weights"
	"envace/recipes"
)

// spoilt writes the quickstart's base model with one fault: spoilt FAULT DIR.
func spoilt(ts *testscript.TestScript, _ bool, args []string) {
	fault, dir := args[0], ts.MkAbs(args[1])
	ts.Check(os.CopyFS(dir, recipes.Base()))
	remove := func(name string) { ts.Check(os.Remove(filepath.Join(dir, name))) }
	switch fault {
	case "none":
	case "cut-short":
		path := filepath.Join(dir, "model.safetensors")
		st, err := os.Stat(path)
		ts.Check(err)
		ts.Check(os.Truncate(path, st.Size()*3/4))
	case "missing-tensor":
		rewrite(ts, dir, func(list []weights.Info) []weights.Info {
			return slices.DeleteFunc(list, func(i weights.Info) bool { return i.Name == "model.norm.weight" })
		})
	case "wrong-shape":
		rewrite(ts, dir, func(list []weights.Info) []weights.Info {
			slices.Reverse(list[slices.IndexFunc(list, func(i weights.Info) bool { return i.Name == "model.embed_tokens.weight" })].Shape)
			return list
		})
	case "nan":
		path := filepath.Join(dir, "model.safetensors")
		data, err := os.ReadFile(path)
		ts.Check(err)
		binary.LittleEndian.PutUint16(data[len(data)-2:], 0x7fc0) // the last number, in bfloat16
		ts.Check(os.WriteFile(path, data, 0o666))
	case "unknown-architecture":
		path := filepath.Join(dir, "config.json")
		data, err := os.ReadFile(path)
		ts.Check(err)
		ts.Check(os.WriteFile(path, bytes.ReplaceAll(data, []byte(`"qwen3"`), []byte(`"mamba"`)), 0o666))
	case "no-weights":
		remove("model.safetensors")
	case "no-tokenizer":
		remove("tokenizer.json")
	case "no-template":
		remove("chat_template.jinja")
	default:
		ts.Fatalf("no fault is called %s", fault)
	}
}

// rewrite rewrites the weights of dir as changed by change.
func rewrite(ts *testscript.TestScript, dir string, change func([]weights.Info) []weights.Info) {
	m, err := weights.Open(dir)
	ts.Check(err)
	numbers := map[string][]float32{}
	for _, info := range m.Infos() {
		numbers[info.Name] = make([]float32, info.Len())
		ts.Check(m.Read(info.Name, numbers[info.Name]))
	}
	list := change(slices.Clone(m.Infos()))
	ts.Check(m.Close())
	ts.Check(weights.WriteAtomic(filepath.Join(dir, "model.safetensors"), func(w io.Writer) error {
		return weights.WriteTensors(w, list, func(name string) ([]float32, error) { return numbers[name], nil })
	}))
}

// oddGGUF writes a GGUF file whose one tensor is of a type that does not exist:
// oddgguf FILE.
func oddGGUF(ts *testscript.TestScript, _ bool, args []string) {
	le := binary.LittleEndian
	text := func(b []byte, s string) []byte { return append(le.AppendUint64(b, uint64(len(s))), s...) }
	b := le.AppendUint32([]byte("GGUF"), 3)
	b = le.AppendUint64(le.AppendUint64(b, 1), 1) // one tensor, one pair
	b = text(le.AppendUint32(text(b, "general.architecture"), 8), "llama")
	b = le.AppendUint32(text(b, "token_embd.weight"), 2)
	b = le.AppendUint64(le.AppendUint64(b, 32), 2)
	b = le.AppendUint64(le.AppendUint32(b, 999), 0)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), append(b, make([]byte, 4096)...), 0o666))
}

// oddData writes dialogues that are odd and yet sound, one with a result of a
// megabyte: odddata FILE.
func oddData(ts *testscript.TestScript, _ bool, args []string) {
	var b bytes.Buffer
	for i, d := range []struct{ user, arguments, result string }{
		{`hi`, `{\"n\": 1}`, `{\"ok\": true}`},
		{`a lone surrogate: \ud800`, `{\"n\": \"\ud800\"}`, `{\"half\": \"\udc00\"}`},
		{`an integer`, `{\"n\": 123456789012345678901234567890}`, `{\"n\": 9007199254740993}`},
		{`a lot`, `{\"n\": 2}`, `{\"text\": \"` + strings.Repeat("amber fox ", 1<<20/10) + `\"}`},
	} {
		fmt.Fprintf(&b, `{"uuid":"d%d","tools":[{"name":"look","parameters":{}}],"messages":[{"role":"user","content":"%s"},`+
			`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"look","arguments":"%s"}}]},`+
			`{"role":"tool","content":"%s"},{"role":"assistant","content":"done"}],`+
			`"checklists":[[[{"id":"C0","weight":1,"check":{"type":"reply","any_of":["done"]}}]]]}`+"\n", i, d.user, d.arguments, d.result)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o666))
}
