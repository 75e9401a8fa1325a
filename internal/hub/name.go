package hub

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// Name is what a model is called on the hub: OWNER/NAME[/FILE][@REVISION].
type Name struct {
	Owner, Repo string
	File        string // a single file of the model, such as a GGUF; "" is the model's folder
	Revision    string // branch, tag or commit; "" is main
}

// part is how the hub writes owners and models; runs of dots and hyphens are
// refused apart, because two hyphens separate the parts in the cache.
var part = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?$`)

// ParseName reads a name. It refuses what the hub could not hold, such as most
// paths; a relative path of two parts does read as a name.
func ParseName(text string) (Name, error) {
	rest, revision, at := strings.Cut(text, "@")
	var n Name
	parts := strings.SplitN(rest, "/", 3)
	if len(parts) < 2 {
		return n, fmt.Errorf("model name %q: want OWNER/NAME", text)
	}
	n = Name{Owner: parts[0], Repo: parts[1], Revision: revision}
	for _, p := range parts[:2] {
		if !part.MatchString(p) || strings.Contains(p, "--") || strings.Contains(p, "..") {
			return Name{}, fmt.Errorf("model name %q: %q is neither an owner nor a model on the hub", text, p)
		}
	}
	if len(parts) == 3 {
		if n.File = parts[2]; !safe(n.File) {
			return Name{}, fmt.Errorf("model name %q: %q is no path of a file inside a model", text, n.File)
		}
	}
	if at && !safe(revision) {
		return Name{}, fmt.Errorf("model name %q: %q is no revision", text, revision)
	}
	return n, nil
}

// safe tells paths that stay inside their folder on every system.
func safe(path string) bool {
	return fs.ValidPath(path) && path != "." && !strings.ContainsAny(path, "\\:\x00")
}

// ID is OWNER/NAME.
func (n Name) ID() string { return n.Owner + "/" + n.Repo }

// String writes the name so that ParseName reads it.
func (n Name) String() string {
	text := n.ID()
	if n.File != "" {
		text += "/" + n.File
	}
	if n.Revision != "" {
		text += "@" + n.Revision
	}
	return text
}

// revision is what is asked for.
func (n Name) revision() string {
	if n.Revision == "" {
		return "main"
	}
	return n.Revision
}

var commitForm = regexp.MustCompile(`^[0-9a-f]{40}$`)

// isCommit tells a whole commit, which never means another content.
func isCommit(revision string) bool { return commitForm.MatchString(revision) }
