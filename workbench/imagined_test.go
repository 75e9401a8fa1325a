package workbench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"envace/judge"
	"envace/rollout"
	"envace/task"
	"envace/workbench"
	"envace/workbench/domains"
)

// dream answers calls with the true result, changed here and there: other
// statuses, other numbers, an error.
func dream(real *workbench.World, seed uint64) func(string, json.RawMessage) string {
	rng := rand.New(rand.NewPCG(seed, 1))
	status := regexp.MustCompile(`"status":"[a-z]+"`)
	number := regexp.MustCompile(`:[0-9]+`)
	words := []string{"pending", "open", "solved", "free", "here", "delivered", "lost"}
	return func(name string, args json.RawMessage) string {
		result := real.Call(name, args)
		if rng.IntN(8) == 0 {
			return fmt.Sprintf(`{"error":"no luck","status":%q,"similar":"amber-fox","event":"amber-fox"}`, words[rng.IntN(len(words))])
		}
		if rng.IntN(2) == 0 {
			result = status.ReplaceAllString(result, fmt.Sprintf(`"status":%q`, words[rng.IntN(len(words))]))
		}
		if rng.IntN(2) == 0 {
			result = number.ReplaceAllStringFunc(result, func(string) string { return fmt.Sprintf(":%d", rng.IntN(99)) })
		}
		return result
	}
}

// TestImaginedWorldsAreJudgedByWhatTheySay: whatever a world answers, who reacts
// to it as the plan says earns all, save for errors that the world owes.
func TestImaginedWorldsAreJudgedByWhatTheySay(t *testing.T) {
	for _, d := range domains.All() {
		t.Run(d.Name, func(t *testing.T) {
			elsewhere, played := 0, 0
			for seed := range uint64(150) {
				truth, err := d.Task(seed)
				if err != nil {
					t.Fatal(err)
				}
				world, turn := d.Stage(seed)
				messages, answers, err := d.Follow(turn.Plan, dream(world, seed))
				if err != nil {
					continue // the dream lacks a value that the plan needs
				}
				played++
				imagined := truth
				imagined.Turns = append([]task.Turn{}, truth.Turns[:1]...)
				imagined.Turns[0].Expert = messages
				v, err := judge.Checklist{}.Judge(context.Background(), rollout.Recorded(imagined))
				if err != nil {
					t.Fatal(err)
				}
				reply := 0
				for _, item := range v.Items {
					if item.Outcome == rollout.Fail && !strings.HasSuffix(item.ID, ".refused") || item.Outcome == rollout.Unknown {
						t.Fatalf("%s: %s: %+v\n%v", truth.ID, imagined.Turns[0].User, item, answers)
					}
					if strings.HasPrefix(item.ID, "reply") && item.Outcome == rollout.Pass {
						reply++
					}
				}
				if reply != 1 {
					t.Fatalf("%s: %d replies apply", truth.ID, reply)
				}
				if fmt.Sprint(answers) != fmt.Sprint(results(truth)) {
					elsewhere++
				}
			}
			t.Logf("%d dreams played, %d of them unlike the world", played, elsewhere)
			if played < 80 || elsewhere < 40 {
				t.Errorf("too few dreams")
			}
		})
	}
}

// results are the recorded results of the first turn, by planned call.
func results(t task.Task) map[string]string {
	out := map[string]string{}
	records := t.Records(0)
	for _, item := range t.Turns[0].Checklist {
		for _, r := range records {
			if item.Check.Type == task.ToolCall && item.Check.Name == r.Name {
				out[item.ID] = r.Result
			}
		}
	}
	return out
}

var names = regexp.MustCompile(`[a-z]+-[a-z]+`)

var varying = regexp.MustCompile(`[a-z]+-[a-z]+|[0-9]+|\b(` + strings.Join(workbench.People(), "|") + `)\b`)

// TestWordsDetermineThePlan: two requests in the same words, names and numbers
// apart, are planned alike.
func TestWordsDetermineThePlan(t *testing.T) {
	for _, d := range domains.All() {
		plans := map[string]string{}
		for seed := range uint64(600) {
			_, turn := d.Stage(seed)
			user := varying.ReplaceAllString(turn.User, "X")
			plan := varying.ReplaceAllString(turn.Plan.Outline(), "X")
			if other, ok := plans[user]; ok && other != plan {
				t.Errorf("%s: %q is planned as\n%s\nand as\n%s", d.Name, user, plan, other)
			}
			plans[user] = plan
		}
	}
}
