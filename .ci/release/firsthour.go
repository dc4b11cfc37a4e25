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

// firstHour does what docs/first-hour.md says, in empty folders: it pastes the README's first program and runs it. Then
// it changes the lines that the page names, for a model on this machine and for each provider, with a strict fake of the
// API in place of each server. Last, it does the page's own programs.
func firstHour(env environment, t tree) error {
	readme, err := t.read("README.md")
	if err != nil {
		return err
	}
	page, err := t.read("docs/first-hour.md")
	if err != nil {
		return err
	}
	first, more := lessonsOf(readme), lessonsOf(page)
	if len(first) == 0 || len(more) != 2 {
		return fmt.Errorf("README.md has %d programs with commands and output, docs/first-hour.md %d: want 1 and 2", len(first), len(more))
	}
	hello := first[0]
	if err := hello.do(env, "hello"); err != nil {
		return err
	}

	// In a module that exists, one gets Plait by the command that the README names.
	get := goGet.FindStringSubmatch(readme)
	if get == nil || !strings.Contains(hello.commands, "go mod tidy") {
		return fmt.Errorf("README.md names no go get, or the program's commands have no go mod tidy")
	}
	got := hello
	got.commands = strings.Replace(hello.commands, "go mod tidy", get[1], 1)
	if err := got.do(env, "get"); err != nil {
		return err
	}

	changes, err := changesOf(page)
	if err != nil {
		return err
	}
	for _, change := range changes {
		changed, err := change.apply(hello)
		if err != nil {
			return err
		}
		if err := change.serve(env, changed); err != nil {
			return fmt.Errorf("%s: %w", change.model, err)
		}
	}

	for i, l := range more {
		if err := l.do(env, fmt.Sprint("lesson", i+1)); err != nil {
			return err
		}
	}
	return nil
}

// read returns a file of the tree.
func (t tree) read(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(t.root, filepath.FromSlash(name)))
	return string(text), err
}

var goGet = regexp.MustCompile("`(go get [^`]+)`")

// lesson is a program of a page, the commands that run it, and what they print.
type lesson struct{ program, commands, prints string }

var lessonBlocks = regexp.MustCompile("(?s)```go\n(package main\n.*?)```.*?```sh\n(.*?)```.*?```text\n(.*?)```")

// lessonsOf returns the whole programs of a page. The next block of sh has the commands, the next one of text the output.
func lessonsOf(page string) (all []lesson) {
	for _, m := range lessonBlocks.FindAllStringSubmatch(page, -1) {
		all = append(all, lesson{m[1], m[2], m[3]})
	}
	return all
}

// do pastes the program into a new folder, runs the commands, and compares what they print.
func (l lesson) do(env environment, name string) error {
	fmt.Println("first hour:", name)
	dir := filepath.Join(env.temp, "first-hour", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(l.program), 0o644); err != nil {
		return err
	}

	out, err := env.run(dir, "sh", "-ec", l.commands)
	if err == nil && timeless(out) != timeless(l.prints) {
		err = fmt.Errorf("%s prints\n%s\nand not\n%s", name, out, l.prints)
	}
	return err
}

var spent = regexp.MustCompile(`( ·)? [0-9.]+(ms|s| tokens)\b`)

// timeless returns a program's output without the times, and the tokens that a real model uses.
func timeless(text string) string { return strings.TrimSpace(spent.ReplaceAllString(text, "")) }

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
func (c change) apply(l lesson) (lesson, error) {
	for i, added := range []string{c.imports, c.model} {
		if strings.Count(l.program, c.removed[i]+"\n") != 1 {
			return l, fmt.Errorf("the line to change is not in the README's first program: %s", c.removed[i])
		}
		l.program = strings.Replace(l.program, c.removed[i], added, 1)
	}
	return l, nil
}

// serve runs the program against a fake of its server.
func (c change) serve(env environment, l lesson) error {
	call := content.ToolUse{ID: "call_1", Name: "get_weather", Input: `{"city":"Tokyo"}`}
	said := content.Text{Text: "It is 22°C."}

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
	return l.do(env.with(address+"_BASE_URL="+server.URL+path).with(key), name)
}
