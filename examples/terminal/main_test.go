package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
)

// session runs the program on what a user types, and returns what the terminal shows.
func session(dir, typed string) (string, error) {
	var out bytes.Buffer
	err := run(context.Background(), model(), filepath.Join(dir, "session.jsonl"), dir, strings.NewReader(typed), &out)
	return out.String(), err
}

func TestASessionIsContinuedAndAsksBeforeItWrites(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	dir := t.TempDir()

	shown, err := session(dir, "Hello\nMake a note of this\ny\n")
	require.NoError(t, err)
	require.Equal(t, `> You said: Hello
> I will write that down.
Run write_file {"name":"note.txt","text":"Make a note of this"}? [y/N] [write_file] wrote 19 bytes to note.txt
The tool returned: wrote 19 bytes to note.txt
> `+"\n", shown)

	shown, err = session(dir, "Another note\nn\n")
	require.NoError(t, err)
	require.Equal(t, `Continuing a session of 13 nodes.
> I will write that down.
Run write_file {"name":"note.txt","text":"Another note"}? [y/N] [write_file] Tool call denied: the user declined
The tool returned: Tool call denied: the user declined
> `+"\n", shown)

	text, err := os.ReadFile(filepath.Join(dir, "note.txt"))
	require.NoError(t, err)
	require.Equal(t, "Make a note of this", string(text))
}

func TestFilesOutsideTheFolderCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	model := apitest.NewScript(apitest.Call(apitest.Use("write_file", File{"../outside.txt", "x"})), apitest.Say("Done."))

	var out bytes.Buffer
	require.NoError(t, run(t.Context(), model, filepath.Join(dir, "s.jsonl"), dir, strings.NewReader("go\ny\n"), &out))
	require.Contains(t, out.String(), "path escapes from parent")
	require.NoFileExists(t, filepath.Join(dir, "..", "outside.txt"))
}

func TestControlCharactersOfTheModelAreNotPrinted(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	model := apitest.NewScript(apitest.Say("\x1b]0;title\x07 \u202etxt"))
	require.NoError(t, run(t.Context(), model, filepath.Join(dir, "s.jsonl"), dir, strings.NewReader("go\n"), &out))
	require.NotContains(t, out.String(), "\x1b")
	require.NotContains(t, out.String(), "\u202e")
}
