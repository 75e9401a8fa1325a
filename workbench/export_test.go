package workbench

import (
	"encoding/json"
	"fmt"

	"envace/chat"
	"envace/task"
)

// What package workbench_test sees of the inside. Its tests play the domains of
// workbench/domains, which tests of this package cannot import.

// Stage returns the world and the first user turn of a seed.
func (d Domain) Stage(seed uint64) (*World, Turn) {
	s := d.stage(seed, false)
	return &World{d, s.state}, s.turns[0]
}

// Follow lets the expert do what p says where call answers. Results are by the id
// of the planned call.
func (d Domain) Follow(p *Plan, call func(string, json.RawMessage) string) ([]chat.Message, map[string]string, error) {
	c, err := d.follow(p, call, 0)
	if err != nil {
		return nil, nil, err
	}
	return c.messages, c.results, nil
}

// Outline writes down a plan with all its branches.
func (p *Plan) Outline() string {
	switch {
	case p.text != "":
		return p.wording()
	case p.tool == "":
		return fmt.Sprintf("(%s ? %s : %s)", describe([]task.Cond{p.cond}), p.yes.Outline(), p.no.Outline())
	}
	return fmt.Sprintf("%s=%s(%s) %s", p.id, p.tool, p.args.describe(), p.next.Outline())
}

// EachText passes every text in which Words looks for words to note.
func (d Domain) EachText(note func(string)) { d.words(note) }
