package openai

// checkForms refuses forms of answers that cannot be enforced.
func (t *talk) checkForms() error {
	if f := t.ResponseFormat; f != nil && f.Type != "text" {
		return refuse("response_format", "response_format of type %q is not supported: want text", f.Type)
	}
	if c := t.ToolChoice; c != nil && (c.Name != "" || c.Mode == "required") {
		return refuse("tool_choice", "tool_choice that forces a call is not supported: want none or auto")
	}
	return nil
}

// constrain makes the answer obey the form that was asked for.
func (h *Handler) constrain(*talk, *generation) error { return nil }
