package render

import "encoding/json"

// Files returns the text files of a Hugging Face folder that describe this format, by
// name: tokenizer, templates, special tokens and ends. A model that was made here, or
// came as a GGUF file, needs them to be opened again.
func (c *Chat) Files() (map[string][]byte, error) {
	files := map[string][]byte{"chat_template.jinja": []byte(c.conf.Template)}
	if c.conf.ToolTemplate != "" {
		files["additional_chat_templates/tool_use.jinja"] = []byte(c.conf.ToolTemplate)
	}
	var err error
	if files["tokenizer.json"], err = c.tok.Marshal(); err != nil {
		return nil, err
	}
	if files["tokenizer_config.json"], err = json.MarshalIndent(tokenizerConfig(c.conf.Special), "", "  "); err != nil {
		return nil, err
	}
	if len(c.conf.EOS) > 0 {
		files["generation_config.json"], err = json.MarshalIndent(map[string]any{"eos_token_id": c.conf.EOS}, "", "  ")
	}
	return files, err
}

func tokenizerConfig(s Special) map[string]any {
	config := map[string]any{"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false}
	for key, text := range map[string]string{"bos_token": s.BOS, "eos_token": s.EOS, "pad_token": s.PAD, "unk_token": s.UNK} {
		if text != "" {
			config[key] = text
		}
	}
	return config
}
