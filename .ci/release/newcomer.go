package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// newcomer is a user's program in a new module that requires one of our modules.
type newcomer struct {
	module string
	model  string // the source of the function that makes the model, with its imports
	prints string // a part of the program's output
}

//go:embed newcomer/core.go.txt
var coreModel string

//go:embed newcomer/anthropic.go.txt
var anthropicModel string

//go:embed newcomer/openai.go.txt
var openaiModel string

//go:embed newcomer/gemini.go.txt
var geminiModel string

//go:embed newcomer/png.go.txt
var pngModel string

//go:embed newcomer/main.go.txt
var program string

var newcomers = []newcomer{
	{root, coreModel, "Tokyo has 72°F and Paris 64°F."},
	{root + "/api/anthropic", anthropicModel, "Tokyo has 72°F and Paris 64°F."},
	{root + "/api/openai", openaiModel, "Tokyo has 72°F and Paris 64°F."},
	{root + "/api/gemini", geminiModel, "Tokyo has 72°F and Paris 64°F."},
	{root + "/viz/png", pngModel, "a drawing of"},
}

// try makes the module, gets ours, and compiles and runs the README's quick start.
func (n newcomer) try(env environment, t tree) error {
	dir := filepath.Join(env.temp, "newcomer", strings.ReplaceAll(n.module, "/", "_"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}

	main, err := quickStart(t)
	if err != nil {
		return err
	}
	write := errors.Join(
		os.WriteFile(filepath.Join(dir, "main.go"), []byte(main), 0o644),
		os.WriteFile(filepath.Join(dir, "model.go"), []byte(n.model), 0o644),
	)
	if write != nil {
		return write
	}

	for _, args := range [][]string{
		{"mod", "init", "example.com/newcomer"},
		{"get", n.module + "@" + t.version},
		{"mod", "tidy"},
	} {
		if _, err := env.run(dir, "go", args...); err != nil {
			return err
		}
	}

	out, err := env.run(dir, "go", "run", ".")
	if err != nil {
		return err
	}
	if !strings.Contains(out, n.prints) {
		return fmt.Errorf("it does not print %q but\n%s", n.prints, out)
	}
	return nil
}

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// quickStart returns a program with the Go code of the README in it.
func quickStart(t tree) (string, error) {
	readme, err := os.ReadFile(filepath.Join(t.root, "README.md"))
	if err != nil {
		return "", err
	}
	blocks := goBlock.FindAllSubmatch(readme, -1)
	if len(blocks) < 3 {
		return "", fmt.Errorf("README.md has %d blocks of Go, where the quick start has three", len(blocks))
	}
	return strings.NewReplacer(
		"// the tool's input", string(blocks[0][1]),
		"// the first run", string(blocks[1][1]),
		"// the second run", string(blocks[2][1]),
	).Replace(program), nil
}
