package web

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
)

// described returns the last node of d as a page gets it.
func described(t *testing.T, d dag.DAG) Node {
	t.Helper()
	require.NoError(t, d.Err())
	nodes := update(t, NewModel(), d).Nodes
	return nodes[len(nodes)-1]
}

func blocksOf(t *testing.T, list ...content.Block) content.Blocks {
	t.Helper()
	blocks, err := content.Of(list...)
	require.NoError(t, err)
	return blocks
}

// at returns what is at a path of a saved node, by the rule in the package comment.
func at(saved any, path string) (value any, found bool) {
	names := strings.Split(path, ".")
	for i, name := range names {
		switch v := saved.(type) {
		case []any:
			var n int
			if json.Unmarshal([]byte(name), &n) != nil || n >= len(v) {
				return nil, false
			}
			saved, found = v[n], true
		case map[string]any:
			value := saved
			if saved, found = v[name]; !found && i == len(names)-1 {
				saved, found = value.(map[string]any)[name+"_text"]
			}
		}
		if !found {
			return nil, false
		}
	}
	return saved, true
}

// texts returns the text of parts: labels, and what is at their paths.
func texts(t *testing.T, n Node, parts []Part) (list []string) {
	t.Helper()
	var saved any
	require.NoError(t, json.Unmarshal([]byte(n.Raw.String()), &saved))
	for _, p := range parts {
		if p.Label != "" {
			list = append(list, p.Label)
		}
		for _, path := range []string{p.From, p.At} {
			if path == "" {
				continue
			}
			value, found := at(saved, path)
			require.True(t, found, "%s in %s", path, n.Raw)
			text, ok := value.(string)
			if !ok {
				b, err := json.Marshal(value)
				require.NoError(t, err)
				text = string(b)
			}
			list = append(list, text)
		}
		list = append(list, texts(t, n, p.Parts)...)
	}
	return list
}

func TestPartsLocateTheContentOfEachNode(t *testing.T) {
	message := func(role content.Role, list ...content.Block) node.Message {
		return node.Message{Role: role, Blocks: blocksOf(t, list...)}
	}
	call := func(state node.ExecutionState) node.ToolExecution {
		return node.ToolExecution{Tool: "find", Input: "{}", State: state}
	}
	waits := call(node.ExecutionAwaitingApproval)
	waits.Child = node.ListOf(start().User("Pay.").Head())
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

	tested := map[describe.Sort]bool{}
	for _, c := range []struct {
		payload node.Payload
		want    []string
	}{
		{node.System{Name: "tone", Text: "Be brief."}, []string{"(tone)", "Be brief."}},
		{node.Tools{
			Defs:      node.ListOf(content.Tool{Name: "find", Description: "Finds.", Schema: `{"type":"object"}`}),
			Withdrawn: node.ListOf("old"),
		}, []string{"find", "Finds.", `{"type":"object"}`, "withdrawn: old"}},
		{message(content.User,
			content.Text{Text: "Hello."},
			content.Image{Source: content.Source{MediaType: "image/png", Data: "AAAA"}},
			content.Document{Title: "Report", Source: content.Source{MediaType: "text/plain", Text: "Long."}},
			content.Document{Source: content.Source{MediaType: "application/pdf", Data: "AAA="}},
			content.Opaque{API: "acme", JSON: `{"x":1}`},
			content.Unknown{JSON: `{"type":"hologram","y":2}`},
		), []string{"Hello.", "image image/png, 3 bytes", `{"data":"AAAA","media_type":"image/png"}`,
			"document Report text/plain", "Long.", "document application/pdf, 2 bytes", "acme block", `{"x":1}`,
			"unknown block", `{"type":"hologram","y":2}`}},
		{message(content.Assistant,
			content.Thinking{Text: "Hm."},
			content.Thinking{Redacted: "x", Extra: content.Extra{API: "anthropic", JSON: "{}"}},
			content.ToolUse{ID: "1", Name: "find", Input: `{"q":"a"}`},
			content.ToolUse{ID: "2", Name: "find", Input: "{"},
		), []string{"thinking", "Hm.", "thinking, hidden by the provider", "find", `{"q":"a"}`, "find", "{"}},
		{message(content.Assistant, content.CutToolUse{Name: "find", Input: `{"q":`}),
			[]string{"cut-off call of find", `{"q":`}},
		{message(content.User, content.ToolResult{CallID: "1", Content: content.Words("Found.")}),
			[]string{"result 1", "Found."}},
		{node.ToolExecution{
			Tool: "find", Input: `{"q":"a"}`, Ran: node.Ran{Tool: "seek", Input: `{"q":"b"}`},
			Result: content.Words("Found."), Full: content.Words("All."), Details: "{}", Started: at, Ended: at,
		}, []string{"arguments, as the model wrote them", "find", `{"q":"a"}`,
			"executed instead: seek", `{"q":"a"}`, `{"q":"b"}`,
			"result", "Found.", "whole output", "All.", "details", "{}",
			"started 2026-01-02T03:04:05Z, ended 2026-01-02T03:04:05Z"}},
		{node.ToolExecution{Tool: "find", Input: "{", IsError: true},
			[]string{"arguments", "find", "{", "failed", "no output"}},
		{call(node.ExecutionStarted), []string{"arguments", "find", "{}", "started", "no result yet"}},
		{call(node.ExecutionInDoubt), []string{"arguments", "find", "{}", "in doubt", "the outcome is not known"}},
		{waits, []string{"arguments", "find", "{}", "awaiting approval", "no result yet"}},
		{node.SubGraph{Title: "help", Summary: "Because."}, []string{"help", "Because."}},
		{node.Compaction{Summary: content.Words("In short.")}, []string{"summary", "In short."}},
		{node.RunStart{Agent: "support", Run: "r1", Version: "3", Limits: node.RunLimits{Turns: 8, Calls: 2, Cost: 0.5}},
			[]string{"support", "r1", "version 3, at most 8 turns, 2 tool calls, cost 0.5"}},
		{node.StopReason{Reason: content.StopMaxTurns, Detail: "at most 1"}, []string{"max_turns", "at most 1"}},
		{node.Custom{Name: "note", JSON: `{"a":1}`}, []string{"note", `{"a":1}`}},
	} {
		n := described(t, start().Append(c.payload))
		require.Equal(t, c.want, texts(t, n, n.Parts), "%s", n.Raw)
		tested[describe.Sort(n.Sort)] = true
	}

	line := `{"id":"01a0e5f4-b400-7000-8000-000000000001","parents":[],"kind":"hologram","body":{"x":1}}`
	unknown, err := node.Parse([]byte(line), func(node.ID) *node.Node { return nil })
	require.NoError(t, err)
	require.Equal(t, []string{"a kind that this version does not know", `{"x":1}`},
		texts(t, Node{Raw: Saved{text: line}}, nodeParts(unknown, describe.Of(unknown))))
	tested[describe.Unknown] = true
	for _, sort := range describe.Sorts() {
		require.True(t, tested[sort], "no test of the parts of %s", sort)
	}
}

