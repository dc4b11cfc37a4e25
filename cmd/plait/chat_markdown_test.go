package main

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
)

// drawnRows returns the rows that Markdown makes when it arrives in pieces.
func drawnRows(width int, color bool, pieces ...string) (rows []string) {
	m := &markdown{color: color, show: func([]string) {}, print: func(more []string) { rows = append(rows, more...) }}
	m.fit(width + 1)
	for _, piece := range pieces {
		m.write(piece)
	}
	m.end()
	return rows
}

const markdownText = "# Title\r\n\r\nSome **bold** and *it* `code`, and 日本語 that goes on to the next row.\nSoft\\\nhard\n\n" +
	"| name | 値段 |\n|---|---|\n| 東京 | 2,000 |\n\n- one\n- two\n  1. nested\n\n> quoted\n\n```go\na := 1\n\n\tb\n```\n\n***\n\n- loose\n\n- [x] done\n\nend"

func TestMarkdownInRows(t *testing.T) {
	require.Equal(t, []string{
		"Title", "",
		"Some bold and it code, and 日本語 that", "goes on to the next row. Soft", "hard", "",
		"name │ 値段", "─────┼───────", "東京 │ 2,000", "",
		"• one", "• two", "  1. nested", "",
		"│ quoted", "",
		"  a := 1", "  ", "      b", "",
		strings.Repeat("─", 38), "",
		"• loose", "", "• ☑ done", "",
		"end",
	}, drawnRows(38, false, markdownText))
}

// TestMarkdownReadsTheSameHoweverItArrives: blocks are printed before the end of the text.
func TestMarkdownReadsTheSameHoweverItArrives(t *testing.T) {
	whole := drawnRows(40, true, markdownText)
	for at := range markdownText {
		require.Equal(t, whole, drawnRows(40, true, markdownText[:at], markdownText[at:]), "split at %d", at)
	}
	require.Equal(t, whole, drawnRows(40, true, strings.Split(markdownText, "")...))
}

func TestMarkdownFitsItsWidth(t *testing.T) {
	text := markdownText + "\n\n| a | b |\n|-|-|\n| " + strings.Repeat("long words ", 9) + "| " + strings.Repeat("東", 40) + " |\n\n" +
		strings.Repeat("y", 200) + "\n\n    " + strings.Repeat("z", 99)
	for width := 12; width < 60; width++ {
		for _, row := range drawnRows(width, true, text) {
			require.LessOrEqual(t, ansi.StringWidth(row), width, row)
		}
	}
}

// TestMarkdownIsHarmless: neither text nor entities control the terminal, and a link shows where it leads.
func TestMarkdownIsHarmless(t *testing.T) {
	hostile := "a \x1b[31m &#27;[2J &#x202e; \u202e <b>\x1b]8;;x\x07</b> `\x1b[1m`\n\n```\x1b[5m\n\x1b[6m\n```\n\n" +
		"[\x1b[7mbank](http://evil/\x1b[8m) ![x](http://evil/y) <http://evil/z\x1b>\n\n<div>\x1b[9m\n</div>\n\n| \x1b[3m |\n|-|\n| &#155; |\n\n[r]: <http://e\x1b>\n"
	text := strings.Join(drawnRows(200, false, hostile), "\n")
	require.NotContains(t, text, "\x1b")
	require.NotContains(t, text, "\x07")
	require.NotContains(t, text, "\u202e")
	require.NotContains(t, text, "\u009b")
	require.Contains(t, text, "bank (http://evil/")
	require.Contains(t, text, "x (http://evil/y)")
}

func TestEditsAreComparedByLine(t *testing.T) {
	found, rest := edits(content.JSON(`{"path":"a.go","edits":[{"oldText":"a\nb\nc","newText":"a\nB\nc"}],"old_string":"x","new_string":"y"}`))
	require.Equal(t, map[string]any{"path": "a.go", "edits": []any{map[string]any{}}}, rest)
	var lines []string
	for _, e := range found {
		lines = append(lines, e.lines()...)
	}
	require.Equal(t, []string{"-x", "+y", " a", "-b", "+B", " c"}, lines)

	found, _ = edits(content.JSON(`{"old_string":"x","old_string":"z","new_string":"y"}`))
	require.Empty(t, found, "a tool may read the other one")
	require.True(t, isDiff("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y"))
}

// TestTangledMarkdownIsShownAsItIs: the parser takes 20 seconds for the third text, and longer if it arrives in pieces.
func TestTangledMarkdownIsShownAsItIs(t *testing.T) {
	for _, text := range []string{strings.Repeat("[a](", 1000), strings.Repeat("> - ", 100), strings.Repeat("> - ", 32_000), strings.Repeat("1. ", 100)} {
		rows := drawnRows(80, false, "*before*\n\n", text, "\n\n*after*")
		require.Equal(t, "before", rows[0])
		require.Equal(t, strings.ReplaceAll(text, " ", ""), strings.ReplaceAll(strings.Join(rows[2:len(rows)-2], ""), " ", ""))
		require.Equal(t, "after", rows[len(rows)-1])
	}
	require.Equal(t, "a (b)", drawnRows(80, false, strings.Repeat("[a](b)\n\n", 1000))[0], "many links are no tangle")
}
