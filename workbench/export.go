package workbench

import (
	"fmt"
	"io"

	"envace/chat"
	"envace/rollout"
	"envace/task"
)

// Export writes tasks with their experts' episodes as JSONL in CM2's form, one a
// line. task.Load reads them back.
func Export(w io.Writer, tasks []task.Task) error {
	for _, t := range tasks {
		line, err := chat.Marshal(t)
		if err != nil {
			return fmt.Errorf("task %s: %w", t.ID, err)
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("export task %s: %w", t.ID, err)
		}
	}
	return nil
}

// Expert returns the episode that the task's expert played in the real world.
func Expert(t task.Task) *rollout.Episode {
	ep := &rollout.Episode{Task: t, Step: -1, Stop: rollout.StopDone}
	for u, turn := range t.Turns {
		ep.User = u
		user := chat.Message{Role: chat.User, Content: turn.User}
		ep.Entries = append(ep.Entries, rollout.Entry{Message: user, Source: rollout.FromUser, User: u})
		for _, m := range turn.Reference {
			source := rollout.FromPolicy
			if m.Role == chat.Tool {
				source = rollout.FromReal
			}
			ep.Entries = append(ep.Entries, rollout.Entry{Message: m, Source: source, User: u})
		}
	}
	return ep
}
