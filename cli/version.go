package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"envace/internal/kernel"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version and the instruction set in use",
		Example: "  envace version",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			isa, err := kernel.Select()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "envace %s\n%s %s/%s, kernels: %s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, isa)
			return err
		},
	}
}

// version is the released version, or the revision that was built.
func version() string {
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
