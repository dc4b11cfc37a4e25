package node_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// phase is a tool phase whose executions share their results with the message that closes it.
func phase(t testing.TB, m maker) (use *node.Node, executions []*node.Node, closing *node.Node) {
	use = m.node(said(t, content.ToolUse{ID: "x", Name: "f", Input: "{\"a\": 1} "}, content.ToolUse{ID: "x", Name: "f"}, content.ToolUse{Name: "f"}))
	var results []content.Block
	for i, e := range []node.ToolExecution{
		{CallID: "x", Index: 0, Tool: "f", Result: content.Words(strings.Repeat("long ", 100))},
		{CallID: "x", Index: 1, Tool: "f", Result: content.Words("boom"), IsError: true},
		{Index: 2, Tool: "f"},
	} {
		n := m.node(e, use)
		executions = append(executions, n)
		answer := n.Payload().(node.ToolExecution).Answer()
		if i == 2 {
			answer.Content = content.Words("edited by hand") // so not what the execution has
		}
		results = append(results, answer)
	}
	results = append(results, content.Text{Text: "Go on."})
	closing = m.node(node.Message{Role: content.User, Blocks: blocks(t, results...)}, executions...)
	return use, executions, closing
}

func reader(nodes ...*node.Node) func(node.ID) *node.Node {
	return func(id node.ID) *node.Node {
		for _, n := range nodes {
			if n.ID() == id {
				return n
			}
		}
		return nil
	}
}

func TestAResultIsSavedOnce(t *testing.T) {
	m := newMaker(t)
	use, executions, closing := phase(t, m)
	line := string(closing.Append(nil))
	require.NotContains(t, line, "long long")
	require.NotContains(t, line, "boom")
	require.Contains(t, line, "edited by hand")
	require.Contains(t, line, `[{"type":"tool_result","result_of":0},{"type":"tool_result","result_of":1},{"type":"tool_result","content"`)

	var read []*node.Node
	for _, n := range append([]*node.Node{use}, append(executions, closing)...) {
		got, err := node.Parse(n.Append(nil), reader(read...))
		require.NoError(t, err)
		require.NoError(t, got.Verify())
		read = append(read, got)
	}
	want, _ := closing.Message()
	got, _ := read[4].Message()
	require.True(t, want.Blocks.Equal(got.Blocks))
	require.Equal(t, line, string(read[4].Append(nil)))
	again := m.node(got, read[1:4]...)
	require.Equal(t, closing.Digest(), again.Digest())
	require.Contains(t, string(again.Append(nil)), `"result_of":1`, "what was read is shared as well")

	require.Equal(t, content.JSON("{\"a\": 1} "), got0(t, read[0]).Input)
}

func got0(t *testing.T, n *node.Node) content.ToolUse {
	m, ok := n.Message()
	require.True(t, ok)
	return m.Blocks.ToolUses()[0]
}

func TestAResultIsNotSharedWithTheWrongParent(t *testing.T) {
	m := newMaker(t)
	_, executions, _ := phase(t, m)
	one, two := executions[0], executions[1]
	answer := func(n *node.Node) content.Block { return n.Payload().(node.ToolExecution).Answer() }
	swapped := m.node(node.Message{Role: content.User, Blocks: blocks(t, answer(two), answer(one))}, one, two)
	require.NotContains(t, string(swapped.Append(nil)), "result_of")
	extra := answer(one).(content.ToolResult)
	extra.Extra = content.Extra{API: "a", JSON: "{}"}
	n := m.node(node.Message{Role: content.User, Blocks: blocks(t, extra)}, one)
	require.NotContains(t, string(n.Append(nil)), "result_of")
	got, err := node.Parse(swapped.Append(nil), reader(one, two))
	require.NoError(t, err)
	msg, _ := got.Message()
	want, _ := swapped.Message()
	require.True(t, want.Blocks.Equal(msg.Blocks))
}

