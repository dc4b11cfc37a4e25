package main

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/plait-dev/plait/internal/testkit/goldentest"
)

const whole = `list_directory   Lists a folder.
read_file        Reads a file.

○ user      What is to be done on Monday?
◆ tools     list_directory, read_file
● assistant → list_directory
▪ list_directory(path: "notes") → monday.md tuesday.md
● assistant → read_file ×2
├─╮
▪ │ read_file(path: "notes/monday.md") → Call Ada. Buy bolts.
│ ▪ read_file ✗ open ../secrets: file does not exist (path: "../secrets")
├─╯
◇ results   2, 1 failed
● assistant On Monday: call Ada, buy bolts.
■ stop      end_turn · 3 turns · 3 tool calls
`

func TestFilesAreReadThroughMCP(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, inProgram(t.Context(), fstest.MapFS{
		"notes/monday.md": {Data: []byte("Call Ada. Buy bolts.")}, "notes/tuesday.md": {Data: []byte("Rest.")},
	})); err != nil {
		t.Fatal(err)
	}
	got := goldentest.WithoutTimes(out.String())
	if got != whole {
		t.Errorf("it printed\n%s", got)
	}
}
