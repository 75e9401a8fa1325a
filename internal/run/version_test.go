package run

import (
	"runtime/debug"
	"testing"
)

func TestVersionOf(t *testing.T) {
	set := func(kv ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{}
		for i := 0; i < len(kv); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: kv[i], Value: kv[i+1]})
		}
		return info
	}
	released := set("vcs.revision", "0123456789abcdef")
	released.Main.Version = "v1.2.3"
	for _, tt := range []struct {
		name string
		info *debug.BuildInfo
		want string
	}{
		{"nothing known", set(), "(devel)"},
		{"released", released, "v1.2.3"},
		{"revision", set("vcs.revision", "0123456789abcdef", "vcs.time", "2026-01-02T03:04:05Z", "vcs.modified", "false"), "0123456789ab of 2026-01-02T03:04:05Z"},
		{"modified", set("vcs.revision", "0123456789abcdef", "vcs.modified", "true"), "0123456789ab, modified"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := versionOf(tt.info); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
