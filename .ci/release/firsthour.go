package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
)

// firstHour does what docs/first-hour.md says, in empty folders: it pastes the README's first program and runs it, and
// then changes the lines that the page names, for a model on this machine and for each provider. A strict fake of the
// API takes the place of each server.
func firstHour(env environment, t tree) error {
	program, err := firstProgram(t)
	if err != nil {
		return err
	}
	if err := paste(env, program, "hello"); err != nil {
		return err
	}

	page, err := os.ReadFile(filepath.Join(t.root, "docs", "first-hour.md"))
	if err != nil {
		return err
	}
	changes, err := changesOf(string(page))
	if err != nil {
		return err
	}
	for _, change := range changes {
		changed, err := change.apply(program)
		if err != nil {
			return err
		}
		if err := change.serve(env, changed); err != nil {
			return fmt.Errorf("%s: %w", change.model, err)
		}
	}
	return nil
}

// answer is what each program prints at its end.
const answer = "It is 22°C."

// paste puts a program into a new folder, and does what the page says.
func paste(env environment, program, name string) error {
	fmt.Println("first hour:", name)
	dir := filepath.Join(env.temp, "first-hour", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o644); err != nil {
		return err
	}

	for _, args := range [][]string{{"mod", "init", "hello"}, {"mod", "tidy"}} {
		if _, err := env.run(dir, "go", args...); err != nil {
			return err
		}
	}
	out, err := env.run(dir, "go", "run", ".")
	if err == nil && !strings.HasSuffix(strings.TrimSpace(out), answer) {
		err = fmt.Errorf("it does not end with %q but prints\n%s", answer, out)
	}
	return err
}

// firstProgram returns the first block of Go in the README.
func firstProgram(t tree) (string, error) {
	readme, err := os.ReadFile(filepath.Join(t.root, "README.md"))
	if err != nil {
		return "", err
	}
	block := goBlock.FindSubmatch(readme)
	if block == nil {
		return "", fmt.Errorf("README.md has no block of Go")
	}
	return string(block[1]), nil
}

// change is a change of the first program: other lines for the import and for the model.
type change struct {
	removed [2]string // the lines of the first program
	imports string
	model   string
}

var (
	diffBlock = regexp.MustCompile("(?s)```diff\n-(.*?)\n\\+(.*?)\n```")
	tableRow  = regexp.MustCompile("(?m)^\\| \\w+ \\| `(\"[^`]*\")` \\| `(model := [^`]*)` \\|")
)

// changesOf returns the changes that the page names: one in two diffs, and one for each row of the table.
func changesOf(page string) ([]change, error) {
	diffs, rows := diffBlock.FindAllStringSubmatch(page, -1), tableRow.FindAllStringSubmatch(page, -1)
	if len(diffs) != 2 || len(rows) != 3 {
		return nil, fmt.Errorf("docs/first-hour.md has %d diffs and %d models, want 2 and 3", len(diffs), len(rows))
	}

	removed := [2]string{diffs[0][1], diffs[1][1]}
	changes := []change{{removed, diffs[0][2], diffs[1][2]}}
	for _, row := range rows {
		changes = append(changes, change{removed, "\t" + row[1], "\t" + row[2]})
	}
	return changes, nil
}

// apply returns the program with the change.
func (c change) apply(program string) (string, error) {
	for i, added := range []string{c.imports, c.model} {
		if strings.Count(program, c.removed[i]+"\n") != 1 {
			return "", fmt.Errorf("the line to change is not in the README's first program: %s", c.removed[i])
		}
		program = strings.Replace(program, c.removed[i], added, 1)
	}
	return program, nil
}

// serve runs the program against a fake of its server.
func (c change) serve(env environment, program string) error {
	call := content.ToolUse{ID: "call_1", Name: "get_weather", Input: `{"city":"Tokyo"}`}
	said := content.Text{Text: answer}

	var server *httptest.Server
	var name, address, path string
	switch model := strings.TrimSpace(c.model); {
	case strings.Contains(model, "openai.NewChat"):
		server = httptest.NewServer(fake.OpenAIChat(fake.OpenAIChatMessage(call), fake.OpenAIChatMessage(said)))
		name, address, path = "chat", "OPENAI", "/v1"
	case strings.Contains(model, "openai.NewResponses"):
		server = httptest.NewServer(fake.OpenAIResponses(fake.OpenAIResponse(call), fake.OpenAIResponse(said)))
		name, address, path = "responses", "OPENAI", "/v1"
	case strings.Contains(model, "anthropic.New"):
		server = httptest.NewServer(fake.Anthropic(fake.AnthropicMessage(call), fake.AnthropicMessage(said)))
		name, address = "anthropic", "ANTHROPIC"
	case strings.Contains(model, "gemini.New"):
		server = httptest.NewServer(fake.Gemini(fake.GeminiContent(call), fake.GeminiContent(said)))
		name, address = "gemini", "GOOGLE_GEMINI"
	default:
		return fmt.Errorf("no fake for it")
	}
	defer server.Close()

	key := strings.TrimPrefix(address, "GOOGLE_") + "_API_KEY=none"
	return paste(env.with(address+"_BASE_URL="+server.URL+path).with(key), program, name)
}
