package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"envace/internal/kernel"
	"envace/internal/run"
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
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "envace %s\n%s %s/%s, kernels: %s\n", run.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, isa)
			return err
		},
	}
}
