package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/internal/pattern"
)

// versionInfo identifies a build of the command.
type versionInfo struct {
	// Version is the module's version, or "(devel)" for a build from a checkout without one.
	Version string `json:"version"`
	// Commit is the revision of the build, or "unknown": a build from the module proxy carries no revision.
	Commit string `json:"commit"`
	// Modified reports whether the checkout had changes beside Commit.
	Modified bool `json:"modified,omitempty"`
	// Go is the version of the toolchain.
	Go string `json:"go"`
}

// pseudoVersion matches the end of a version made by the go command from a commit, such as
// -20260301090000-0123456789ab.
var pseudoVersion = pattern.Of(`[-.]\d{14}-([0-9a-f]{12})(?:\+.*)?$`)

// versionOf returns the version in the build information. A nil info is a binary built without module support.
func versionOf(info *debug.BuildInfo) versionInfo {
	v := versionInfo{Version: "(devel)", Commit: "unknown", Go: runtime.Version()}
	if info == nil {
		return v
	}

	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	if info.GoVersion != "" {
		v.Go = info.GoVersion
	}

	// A pseudo-version contains the commit, even if the build has no record of the checkout.
	if found := pseudoVersion().FindStringSubmatch(v.Version); found != nil {
		v.Commit = found[1]
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// String returns one line, the same as --version: cobra's own form of it. A template for another form would link
// text/template. Because that package calls methods by name, the linker would keep every method of every package.
func (v versionInfo) String() string { return "plait version " + v.details() }

// details returns the line without the name of the program.
func (v versionInfo) details() string {
	modified := ""
	if v.Modified {
		modified = " (modified)"
	}
	return fmt.Sprintf("%s, commit %s%s, %s %s/%s", v.Version, v.Commit, modified, v.Go, runtime.GOOS, runtime.GOARCH)
}

// thisVersion returns the version of the running command.
func thisVersion() versionInfo {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info)
}

func versionCommand(s *streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit and the Go version",
		Long: `Prints the version of plait, the commit it was built from and the version of Go.
The commit is "unknown" for a release installed by "go install", whose version
names it. plait --version prints the same.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if asJSON {
				return s.printJSON(thisVersion())
			}
			_, err := fmt.Fprintln(s.out, thisVersion())
			return err
		},
	}

	jsonFlag(cmd, &asJSON)
	return cmd
}