func TestLineIsKeptByteForByte(t *testing.T) {
	for _, line := range []string{
		`{"id":"00000000-0000-7000-8000-000000000001","parents":[],"kind":"moon","body":{"x": 1.0}}`,
		`{"parents":[],"kind":"system","x" : {"y":[1.0 ]},"body":{"text":"\u0041","z":null},"id":"00000000-0000-7000-8000-000000000001"}`,
		`{"id":"00000000-0000-7000-8000-000000000001","parents":[],"kind":"message","body":{"role":"user","blocks":[{"type":"hologram","n":1e400}]},"time":"2026-01-02T03:04:05+02:00"}`,
		`{"id":"00000000-0000-7000-8000-000000000001","parents":[],"kind":"custom","body":{"name":"a","json":null},"meta":{"z":1.0,"a": 2},"info":{}}`,
	} {
		data := []byte("  " + line + "\n")
		n, err := node.Parse(data, nil)
		require.NoError(t, err, line)
		clear(data)
		require.Equal(t, line, string(n.Append(nil)))
	}
}

func TestParseNamesTheField(t *testing.T) {
	known := newMaker(t).node(user("x"))
	id := `"id":"00000000-0000-7000-8000-000000000009"`
	const is = "00000000-0000-7000-8000-000000000009"
	execution := `{` + id + `,"parents":[],"kind":"tool_execution","body":{},"info":{`
	stop := `{` + id + `,"parents":[],"kind":"stop_reason","body":{},"info":{`
	for line, want := range map[string]struct{ id, field, says string }{
		`{`:                            {"", "line", ""},
		``:                             {"", "line", ""},
		`[]`:                           {"", "line", ""},
		`null`:                         {"", "id", "is not a UUID"},
		`{"id":5}`:                     {"", "id", ""},
		`{"id":"X"}`:                   {"X", "id", "is not a UUID"},
		`{"id":"urn:uuid:` + is + `"}`: {"urn:uuid:" + is, "id", "is not a UUID"},
		`{` + id + `,"parents":[]}`:    {is, "kind", "it is missing"},
		`{` + id + `,"parents":[],"kind":"system"}`:                                                 {is, "body", ""},
		`{` + id + `,"parents":[],"kind":"system","body":[]}`:                                       {is, "body", ""},
		`{` + id + `,"parents":[],"kind":"system","body":{"text":5}}`:                               {is, "body/text", ""},
		`{` + id + `,"parents":[],"kind":"moon","body":1,"time":"noon"}`:                            {is, "time", ""},
		`{` + id + `,"kind":"moon","body":1,"parents":{}}`:                                          {is, "parents", ""},
		`{` + id + `,"kind":"moon","body":1,"parents":["` + is + `"]}`:                              {is, "parents", "no such node before it"},
		`{` + id + `,"kind":"moon","body":1,"parents":[""]}`:                                        {is, "parents", "is not a UUID"},
		`{` + id + `,"parents":[],"kind":"moon","body":1,"meta":[]}`:                                {is, "meta", ""},
		`{` + id + `,"parents":[],"kind":"moon","body":1,"sum":"x"}`:                                {is, "sum", "64 lower-case digits"},
		`{` + id + `,"parents":[],"kind":"message","body":{"role":"boss"}}`:                         {is, "body/role", "neither user nor assistant"},
		`{` + id + `,"parents":[],"kind":"message","body":{"role":"user","blocks":[{}]}}`:           {is, "body/blocks/0", "it has no type"},
		`{` + id + `,"parents":[],"kind":"message","body":{"role":"user"},"info":{"usage":1}}`:      {is, "info/usage", ""},
		`{` + id + `,"parents":[],"kind":"tools","body":{"tools":[{"name":"a b"}]}}`:                {is, "body", "invalid tool definition"},
		`{` + id + `,"parents":[],"kind":"tool_execution","body":{"result":[{"type":"tool_use"}]}}`: {is, "body", "which only a message can"},
		`{` + id + `,"parents":[],"kind":"tool_execution","body":{"child":["` + is + `"]}}`:         {is, "body/child", "no such node before it"},
		`{` + id + `,"parents":[],"kind":"sub_graph","body":{"summary":1}}`:                         {is, "body", ""},
		`{` + id + `,"parents":[],"kind":"compaction","body":{"replaced":["x"]}}`:                   {is, "body/replaced", "is not a UUID"},
		`{` + id + `,"parents":[],"kind":"custom","body":{"name":"a","json_text":"{"}}`:             {is, "body", "not valid JSON"},
		`{` + id + `,"parents":[],"kind":"stop_reason","body":{"reason":[]}}`:                       {is, "body/reason", ""},
		`{` + id + `,"parents":[],"kind":"message","body":{"role":"user"},"info":{"seen":1}}`:       {is, "info/seen", ""},
		`{` + id + `,"parents":[],"kind":"message","body":{"role":"user"},"info":{"seen":"x"}}`:     {is, "info/seen", "digits"},
		execution + `"ran":[]}}`:                                      {is, "info/ran", ""},
		execution + `"ran":{"tool":1}}}`:                              {is, "info/ran/tool", ""},
		execution + `"ran":{"input_text":{}}}}`:                       {is, "info/ran/input_text", ""},
		execution + `"usage":{"input":0.5}}}`:                         {is, "info/usage/input", ""},
		execution + `"details_text":"{"}}`:                            {is, "info/details", "not valid JSON"},
		execution + `"details_text":[]}}`:                             {is, "info/details_text", ""},
		execution + `"full":{}}}`:                                     {is, "info/full", ""},
		execution + `"full":[{}]}}`:                                   {is, "info/full/0", "it has no type"},
		execution + `"full":[{"type":"text","text":1}]}}`:             {is, "info/full/0/text", ""},
		execution + `"full":[{"type":"tool_use"}]}}`:                  {is, "info/full", "which only a message can"},
		execution + `"full":[{"type":"tool_result","result_of":0}]}}`: {is, "info/full/0", "names no parent that is a tool execution"},
		execution + `"ended":"9999-12-31T23:59:59-01:00"}}`:           {is, "info/ended", "the year 10000"},
		stop + `"cost":-0.5}}`:                                        {is, "info/cost", "negative"},
		stop + `"cost":1e400}}`:                                       {is, "info/cost", ""},
		stop + `"cost":"NaN"}}`:                                       {is, "info/cost", ""},
		stop + `"cost":NaN}}`:                                         {is, "info/cost", ""},
		stop + `"tool_usage":3}}`:                                     {is, "info/tool_usage", ""},
		stop + `"tool_usage":{"output":99999999999999999999}}}`:       {is, "info/tool_usage/output", ""},
	} {
		n, err := node.Parse([]byte(line), reader(known))
		require.Nil(t, n)
		require.ErrorIs(t, err, node.ErrParse, line)
		var field *node.FieldError
		require.ErrorAs(t, err, &field, line)
		require.Equal(t, want.field, field.Field, line)
		require.Equal(t, want.id, field.ID, line)
		require.ErrorContains(t, err, want.says, line)
		require.Contains(t, err.Error(), field.Field)
	}
	for name, line := range map[string]string{
		"two lines": "{" + id + `,"kind":"system",` + "\n" + `"body":{}}`,
		"deep":      "{" + id + `,"kind":"system","body":{},"x":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + "}",
		"very deep": strings.Repeat(`{"a":`, 5_000_000),
	} {
		_, err := node.Parse([]byte(line), nil)
		require.ErrorIs(t, err, node.ErrParse, name)
	}
	_, err := node.Parse([]byte(`{"id":"`+strings.Repeat("x", 1<<20)+`"}`), nil)
	var field *node.FieldError
	require.ErrorAs(t, err, &field)
	require.Less(t, len(field.ID)+len(field.Error()), 1000, "what is too long for a message is cut")
}

// TestAFullOutputTakesNoResultOfAParent: a reference to a parent's result is for messages, and must not bring a result in.
func TestAFullOutputTakesNoResultOfAParent(t *testing.T) {
	parent := newMaker(t).node(node.ToolExecution{Result: content.Words("r")})
	_, err := node.Parse([]byte(`{"id":"00000000-0000-7000-8000-000000000009","parents":["`+parent.ID().String()+
		`"],"kind":"tool_execution","body":{},"info":{"full":[{"type":"tool_result","result_of":0}]}}`), reader(parent))
	var field *node.FieldError
	require.ErrorAs(t, err, &field)
	require.Equal(t, "info/full", field.Field)
	require.ErrorIs(t, err, content.ErrBlock)
}

// strict is what the lines of a file must be beyond what encoding/json asks, on purpose:
//
//   - no member name twice in an object, because decoders differ about which one counts;
//   - valid UTF-8, and no lone surrogates, because replacing them would change the bytes;
//   - no deeper than 512, on one line.
func strict(data []byte) bool {
	return utf8.Valid(data) && jsonx.Depth(content.JSON(data)) <= 512 && !bytes.ContainsAny(bytes.TrimSpace(data), "\n\r") && !repeats(data)
}

// repeats reports whether an object in the value has a member twice. Broken JSON is reported as false.
func repeats(data []byte) bool {
	type object struct {
		seen map[any]bool // nil for an array
		name bool         // whether a name comes next
	}
	var open []object
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		token, err := d.Token()
		if err != nil {
			return false
		}
		if len(open) > 0 && open[len(open)-1].name && token != json.Delim('}') {
			top := &open[len(open)-1]
			if top.seen[token] {
				return true
			}
			top.seen[token], top.name = true, false
			continue
		}
		switch token {
		case json.Delim('{'):
			open = append(open, object{map[any]bool{}, true})
			continue
		case json.Delim('['):
			open = append(open, object{})
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
		if len(open) == 0 {
			return false
		}
		open[len(open)-1].name = open[len(open)-1].seen != nil
	}
}

// FuzzParse: nothing panics; a line that is read is written byte for byte; and what goccy/go-json makes of a line is what
// encoding/json makes of it, but for what is stricter on purpose (see strict).
func FuzzParse(f *testing.F) {
	m := newMaker(f)
	for _, p := range payloads(f) {
		f.Add(m.node(p).Append(nil))
	}
	_, _, closing := phase(f, m)
	f.Add(closing.Append(nil))
	for _, n := range redact(f, []*node.Node{closing.Parent(0).Parent(0), closing.Parent(0)}, closing.Parent(0).Parent(0)) {
		f.Add(n.Append(nil))
	}
	f.Add([]byte(`{"id":"00000000-0000-7000-8000-000000000001","parents":[],"kind":"moon","body":{"x": 1.0},"meta":{"a":[1e400]},"time":"2026-01-02T03:04:05.5+02:00"}`))
	f.Add([]byte(`{"ID":"x","id":"00000000-0000-7000-8000-000000000001","parents":[],"Kind":"x","kind":"system","body":{"TEXT":"a","text":"\ud83d\ude00"}}`))
	f.Add([]byte(`{"id":"00000000-0000-7000-8000-000000000001","parents":[],"kind":"tool_execution","body":{"index":-1,"result":null,"input":null}}`))
	f.Add(m.node(node.ToolExecution{Ran: node.Ran{Input: "{"}, Details: " 1\n", Full: content.Words("f")}).Append(nil))
	f.Add([]byte(`{"id":"00000000-0000-7000-8000-000000000001","parents":["00000000-0000-7000-8000-000000000002"],"kind":"tool_execution","body":{},"info":{"ran":{"input":null,"input_text":"x"},"details":null,"details_text":"{","full":[{"type":"tool_result","result_of":0}]}}`))
	f.Add([]byte(`{"id":"00000000-0000-7000-8000-000000000001","parents":[],"kind":"stop_reason","body":{},"info":{"cost":1e400,"tool_usage":{"input":-1}}}`))
	parent := m.node(node.ToolExecution{Result: content.Words("r")})
	resolve := func(id node.ID) *node.Node {
		if id[15]%2 == 0 {
			return parent
		}
		return nil
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := node.Parse(data, resolve)
		if err != nil {
			require.ErrorIs(t, err, node.ErrParse)
			require.Nil(t, n)
			differs(t, data, err)
			return
		}
		require.Equal(t, string(bytes.TrimSpace(data)), string(n.Append(nil)))
		_ = n.Verify()
		same(t, data, n)
		if _, unknown := n.Payload().(node.Unknown); unknown {
			return
		}
		// What was read says the same when it is written anew.
		fresh, err := node.New(m.src, n.Payload(), n.Meta(), n.Parents()...)
		require.NoError(t, err)
		again, err := node.Parse(fresh.Append(nil), func(node.ID) *node.Node { return parent })
		if len(n.Parents())+n.Children().Len() == 0 {
			require.NoError(t, err)
			require.Equal(t, fresh.Digest(), again.Digest())
			require.NoError(t, again.Verify())
		}
	})
}

// members decodes an object by encoding/json with names that match exactly.
func members(data []byte) (map[string]json.RawMessage, error) {
	var m map[string]json.RawMessage
	err := json.Unmarshal(data, &m)
	return m, err
}

func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// same compares a node that was read with what encoding/json reads.
func same(t *testing.T, data []byte, n *node.Node) {
	require.True(t, strict(data))
	m, err := members(data)
	require.NoError(t, err, "encoding/json refuses it")
	require.Equal(t, text(m["id"]), n.ID().String())
	require.Equal(t, text(m["kind"]), n.Kind())
	if raw, ok := m["meta"]; ok {
		meta, err := members(raw)
		require.NoError(t, err)
		require.Equal(t, len(meta), n.Meta().Len())
		for key, value := range meta {
			require.Equal(t, string(value), string(n.Meta().Get(key)))
		}
	}
	body, err := members(m["body"])
	if err != nil {
		return // of a kind that is not known
	}
	info, _ := members(m["info"])
	switch p := n.Payload().(type) {
	case node.System:
		require.Equal(t, text(body["text"]), p.Text)
	case node.RunStart:
		require.Equal(t, text(body["agent"]), p.Agent)
		require.Equal(t, text(info["run"]), p.Run)
		require.Equal(t, text(info["version"]), p.Version)
		require.GreaterOrEqual(t, p.Limits.Cost, 0.0)
	case node.StopReason:
		if reason := text(body["reason"]); reason != "" {
			require.Equal(t, reason, string(p.Reason))
		}
		require.Equal(t, text(body["detail"]), p.Detail)
		require.GreaterOrEqual(t, p.Cost, 0.0)
		if raw, ok := info["cost"]; ok {
			var cost float64
			require.NoError(t, json.Unmarshal(raw, &cost))
			require.Equal(t, cost, p.Cost)
		}
	case node.ToolExecution:
		if raw, ok := info["details"]; ok {
			require.Equal(t, string(raw), string(p.Details))
		}
		require.True(t, p.Details == "" || json.Valid([]byte(p.Details)))
		var ran map[string]json.RawMessage
		if info["ran"] != nil {
			require.NoError(t, json.Unmarshal(info["ran"], &ran))
		}
		require.Equal(t, text(ran["tool"]), p.Ran.Tool)
		if raw, ok := ran["input"]; ok {
			require.Equal(t, string(raw), string(p.Ran.Input))
		} else {
			require.Equal(t, text(ran["input_text"]), string(p.Ran.Input))
		}
	case node.Custom:
		require.Equal(t, text(body["name"]), p.Name)
		if raw, ok := body["json"]; ok {
			require.Equal(t, string(raw), string(p.JSON))
		}
	case node.Message:
		require.Equal(t, text(body["role"]), string(p.Role))
		var list []json.RawMessage
		if body["blocks"] != nil {
			require.NoError(t, json.Unmarshal(body["blocks"], &list))
		}
		require.Equal(t, len(list), p.Blocks.Len())
		for i, b := range p.Blocks.All() {
			block, err := members(list[i])
			require.NoError(t, err)
			if w, ok := b.(content.Text); ok {
				require.Equal(t, text(block["text"]), w.Text)
			}
			if u, ok := b.(content.ToolUse); ok && block["input"] != nil {
				require.Equal(t, string(block["input"]), string(u.Input))
			}
		}
	}
}

// differs fails when goccy/go-json refuses the syntax of what encoding/json takes, and it is not stricter on purpose. That the
// content is refused (an id that is none, a role) is no difference.
func differs(t *testing.T, data []byte, err error) {
	var field *node.FieldError
	surrogates := bytes.Contains(bytes.ToLower(data), []byte(`\ud`))
	if !errors.As(err, &field) || field.Field != "line" || surrogates || !strict(data) {
		return
	}
	if json.Valid(data) && bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		t.Fatalf("encoding/json takes %q, and it was refused: %v", data, err)
	}
}