func TestResultsOfExecutionsAreSentOnce(t *testing.T) {
	d := start().User("Look.").Assistant("", content.ToolUse{ID: "1", Name: "look", Input: "{}"}).
		CloseTools(node.ToolExecution{Result: content.Words("Blue.")})
	require.Equal(t, []Part{{Form: FormCalls}}, described(t, d).Parts)
}

func TestALineShowsTheNode(t *testing.T) {
	message := func(role content.Role, list ...content.Block) node.Message {
		return node.Message{Role: role, Blocks: blocksOf(t, list...)}
	}
	use := func(name string) content.Block { return content.ToolUse{ID: "1", Name: name, Input: "{}"} }
	image := content.Image{Source: content.Source{URL: "https://example.com"}}
	cut := message(content.Assistant, content.Text{Text: "I"})
	cut.Answer.Stop = content.StopCut
	call := func(state node.ExecutionState, result string) node.ToolExecution {
		return node.ToolExecution{Tool: "find", Input: `{"q":"a"}`, State: state, Result: content.Words(result)}
	}
	failed := call("", "No.")
	failed.IsError = true

	for _, c := range []struct {
		payload node.Payload
		want    string
	}{
		{node.System{Name: "tone", Text: "Be\nbrief."}, "(tone) Be brief."},
		{node.System{Name: "tone"}, "(tone removed)"},
		{node.System{Text: strings.Repeat("x", 100_000)}, strings.Repeat("x", lineWidth-1) + "…"},
		{message(content.User, image, content.Text{Text: "Look."}), "[image https://example.com] Look."},
		{message(content.Assistant, content.Text{Text: "I look."}, use("look"), use("find"), use("look")),
			"I look. → look ×2, find"},
		{cut, "[cut off] I"},
		{message(content.Assistant, content.Thinking{Text: "Hm."}), "[thinking] Hm."},
		{call("", "Found."), "(q: a)Found."},
		{node.ToolExecution{Tool: "find", Input: "{}"}, "()no output"},
		{failed, "(q: a)failed: No."},
		{node.ToolExecution{Tool: "find", Input: "{}", State: node.ExecutionStarted}, "()started"},
		{call(node.ExecutionInDoubt, "Half."), "(q: a)in doubt: Half."},
		{node.SubGraph{Title: "help", Summary: "Because."}, "help: Because."},
		{node.RunStart{Agent: "support", Run: "r1"}, "by support"},
		{node.StopReason{Reason: content.StopEndTurn, Turns: 2, Detail: "at most"}, "end_turn, 2 turns: at most"},
		{node.Custom{Name: "note", JSON: `{"a":1}`}, `{"a":1}`},
	} {
		n := described(t, start().Append(c.payload))
		require.Equal(t, c.want, n.Call+n.Line)
	}
}

// TestTheScriptLaysOutEveryForm reads the forms from the source, so that a new one fails here until the script has it.
func TestTheScriptLaysOutEveryForm(t *testing.T) {
	source, err := os.ReadFile("parts.go")
	require.NoError(t, err)
	forms := regexp.MustCompile(`(?m)^\tForm\w+ +Form = "(.*?)"`).FindAllStringSubmatch(string(source), -1)
	require.NotEmpty(t, forms)
	for _, function := range []string{"function partWords(", "function place("} {
		_, body, found := strings.Cut(parts().script, function)
		require.True(t, found, function)
		body, _, _ = strings.Cut(body, "\n}\n")
		for _, form := range forms {
			name := form[1]
			if name == "" {
				name = "text"
			}
			require.Contains(t, body, "case '"+name+"':", function)
		}
	}
}

func TestLineOfAFailedCallBeginsWithTheMostTellingLine(t *testing.T) {
	failed := node.ToolExecution{Tool: "bash", Result: content.Words("exit status 1\n--- FAIL: TestX\nx_test.go:3"), IsError: true}
	d := start().Append(failed)
	require.NoError(t, d.Err())
	_, got := line(describe.Of(d.Head()))
	require.Equal(t, "failed: --- FAIL: TestX x_test.go:3", got)
}
