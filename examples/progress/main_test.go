package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
)

const plain = `"maps.zip"     waiting
"photos.zip"   waiting
"songs.zip"    waiting
"maps.zip"     ██████░░░░░░░░░░░░░░░░░░ 1 of 4 MB
"photos.zip"   ████████░░░░░░░░░░░░░░░░ 1 of 3 MB
"maps.zip"     ████████████░░░░░░░░░░░░ 2 of 4 MB
"songs.zip"    ████████████░░░░░░░░░░░░ 1 of 2 MB
"songs.zip"    ✗ the connection was lost
"maps.zip"     ██████████████████░░░░░░ 3 of 4 MB
"photos.zip"   ████████████████░░░░░░░░ 2 of 3 MB
"maps.zip"     ████████████████████████ 4 of 4 MB
"maps.zip"     ✓ 4 MB saved
"photos.zip"   ████████████████████████ 3 of 3 MB
"photos.zip"   ✓ 3 MB saved

Maps and photos are here. The songs broke off halfway; shall I try again?
`

const atLast = `"maps.zip"     ✓ 4 MB saved
"photos.zip"   ✓ 3 MB saved
"songs.zip"    ✗ the connection was lost

Maps and photos are here. The songs broke off halfway; shall I try again?
`

// play runs the program on a clock of its own: no two reports come at the same time, so their order is always the same.
func play(t *testing.T, terminal bool) string {
	var out strings.Builder
	synctest.Test(t, func(t *testing.T) {
		if err := run(t.Context(), &board{out: &out, terminal: terminal}); err != nil {
			t.Error(err)
		}
	})
	return out.String()
}

func TestOneLineForEachReport(t *testing.T) {
	if out := play(t, false); out != plain {
		t.Errorf("the program prints:\n%s", out)
	}
}

func TestATerminalShowsOneLineForEachTool(t *testing.T) {
	out := play(t, true)
	if shown := screen(t, out); shown != atLast {
		t.Errorf("the terminal shows:\n%s", shown)
	}
	for _, line := range strings.Split(strings.TrimSuffix(plain, "\n"), "\n") {
		if !strings.Contains(out, line) {
			t.Errorf("the terminal never shows %s", line)
		}
	}
}

var sign = regexp.MustCompile(`\x1b\[(\d*)([A-Z])|[^\x1b]`)

// screen is what a terminal shows in the end, as far as it knows the signs that the program uses.
func screen(t *testing.T, out string) string {
	lines, row, column := []string{""}, 0, 0
	for _, s := range sign.FindAllStringSubmatch(out, -1) {
		var n int
		fmt.Sscan(s[1], &n)
		switch {
		case s[2] == "A":
			row -= n
		case s[2] == "B":
			row += n
		case s[2] == "K":
			lines[row] = string([]rune(lines[row])[:column])
		case s[0] == "\r":
			column = 0
		case s[0] == "\n":
			if row, column = row+1, 0; row == len(lines) {
				lines = append(lines, "")
			}
		case s[2] != "" || column != len([]rune(lines[row])):
			t.Fatalf("sign %q", s[0])
		default:
			lines[row], column = lines[row]+s[0], column+1
		}
	}
	return strings.Join(lines, "\n")
}
