package synth

import (
	"iter"

	"envace/rollout"
	"envace/workbench/domains"
)

const corpusSeed = 1

// Corpus yields the texts on which a new tokenizer is trained: dialogues of the training
// domains. (All of [Words] become tokens in any case.)
func Corpus() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, d := range domains.Train() {
			tasks, err := d.Tasks(corpusSeed, "sft", 100)
			if err != nil {
				return
			}
			for _, t := range tasks {
				for _, m := range rollout.Recorded(t).Messages() {
					text := m.Content
					for _, c := range m.Calls {
						text += `{"name": "` + c.Name + `", "arguments": ` + string(c.Arguments) + "}"
					}
					if !yield(text) {
						return
					}
				}
			}
		}
	}
}
