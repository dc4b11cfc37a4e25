package dialect_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/dialect"
)

var update = flag.Bool("update", false, "write the table of docs/switching.md anew")

// targets is the APIs in the order of the table's columns.
var targets = []string{"anthropic", "openai-chat", "openai-responses", "gemini"}

// TestSwitchingTableIsTrue keeps what docs/switching.md says of the APIs, and dialect.TargetOf, the same.
func TestSwitchingTableIsTrue(t *testing.T) {
	const path, begin, end = "../../docs/switching.md", "<!-- begin dialect.TargetOf -->\n", "<!-- end dialect.TargetOf -->"
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(file), begin)
	require.True(t, found)
	table, after, found := strings.Cut(rest, end)
	require.True(t, found)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(before+begin+targetTable()+end+after), 0o644))
		return
	}
	require.Equal(t, targetTable(), table, "run the test with -update")
}

func TestSwitchingTableNamesEveryTarget(t *testing.T) {
	for _, name := range targets {
		require.Equal(t, name, targetOf(name).API)
	}
}

func TestTargetOfReturnsACopy(t *testing.T) {
	for _, name := range targets {
		before := fmt.Sprintf("%+v", targetOf(name)) // a text, because a Target would change with the lists that it shares
		changed := targetOf(name)
		for _, list := range [][]string{
			changed.Files, changed.Images.Types, changed.Images.URL, changed.Documents.Types, changed.Documents.URL, changed.Audio.Types,
			changed.Audio.URL, changed.SchemaTop, changed.Schema,
		} {
			for i := range list {
				list[i] = "changed"
			}
		}
		require.Equal(t, before, fmt.Sprintf("%+v", targetOf(name)))
	}

	_, ok := dialect.TargetOf("none")
	require.False(t, ok)
}

// targetOf returns the rules of an API that exists.
func targetOf(name string) dialect.Target {
	target, ok := dialect.TargetOf(name)
	if !ok {
		panic("no rules for " + name)
	}
	return target
}

func allTargets() map[string]dialect.Target {
	all := map[string]dialect.Target{}
	for _, name := range targets {
		all[name] = targetOf(name)
	}
	return all
}

func targetTable() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n| | %s |\n|%s\n", strings.Join(targets, " | "), strings.Repeat("---|", len(targets)+1))
	row := func(name string, cell func(dialect.Target) string) {
		line, says := "| "+name+" |", false
		for _, target := range targets {
			text := cell(targetOf(target))
			line += " " + strings.ReplaceAll(text, "|", `\|`) + " |"
			says = says || text != "no" && text != "no limit"
		}
		if says {
			b.WriteString(line + "\n") // a row in which no API has anything is left out
		}
	}
	for _, kind := range []struct {
		name string
		of   func(dialect.Target) dialect.Media
	}{
		{"images", func(t dialect.Target) dialect.Media { return t.Images }},
		{"documents", func(t dialect.Target) dialect.Media { return t.Documents }},
		{"audio", func(t dialect.Target) dialect.Media { return t.Audio }},
	} {
		row(kind.name+", as bytes", func(t dialect.Target) string { return code(kind.of(t).Types) })
		row(kind.name+", by URL", func(t dialect.Target) string { return code(kind.of(t).URL) })
		row(kind.name+", most bytes of base64", func(t dialect.Target) string { return number(kind.of(t).MaxBytes) })
		row(kind.name+" shown by the assistant", func(t dialect.Target) string { return yes(kind.of(t).Assistant) })
	}
	row("plain text as a document", func(t dialect.Target) string { return yes(t.Documents.Text) })
	row("uploaded files of", func(t dialect.Target) string { return code(t.Files) })
	row("its own thinking without a signature", func(t dialect.Target) string { return yes(t.UnsignedThinking) })
	row("names of tools", func(t dialect.Target) string { return code([]string{t.ToolName.String()}) })
	row("ids of tool calls", func(t dialect.Target) string { return code([]string{t.CallID.String()}) })
	row("left out at the top of a tool's schema", func(t dialect.Target) string { return code(t.SchemaTop) })
	row("all that a tool's schema may hold", func(t dialect.Target) string {
		if t.Schema == nil {
			return "everything"
		}
		return code(t.Schema)
	})
	return b.String() + "\n"
}

func code(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return "`" + strings.Join(words, "` `") + "`"
}

func number(n int) string {
	if n == 0 {
		return "no limit"
	}
	return fmt.Sprint(n)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
