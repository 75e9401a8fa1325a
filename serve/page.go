package serve

import (
	"embed"
	"net/http"
)

//go:embed page
var pageFiles embed.FS

// page serves the chat page, which loads nothing from other sites.
func (h *Handler) page() {
	for path, file := range map[string]string{"GET /{$}": "page/index.html", "GET /chat.js": "page/chat.js", "GET /chat.css": "page/chat.css"} {
		h.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if h.opts.APIKey == "" && !isLocalhost(r.Host) {
				http.Error(w, "without an API key only localhost is served", http.StatusForbidden)
				return
			}
			w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
			w.Header().Set("Referrer-Policy", "no-referrer")
			http.ServeFileFS(w, r, pageFiles, file)
		})
	}
}
