package run

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// Progress shows the progress of a run. On a terminal each stage has one live line;
// in a pipe or a file it has a plain line every few seconds. Its methods are safe for
// concurrent use. It must be closed.
type Progress struct {
	w     io.Writer
	live  bool
	color bool
	width func() int

	mu      sync.Mutex
	stage   string
	from    int  // step at which this process began the stage
	step    int  // steps done
	steps   int  // of the whole stage; 0 if unknown
	bytes   bool // steps are bytes
	parts   []string
	doing   string
	began   time.Time
	reached time.Time // when step was reached
	printed time.Time // last plain line
	told    time.Time // last plain line for a finished step
	drawn   bool      // a live line is on the screen
	stop    chan struct{}
	ticker  sync.WaitGroup
}

const (
	redraw  = 500 * time.Millisecond // of the live line
	atMost  = 2 * time.Second        // between plain lines of finished steps
	silence = 10 * time.Second       // a plain line is written after this time in any case
)

// NewProgress writes to w: live if w is a terminal, in colour unless NO_COLOR is set.
func NewProgress(w io.Writer) *Progress {
	p := &Progress{w: w, width: func() int { return 80 }, stop: make(chan struct{})}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		p.live, p.color = true, os.Getenv("NO_COLOR") == ""
		p.width = func() int {
			if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
				return n
			}
			return 80
		}
	}
	p.ticker.Go(p.tick)
	return p
}

func (p *Progress) tick() {
	t := time.NewTicker(redraw)
	defer t.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-t.C:
			p.mu.Lock()
			p.show(false)
			p.mu.Unlock()
		}
	}
}

// Stage ends the current stage and begins one of steps steps, of which a resumed run
// has already done from. steps is 0 if unknown.
func (p *Progress) Stage(name string, from, steps int) { p.enter(name, from, steps, false) }

// StageBytes begins a stage whose steps are bytes, shown as sizes.
func (p *Progress) StageBytes(name string, from, total int64) {
	p.enter(name, int(from), int(total), true)
}

func (p *Progress) enter(name string, from, steps int, bytes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	p.stage, p.from, p.step, p.steps, p.bytes = name, from, from, steps, bytes
	p.parts, p.doing = nil, ""
	now := time.Now()
	p.began, p.reached, p.printed, p.told = now, now, now, now
	p.show(false)
}

// Done reports that the given number of steps are done. parts are figures of the
// last step, such as "reward 0.42", "success 31 %" and "1234 tok/s", most important
// first: a narrow terminal drops the last ones.
func (p *Progress) Done(steps int, parts ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step, p.parts, p.doing, p.reached = steps, parts, "", time.Now()
	p.show(true)
}

// Doing reports the progress of the current step: "playing 12/32".
func (p *Progress) Doing(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing = what
}

// Printf writes a separate line, above the live one.
func (p *Progress) Printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	fmt.Fprintf(p.w, strings.TrimRight(format, "\n")+"\n", args...)
	if p.live {
		p.show(false)
	}
}

// Close ends the last stage, leaving its line.
func (p *Progress) Close() {
	close(p.stop)
	p.ticker.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
}

// end writes the final state of the stage on its own line.
func (p *Progress) end() {
	switch {
	case p.stage == "":
	case p.live:
		p.erase()
		fmt.Fprintln(p.w, p.line(max(p.width()-1, 1), true))
	case p.told != p.reached || time.Since(p.told) > time.Second: // not just written
		fmt.Fprintln(p.w, p.line(0, true))
	}
	p.stage = ""
}

// show draws the live line, or writes a plain one if it is due.
func (p *Progress) show(stepDone bool) {
	if p.stage == "" {
		return
	}
	if p.live {
		p.erase()
		fmt.Fprint(p.w, p.line(max(p.width()-1, 1), false))
		p.drawn = true
		return
	}
	now := time.Now()
	due := stepDone && now.Sub(p.told) >= atMost
	if !due && now.Sub(p.printed) < silence {
		return
	}
	fmt.Fprintln(p.w, p.line(0, false))
	p.printed = now
	if due {
		p.told = p.reached
	}
}

func (p *Progress) erase() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.drawn = false
	}
}

// line returns the state of the stage in at most width columns; 0 is no limit.
func (p *Progress) line(width int, over bool) string {
	head := p.stage + p.count()
	clock := Duration(time.Since(p.began))
	if left, ok := p.left(); ok && !over {
		clock += ", " + Duration(left) + " left"
	}
	parts := append([]string{head, clock}, p.parts...)
	if p.doing != "" && !over {
		parts = append(parts, p.doing)
	}
	text := fit(parts, width)
	if room := width - utf8.RuneCountInString(text) - 2; p.live && p.steps > 0 && room >= 8 {
		text = p.bar(min(room, 24)) + "  " + text
	}
	return text
}

// count returns the number of steps done, and of how many.
func (p *Progress) count() string {
	switch {
	case p.bytes:
		return " " + Bytes(int64(p.step)) + " of " + Bytes(int64(p.steps))
	case p.steps > 0:
		return fmt.Sprintf(" %*d/%d", len(fmt.Sprint(p.steps)), p.step, p.steps)
	case p.step > 0:
		return fmt.Sprintf(" %d", p.step)
	}
	return ""
}

// fit joins parts, dropping the last ones that exceed width.
func fit(parts []string, width int) string {
	for n := len(parts); ; n-- {
		text := strings.Join(parts[:n], "  ")
		switch {
		case width <= 0 || utf8.RuneCountInString(text) <= width:
			return text
		case n == 1:
			return string([]rune(text)[:max(0, width)])
		}
	}
}

// left returns the estimated remaining time, at the speed of this process so far.
func (p *Progress) left() (time.Duration, bool) {
	done := p.step - p.from
	if done <= 0 || p.steps <= p.step {
		return 0, false
	}
	each := float64(p.reached.Sub(p.began)) / float64(done)
	return max(0, time.Duration(each*float64(p.steps-p.step))-time.Since(p.reached)), true
}

func (p *Progress) bar(width int) string {
	full := min(width, width*p.step/p.steps)
	done, todo := strings.Repeat("━", full), strings.Repeat("─", width-full)
	if p.color {
		return "\x1b[36m" + done + "\x1b[90m" + todo + "\x1b[0m"
	}
	return done + todo
}

// Duration formats a duration for people: 8s, 4m05s, 3h20m.
func Duration(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
}
