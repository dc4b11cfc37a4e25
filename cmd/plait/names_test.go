package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// named is a conversation with branches, refs, a sub-agent, failures and usage. Two of its IDs have the same last 8
// digits if clash is set.
func named(t *testing.T, clash bool) dag.DAG {
	t.Helper()
	made := uint64(0)
	source := node.Source{
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		NewID: func() node.ID {
			made++
			id := node.ID{1, 0x89, 0, 0, 0, byte(made), 0x70, 0, 0x80, 0, 0, byte(made), 0xab, 0xcd, 0xef, byte(made * 7)}
			if clash {
				id[15] = byte(made / 2)
			}
			return id
		},
	}

	answer := func(text string, calls ...content.ToolUse) node.Message {
		blocks := []content.Block{content.Text{Text: text}}
		for _, c := range calls {
			blocks = append(blocks, c)
		}
		list, err := content.Of(blocks...)
		require.NoError(t, err)
		return node.Message{Role: content.Assistant, Blocks: list,
			Answer: node.Answer{Model: "m", Stop: content.StopEndTurn, Usage: content.Usage{Input: 2000, Output: 5}}}
	}
	child := dag.New().WithSource(source).User("needle in the sub-agent").Append(answer("found"))
	d := dag.New().WithSource(source).System("Be brief.").User("Where is the needle?").WithRef("question").
		Append(answer("I look.", content.ToolUse{ID: "a", Name: "find", Input: `{}`}, content.ToolUse{ID: "b", Name: "find", Input: `{"deep":true}`})).
		CloseTools(node.ToolExecution{Index: 1, IsError: true, Result: content.Words("no needle")},
			node.ToolExecution{Index: 2, Result: content.Words("a needle"), Child: node.ListOf(child.Heads()...)}).
		Append(answer("The needle is here.")).WithRef("answered")
	d = d.User("Sure?").Append(node.StopReason{Reason: content.StopError, Detail: "overloaded needle"})
	require.NoError(t, d.Err())
	return d
}

func savedAs(t *testing.T, d dag.DAG, name string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, d.Save(file))
	return file
}

// TestEveryCommandNamesANodeAlike collects the names of nodes in the output of each command, and looks each up.
func TestEveryCommandNamesANodeAlike(t *testing.T) {
	for _, clash := range []bool{false, true} {
		d := named(t, clash)
		file := savedAs(t, d, "talk.json")
		other := savedAs(t, d.AtRef("question").Append(node.Message{Role: content.Assistant, Blocks: content.Words("No needle.")}), "other.json")
		short := d.ShortIDs()
		byName := map[string]*node.Node{}
		before, err := dag.Load(other)
		require.NoError(t, err)
		for _, n := range before.Nodes() {
			byName[before.ShortIDs()(n)], byName[n.ID().String()] = n, n
		}
		for _, n := range d.WithChildren() {
			byName[short(n)], byName[n.ID().String()] = n, n
			out, errs, code := command("", "show", file, short(n), "--json")
			require.Equal(t, exitDone, code, errs)
			require.Contains(t, out, n.ID().String())
		}
		digits := 8
		if clash {
			digits = 9
		}
		require.Len(t, short(d.Head()), digits)

		// Each pattern finds all names in the output; least is how many there are at least.
		name := fmt.Sprintf(`([0-9a-f]{%d,32})`, digits)
		id := `([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})`
		for _, c := range []struct {
			args    string
			pattern string
			least   int
		}{
			{"log FILE", `(?m)^.*?[◆○●▪◇■] ` + name + ` `, 10},
			{"log FILE -n 2", `(?m)^.*?[◆○●▪◇■] ` + name + ` `, 2},
			{"log FILE --all", `(?:message|reason) ` + name, 2},
			{"log FILE --oneline --all", `(?m)^` + name + ` `, 11},
			{"log FILE --failed", `(?m)^` + name + ` `, 2},
			{"log FILE --json", `"id": "` + id, 9},
			{"diff OTHER FILE", `(?m)^[+~>-] .*?` + name + `$`, 5},
			{"diff OTHER FILE --json", `"id": "` + id, 5},
			{"report --cache FILE", `talk.json: ` + name + ` m`, 3},
			{"report --cache FILE --json", `"id": "` + id, 3},
			{"report FILE --json", `"node": "` + name + `"`, 2},
			{"report FILE", `(?m)^  ✗ ` + name + ` `, 2},
			{"show FILE 0189", id, 5},
		} {
			args := words(c.args, file, other)
			out, errs, _ := command("", args...)
			found := regexp.MustCompile(c.pattern).FindAllStringSubmatch(out+errs, -1)
			require.GreaterOrEqual(t, len(found), c.least, "%s:\n%s%s", c.args, out, errs)
			for _, match := range found {
				if n := byName[match[1]]; n == nil {
					t.Fatalf("%s names a node %s:\n%s%s", c.args, match[1], out, errs)
				}
			}
		}
	}
}

// TestNoOutputHoldsADigest: a digest would confirm guesses of content that was erased since.
func TestNoOutputHoldsADigest(t *testing.T) {
	d := named(t, false)
	file := savedAs(t, d, "talk.json")
	other := savedAs(t, d.User("more"), "other.json")

	var digests []string
	for _, n := range d.WithChildren() {
		digests = append(digests, fmt.Sprintf("%x", n.Digest())[:8])
	}
	for _, args := range []string{
		"log FILE", "log FILE --all", "log FILE --oneline", "log FILE --json", "log FILE --failed", "diff FILE OTHER", "diff FILE OTHER --json",
		"report FILE --cache", "report FILE --cache --json",
		"report FILE OTHER --as html", "verify FILE", "verify FILE --json",
		"render FILE --as mermaid", "render FILE --as dot", "render FILE --as svg", "show FILE 0189",
		"show FILE",
	} {
		list := words(args, file, other)
		out, errs, _ := command("", list...)
		require.NotEmpty(t, out+errs, args)
		at := slices.IndexFunc(digests, func(digest string) bool { return strings.Contains(out+errs, digest) })
		require.Equal(t, -1, at, "%s:\n%s%s", args, out, errs)
	}
}

// words returns the words of a command line, of which some are FILE and OTHER. The names of files may have spaces.
func words(line, file, other string) []string {
	list := strings.Fields(line)
	for i, word := range list {
		list[i] = strings.NewReplacer("FILE", file, "OTHER", other).Replace(word)
	}
	return list
}
