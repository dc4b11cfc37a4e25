package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// environment is the environment of go commands, like that of a machine with Go installed and an empty module cache.
type environment struct {
	temp  string   // the folder of the module cache and of all other output
	proxy string   // the folder of our modules
	extra []string // further variables
}

// with returns a copy of the environment with a further variable.
func (e environment) with(variable string) environment {
	// The third index makes append copy: two environments may be made from one.
	e.extra = append(e.extra[:len(e.extra):len(e.extra)], variable)
	return e
}

// run runs a command and returns its standard output.
func (e environment) run(dir, name string, args ...string) (string, error) {
	var errs strings.Builder
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = dir, &errs
	cmd.Env = append(os.Environ(), e.variables()...)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s in %s: %w\n%s%s", name, strings.Join(args, " "), dir, err, out, errs.String())
	}
	return string(out), nil
}

// variables returns the variables to add to those of this process. The later one of two with the same name counts.
func (e environment) variables() []string {
	return append([]string{
		"GOWORK=off",
		"GOPATH=" + filepath.Join(e.temp, "gopath"),
		"GOMODCACHE=" + filepath.Join(e.temp, "modules"),
		"GOPROXY=" + e.proxies(),
		"GONOSUMDB=" + root + "," + root + "/*",
		// -mod=mod adds the sums of our own modules when they are first seen. With -trimpath, packages from the build
		// cache can be used although the module cache is elsewhere. -modcacherw lets remove delete the module cache.
		"GOFLAGS=-mod=mod -modcacherw -trimpath -buildvcs=false",
	}, e.extra...)
}

// proxies returns the sources of modules: the tree for ours; for others the downloads of this machine, or else its
// usual proxy.
func (e environment) proxies() string {
	downloads := filepath.Join(goEnv("GOMODCACHE"), "cache", "download")
	return "file://" + e.proxy + ",file://" + downloads + "," + goEnv("GOPROXY")
}

func goEnv(name string) string {
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		panic(fmt.Sprintf("go env %s: %v", name, err))
	}
	return strings.TrimSpace(string(out))
}

// remove removes all output.
func (e environment) remove() error { return os.RemoveAll(e.temp) }
