package workbench

import (
	"fmt"
	"io"

	"envace/chat"
	"envace/task"
)

// Export writes tasks with their expert episodes as JSONL in CM2's format, one task per
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
