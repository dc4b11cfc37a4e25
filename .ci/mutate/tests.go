package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// environment returns the variables for a go command. This program runs without the workspace; the tests need it.
func environment(more []string) []string { return append(append(os.Environ(), "GOWORK="), more...) }

// tests is how tests are run.
type tests struct {
	dir         string
	env, with   []string
	run         string
	short, race bool
	timeout     time.Duration
}

// verdict is what the tests say about a mistake.
type verdict string

const (
	noticed    verdict = "noticed"
	notNoticed verdict = "NOT noticed"
	broken     verdict = "does not compile"
)

// failed finds what names the failure in the output of go test.
var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^panic: (.{0,60})|^fatal error: (.{0,60})`)

// test runs the tests against a mutation. By is the first test that failed.
func (t tests) test(ctx context.Context, m *mutation) (found verdict, by string, err error) {
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(dir)

	file, overlay := filepath.Join(dir, "mutated.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {m.file.path: file}})
	if err == nil {
		err = errors.Join(os.WriteFile(file, m.text(), 0o600), os.WriteFile(overlay, replace, 0o600))
	}
	if err != nil {
		return "", "", err
	}

	// The package's own tests first: mostly they are enough.
	for _, path := range append([]string{m.pkg.path}, t.with...) {
		command := exec.CommandContext(ctx, "go", t.arguments(overlay, path)...)
		command.Dir, command.Env = t.dir, environment(t.env)
		command.WaitDelay = time.Minute
		output, err := command.CombinedOutput()
		switch {
		case ctx.Err() != nil:
			return "", "", ctx.Err()
		case err == nil:
			continue
		case strings.Contains(string(output), "[build failed]"):
			return broken, "", nil
		case strings.Contains(string(output), "[setup failed]") || command.ProcessState == nil:
			return "", "", errors.New(strings.TrimSpace(string(output)))
		}
		if match := failed.FindStringSubmatch(string(output)); match != nil {
			by = match[1] + match[2] + match[3]
		}
		return noticed, by, nil
	}
	return notNoticed, "", nil
}

func (t tests) arguments(overlay, path string) []string {
	arguments := []string{"test", "-overlay", overlay, "-count=1", "-failfast", "-vet=off", "-timeout", t.timeout.String()}
	if t.run != "" {
		arguments = append(arguments, "-run", t.run)
	}
	if t.short {
		arguments = append(arguments, "-short")
	}
	if t.race {
		arguments = append(arguments, "-race")
	} else if runtime.GOOS == "linux" {
		// A mistake may make a program grow without end. The race detector itself needs more addresses than this.
		arguments = append(arguments, "-exec", `sh -c 'ulimit -v 12000000 && exec "$0" "$@"'`)
	}
	return append(arguments, path)
}
