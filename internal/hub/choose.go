package hub

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"envace/internal/weights"
)

// Names of files that determine the format of a model.
const (
	weightsName    = "model.safetensors"
	indexName      = "model.safetensors.index.json"
	adapterConfig  = "adapter_config.json"
	adapterWeights = "adapter_model.safetensors"
)

// choose selects the files that the engine needs. The text files are small and are
// downloaded first; weightFiles is nil if the index among them lists the weights.
func choose(n Name, all []string) (text, weightFiles []string, err error) {
	has := func(name string) bool { return slices.Contains(all, name) }
	if n.File != "" {
		if !has(n.File) {
			return nil, nil, fmt.Errorf("model %s: file %q: %w%s", n.ID(), n.File, ErrMissing, among(all))
		}
		return nil, []string{n.File}, nil
	}
	for _, name := range all {
		if weights.IsText(name) {
			text = append(text, name)
		}
	}
	switch {
	case has(weightsName) && has("config.json"):
		return append(text, "config.json"), []string{weightsName}, nil
	case has(indexName) && has("config.json"):
		return append(text, "config.json", indexName), nil, nil
	case has(adapterConfig) && has(adapterWeights):
		return []string{adapterConfig}, []string{adapterWeights}, nil
	}
	return chooseGGUF(n, all)
}

// chooseGGUF selects the only GGUF file of a model without safetensors.
func chooseGGUF(n Name, all []string) (text, weightFiles []string, err error) {
	ggufs := ending(all, ".gguf")
	if len(ggufs) == 1 {
		return nil, ggufs, nil
	}
	if len(ggufs) > 1 {
		return nil, nil, fmt.Errorf("model %s: %w%s", n.ID(), ErrManyFiles, among(all))
	}
	return nil, nil, fmt.Errorf("model %s has neither config.json with safetensors nor a GGUF file: use a converted version of it", n.ID())
}

// among lists the available GGUF files, if any, for an error message.
func among(all []string) string {
	ggufs := ending(all, ".gguf")
	if len(ggufs) == 0 {
		return ""
	}
	return ": " + strings.Join(ggufs, ", ")
}

func ending(all []string, suffix string) []string {
	var out []string
	for _, name := range all {
		if strings.HasSuffix(name, suffix) {
			out = append(out, name)
		}
	}
	return out
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
