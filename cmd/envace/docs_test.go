package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"envace/internal/recipe"
)

// pages are the documents, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		paths, err := filepath.Glob(filepath.Join(top, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			text, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			out[p] = comment.ReplaceAllString(string(text), "")
		}
	}
	if len(out) == 0 {
		t.Fatal("no documents found")
	}
	return out
}

var (
	comment = regexp.MustCompile(`(?s)<!--.*?-->`)
	link    = regexp.MustCompile(`\]\(([^)\s#]+)(#[^)]*)?\)`)
	block   = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")
	inline  = regexp.MustCompile("`(envace [^`]+)`")
	command = regexp.MustCompile(`^(?:[A-Z_]+=\S+ )*(?:go run \./cmd/envace|envace)( .*)?$`)
)

func TestLinksOfDocumentsResolve(t *testing.T) {
	for path, text := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], ":") {
				continue // the outside world
			}
			if !exists(filepath.Join(filepath.Dir(path), filepath.FromSlash(m[1]))) {
				t.Errorf("%s links to %s, which is not there", path, m[1])
			}
		}
	}
}

func TestCommandsOfDocumentsExist(t *testing.T) {
	checked := 0
	for path, text := range pages(t) {
		for _, line := range commands(text) {
			checked++
			if why := checkCommand(strings.Fields(line)); why != "" {
				t.Errorf("%s: envace %s: %s", path, line, why)
			}
		}
	}
	if checked == 0 {
		t.Error("no command found in any document")
	}
}

func TestCommandsOfExamplesExist(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Example) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "envace ")
			if why := checkCommand(strings.Fields(line)); why != "" {
				t.Errorf("help of %s: envace %s: %s", cmd.CommandPath(), line, why)
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root())
}

// commands lists the arguments of every envace command in a document.
func commands(text string) []string {
	var out []string
	for _, m := range inline.FindAllStringSubmatch(text, -1) {
		out = append(out, strings.TrimPrefix(m[1], "envace "))
	}
	for _, b := range block.FindAllStringSubmatch(text, -1) {
		script := strings.ReplaceAll(b[1], "\\\n", " ")
		for line := range strings.Lines(script) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
			if m := command.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				out = append(out, m[1])
			}
		}
	}
	return out
}

// checkCommand says what is wrong with a command line, without running it.
func checkCommand(args []string) string {
	cmd, rest, err := root().Find(args)
	if err != nil {
		return err.Error()
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err.Error()
	}
	if given := cmd.Flags().Args(); cmd.HasSubCommands() && len(given) > 0 && cmd.ValidateArgs(given) != nil {
		return "there is no command " + given[0]
	}
	if cmd.Flags().Lookup("set") == nil {
		return ""
	}
	set, err := cmd.Flags().GetStringArray("set")
	if err != nil {
		return err.Error()
	}
	if name := cmd.Flag("recipe").Value.String(); name != "" {
		_, err = recipe.Load(name, set)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
