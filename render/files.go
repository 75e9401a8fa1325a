package render

import (
	"encoding/json"

	"envace/internal/token"
	"envace/internal/weights"
)

// Files returns the text files of a Hugging Face folder for the tokenizer tok and
// the templates, special and end tokens of t, keyed by name. They make a model that
// was created here, or read from a GGUF file, complete.
func Files(tok *token.Tokenizer, t weights.Text) (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, template := range t.Templates {
		if name == "default" {
			files["chat_template.jinja"] = []byte(template)
			continue
		}
		files["additional_chat_templates/"+name+".jinja"] = []byte(template)
	}
	var err error
	if files["tokenizer.json"], err = tok.Marshal(); err != nil {
		return nil, err
	}
	if files["tokenizer_config.json"], err = json.MarshalIndent(tokenizerConfig(t.Special), "", "  "); err != nil {
		return nil, err
	}
	if len(t.EOS) > 0 {
		files["generation_config.json"], err = json.MarshalIndent(map[string]any{"eos_token_id": t.EOS}, "", "  ")
	}
	return files, err
}

func tokenizerConfig(s weights.Special) map[string]any {
	config := map[string]any{"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false}
	for key, text := range map[string]string{"bos_token": s.BOS, "eos_token": s.EOS, "pad_token": s.PAD, "unk_token": s.UNK} {
		if text != "" {
			config[key] = text
		}
	}
	return config
}
