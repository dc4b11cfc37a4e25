package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// environment is the environment for go commands: that of a machine with Go installed and an empty module cache.
type environment struct {
	temp  string   // the folder of the module cache and of all other output
	proxy string   // the folder of our modules
	extra []string // further variables
}

func (e environment) with(variable string) environment {
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

func (e environment) variables() []string {
	return append([]string{
		"GOWORK=off",
		"GOPATH=" + filepath.Join(e.temp, "gopath"),
		"GOMODCACHE=" + filepath.Join(e.temp, "modules"),
		"GOPROXY=" + e.proxies(),
		"GONOSUMDB=" + root + "," + root + "/*",
		// Sums of our own modules are added when they are first seen. With -trimpath, packages from the build
		// cache can be used although the module cache is elsewhere.
		"GOFLAGS=-mod=mod -modcacherw -trimpath -buildvcs=false",
	}, e.extra...)
}

// proxies lists the sources of modules: ours from the tree; others from this machine's downloads, or else from its
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
