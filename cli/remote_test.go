package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// startPeer runs a server of OpenAI's protocol for the rest of the script, at
// $PEER, with $POLICY for its first model: peer MODEL... It says "glad to help" to everybody with the key sk-peer.
func startPeer(ts *testscript.TestScript, _ bool, models []string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Header.Get("Authorization") != "Bearer sk-peer":
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"no key like %s","type":"invalid_request_error"}}`, r.Header.Get("Authorization"))
		case strings.HasSuffix(r.URL.Path, "/models"):
			fmt.Fprintf(w, `{"object":"list","data":[{"id":"%s"}]}`, strings.Join(models, `"},{"id":"`))
		default:
			_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"glad to help"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3}}`)
		}
	}))
	ts.Defer(s.Close)
	ts.Setenv("PEER", s.URL+"/v1")
	ts.Setenv("POLICY", "openai:"+s.URL+"/v1#"+models[0]) // in a script a # begins a comment
}
