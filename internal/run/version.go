package run

import "runtime/debug"

// Version is the released version of the program, or the revision that was built.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	revision := set["vcs.revision"]
	if revision == "" {
		return "(devel)"
	}
	v := revision[:min(12, len(revision))]
	if t := set["vcs.time"]; t != "" {
		v += " of " + t
	}
	if set["vcs.modified"] == "true" {
		v += ", modified"
	}
	return v
}
