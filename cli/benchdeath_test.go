package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// mortal serves a model that says "glad to help" for so many parts of a suite, told
// apart by their tools, and for so many requests of the next one. Then it dies: it hangs
// up on everybody, or refuses.
func mortal(t *testing.T, parts, more int, refuses bool) string {
	t.Helper()
	var mu sync.Mutex
	seen := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Tools json.RawMessage }
		data, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(data, &body)
		mu.Lock()
		seen[string(body.Tools)]++
		dead := len(seen) > parts+1 || len(seen) == parts+1 && seen[string(body.Tools)] > more
		mu.Unlock()
		switch {
		case dead && refuses:
			time.Sleep(500 * time.Millisecond) // what was answered is played to its end
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"the model was unloaded","type":"invalid_request_error"}}`)
		case dead:
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"glad to help"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3}}`)
		}
	}))
	t.Cleanup(s.Close)
	return "openai:" + s.URL + "/v1#m"
}

// What was scored before the server died is printed, the episodes of the part under way
// too, and the exit tells of the failure.
func TestBenchOutlivesItsServer(t *testing.T) {
	for _, tt := range []struct {
		name            string
		parts, more     int
		refuses, inJSON bool
		part            int // tasks of the part under way that are scored
	}{
		{"refused after two parts", 2, 0, true, false, 0},
		{"refused after two parts, as JSON", 2, 0, true, true, 0},
		{"refused in the third", 2, 3, true, false, 1},
		{"refused in the third, as JSON", 2, 3, true, true, 1},
		{"refused in the first", 0, 3, true, true, 1},
		{"refused from the start", 0, 0, true, false, 0},
		{"cut off after two parts", 2, 0, false, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if !tt.refuses && testing.Short() {
				t.Skip("takes half a minute: the client tries again")
			}
			args := []string{"bench", "workbench", "--n", "4", "--policy", mortal(t, tt.parts, tt.more, tt.refuses)}
			if tt.inJSON {
				args = append(args, "--json")
			}
			cmd := exec.Command("envace", args...)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			printed, err := cmd.Output()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != failed || !strings.Contains(stderr.String(), "envace: error: bench ") {
				t.Errorf("%v\n%s", err, stderr.String())
			}
			whole, partial := 0, 0
			for line := range strings.Lines(string(printed)) {
				var s partScore
				switch {
				case tt.inJSON:
					if err := json.Unmarshal([]byte(line), &s); err != nil {
						t.Fatalf("%s: %v", line, err)
					}
				case strings.HasPrefix(line, "PART"):
					continue
				default:
					fields := strings.Fields(line)
					fmt.Sscan(fields[1], &s.N) //nolint:errcheck // 0 is told
					if fields[2] == "of" {
						fmt.Sscan(fields[3], &s.Of) //nolint:errcheck // the same
					}
				}
				switch {
				case s.Of == 0 && s.N == 4:
					whole++
				case s.Of == 4 && s.N > 0 && s.N < 4:
					partial++
				default:
					t.Errorf("%d tasks of %d in %s", s.N, s.Of, line)
				}
			}
			if whole != tt.parts || partial != tt.part {
				t.Errorf("%d parts and %d in part, want %d and %d:\n%s%s", whole, partial, tt.parts, tt.part, printed, stderr.String())
			}
		})
	}
}
