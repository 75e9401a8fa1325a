package run

import "envace/rollout"

// Readers tell the sources of messages apart by sign and name, not by colour
// alone.
var sources = []struct {
	source        rollout.Source
	sign, meaning string
}{
	{rollout.FromUser, "○ user", "the user of the data"},
	{rollout.FromPolicy, "▲ act", "the policy, acting"},
	{rollout.FromImagined, "◇ imagined", "the policy, in place of the tool"},
	{rollout.FromReal, "■ real", "the real tool"},
	{rollout.FromRecord, "▣ recorded", "what the real tool answered once"},
	{rollout.FromHarness, "! harness", "a format error, told to the policy"},
}

// Sign is how reports and dialogues name a source: a sign and a word.
func Sign(s rollout.Source) string {
	for _, x := range sources {
		if x.source == s {
			return x.sign
		}
	}
	return string(s)
}

// legend lists the sources that the episodes hold, with what they mean.
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
