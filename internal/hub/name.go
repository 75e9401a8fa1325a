package hub

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// Name is a model's name on the hub: OWNER/NAME[/FILE][@REVISION].
type Name struct {
	Owner, Repo string
	File        string // a single file of the model, such as a GGUF; "" is the model's folder
	Revision    string // branch, tag or commit; "" is main
}

// part matches the hub's names of owners and models. Runs of dots and hyphens are
// rejected separately, because two hyphens separate the parts in the cache.
var part = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?$`)

// ParseName parses a name. It rejects anything that cannot be a name on the hub,
// such as most paths; a relative path of two parts does parse as a name.
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
			return Name{}, fmt.Errorf("model name %q: %q is not a valid owner or model name", text, p)
		}
	}
	if len(parts) == 3 {
		if n.File = parts[2]; !safe(n.File) {
			return Name{}, fmt.Errorf("model name %q: %q is not a valid file path", text, n.File)
		}
	}
	if at && !safe(revision) {
		return Name{}, fmt.Errorf("model name %q: %q is not a valid revision", text, revision)
	}
	return n, nil
}

// safe reports whether path stays inside its folder on every operating system.
func safe(path string) bool {
	return fs.ValidPath(path) && path != "." && !strings.ContainsAny(path, "\\:\x00")
}

// ID is OWNER/NAME.
func (n Name) ID() string { return n.Owner + "/" + n.Repo }

// String formats the name for ParseName.
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

// revision returns the requested revision.
func (n Name) revision() string {
	if n.Revision == "" {
		return "main"
	}
	return n.Revision
}

var commitForm = regexp.MustCompile(`^[0-9a-f]{40}$`)

// isCommit reports whether revision is a full commit hash.
func isCommit(revision string) bool { return commitForm.MatchString(revision) }
