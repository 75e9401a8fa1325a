//go:build ignore

// Command rows makes the training rows that the comparisons in this folder use,
// one engine.Datum a line.
//
//	rows sft MODEL      rows of 400 tokens of the quickstart's SFT examples, all
//	                    tokens weighed, nothing shared
//	rows grpo MODEL     one step of rehearsal RL with the policy MODEL: 8 tasks of
//	                    the workbench, 8 episodes each, both roles
//	rows dialogue MODEL FILE N
//	                    one recorded dialogue of FILE (CM2's form), the longest of
//	                    at most N tokens: a row for each message of the assistant
//	rows text MODEL FILE N
//	                    one row: the first N tokens of that dialogue
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"

	"envace/engine"
	"envace/engine/cpu"
	"envace/internal/seeds"
	"envace/judge"
	"envace/render"
	"envace/rollout"
	"envace/task"
	"envace/train"
	"envace/workbench/domains"
)

const rowTokens = 400

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: rows sft|grpo|dialogue|text MODEL [FILE N]")
		os.Exit(2)
	}
	data, err := rows(os.Args[1], os.Args[2], os.Args[3:])
	if err == nil {
		err = write(data)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "rows %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func rows(kind, model string, rest []string) ([]engine.Datum, error) {
	chat, err := render.Open(model, render.Config{})
	if err != nil {
		return nil, err
	}
	switch {
	case kind == "sft":
		return sft(chat)
	case kind == "grpo":
		return grpo(chat, model)
	case (kind == "dialogue" || kind == "text") && len(rest) == 2:
		n, err := strconv.Atoi(rest[1])
		if err != nil {
			return nil, err
		}
		return dialogue(chat, rest[0], n, kind == "text")
	}
	return nil, fmt.Errorf("there are no such rows, or arguments are missing")
}

func write(data []engine.Datum) error {
	w := bufio.NewWriter(os.Stdout)
	for _, d := range data {
		if err := json.NewEncoder(w).Encode(d); err != nil {
			return err
		}
	}
	return w.Flush()
}

// tasks draws n tasks of the domains for training.
func tasks(split string, n int) ([]task.Task, error) {
	var out []task.Task
	from := domains.Train()
	for i, d := range from {
		some, err := d.Tasks(1, split, n*(i+1)/len(from)-n*i/len(from))
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// sft joins shuffled examples of both roles and cuts them into 30 rows.
func sft(chat *render.Chat) ([]engine.Datum, error) {
	list, err := tasks("sft", 100)
	if err != nil {
		return nil, err
	}
	teacher := train.Teacher{Renderer: chat, FewShot: rollout.FewShotPast, Brief: true, Seed: 1}
	var examples []train.Example
	for _, t := range list {
		for _, teach := range []func(task.Task) ([]train.Example, error){teacher.Act, teacher.Rehearse} {
			some, err := teach(t)
			if err != nil {
				return nil, err
			}
			examples = append(examples, some...)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(examples), func(i, j int) { examples[i], examples[j] = examples[j], examples[i] })
	var ids []int
	for _, e := range examples {
		ids = append(append(ids, e.Prompt...), e.Target...)
	}
	const rows = 30
	var data []engine.Datum
	for at := 0; len(data) < rows && at+rowTokens < len(ids); at += rowTokens {
		data = append(data, whole(ids[at:at+rowTokens+1], rows*rowTokens))
	}
	return data, nil
}

// whole weighs all tokens of a row alike.
func whole(ids []int, of int) engine.Datum {
	n := len(ids) - 1
	d := engine.Datum{Input: ids[:n], Target: ids[1:], Weight: make([]float32, n)}
	for i := range d.Weight {
		d.Weight[i] = 1 / float32(of)
	}
	return d
}

// grpo plays one step as the quickstart does.
func grpo(chat *render.Chat, model string) ([]engine.Datum, error) {
	const batch, group = 8, 8
	ctx := context.Background()
	e, err := cpu.Open(model, cpu.Options{})
	if err != nil {
		return nil, err
	}
	sampler, err := e.Sampler(ctx)
	if err != nil {
		return nil, err
	}
	list, err := tasks("rl", batch)
	if err != nil {
		return nil, err
	}
	p := rollout.Policy{Renderer: chat, Sampler: sampler, Params: engine.Params{MaxTokens: 64, Temperature: 1}}
	p.Name = rollout.Learner
	worlds := rollout.Pair{Tools: rollout.Rehearsal{Policy: p, FewShot: rollout.FewShotPast, Brief: true}}
	var played []task.Task
	for _, t := range list {
		played = append(played, slices.Repeat([]task.Task{t}, group)...)
	}
	eps, err := rollout.PlayAll(ctx, played, func(i int) rollout.Game {
		seed := seeds.Derive(1, uint64(i/group), seeds.Of(played[i].ID), uint64(i%group))
		return rollout.Game{Policy: p, Worlds: worlds, Judge: judge.Checklist{}, Limits: rollout.Limits{Messages: 8}, Member: i % group, Seed: seed}
	})
	if err != nil {
		return nil, err
	}
	credit := train.Credit{Fidelity: true}
	rows := train.Rows(eps, rollout.Learner, credit)
	train.Advantages(rows, credit)
	return train.Data(rows, credit)
}

// dialogue renders the longest recorded dialogue of at most n tokens.
func dialogue(chat *render.Chat, path string, n int, text bool) ([]engine.Datum, error) {
	list, err := task.Load(path, true)
	if list == nil {
		return nil, err
	}
	teacher := train.Teacher{Renderer: chat, FewShot: rollout.FewShotPast, Seed: 1}
	var best []train.Example
	longest := 0
	for _, t := range list {
		examples, err := teacher.Act(t)
		if err != nil || len(examples) == 0 {
			continue
		}
		last := examples[len(examples)-1]
		if size := len(last.Prompt) + len(last.Target); size > longest && (text || size <= n) {
			best, longest = examples, size
		}
	}
	if best == nil {
		return nil, fmt.Errorf("%s: no dialogue has at most %d tokens", path, n)
	}
	if !text {
		return train.Weigh(best, 1), nil
	}
	last := best[len(best)-1]
	ids := append(last.Prompt, last.Target...)
	if len(ids) <= n {
		return nil, fmt.Errorf("%s: the longest dialogue has %d tokens, not %d", path, len(ids), n+1)
	}
	return []engine.Datum{whole(ids[:n+1], n)}, nil
}
