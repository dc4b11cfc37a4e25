package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestTheREADMEShowsCommandsThatRun finds each plait command of the README in a script that is run, but for plait serve, which has a test of
// its own.
func TestTheREADMEShowsCommandsThatRun(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("testdata/script/readme.txtar")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^plait [^#>\n]*`).FindAllString(string(readme), -1)
	if len(lines) < 8 {
		t.Fatalf("the README shows %d commands", len(lines))
	}
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if !regexp.MustCompile(`(?m)^(exec|exits \d) `+regexp.QuoteMeta(line)+`$`).Match(script) && !strings.HasPrefix(line, "plait serve ") {
			t.Errorf("the README shows %q, which no script runs", line)
		}
	}
}
