package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// versionOf returns the text of --version: the version of the module, which names the commit of a build from a checkout,
// and that of Go. A nil info is a binary built without module support.
func versionOf(info *debug.BuildInfo) string {
	version := ""
	if info != nil {
		version = info.Main.Version
	}
	return fmt.Sprintf("%s, %s %s/%s", cmp.Or(version, "(devel)"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
