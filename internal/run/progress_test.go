package run

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// watch plays a stage of steps of the given length against a fake clock and
// returns what was written.
func watch(t *testing.T, steps int, each time.Duration, prepare func(*Progress)) string {
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		p := NewProgress(&out)
		prepare(p)
		p.Stage("rl", 0, steps)
		for s := range steps {
			time.Sleep(each)
			p.Done(s+1, "reward 0.42", "success 31 %")
		}
		p.Close()
	})
	return out.String()
}

func TestProgressInAPipe(t *testing.T) {
	for _, tt := range []struct {
		name  string
		steps int
		each  time.Duration
		lines int
	}{
		{"fast steps are not all told", 100, 100 * time.Millisecond, 6},
		{"steps of seconds are told each", 10, 3 * time.Second, 11},
		{"slow steps do not mean silence", 2, 35 * time.Second, 9},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := watch(t, tt.steps, tt.each, func(*Progress) {})
			if n := strings.Count(out, "\n"); n < tt.lines-1 || n > tt.lines+1 {
				t.Errorf("%d lines, want about %d:\n%s", n, tt.lines, out)
			}
			if strings.ContainsAny(out, "\r\x1b") {
				t.Errorf("control characters in a pipe: %q", out)
			}
		})
	}
	if out := watch(t, 2, 30*time.Second, func(*Progress) {}); !strings.Contains(out, "rl 1/2  30s, 30s left  reward 0.42  success 31 %\n") {
		t.Errorf("no time left told:\n%s", out)
	}
}

func TestProgressLive(t *testing.T) {
	live := func(width int) func(*Progress) {
		return func(p *Progress) { p.live, p.width = true, func() int { return width } }
	}
	out := watch(t, 3, 5*time.Second, live(80))
	if n := strings.Count(out, "\r\x1b[K"); n < 29 {
		t.Errorf("redrawn %d times in 15 seconds, want every half", n)
	}
	if !strings.HasSuffix(out, "\r\x1b[K━━━━━━━━━━━━━━━━━━━━━━━━  rl 3/3  15s  reward 0.42  success 31 %\n") {
		t.Errorf("last line: %q", out[strings.LastIndex(out, "\r"):])
	}
	for _, width := range []int{2, 5, 20, 40, 200} {
		for l := range strings.SplitSeq(strings.ReplaceAll(watch(t, 2, time.Second, live(width)), "\n", "\r\x1b[K"), "\r\x1b[K") {
			if n := utf8.RuneCountInString(l); n >= width && n > 0 {
				t.Errorf("%d columns on a terminal of %d: %q", n, width, l)
			}
		}
	}
}

func TestProgressResumed(t *testing.T) {
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		p := NewProgress(&out)
		p.Stage("rl", 90, 100)
		time.Sleep(20 * time.Second)
		p.Done(95)
		p.Doing("playing 3/8")
		time.Sleep(11 * time.Second)
		p.Printf("saved %s\n", "rl-95")
		p.Close()
	})
	for _, want := range []string{"rl  95/100  20s, 20s left\n", "playing 3/8\n", "saved rl-95\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 59499 * time.Millisecond: "59s", 65 * time.Second: "1m05s", 3*time.Hour + 20*time.Minute: "3h20m"} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %s, want %s", d, got, want)
		}
	}
}
