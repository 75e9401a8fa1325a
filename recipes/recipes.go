// Package recipes holds the settings of whole runs, one page each with a reason
// beside each number, and the small base model that the quickstart starts from.
package recipes

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.toml *.jinja all:base
var files embed.FS

// Names lists the recipes.
func Names() []string {
	paths, err := fs.Glob(files, "*.toml")
	if err != nil {
		panic(err) // the pattern is constant
	}
	for i, p := range paths {
		paths[i] = strings.TrimSuffix(p, ".toml")
	}
	return paths
}

// Read returns the text of a recipe.
func Read(name string) (string, error) {
	text, err := files.ReadFile(name + ".toml")
	if err != nil {
		return "", fmt.Errorf("no recipe is named %q (there are %s)", name, strings.Join(Names(), ", "))
	}
	return string(text), nil
}

// Base is the folder of the base model.
func Base() fs.FS {
	dir, err := fs.Sub(files, "base")
	if err != nil {
		panic(err) // the name is constant and valid
	}
	return dir
}

// Template is the chat template of the small models that recipes make.
func Template() string {
	text, err := files.ReadFile("chat_template.jinja")
	if err != nil {
		panic(err) // embedded above
	}
	return string(text)
}
