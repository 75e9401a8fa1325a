package workbench_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"envace/rollout"
	"envace/workbench"
)

// house is the state: whatever your tools work on.
type house struct {
	Lamps map[string]string `json:"lamps"` // lamp: on, off or broken
}

func lights() workbench.Domain {
	lamp := []workbench.Param{workbench.Text("lamp")}
	return workbench.Domain{
		Name:  "lights",
		About: "you look after lamps. broken lamps cannot be lit.",
		Tools: []workbench.Tool{
			{Name: "get_lamp", About: "show a lamp", Params: lamp, Do: workbench.On(getLamp)},
			{Name: "light_lamp", About: "light a lamp that is off", Params: lamp, Write: true, Do: workbench.On(lightLamp)},
		},
		New:   func(r *workbench.Rand) workbench.State { return &house{Lamps: map[string]string{r.Name(): "off"}} },
		Kinds: []workbench.Kind{{Name: "light", Weight: 1, Make: workbench.For(light)}},
	}
}

func getLamp(h *house, a workbench.Args) (any, error) {
	status, ok := h.Lamps[a.Text("lamp")]
	if !ok {
		return nil, workbench.NotFound("lamp", a.Text("lamp"), h.Lamps, "another name")
	}
	return workbench.Fields{"status": status}, nil
}

func lightLamp(h *house, a workbench.Args) (any, error) {
	name := a.Text("lamp")
	if status := h.Lamps[name]; status != "off" {
		return nil, workbench.Refuse("status", status, "lamp is not off")
	}
	h.Lamps[name] = "on"
	return workbench.Fields{"status": "on"}, nil
}

// light is a kind of task: what is in the world, what the user says, what an
// expert does.
func light(r *workbench.Rand, h *house) workbench.Turn {
	name := r.Name()
	h.Lamps[name] = r.One("off", "on", "broken")
	status := workbench.From("seen.status")
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"lamp": name}, "light {lamp}.", "please light the lamp {lamp}."),
		Plan: workbench.Do("seen", "get_lamp", workbench.Values{"lamp": name},
			workbench.OnlyIf(status.Is("off"),
				workbench.Do("light", "light_lamp", workbench.Values{"lamp": name},
					workbench.Say("done, %v is lit.", name)),
				name, status)),
	}
}

// A world of your own: its tasks, their expert, and the judge of success.
func Example() {
	tasks, err := lights().Tasks(5, "test", 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range tasks {
		fmt.Println("user:", t.Turns[0].User)
		for _, m := range t.Turns[0].Expert {
			for _, c := range m.Calls {
				fmt.Println("call:", c.Name, string(c.Arguments))
			}
			if m.Content != "" {
				fmt.Printf("%s: %s\n", m.Role, m.Content)
			}
		}
		ok, _, _ := workbench.Worlds{Domains: []workbench.Domain{lights()}}.Success(t, rollout.Recorded(t))
		fmt.Println("success:", ok)
	}
	// Output:
	// user: please light the lamp golden-hill.
	// call: get_lamp {"lamp":"golden-hill"}
	// tool: {"status":"off"}
	// call: light_lamp {"lamp":"golden-hill"}
	// tool: {"status":"on"}
	// assistant: done, golden-hill is lit.
	// success: true
	// user: please light the lamp bronze-hawk.
	// call: get_lamp {"lamp":"bronze-hawk"}
	// tool: {"status":"broken"}
	// assistant: sorry, bronze-hawk is broken.
	// success: true
}

// TestGuideShowsThisFile: the code in docs/own-tools.md is code of this file.
func TestGuideShowsThisFile(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "docs", "own-tools.md"))
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(guide), "```go\n")[1:]
	if len(blocks) == 0 {
		t.Error("the guide shows no code")
	}
	for _, b := range blocks {
		b, _, _ = strings.Cut(b, "```")
		if strings.HasPrefix(b, "package main\n") {
			continue // built by cli's tests
		}
		if !strings.Contains(string(code), strings.TrimSpace(b)) {
			t.Errorf("not in this file:\n%s", b)
		}
	}
}
