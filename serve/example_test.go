package serve_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"envace/engine/cpu"
	"envace/render"
	"envace/serve"
)

// Handler.Server returns an http.Server with the limits on connections. As an
// http.Handler it works in any other server too.
func ExampleNew() {
	const model = "../recipes/base"
	e, err := cpu.Open(model, cpu.Options{})
	if err != nil {
		log.Fatal(err)
	}
	sampler, err := e.Sampler(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	chat, err := render.Open(model, render.Config{})
	if err != nil {
		log.Fatal(err)
	}
	h, err := serve.New(serve.Options{Name: "base", Chat: chat, Sampler: sampler, Window: e.Window()})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	resp, err := http.Post(server.URL+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"base","messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 200 OK
}