func TestRepeats(t *testing.T) {
	for data, want := range map[string]bool{
		`{"a":1,"a":2}`: true, `{"a":{"a":1},"b":[{"a":1},{"a":1}]}`: false, `[[{"b":{"a":1,"\u0061":2}}]]`: true, "[\x1b0": false, "1": false,
		`{"a":"b","b":"a"}`: false, `{"a":[],"b":{},"a":1}`: true,
	} {
		require.Equal(t, want, repeats([]byte(data)), data)
	}
}

// TestEncodingIsThatOfEncodingJSON writes nodes with hard text, and lets encoding/json read them.
func TestEncodingIsThatOfEncodingJSON(t *testing.T) {
	m := newMaker(t)
	for r := rune(0); r < 0x11000; r++ {
		if r == 0x800 {
			r = 0xD000
		}
		in := "a" + string(r) + "\\\""
		line := m.node(node.System{Text: in}).Append(nil)
		require.True(t, json.Valid(line))
		all, err := members(line)
		require.NoError(t, err)
		body, err := members(all["body"])
		require.NoError(t, err)
		require.Equal(t, in, text(body["text"]), "%x", r)
	}
}

const savedID = `"id":"01941f29-7c00-7000-8000-000000000001","time":"2025-01-01T00:00:00Z","body":{"text":"x"}`

