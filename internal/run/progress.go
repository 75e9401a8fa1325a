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

// Progress tells a person how a run fares. On a terminal a stage has one live
// line; in a pipe or a file it has a plain line every few seconds. Its methods
// may be called from many goroutines at once. It must be closed.
type Progress struct {
	w     io.Writer
	live  bool
	color bool
	width func() int

	mu      sync.Mutex
	stage   string
	from    int  // step that the stage began at in this process
	step    int  // steps done
	steps   int  // of the whole stage; 0 where unknown
	bytes   bool // steps are bytes
	parts   []string
	doing   string
	began   time.Time
	reached time.Time // when step was reached
	printed time.Time // last plain line
	told    time.Time // last plain line of a finished step
	drawn   bool      // a live line is on the screen
	stop    chan struct{}
	ticker  sync.WaitGroup
}

const (
	redraw  = 500 * time.Millisecond // of the live line
	atMost  = 2 * time.Second        // between plain lines of finished steps
	silence = 10 * time.Second       // after which a plain line comes in any case
)

// NewProgress reports to w: live if w is a terminal, in colour unless NO_COLOR
// is set.
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

// Stage begins a stage of steps steps, from of which are already done (a resumed
// run); steps is 0 where nobody knows. The stage before it ends.
func (p *Progress) Stage(name string, from, steps int) { p.enter(name, from, steps, false) }

// StageBytes begins a stage whose steps are bytes, written as sizes.
func (p *Progress) StageBytes(name string, from, total int64) {
	p.enter(name, int(from), int(total), true)
}

func (p *Progress) enter(name string, from, steps int, bytes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	p.stage, p.from, p.step, p.steps, p.bytes = name, from, from, steps, bytes
	p.parts, p.doing = nil, ""
	p.began, p.reached, p.printed, p.told = time.Now(), time.Now(), time.Now(), time.Now()
	p.show(false)
}

// Done tells that so many steps of the stage are done and what is worth knowing
// of the last: "reward 0.42", "success 31 %", "1234 tok/s", the most important
// first, since a narrow terminal drops the last.
func (p *Progress) Done(steps int, parts ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step, p.parts, p.doing, p.reached = steps, parts, "", time.Now()
	p.show(true)
}

// Doing tells what the step under way is at: "playing 12/32".
func (p *Progress) Doing(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing = what
}

// Printf writes a line of its own, above the live one.
func (p *Progress) Printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	fmt.Fprintf(p.w, strings.TrimRight(format, "\n")+"\n", args...)
	if p.live {
		p.show(false)
	}
}

// Close ends the last stage, whose line stays.
func (p *Progress) Close() {
	close(p.stop)
	p.ticker.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
}

// end leaves the last state of the stage on a line of its own.
func (p *Progress) end() {
	switch {
	case p.stage == "":
	case p.live:
		p.erase()
		fmt.Fprintln(p.w, p.line(max(p.width()-1, 1), true))
	case p.told != p.reached || time.Since(p.told) > time.Second: // not told just now
		fmt.Fprintln(p.w, p.line(0, true))
	}
	p.stage = ""
}

// show draws the live line, or writes a plain one if it is time for it.
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

// line is the state of the stage in at most width columns; 0 is no bound.
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

// count is how far the stage has come.
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

// fit joins parts, dropping the last ones that go beyond width.
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

// left is the time to go at the speed of this process so far.
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

// Duration writes a time for people: 8s, 4m05s, 3h20m.
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
