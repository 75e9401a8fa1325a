package cli

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"envace/chat"
	"envace/internal/run"
	"envace/rollout"
)

// screen prints a dialogue, in colour if it is a terminal.
type screen struct {
	w           io.Writer
	color, live bool
}

func newScreen(w io.Writer) *screen {
	f, ok := w.(*os.File)
	live := ok && term.IsTerminal(int(f.Fd()))
	return &screen{w, live && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", live}
}

// The colours of sources. Without colour, signs and names distinguish them.
var colours = map[rollout.Source]int{
	rollout.FromPolicy: 34, rollout.FromImagined: 33, rollout.FromReal: 32, rollout.FromRecord: 32, rollout.FromHarness: 31,
}

func (s *screen) paint(code int, text string) string {
	if !s.color || code == 0 {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", code, text)
}

// entry prints one message: its source, thinking, content and calls.
func (s *screen) entry(e rollout.Entry) {
	label := s.paint(colours[e.Source], fmt.Sprintf("%-11s", run.Sign(e.Source)))
	m := e.Message
	if m.Thinking != "" {
		fmt.Fprintf(s.w, "%s %s\n", label, s.paint(90, m.Thinking))
	}
	if m.Content != "" || len(m.Calls) == 0 {
		fmt.Fprintf(s.w, "%s %s\n", label, m.Content)
	}
	for _, c := range m.Calls {
		fmt.Fprintf(s.w, "%s %s %s\n", label, c.Name, s.arguments(c))
	}
}

func (s *screen) arguments(c chat.Call) string { return s.paint(90, string(c.Arguments)) }

// note prints a line that is not part of the dialogue.
func (s *screen) note(format string, args ...any) {
	fmt.Fprintln(s.w, s.paint(90, fmt.Sprintf(format, args...)))
}

// prompt prints the input prompt, on a terminal only.
func (s *screen) prompt() {
	if s.live {
		fmt.Fprintf(s.w, "%-11s ", run.Sign(rollout.FromUser))
	}
}
