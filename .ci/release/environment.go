package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// environment is where go commands run: as on a machine that has Go, and no module yet.
type environment struct {
	temp  string   // holds the module cache, and everything else that is written
	proxy string   // the folder of our modules
	extra []string // further variables
}

func (e environment) with(variable string) environment {
	e.extra = append(e.extra[:len(e.extra):len(e.extra)], variable)
	return e
}

// run runs a command and returns what it printed to standard output.
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
		// Sums of our own modules are added as they are met. With -trimpath, packages that were built before need not be built again
		// because the module cache is elsewhere.
		"GOFLAGS=-mod=mod -modcacherw -trimpath -buildvcs=false",
	}, e.extra...)
}

// proxies lists where modules come from: ours from the tree; the others from what this machine downloaded before, and else from where
// it usually gets them.
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

// remove removes everything that was written.
func (e environment) remove() error { return os.RemoveAll(e.temp) }
