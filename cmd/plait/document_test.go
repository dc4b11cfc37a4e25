package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentShowsCommandsThatRun finds each plait command of docs/command.md in a script that is run, but for plait
// serve, chat and acp, which have tests of their own.
func TestDocumentShowsCommandsThatRun(t *testing.T) {
	document, err := os.ReadFile("../../docs/command.md")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("testdata/script/document.txtar")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^plait [^#>\n]*`).FindAllString(string(document), -1)
	if len(lines) < 8 {
		t.Fatalf("docs/command.md shows %d commands", len(lines))
	}
	own := regexp.MustCompile(`^plait (serve|chat|acp) `)
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if !regexp.MustCompile(`(?m)^(run|exits \d) `+regexp.QuoteMeta(line)+`$`).Match(script) && !own.MatchString(line) {
			t.Errorf("docs/command.md shows %q, which no script runs", line)
		}
	}
}