func parseOne(line string) (*node.Node, error) {
	return node.Parse([]byte(line), func(node.ID) *node.Node { return nil })
}

func TestParseRequiresParentsAndKind(t *testing.T) {
	_, err := parseOne(`{` + savedID + `,"kind":"system","parents":[]}`)
	require.NoError(t, err, "an empty array is a root")
	for field, line := range map[string]string{
		"parents": `{` + savedID + `,"kind":"system","qarents":["01941f29-7c00-7000-8000-000000000000"]}`,
		"kind":    `{` + savedID + `,"parents":[]}`,
	} {
		_, err := parseOne(line)
		require.ErrorIs(t, err, node.ErrParse)
		var at *node.FieldError
		require.ErrorAs(t, err, &at)
		require.Equal(t, field, at.Field)
		require.ErrorContains(t, err, field+": it is missing")
	}
}

func TestErrorsAndStringAreSafeToPrint(t *testing.T) {
	n, err := parseOne(`{` + savedID + `,"parents":[],"kind":"\u001b[2J\u202ex"}`)
	require.NoError(t, err)
	require.Equal(t, `\x1b[2J\u202ex 00000001`, n.String())
	e := &node.FieldError{ID: "\x1b]0;a", Field: "b\nc", Err: errors.New("d\re")}
	require.Equal(t, `node \x1b]0;a: b\nc: d\re`, e.Error())
	e = &node.FieldError{ID: "a'b", Field: "Größe/日本", Err: errors.New(`it is "x"`)}
	require.Equal(t, `node a'b: Größe/日本: it is "x"`, e.Error())
}
