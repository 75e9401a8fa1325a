package hub

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"envace/internal/weights"
)

// Names of files that decide what a model is made of.
const (
	weightsName    = "model.safetensors"
	indexName      = "model.safetensors.index.json"
	adapterConfig  = "adapter_config.json"
	adapterWeights = "adapter_model.safetensors"
)

// choose picks, of the names of all files, those that the engine needs: text are
// small and come first; weights are nil where the index among text lists them.
func choose(n Name, all []string) (text, weightFiles []string, err error) {
	has := func(name string) bool { return slices.Contains(all, name) }
	if n.File != "" {
		if !has(n.File) {
			return nil, nil, fmt.Errorf("model %s: no file %q: %w%s", n.ID(), n.File, ErrMissing, among(all))
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

// chooseGGUF takes the only GGUF file of a model without safetensors.
func chooseGGUF(n Name, all []string) (text, weightFiles []string, err error) {
	ggufs := ending(all, ".gguf")
	if len(ggufs) == 1 {
		return nil, ggufs, nil
	}
	if len(ggufs) > 1 {
		return nil, nil, fmt.Errorf("model %s: %w%s", n.ID(), ErrManyFiles, among(all))
	}
	return nil, nil, fmt.Errorf("model %s holds neither config.json with safetensors nor a GGUF file: take a conversion of it", n.ID())
}

// among lists the GGUF files, if there are any, to choose from.
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
