package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/plait-dev/plait/internal/testkit/pgtest"
)

// newcomer is a user's program in a new module that requires one of our modules.
type newcomer struct {
	module string
	also   string // another module that the program needs; "" is none
	main   string // the source of the program; "" is the README's quick start
	part   string // the source of a function to make the model or open the database, with its imports
	prints string // a part of the program's output
	url    bool   // the program needs DATABASE_URL, the address of a PostgreSQL database
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

//go:embed newcomer/store.go.txt
var storeProgram string

//go:embed newcomer/sqlite.go.txt
var openSQLite string

//go:embed newcomer/postgres.go.txt
var openPostgres string

const (
	weather = "Tokyo has 72°F and Paris 64°F."
	stored  = "2 messages: Red.\n4 messages: Blue.\ndone end_turn Your order A-7 is refunded."
)

// durable is the module of durable runs.
const durable = root + "/executor/durable"

var newcomers = []newcomer{
	{module: root, part: coreModel, prints: weather},
	{module: root + "/api/anthropic", part: anthropicModel, prints: weather},
	{module: root + "/api/openai", part: openaiModel, prints: weather},
	{module: root + "/api/gemini", part: geminiModel, prints: weather},
	{module: root + "/viz/png", part: pngModel, prints: "a drawing of"},
	{module: root + "/store/sqlite", also: durable, main: storeProgram, part: openSQLite, prints: stored},
	{module: root + "/store/postgres", also: durable, main: storeProgram, part: openPostgres, prints: stored, url: true},
}

// try makes the module, gets ours, and compiles and runs the program. A program that needs a PostgreSQL server is only
// compiled if none is installed.
func (n newcomer) try(env environment, t tree) error {
	dir := filepath.Join(env.temp, "newcomer", strings.ReplaceAll(n.module, "/", "_"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}

	// Write the program. Its two files have the imports of their own part.
	main := n.main
	if main == "" {
		var err error
		if main, err = quickStart(t); err != nil {
			return err
		}
	}
	write := errors.Join(
		os.WriteFile(filepath.Join(dir, "main.go"), []byte(main), 0o644),
		os.WriteFile(filepath.Join(dir, "part.go"), []byte(n.part), 0o644),
	)
	if write != nil {
		return write
	}

	// A newcomer's steps: a new module, our module, and the modules it needs.
	get := []string{"get", n.module + "@" + t.version}
	if n.also != "" {
		get = append(get, n.also+"@"+t.version)
	}
	for _, args := range [][]string{{"mod", "init", "example.com/newcomer"}, get, {"mod", "tidy"}} {
		if _, err := env.run(dir, "go", args...); err != nil {
			return err
		}
	}

	if n.url {
		if pgtest.Missing() {
			fmt.Println("  compiled only: no PostgreSQL server is installed")
			_, err := env.run(dir, "go", "build", ".")
			return err
		}

		address, err := pgtest.URL()
		if err != nil {
			return err
		}
		env = env.with("DATABASE_URL=" + address)
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

// quickStart returns a program with the README's quick start: its blocks of Go after the first program replace comments.
func quickStart(t tree) (string, error) {
	readme, err := os.ReadFile(filepath.Join(t.root, "README.md"))
	if err != nil {
		return "", err
	}
	blocks := goBlock.FindAllSubmatch(readme, -1)
	if len(blocks) < 4 {
		return "", fmt.Errorf("README.md has %d blocks of Go, want the first program and three of the quick start", len(blocks))
	}
	return strings.NewReplacer(
		"// the tool's input", string(blocks[1][1]),
		"// the first run", string(blocks[2][1]),
		"// the second run", string(blocks[3][1]),
	).Replace(program), nil
}
