package run

import "envace/rollout"

// Sources have a sign and a name, so that they can be told apart without colour.
var sources = []struct {
	source        rollout.Source
	sign, meaning string
}{
	{rollout.FromUser, "○ user", "user message from the data"},
	{rollout.FromPolicy, "▲ act", "the policy as agent"},
	{rollout.FromImagined, "◇ imagined", "the policy simulating the tool"},
	{rollout.FromReal, "■ real", "the real tool"},
	{rollout.FromRecord, "▣ recorded", "recorded result of the real tool"},
	{rollout.FromHarness, "! harness", "error message for the policy"},
}

// Sign returns the label of a source in reports and dialogues: a sign and a word.
func Sign(s rollout.Source) string {
	for _, x := range sources {
		if x.source == s {
			return x.sign
		}
	}
	return string(s)
}

// legend lists the sources that occur in the episodes, with their meaning.
func legend(eps []Episode) []sourceKey {
	seen := map[rollout.Source]bool{}
	for _, ep := range eps {
		for _, e := range ep.Entries {
			seen[e.Source] = true
		}
	}
	var out []sourceKey
	for _, x := range sources {
		if seen[x.source] {
			out = append(out, sourceKey{x.source, x.meaning})
		}
	}
	return out
}

type sourceKey struct {
	Source  rollout.Source
	Meaning string
}
