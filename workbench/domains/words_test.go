package domains

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"envace/chat"
	"envace/task"
)

func TestWordsCoverEveryTask(t *testing.T) {
	words := Words()
	t.Logf("%d words", len(words))
	for _, d := range All() {
		for seed := range uint64(some(400)) {
			task, err := d.Task(seed + 1000)
			if err != nil {
				t.Fatal(err)
			}
			task.World, task.Source = nil, ""
			for i := range task.Turns {
				task.Turns[i].Checklist = nil
			}
			task.ID = "x"
			for _, w := range letters.FindAllString(encode(task), -1) {
				if _, ok := slices.BinarySearch(words, w); !ok && !slices.Contains(wire, w) {
					t.Fatalf("%s seed %d: %q is not among the words", d.Name, seed, w)
				}
			}
		}
	}
}

// wire are words of the file format alone.
var wire = []string{"uuid", "x", "messages", "checklists", "tool_calls", "calls", "role", "content", "user", "system", "assistant", "id", "call", "tools", "n"}

func TestLengths(t *testing.T) {
	each(t, func(t *testing.T, tasks []task.Task) {
		var user, result, reply, nUser, nResult int
		most := 0
		for _, task := range tasks {
			for _, turn := range task.Turns {
				n := len(strings.Fields(turn.User))
				if n > 30 {
					t.Errorf("%d words: %s", n, turn.User)
				}
				if strings.ToLower(turn.User) != turn.User || strings.Contains(turn.User, "'") {
					t.Errorf("not in plain lower case: %s", turn.User)
				}
				user, nUser = user+n, nUser+1
				for _, m := range turn.Reference {
					switch {
					case m.Role == chat.Tool:
						n := pieces(m.Content)
						most = max(most, n)
						result, nResult = result+n, nResult+1
					case len(m.Calls) == 0:
						reply += len(strings.Fields(m.Content))
					}
				}
			}
		}
		t.Logf("words of a user message %.1f, of a reply %.1f; pieces of a result %.1f, at most %d",
			float64(user)/float64(nUser), float64(reply)/float64(nUser), float64(result)/float64(nResult), most)
		if most > 60 {
			t.Errorf("a result has %d pieces", most)
		}
	})
}

var (
	letters = regexp.MustCompile(`[a-zA-Z]+`)
	piece   = regexp.MustCompile(`[a-zA-Z]+|[0-9]|[^a-zA-Z0-9]+`)
)

// pieces counts what a tokenizer of whole words, digits and the rest makes of text.
func pieces(text string) int { return len(piece.FindAllString(text, -1)) }
