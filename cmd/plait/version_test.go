package main

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersionNamesVersionAndGo(t *testing.T) {
	built := ", " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	for name, test := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"a release":                     {&debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}}, "v0.1.0"},
		"a checkout with changes":       {&debug.BuildInfo{Main: debug.Module{Version: "v0.1.1-0.20260301090000-0123456789ab+dirty"}}, "v0.1.1-0.20260301090000-0123456789ab+dirty"},
		"a build without a main module": {&debug.BuildInfo{}, "(devel)"},
		"no build information":          {nil, "(devel)"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want+built, versionOf(test.info)) })
	}

	out, errs, code := command("", "--version")
	require.Equal(t, exitDone, code, errs)
	require.Regexp(t, `^plait version .*`+runtime.Version(), out)
}
