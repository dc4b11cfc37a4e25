package node

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
)

// plainNodes are a call, its execution, and the results message: nodes that parsePlain reads.
func plainNodes(t testing.TB) []*Node {
	t.Helper()
	start := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	src := Counting(start)
	list := func(blocks ...content.Block) content.Blocks {
		made, err := content.Of(blocks...)
		require.NoError(t, err)
		return made
	}
	add := func(p Payload, parents ...*Node) *Node {
		n, err := New(src, p, Meta{}, parents...)
		require.NoError(t, err)
		return n
	}

	usage := content.Usage{Input: 1, Output: -2, CacheRead: 3, CacheWrite: 4, Reasoning: 5, Incomplete: true}
	text := "\"quoted\" \\ \b\f\n\r\t\x00\x1f\x7f / <&> \u2028 é 日本 😀"
	call := add(Message{
		Role: content.Assistant,
		Blocks: list(content.Thinking{Text: text, Signature: "s", Redacted: "r"}, content.Text{Text: text}, content.Text{},
			content.ToolUse{ID: "c1", Name: "f", Input: `{"a" : [1.0,"}\""], "b":{}}`}, content.ToolUse{Input: `{"cut`}, content.ToolUse{}),
		Answer: Answer{API: "anthropic", Model: "m", ResponseID: "r", Stop: content.StopToolUse, Usage: usage, Latency: time.Second, Retries: 2,
			Seen: Seen{1, 2}, Details: `{"timings":{"ms":1.0},"id":[ 1 ]}`},
	})
	execution := add(ToolExecution{
		CallID: "c1", Tool: "f", Input: `"x"`, Result: list(content.Text{Text: text}, content.ImageOf("image/png", []byte("data"))),
		Started: start, Ended: start.Add(time.Second), Usage: usage, Details: `[1.0,null]`,
	}, call)
	failed := add(ToolExecution{Index: 1, Input: `{"cut`, IsError: true, State: ExecutionInDoubt}, call)
	answer := execution.payload.(ToolExecution).Answer()
	results := add(Message{Role: content.User, Blocks: list(answer, content.ToolResult{CallID: "d", IsError: true},
		content.ToolResult{CallID: "e", Content: content.Words("own")}, content.Text{Text: "and"})}, execution, failed)
	return []*Node{call, execution, failed, results, add(Message{Role: content.User}, results)}
}

// resolver returns the function for Parse that finds nodes.
func resolver(nodes []*Node) func(ID) *Node {
	return func(id ID) *Node {
		for _, n := range nodes {
			if n.id == id {
				return n
			}
		}
		return nil
	}
}

// requirePlain checks that parsePlain and parseAny read the same from a line that parsePlain accepts, and that Append
// writes the line again. It reports whether parsePlain accepts it.
func requirePlain(t testing.TB, line []byte, resolve func(ID) *Node) bool {
	t.Helper()
	n := parsePlain(line, resolve)
	if n == nil {
		return false
	}
	require.Empty(t, n.line.get(), "the line is not kept")
	require.Equal(t, string(line), string(n.encode(nil)))

	want, err := parseAny(line, resolve)
	require.NoError(t, err)
	require.Equal(t, want.Digest(), n.Digest())
	want.line.set("")
	want.hashes.Store(n.hashes.Load())
	require.Equal(t, want, n)
	return true
}

func TestPlainLinesAreReadAsAnyOther(t *testing.T) {
	nodes := plainNodes(t)
	for _, n := range nodes {
		require.True(t, requirePlain(t, n.encode(nil), resolver(nodes)), "%s", n.encode(nil))
	}
}

// TestIndexThatDoesNotFitIsNotPlain reads an index of 33 bits, which is an int on some machines only.
func TestIndexThatDoesNotFitIsNotPlain(t *testing.T) {
	nodes := plainNodes(t)
	line := strings.Replace(string(nodes[1].encode(nil)), `"index":0`, `"index":4294967296`, 1)
	require.Equal(t, strconv.IntSize == 64, parsePlain([]byte(line), resolver(nodes)) != nil)
}

