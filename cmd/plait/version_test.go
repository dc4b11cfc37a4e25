package main

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersionNamesVersionCommitAndGo(t *testing.T) {
	platform := " " + runtime.GOOS + "/" + runtime.GOARCH
	revision := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}, {Key: "vcs.modified", Value: "true"}}
	for name, test := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"a release from the proxy":      {&debug.BuildInfo{GoVersion: "go1.26.1", Main: debug.Module{Version: "v0.1.0"}}, "plait version v0.1.0, commit unknown, go1.26.1"},
		"a pseudo-version":              {&debug.BuildInfo{GoVersion: "go1.26.1", Main: debug.Module{Version: "v0.1.1-0.20260301090000-0123456789ab"}}, "plait version v0.1.1-0.20260301090000-0123456789ab, commit 0123456789ab, go1.26.1"},
		"a checkout with changes":       {&debug.BuildInfo{GoVersion: "go1.26.1", Main: debug.Module{Version: "(devel)"}, Settings: revision}, "plait version (devel), commit 0123456789abcdef0123456789abcdef01234567 (modified), go1.26.1"},
		"a build without a main module": {&debug.BuildInfo{}, "plait version (devel), commit unknown, " + runtime.Version()},
		"no build information":          {nil, "plait version (devel), commit unknown, " + runtime.Version()},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want+platform, versionOf(test.info).String())
		})
	}
}

func TestVersionFlagAndCommandPrintTheSame(t *testing.T) {
	flag, errs, code := command("", "--version")
	require.Equal(t, exitDone, code, errs)
	out, errs, code := command("", "version")
	require.Equal(t, exitDone, code, errs)
	require.Equal(t, out, flag)
	require.Equal(t, thisVersion().String()+"\n", out)

	out, errs, code = command("", "version", "--json")
	require.Equal(t, exitDone, code, errs)
	require.Contains(t, out, `"go": "`+runtime.Version())
}
