package serve

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"envace/engine"
	"envace/render"
)

// drawing emits another text each time.
type drawing struct {
	*fakeSampler
	texts []string
	asked []engine.Params
}

func (d *drawing) Stream(ctx context.Context, prompt []int, p engine.Params, w engine.Watch) (engine.StopReason, error) {
	d.text = d.texts[min(len(d.asked), len(d.texts)-1)]
	d.asked = append(d.asked, p)
	return d.fakeSampler.Stream(ctx, prompt, p, w)
}

const uniqueNumbers = `,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"array","items":{"type":"integer"},"uniqueItems":true}}}`

// What a grammar cannot enforce is checked, and drawn again with other seeds.
func TestRedraws(t *testing.T) {
	forced := `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"},"uniqueItems":true}},"required":["a"]}}}],"tool_choice":"required"`
	call := func(list string) string {
		return `<tool_call>{"name": "f", "arguments": {"a":` + list + `}}</tool_call>`
	}
	for _, tt := range []struct {
		name, extra string
		texts       []string
		draws       int
		want        string // part of the choice
	}{
		{"first conforms", uniqueNumbers, []string{"[1,2]"}, 1, `"content":"[1,2]"`},
		{"third conforms", uniqueNumbers, []string{"[1,1]", "[2,2]", "[3]"}, 3, `"content":"[3]"`},
		{"greedy", uniqueNumbers + `,"temperature":0`, []string{"[1,1]", "[3]"}, 2, `"content":"[3]"`},
		{"none conforms", uniqueNumbers, []string{"[1,1]"}, maxDraws, "uniqueItems"},
		{"truncated", uniqueNumbers + `,"max_tokens":3`, []string{"[1,1]"}, 1, `"finish_reason":"length"`},
		{"calls", forced, []string{call("[1,1]"), call("[1]")}, 2, `{\"a\":[1]}`},
		{"no call conforms", forced, []string{call("[1,1]")}, maxDraws, "call of f"},
		{"enforced by the grammar", `,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"integer","minimum":0}}}`, []string{"-1"}, 1, `"-1"`},
	} {
		for _, stream := range []string{"", `,"stream":true`} {
			t.Run(tt.name+stream, func(t *testing.T) {
				d := &drawing{fakeSampler: newFakeSampler(baseChat(t)), texts: tt.texts}
				url := served(t, d.fakeSampler, func(o *Options) { o.Sampler = d })
				status, body := post(t, url+"/v1/chat/completions", ask(tt.extra+`,"seed":5`+stream))
				if !strings.Contains(body, tt.want) || len(d.asked) != tt.draws {
					t.Errorf("%d draws: %d %s", len(d.asked), status, body)
				}
				var seeds []uint64
				for i, p := range d.asked {
					if slices.Contains(seeds, p.Seed) || i > 0 && p.Temperature == 0 {
						t.Errorf("draw %d: %+v", i, p)
					}
					seeds = append(seeds, p.Seed)
				}
				if tt.draws == maxDraws && (stream == "" && status != 422 || !strings.Contains(body, codeSchema)) {
					t.Errorf("%d %s", status, body)
				}
				if tt.draws < maxDraws && strings.Contains(body, "[1,1]") && tt.name != "truncated" {
					t.Errorf("a rejected draw is shown: %s", body)
				}
			})
		}
	}
}

// The prompt does not depend on how the request spells its texts, and large integers stay.
func TestSpellingOfRequests(t *testing.T) {
	base := baseChat(t)
	c, err := render.New(base.Tokenizer(), render.Config{Template: telling, EOS: base.Stop(), MaxCalls: -1})
	if err != nil {
		t.Fatal(err)
	}
	w := &recorder{fakeSampler: newFakeSampler(c)}
	w.text = "ok"
	url := served(t, w.fakeSampler, func(o *Options) { o.Sampler = w })
	prompt := func(tools, said string) string {
		w.asked = nil
		status, body := post(t, url+"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":`+said+`}],"tools":`+tools+`}`)
		if status != 200 {
			t.Fatalf("%d %s", status, body)
		}
		return strings.Split(w.asked[0], " {MaxTokens")[0]
	}
	tool := func(text string) string {
		return fmt.Sprintf(`[{"type":"function","function":{"name":"f","description":%s,"parameters":{"type":"object","properties":{"n":{"const":9007199254740993,"title":%s}}}}}]`, text, text)
	}
	for plain, spelled := range map[string]string{`"<b> & 晝"`: `"\u003cb\u003e \u0026 \u665d"`, `"a/b é"`: `"a\/b \u00e9"`, `"😀>"`: `"\ud83d\ude00\u003e"`} {
		want := prompt(tool(plain), plain)
		if got := prompt(tool(spelled), spelled); got != want || !strings.Contains(got, strings.Trim(plain, `"`)) || !strings.Contains(got, "9007199254740993") {
			t.Errorf("%s: %s, want %s", spelled, got, want)
		}
	}
}
