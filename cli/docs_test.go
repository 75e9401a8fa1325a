package cli

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"envace/internal/recipe"
	"envace/suite"
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
	walk(ours.root())
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

func TestCheckCommand(t *testing.T) {
	for _, tt := range []struct{ name, line, want string }{
		{"no setting", "train", ""},
		{"a setting of the recipe", "train --recipe smoke --set rl.steps=3", ""},
		{"none of the recipe's", "train --recipe smoke --set foo=1", "unknown setting foo"},
		{"a setting without a recipe", "train --set rl.steps=3 --out runs/short", ""},
		{"none without a recipe", "train --set foo=1", "unknown setting foo"},
		{"the second of two", "train --set rl.steps=3 --set rl.nope=1", "unknown setting rl.nope"},
		{"a setting of dialogues", "train --data d.jsonl --set data.held_out=0.2", ""},
		{"none with dialogues", "train --model models/qwen3 --data d.jsonl --set data.nope=1", "unknown setting data.nope"},
		{"a value of the wrong kind", "train --data d.jsonl --set rl.steps=many", "rl.steps"},
		{"a value out of bounds", "train --set data.held_out=2", "setting data.held_out is 2: want 0 to 1"},
		{"settings of an earlier run", "train --config runs/first/config.json --set rl.steps=3 --out runs/again", ""},
		{"none of an earlier run's", "train --config runs/first/config.json --set foo=1", "unknown setting foo"},
		{"no such recipe", "train --recipe nosuch", `no recipe is named "nosuch"`},
		{"no such recipe, with a setting", "train --recipe nosuch --set rl.steps=3", `no recipe is named "nosuch"`},
		{"two sources", "train --recipe smoke --config c.json", "remove one"},
		{"settings beside resume", "train --resume --out runs/first --set rl.steps=3", "remove --set"},
		{"resume", "train --resume --out runs/first", ""},
		{"no such flag", "train --sett rl.steps=3", "unknown flag"},
		{"no such command", "trian", "there is no command trian"},
		{"a command without settings", "bench workbench --model runs/first/checkpoints/rl", ""},
		{"a setting of a command without", "bench workbench --set rl.steps=3", "unknown flag"},
		{"a suite", "bench workbench:orders,bank --model m", ""},
		{"dialogues as a suite", "bench dialogues:talks.jsonl --model m", ""},
		{"no such suite", "bench moon --model m", "there is no suite moon"},
		{"no such domain", "bench workbench:moon --model m", "there is no suite workbench:moon"},
		{"a suite to train on", "train --suite dialogues:d.jsonl --set data.turns=2", ""},
		{"two suites", "train --suite workbench --data d.jsonl", "remove one"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := checkCommand(strings.Fields(tt.line)); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("%q: told %q, want %q", tt.line, got, tt.want)
			}
		})
	}
}

// checkCommand says what is wrong with a command line, without running it.
func checkCommand(args []string) string {
	cmd, rest, err := ours.root().Find(args)
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
	if given := cmd.Flags().Args(); cmd.Name() == "bench" && len(given) == 1 && !ours.knows(given[0]) {
		return "there is no suite " + given[0]
	}
	if cmd.Flags().Lookup("set") == nil {
		return ""
	}
	if err := checkSettings(cmd.Flags()); err != nil {
		return err.Error()
	}
	return ""
}

// knows reports whether a suite of that name could be opened, with files that are
// not at hand.
func (a app) knows(name string) bool {
	family, arg, _ := strings.Cut(name, ":")
	if family == "dialogues" {
		return arg != ""
	}
	_, err := suite.Open(a.suites, name, suite.Options{})
	return err == nil
}

// checkSettings refuses what envace train would refuse before it reads any file. The
// settings of an earlier run are not at hand: of those only the names are checked.
func checkSettings(f *pflag.FlagSet) error {
	var o trainOptions
	var errs [3]error
	o.Recipe, o.Config, o.Data, o.Checklists = f.Lookup("recipe").Value.String(), f.Lookup("config").Value.String(), f.Lookup("data").Value.String(), f.Lookup("checklists").Value.String()
	o.Suite = f.Lookup("suite").Value.String()
	o.FewShot, o.Out, o.Resume = f.Lookup("few-shot").Value.String(), f.Lookup("out").Value.String(), f.Changed("resume")
	o.Set, errs[0] = f.GetStringArray("set")
	o.With, errs[1] = f.GetStringSlice("with")
	o.LoRA, errs[2] = f.GetInt("lora")
	if err := errors.Join(append(errs[:], o.check(f))...); err != nil || o.Resume {
		return err
	}
	if o.Config == "" {
		s, err := o.settings()
		return cmp.Or(err, s.Check())
	}
	var s recipe.Settings
	for _, set := range o.Set {
		if err := s.Set(set); err != nil {
			return err
		}
	}
	return nil
}