// TestOtherFormsAreNotPlain changes plain lines in ways that Append would not write, or that no line may have.
func TestOtherFormsAreNotPlain(t *testing.T) {
	nodes := plainNodes(t)
	for _, change := range []struct {
		node     int
		old, new string
	}{
		{0, `,"parents"`, `, "parents"`},
		{0, `"parents":[]`, `"parents":[ ]`},
		{0, `"kind":"message",`, `"kind":"message","new":1,`},
		{0, `{"type":"text","text":""}`, `{"type":"text"}`},
		{0, `{"type":"text","text":""}`, `{"text":"","type":"text"}`},
		{0, `{"type":"text","text":""}`, `{"type":"text","text":"","extra":{"api":"a","json":{}}}`},
		{0, `{"type":"text","text":""}`, `{"type":"text","text":"\/"}`},
		{0, `{"type":"text","text":""}`, `{"type":"text","text":"\u0041"}`},
		{0, `{"type":"text","text":""}`, `{"type":"text","text":"\u001F"}`},
		{0, `{"type":"text","text":""}`, `{"type":"text","text":"\u000a"}`},
		{0, `{"type":"text","text":""}`, `{"type":"text","text":"\ud83d\ude00"}`},
		{0, `{"type":"text","text":""}`, "{\"type\":\"text\",\"text\":\"\t\"}"},
		{0, `{"type":"text","text":""}`, "{\"type\":\"text\",\"text\":\"\xff\"}"},
		{0, `{"type":"text","text":""}`, `{"type":"text","text":"`},
		{0, `"id":"c1","name":"f"`, `"name":"f","id":"c1"`},
		{0, `"id":"c1"`, `"id":""`},
		{0, `"input":{"a"`, `"input": {"a"`},
		{0, `"input":{"a"`, `"input":{"b":1,"a"`},
		{0, `"input_text":"{\"cut"`, `"input_text":"{}"`},
		{0, `"usage":{"input":1,`, `"usage":{"input":01,`},
		{0, `"usage":{"input":1,`, `"usage":{"input":1.0,`},
		{0, `"usage":{"input":1,`, `"usage":{"input":0,`},
		{0, `"latency_ns":1000000000`, `"latency_ns":1e9`},
		{0, `"latency_ns":1000000000`, `"latency_ns":99999999999999999999`},
		{0, `"info":{`, `"info":{"new":1,`},
		{0, `"sum":"sha256:`, `"redacted":true,"sum":"sha256:`},
		{0, `"sum":"sha256:`, `"meta":{"a":1},"sum":"sha256:`},
		{0, `Z","body"`, `+00:00","body"`},
		{0, `.0000006Z`, `.00000060Z`},
		{1, `"index":0`, `"index":0,"child":[]`},
		{1, `"details":[1.0,null]`, `"details":[1.0,null],"full":[]`},
		{1, `{"type":"image"`, `{"type":"thinking"},{"type":"image"`},
		{1, `"media_type":"image/png",`, `"media_type":"image/png","url":"x",`},
		{3, `"result_of":0`, `"result_of":1`},
		{3, `"result_of":0`, `"result_of":9`},
		{3, `{"type":"text","text":"and"}`, `{"type":"text","text":"and"},`},
	} {
		line := string(nodes[change.node].encode(nil))
		require.Contains(t, line, change.old)
		changed := strings.Replace(line, change.old, change.new, 1)
		require.Nil(t, parsePlain([]byte(changed), resolver(nodes)), "%s", changed)
	}

	// A hexadecimal digit in upper case, and lines that are cut.
	line := string(nodes[3].encode(nil))
	digest := line[strings.Index(line, "sha256:")+len("sha256:"):]
	require.Nil(t, parsePlain([]byte(strings.Replace(line, digest, strings.ToUpper(digest), 1)), resolver(nodes)))
	for i := range len(line) {
		require.Nil(t, parsePlain([]byte(line[:i]), resolver(nodes)))
	}
	require.Nil(t, parsePlain([]byte(line), resolver(nodes[:1])), "a parent is missing")
}

// FuzzPlain looks for a line that parsePlain reads otherwise than parseAny.
func FuzzPlain(f *testing.F) {
	nodes := plainNodes(f)
	for _, n := range nodes {
		f.Add(n.encode(nil))
	}
	f.Fuzz(func(t *testing.T, line []byte) { requirePlain(t, line, resolver(nodes)) })
}
