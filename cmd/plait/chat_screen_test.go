package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/safetext"
)

// flowed returns what a flow writes for pieces of text.
func flowed(pieces ...string) string {
	var out bytes.Buffer
	f := flow{out: &out}
	for _, piece := range pieces {
		f.write(piece)
	}
	f.end()
	return out.String()
}

func TestResponseReadsTheSameHoweverItArrives(t *testing.T) {
	text := "cafe\u0301 \U0001f468\u200d\U0001f469\u200d\U0001f467 हिन्दी \x1b[31mred\x1b[0m a\r\nb\rc\td\u202e " +
		strings.Repeat("長", 50) + "e\u0301 " + strings.Repeat("x", 100) + "\n\n```\ncode  here\n```\nend"
	whole := flowed(text)
	require.Equal(t, safetext.Block(text)+"\n", whole)

	for at := range text {
		require.Equal(t, whole, flowed(text[:at], text[at:]), "split at %d", at)
	}
	var runes []string
	for rest := text; rest != ""; {
		_, size := utf8.DecodeRuneInString(rest)
		runes, rest = append(runes, rest[:size]), rest[size:]
	}
	require.Equal(t, whole, flowed(runes...))
}

func TestApprovalShowsEveryArgument(t *testing.T) {
	var notes bytes.Buffer
	s := newScreen(&streams{out: &notes, err: &notes})
	s.call(executor.Call{Name: "run\x1b[2J", Input: content.JSON(`{"command":"ls\u001b[31m\u202e","then":"` + strings.Repeat("x", 200) + `; rm -r"}`)})
	require.Contains(t, notes.String(), "; rm -r")
	require.NotContains(t, notes.String(), "\x1b")
	require.NotContains(t, notes.String(), "\u202e")
}

func TestServerCommandIsSplitAsInAShell(t *testing.T) {
	for text, want := range map[string][]string{
		`npx -y  server .`:      {"npx", "-y", "server", "."},
		`a 'b c' "d \"e" f\ g`:  {"a", "b c", `d "e`, "f g"},
		`a '' b"c"d 'e\f'`:      {"a", "", "bcd", `e\f`},
		"a\t'$HOME *' \"日 本\" ": {"a", "$HOME *", "日 本"},
	} {
		got, err := splitCommand(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{``, ` `, `a 'b`, `a "b`, `a \`} {
		_, err := splitCommand(text)
		require.Error(t, err, text)
	}
}
