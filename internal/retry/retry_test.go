package retry

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestDo(t *testing.T) {
	down := errors.New("down")
	for _, tt := range []struct {
		name     string
		rule     Policy
		progress bool
		errs     []error // of the attempts; nil ends well, and beyond them all is well
		says     string
		attempts int
		least    time.Duration
		most     time.Duration
	}{
		{"success", Policy{}, false, nil, "", 1, 0, 0},
		{"permanent", Policy{}, false, []error{down}, "down", 1, 0, 0},
		{"temporary", Policy{}, false, []error{Retryable(down, 0), Retryable(down, 0)}, "", 3, 2250 * time.Millisecond, 3750 * time.Millisecond},
		{"gives up", Policy{MaxAttempts: 2}, false, []error{Retryable(down, 0), Retryable(down, 0)}, "down (after 2 attempts)", 2, 0, 2 * time.Second},
		{"progress resets the count", Policy{MaxAttempts: 2}, true, []error{Retryable(down, 0), Retryable(down, 0), Retryable(down, 0)}, "", 4, 0, 10 * time.Second},
		{"Retry-After", Policy{}, false, []error{Retryable(down, 40*time.Second)}, "", 2, 40 * time.Second, 40 * time.Second},
		{"Retry-After too long", Policy{}, false, []error{Retryable(down, 24*time.Hour)}, "(the server asks to retry after 24h0m0s)", 1, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, start := 0, time.Now()
				err := tt.rule.Do(t.Context(), func() (bool, error) {
					if n++; n > len(tt.errs) {
						return tt.progress, nil
					}
					return tt.progress, tt.errs[n-1]
				})
				if took := time.Since(start); took < tt.least || took > tt.most {
					t.Errorf("took %s", took)
				}
				if n != tt.attempts {
					t.Errorf("%d attempts", n)
				}
				if tt.says == "" && err != nil || tt.says != "" && (!errors.Is(err, down) || !strings.Contains(err.Error(), tt.says)) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestDoIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := Policy{}.Do(ctx, func() (bool, error) { return false, Retryable(errors.New("down"), time.Minute) })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAfter(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "3": 3 * time.Second, "0.5": 500 * time.Millisecond, "-1": 0, "soon": 0, "1e99": 0,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0,
	} {
		if got := After(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func TestSendGivesUpOnSilence(t *testing.T) {
	for _, tt := range []struct {
		name  string
		serve http.HandlerFunc
	}{
		{"no answer", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		{"half an answer", func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("half"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(tt.serve)
			defer s.Close()
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/?secret=1", nil)
			resp, err := Send(s.Client(), req, 30*time.Millisecond)
			if err == nil {
				_, err = resp.Body.Read(make([]byte, 9))
				if err == nil {
					_, err = resp.Body.Read(make([]byte, 9))
				}
				_ = resp.Body.Close()
			} else if !IsRetryable(err) {
				t.Error("not retryable")
			}
			if !errors.Is(err, ErrIdleTimeout) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSendNobodyThere(t *testing.T) {
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:1/?secret=1", nil)
	_, err := Send(http.DefaultClient, req, time.Minute)
	if !IsRetryable(err) || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}
