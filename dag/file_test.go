package dag_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)

func counting() dag.DAG { return dag.New().WithSource(node.Counting(start)) }

// sample is a conversation with every kind of node and of block, two heads, and text that is hard to write.
func sample(t testing.TB) dag.DAG {
	hard := "line\nbreak \"quote\" \\ <tag> & \u2028 \x00 \u00e9 \U0001F600 \xff"
	call := func(id, name string, input content.JSON) content.ToolUse {
		return content.ToolUse{ID: id, Name: name, Input: input}
	}
	child := counting().WithSource(node.Counting(start.Add(time.Hour))).System("You are a helper.").User("Do it.").Assistant("Done.")
	d := counting().
		WithMetadata("title", hard).WithMetadata("n", 1.0).
		System(hard).
		Tools(content.Tool{Name: "f", Description: hard, Schema: "{\n \"type\" : \"object\"}"}).
		User(hard, content.Image{Source: content.Source{MediaType: "image/png", Data: "AAAA"}},
			content.Document{Source: content.Source{Text: "text"}, Title: "title"}).
		Assistant("I call.",
			content.Thinking{Text: "hm", Signature: "sig"}, content.Thinking{Redacted: "xx"},
			content.Opaque{API: "anthropic", JSON: `{"type":"server_tool_use", "a": 1.0}`},
			content.CutToolUse{Name: "get_weather", Input: `{"city":"To`},
			content.Text{Text: "cited", Extra: content.Extra{API: "anthropic", JSON: `{"citations": [ ]}`}},
			content.Unknown{JSON: `{"type":"hologram", "x" : 1.0}`},
			call("a", "f", `{"city" : "Paris"} `), call("a", "f", "{\n}"), call("", "g", `{"cut off`),
			call("deep", "g", content.JSON(strings.Repeat("[", 300)+strings.Repeat("]", 300)))).
		CloseTools(
			node.ToolExecution{Index: 7, Result: content.Words("15 degrees"), Started: start, Ended: start.Add(time.Second)},
			node.ToolExecution{Index: 8, Result: content.Words(hard), IsError: true},
			node.ToolExecution{Index: 9, Child: node.ListOf(child.Heads()...)})
	require.NoError(t, d.Err())
	d = d.SubGraph("research", child).Custom("acme.note", map[string]any{"b": 1, "a": "<&>"})
	meta, err := node.Meta{}.With("cost", map[string]any{"eur": 0.25})
	require.NoError(t, err)
	d = d.AppendMeta(node.Message{Role: content.Assistant, Blocks: content.Words("Answer."), Answer: node.Answer{API: "anthropic",
		Model: "m", ResponseID: "r", Stop: content.StopEndTurn, Usage: content.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5},
		Latency: time.Second}}, meta)
	d = d.Append(node.Compaction{Summary: content.Words("So far."), Replaced: node.ListOf(d.Nodes()[3].ID())})
	left := d.User("Left?").Append(node.RunStart{Agent: hard, Run: hard, Version: hard, Limits: node.RunLimits{Turns: 3, Cost: 0.1}}).
		Append(node.StopReason{Reason: content.StopMaxTurns, Detail: hard, Turns: 2, ToolCalls: 4, Usage: content.Usage{Input: 9}, Elapsed: time.Minute})
	both := left.Join(d.User("Right?"))
	require.NoError(t, both.Err())
	return both
}

func written(t testing.TB, d dag.DAG) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, d.Write(&b))
	return b.String()
}

func read(t testing.TB, text string) dag.DAG {
	t.Helper()
	d, err := dag.Read(strings.NewReader(text))
	require.NoError(t, err)
	return d
}

// foreign is a file as a newer version with the same format number might write it: members, kinds, blocks and fields that this
// version does not know, and a node that only a node of an unknown kind names.
func foreign(t testing.TB) string {
	text := written(t, counting().WithMetadata("k", "v").System("Hi.").User("One.").User("Two."))
	lines := strings.Split(text, "\n")
	require.Len(t, lines, 6)
	id := func(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }
	lines[0] = strings.Replace(lines[0], `"metadata"`, `"theme":{"b" : 1.0,"a":[ ]},"metadata"`, 1)
	lines[0] = strings.Replace(lines[0], `"nodes"`, `"l\u00e4nge":"\u00e4","nodes"`, 1)
	lines[1] = strings.Replace(lines[1], `"kind"`, `"weight": 1.50,"kind"`, 1)
	lines[2] = strings.Replace(lines[2], `"blocks":[`, `"tone": "x" ,"blocks":[{"type":"hologram", "depth": 3.0},`, 1)
	lines[2] = strings.Replace(lines[2], `"type":"text"`, `"type":"text","lang": "en"`, 1)
	first := strings.Split(lines[1], `"`)[3]
	lines = append(lines[:2], append([]string{
		`{"id":"` + id(1) + `","parents":[],"kind":"planet","body":{"mass": 5.0}},`,
		`{"id":"` + id(2) + `","parents":["` + id(1) + `","` + first + `"],"kind":"moon","body":[1,2.0]},`,
	}, lines[2:]...)...)
	lines[len(lines)-2] = `],"trailer":[1 ,2]}`
	return strings.Join(lines, "\n")
}

func TestLoadingAndSavingKeepsEveryByte(t *testing.T) {
	for name, text := range map[string]string{
		"empty":             written(t, dag.New()),
		"metadata alone":    written(t, dag.New().WithMetadata("a", nil)),
		"a newer version's": foreign(t),
		"every kind":        written(t, sample(t)),
		"no heads":          written(t, counting().User("x").WithHeads()),
	} {
		t.Run(name, func(t *testing.T) {
			d := read(t, text)
			require.Equal(t, text, written(t, d))
			require.True(t, json.Valid([]byte(text)))
			for _, n := range d.WithChildren() {
				require.Equal(t, name == "a newer version's" && n.Kind() == "message" && n.Depth() == 1, n.Verify() != nil)
			}
		})
	}
}

func TestLoadedConversationHasTheSameContent(t *testing.T) {
	d := sample(t)
	got := read(t, written(t, d))
	require.True(t, dag.Equal(d, got))
	require.Equal(t, d.Created(), got.Created())
	require.Equal(t, start, got.Created())
	require.Equal(t, d.Metadata().Get("title"), got.Metadata().Get("title"))
	want, have := d.WithChildren(), got.WithChildren()
	require.Len(t, have, len(want))
	for i, n := range want {
		require.Equal(t, n.ID(), have[i].ID())
		require.Equal(t, n.Kind(), have[i].Kind())
		require.Equal(t, n.Time(), have[i].Time())
		require.Equal(t, n.Digest(), have[i].Digest())
		require.Equal(t, n.Meta().Get("cost"), have[i].Meta().Get("cost"))
		a, ok := n.Message()
		if b, too := have[i].Message(); ok || too {
			require.True(t, a.Blocks.Equal(b.Blocks), "blocks of node %d", i)
			require.Equal(t, a.Answer, b.Answer)
		}
		if e, ok := n.Payload().(node.ToolExecution); ok {
			f := have[i].Payload().(node.ToolExecution)
			require.Equal(t, e.Input, f.Input)
			require.True(t, e.Result.Equal(f.Result))
			require.Equal(t, []any{e.Started, e.Ended, e.Index, e.IsError}, []any{f.Started, f.Ended, f.Index, f.IsError})
		}
	}
}

func TestLoadedConversationCanBeContinued(t *testing.T) {
	text := foreign(t)
	d := read(t, text).WithSource(node.Counting(start.Add(time.Minute))).User("Three.").WithMetadata("k", "w")
	got := written(t, d)
	lines, old := strings.Split(got, "\n"), strings.Split(text, "\n")
	require.Equal(t, old[1:5], lines[1:5])
	require.Equal(t, old[5]+",", lines[5])
	require.Contains(t, lines[0], `"theme":{"b" : 1.0,"a":[ ]},"metadata":{"k":"w"}`)
	require.Equal(t, `],"trailer":[1 ,2]}`, lines[len(lines)-2])
	require.Equal(t, got, written(t, read(t, got)))
	require.Equal(t, start, d.Created(), "created is kept")
	require.Equal(t, text, written(t, read(t, text)), "and the loaded one is untouched")
}

func TestUnreachableNodesAreSavedWithTheirParents(t *testing.T) {
	d := counting().System("s").User("kept")
	lost := d.User("nobody names me")
	text := written(t, d.Join(lost))
	heads := fmt.Sprintf(`"heads":["%s","%s"]`, d.Head().ID(), lost.Head().ID())
	require.Contains(t, text, heads)
	text = strings.Replace(text, heads, fmt.Sprintf(`"heads":["%s"]`, d.Head().ID()), 1)
	got := read(t, text)
	require.Equal(t, 2, got.Len())
	require.Equal(t, text, written(t, got))
	rewound := got.WithHeads()
	require.Equal(t, 3, strings.Count(written(t, rewound), `"kind"`), "what a loose node needs comes along")
	require.Equal(t, written(t, rewound), written(t, read(t, written(t, rewound))))
}

func TestReformattedFileLoads(t *testing.T) {
	for name, text := range map[string]string{"every kind": written(t, sample(t)), "a newer version's": foreign(t)} {
		t.Run(name, func(t *testing.T) {
			want := read(t, text)
			for _, indent := range []string{"", "\t", "  "} {
				var b bytes.Buffer
				require.NoError(t, json.Indent(&b, []byte(text), "", indent))
				for _, end := range []string{"\n", "\r\n", "\r"} {
					d := read(t, strings.ReplaceAll(b.String(), "\n", end))
					require.True(t, dag.Equal(want, d), "%q", end)
					once := written(t, d)
					require.Equal(t, once, written(t, read(t, once)))
				}
				require.Equal(t, written(t, read(t, text)), text)
			}
			var v any
			require.NoError(t, json.Unmarshal([]byte(text), &v))
			sorted, err := json.Marshal(v) // members sorted: heads before nodes, version last
			require.NoError(t, err)
			if name == "every kind" { // its numbers may change in a decoder that knows only float64
				require.Equal(t, ids(want.WithChildren()), ids(read(t, string(sorted)).WithChildren()))
			}
			crlf := strings.ReplaceAll(text, "\n", "\r\n")
			require.Equal(t, text, written(t, read(t, crlf)))
		})
	}
}

func TestMissingHeadsAreTheLeaves(t *testing.T) {
	d := sample(t)
	text := written(t, d)
	i, j := strings.Index(text, `"heads"`), strings.Index(text, `"nodes"`)
	require.True(t, dag.Equal(d, read(t, text[:i]+text[j:])))
	require.True(t, dag.Equal(d, read(t, text[:i]+`"heads":null,`+text[j:])))
	require.Zero(t, read(t, text[:i]+`"heads":[],`+text[j:]).Len(), "an empty list is one")
}

// line is a saved node.
func line(id int, rest string) string {
	if !strings.Contains(rest, `"parents":`) {
		rest = `"parents":[],` + rest
	}
	return fmt.Sprintf(`{"id":"00000000-0000-7000-8000-%012d",%s}`, id, rest)
}

func ref(id int) string { return fmt.Sprintf(`"00000000-0000-7000-8000-%012d"`, id) }

func document(header string, lines ...string) string {
	return `{"format":"plait","version":1` + header + `,"nodes":[` + "\n" + strings.Join(lines, ",\n") + "\n]}\n"
}

const said = `"kind":"message","body":{"role":"user","blocks":[{"type":"text","text":"x"}]}`

func TestLoadErrorsAreTypedAndNameThePosition(t *testing.T) {
	good := line(1, `"parents":[],`+said)
	deep := strings.Repeat("[", 5_000_000)
	for name, c := range map[string]struct {
		text string
		err  error
		says string
	}{
		"empty":                       {"", dag.ErrFormat, "line 1: not a saved conversation: it is empty"},
		"space":                       {" \n ", dag.ErrFormat, "it is empty"},
		"byte order mark":             {"\uFEFF" + document("", good), dag.ErrFormat, "byte order mark"},
		"NUL":                         {"\x00\x00\x00", dag.ErrFormat, `begins with '\x00'`},
		"array":                       {"[1]", dag.ErrFormat, "begins with '['"},
		"other JSON":                  {`{"a":1}`, dag.ErrFormat, "format: it is missing"},
		"other format":                {`{"format":"png"}`, dag.ErrFormat, `format: it is "png"`},
		"format of wrong type":        {`{"format":1}`, dag.ErrFormat, "format: "},
		"no version":                  {`{"format":"plait","nodes":[]}`, dag.ErrFormat, "version: it is missing"},
		"no nodes":                    {`{"format":"plait","version":1}`, dag.ErrFormat, "nodes: it is missing"},
		"version 0":                   {`{"format":"plait","version":0}`, dag.ErrFormat, "version: it is 0, and the first version is 1"},
		"version text":                {`{"format":"plait","version":"1"}`, dag.ErrFormat, "version: "},
		"newer version":               {`{"format":"plait","version":2,"what":ever`, dag.ErrVersion, "has version 2, this program reads version 1"},
		"nodes are an object":         {`{"format":"plait","version":1,"nodes":{}}`, dag.ErrFormat, "'{' where one of"},
		"header member twice":         {`{"format":"plait","version":1,"a":1,"\u0061":1,"nodes":[]}`, dag.ErrFormat, "a: duplicate member"},
		"name that drives a terminal": {`{"\u001b[31m":1,"\u001b[31m":2}`, dag.ErrFormat, "[31m: duplicate member"},
		"metadata twice the same":     {document(`,"metadata":{"a":1,"a":2}`, good), dag.ErrFormat, "metadata: "},
		"metadata of wrong type":      {document(`,"metadata":[]`, good), dag.ErrFormat, "metadata: "},
		"created of wrong type":       {document(`,"created":"yesterday"`, good), dag.ErrFormat, "created: "},
		"unknown member is broken":    {document(`,"x":{"a":NaN}`, good), dag.ErrFormat, "x: not valid JSON"},
		"unknown member not UTF-8":    {document(`,"x":"`+"\xff"+`"`, good), dag.ErrFormat, "x: not valid JSON"},
		"name is no string":           {`{1:2}`, dag.ErrFormat, "name"},
		"name is null":                {`{null:2}`, dag.ErrFormat, "name"},
		"no name":                     {`{,}`, dag.ErrFormat, "name"},
		"no value":                    {`{"format":}`, dag.ErrFormat, "format: "},
		"no colon":                    {`{"format" "plait"}`, dag.ErrFormat, `one of ":"`},
		"deep header":                 {document(`,"x":`+deep, good), dag.ErrLimit, "nests deeper"},
		"deep from the start":         {deep, dag.ErrFormat, "begins with '['"},
		"deep node":                   {document("", good, line(2, `"x":`+deep)), dag.ErrLimit, "line 3: node 2 of the file: over a size limit: it nests deeper"},
		"deep objects":                {document("", strings.Repeat(`{"a":`, 1_000_000)), dag.ErrLimit, "nests deeper"},
		"truncated":                   {document("", good)[:150], io.ErrUnexpectedEOF, "it ends early"},
		"truncated behind the nodes":  {strings.TrimSuffix(document("", good), "}\n"), dag.ErrFormat, "it ends early"},
		"something behind the end":    {document("", good) + "x", dag.ErrFormat, "'x' after the end"},
		"two documents":               {document("", good) + document("", good), dag.ErrFormat, "after the end"},
		"no comma":                    {document("", good+good), dag.ErrFormat, "'{' where one of"},
		"comma at the end":            {document("", good, ""), node.ErrParse, "node 2 of the file"},
		"node is a number":            {document("", good, "5"), node.ErrParse, "node 2 of the file"},
		"node is null":                {document("", "null"), node.ErrParse, "id"},
		"no id":                       {document("", "{"+said+"}"), node.ErrParse, "id"},
		"id in upper case":            {document("", strings.Replace(good, "00000000-0000", "0000000A-0000", 1)), node.ErrParse, "lower-case"},
		"id twice":                    {document("", good, good), dag.ErrDuplicateID, "line 3: node 2 of the file: node 00000000-0000-7000-8000-000000000001: id: duplicate ID"},
		"missing parent":              {document("", line(1, `"parents":[`+ref(9)+`],`+said)), node.ErrParent, "parents: no such node before it: 00000000-0000-7000-8000-000000000009"},
		"own parent":                  {document("", line(1, `"parents":[`+ref(1)+`],`+said)), node.ErrParent, "no such node before it"},
		"cycle":                       {document("", line(1, `"parents":[`+ref(2)+`],`+said), line(2, `"parents":[`+ref(1)+`],`+said)), node.ErrParent, "no such node before it"},
		"missing child conversation":  {document("", line(1, `"kind":"sub_graph","body":{"heads":[`+ref(7)+`]}`)), node.ErrParent, "body/heads: no such"},
		"bad role":                    {document("", line(1, `"kind":"message","body":{"role":"system","blocks":[]}`)), node.ErrParse, "body/role: \"system\" is neither user nor assistant"},
		"role of wrong type":          {document("", line(1, `"kind":"message","body":{"role":1,"blocks":[]}`)), node.ErrParse, "body/role: "},
		"block of wrong type":         {document("", line(1, `"kind":"message","body":{"role":"user","blocks":[7]}`)), node.ErrParse, "body/blocks/0: "},
		"broken block":                {document("", line(1, `"kind":"message","body":{"role":"user","blocks":[{"type":"image"}]}`)), content.ErrBlock, "block 0 (image)"},
		"text of wrong type":          {document("", line(1, `"kind":"message","body":{"role":"user","blocks":[{"type":"text","text":[]}]}`)), node.ErrParse, "body/blocks/0/text: "},
		"result of nothing":           {document("", line(1, `"kind":"message","body":{"role":"user","blocks":[{"type":"tool_result","result_of":0}]}`)), node.ErrParse, "body/blocks/0: result_of 0"},
		"name twice in a node":        {document("", line(1, `"a":1,"a":2,`+said)), node.ErrParse, "duplicate"},
		"name twice deep in a node":   {document("", line(1, `"x":[{"a":1,"a":2}],`+said)), node.ErrParse, "duplicate"},
		"invalid UTF-8":               {document("", line(1, `"x":"`+"\xff"+`",`+said)), node.ErrParse, "UTF-8"},
		"lone surrogate":              {document("", line(1, `"x":"\ud800",`+said)), node.ErrParse, "surrogate"},
		"NaN":                         {document("", line(1, `"x":NaN,`+said)), node.ErrParse, "'N'"},
		"NUL in a string":             {document("", line(1, `"x":"`+"\x00"+`",`+said)), node.ErrParse, `\x00`},
		"bad checksum":                {document("", line(1, said+`,"sum":"md5:1"`)), node.ErrParse, "sum: "},
		"unknown head":                {document(`,"heads":[`+ref(1)+`,`+ref(5)+`]`, good), dag.ErrHeads, "heads/1: "},
		"head that is no id":          {document(`,"heads":["first"]`, good), dag.ErrHeads, "heads/0: "},
		"heads of wrong type":         {document(`,"heads":"x"`, good), dag.ErrFormat, "heads: "},
		"indented with a broken node": {document("", "{\n\"a\": }"), node.ErrParse, "line 2: node 1 of the file"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := dag.Read(strings.NewReader(c.text))
			require.ErrorIs(t, err, c.err)
			require.Contains(t, err.Error(), c.says)
			require.Less(t, len(err.Error()), 2000)
			require.NotContains(t, err.Error(), "\x1b", "the text is safe to print")
			var where *dag.LoadError
			require.ErrorAs(t, err, &where)
			place := fmt.Sprintf("load: line %d: ", where.Line)
			if where.Node > 0 {
				place += fmt.Sprintf("node %d of the file: ", where.Node)
			}
			require.True(t, strings.HasPrefix(err.Error(), place), err.Error())
			require.Zero(t, d.Len(), "nothing is half filled")
			require.Nil(t, d.Heads())
			require.Zero(t, d.Metadata().Len())
		})
	}
}

func TestVersionErrorNamesTheVersion(t *testing.T) {
	_, err := dag.Read(strings.NewReader(`{"format":"plait","version":7}`))
	require.ErrorIs(t, err, dag.ErrVersion)
	require.ErrorContains(t, err, "it has version 7, this program reads version 1")
}

func TestLoadErrorNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	_, err := dag.Load(filepath.Join(dir, "none.json"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "none.json")
	var where *dag.LoadError
	require.ErrorAs(t, err, &where)
	_, err = dag.Load(dir)
	require.ErrorAs(t, err, &where)
	require.ErrorContains(t, err, dir)
}

// endless gives a beginning and then the same bytes for ever, and counts them.
type endless struct {
	begin, again string
	n            int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.begin != "" {
		n := copy(p, e.begin)
		e.begin = e.begin[n:]
		return n, nil
	}
	for i := range p {
		p[i] = e.again[i%len(e.again)]
	}
	e.n += len(p)
	return len(p), nil
}

// TestEndlessGarbageIsReadInBoundedMemory also fails when reading does not stop at all.
func TestEndlessGarbageIsReadInBoundedMemory(t *testing.T) {
	open := `{"format":"plait","version":1,"nodes":[`
	for name, c := range map[string]struct {
		begin, again string
		err          error
	}{
		"a string":         {open + `{"id":"`, "x", dag.ErrLimit},
		"escapes":          {open + `{"id":"`, `\"`, dag.ErrLimit},
		"backslashes":      {open + `{"id":"`, `\`, dag.ErrLimit},
		"an object":        {open + `{`, `"a":1,`, dag.ErrLimit},
		"a number":         {open, "1", dag.ErrLimit},
		"brackets":         {open, "[", dag.ErrLimit},
		"zeros":            {open, "\x00", dag.ErrLimit},
		"a name":           {`{"`, "x", dag.ErrLimit},
		"header members":   {`{"a`, "b", dag.ErrLimit},
		"zeros at first":   {"", "\x00", dag.ErrFormat},
		"a journal's line": {`{"format":"plait-journal","version":1}` + "\n", "x", dag.ErrLimit},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := &endless{begin: c.begin, again: c.again}
			_, err := dag.ReadWithin(r, 1<<20)
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, c.err)
			require.Less(t, r.n, 4<<20)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
		})
	}
	t.Run("space", func(t *testing.T) { // ends, because a thousand megabytes do
		r := io.LimitReader(&endless{again: " \n"}, 100<<20)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := dag.Read(r)
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, dag.ErrFormat)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
	})
	t.Run("many header members", func(t *testing.T) {
		var b strings.Builder
		b.WriteString("{")
		for i := range 200_000 {
			fmt.Fprintf(&b, `"member %d":1,`, i)
		}
		_, err := dag.ReadWithin(strings.NewReader(b.String()), 1<<20)
		require.ErrorIs(t, err, dag.ErrLimit)
	})
}

func TestANodeOfAnySizeUpToTheLimitLoads(t *testing.T) {
	text := written(t, counting().User(strings.Repeat("x\n", 1<<20)))
	_, err := dag.ReadWithin(strings.NewReader(text), 1<<20)
	require.ErrorIs(t, err, dag.ErrLimit)
	require.Equal(t, text, written(t, read(t, text)))
}

// drip gives one byte at a time, so that every place of a file is once at the edge of what was read.
type drip struct{ text string }

func (r *drip) Read(p []byte) (int, error) {
	if r.text == "" {
		return 0, io.EOF
	}
	n := copy(p, r.text[:1])
	r.text = r.text[n:]
	return n, nil
}

func TestReadAcceptsBytesInAnyPieces(t *testing.T) {
	text := foreign(t)
	d, err := dag.Read(&drip{text})
	require.NoError(t, err)
	require.Equal(t, text, written(t, d))
	broken := errors.New("the cable is cut")
	for at := range len(text) - 1 {
		_, err := dag.Read(io.MultiReader(strings.NewReader(text[:at]), failing{broken}))
		require.ErrorIs(t, err, broken)
		_, err = dag.Read(strings.NewReader(text[:at]))
		require.ErrorIs(t, err, dag.ErrFormat, "cut at byte %d", at)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestSaveReplacesAFileAsAWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	require.NoError(t, counting().User("one").Save(path))
	require.NoError(t, os.Chmod(path, 0o640))
	old, err := os.ReadFile(path)
	require.NoError(t, err)

	broken := dag.New().User("")
	require.ErrorIs(t, broken.Save(path), dag.ErrEmpty)
	require.ErrorIs(t, broken.Write(failing{}), dag.ErrEmpty)
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, old, now, "a chain with an error writes nothing")

	before, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, counting().User("two").Save(path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, before.Mode(), info.Mode(), "permissions are kept")
	d, err := dag.Load(path)
	require.NoError(t, err)
	require.Equal(t, "two", d.Messages()[0].Blocks.Text())

	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, files, 1, "no temporary file is left")
}

// symlink makes a symbolic link. It skips the test on Windows, where few users may make one.
func symlink(t *testing.T, target, link string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: making symbolic links needs a privilege on Windows")
	}
	require.NoError(t, os.Symlink(target, link))
}

func TestSaveReplacesTheFileThatALinkPointsTo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	require.NoError(t, counting().User("one").Save(path))
	link := filepath.Join(filepath.Dir(path), "link.json")
	symlink(t, path, link)

	require.NoError(t, counting().User("two").Save(link))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&fs.ModeSymlink, "the link stays a link")
	d, err := dag.Load(path)
	require.NoError(t, err)
	require.Equal(t, "two", d.Messages()[0].Blocks.Text())
}

func TestFailedSaveLeavesNoFiles(t *testing.T) {
	dir := t.TempDir()
	require.Error(t, counting().User("x").Save(dir))
	require.ErrorIs(t, counting().User("x").Save(filepath.Join(dir, "no", "folder.json")), fs.ErrNotExist)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, files)
	full := errors.New("the disk is full")
	require.ErrorIs(t, sample(t).Write(failing{full}), full)
}

func TestMetadataOfTheConversation(t *testing.T) {
	d := counting().User("x")
	tagged := d.WithMetadata("a", 1).WithMetadata("b", []int{2}).WithMetadata("a", 3)
	require.Zero(t, d.Metadata().Len())
	require.Equal(t, content.JSON("3"), tagged.Metadata().Get("a"))
	require.Equal(t, 2, tagged.User("y").Metadata().Len(), "it travels along")
	require.True(t, dag.Equal(d, tagged), "and is no part of what is said")
	require.ErrorIs(t, d.WithMetadata("f", func() {}).Err(), content.ErrJSON)
}

// sameHeader compares a document's header with what encoding/json makes of it. Beyond what encoding/json asks, and on purpose, a
// document has no member name twice, valid UTF-8 without lone surrogates, and nests no deeper than 512.
func sameHeader(t *testing.T, data []byte, d dag.DAG) {
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(data, &members), "encoding/json refuses it")
	var format string
	require.NoError(t, json.Unmarshal(members["format"], &format))
	require.Equal(t, "plait", format)
	var heads []string
	if members["heads"] != nil {
		require.NoError(t, json.Unmarshal(members["heads"], &heads))
	}
	if heads != nil {
		ids := map[string]bool{}
		for _, id := range heads {
			ids[id] = true
		}
		require.Len(t, d.Heads(), len(ids))
	}
	var metadata map[string]any
	if members["metadata"] != nil {
		require.NoError(t, json.Unmarshal(members["metadata"], &metadata))
	}
	require.Equal(t, len(metadata), d.Metadata().Len())
	for key, want := range metadata {
		var got any
		require.NoError(t, json.Unmarshal([]byte(d.Metadata().Get(key)), &got))
		require.Equal(t, want, got)
	}
	if members["created"] != nil && string(members["created"]) != "null" {
		var created time.Time
		require.NoError(t, json.Unmarshal(members["created"], &created))
		require.Equal(t, created.UTC(), d.Created())
	}
	var nodes []json.RawMessage
	require.NoError(t, json.Unmarshal(members["nodes"], &nodes))
	require.GreaterOrEqual(t, len(nodes), len(d.WithChildren()))
}

// FuzzRead: nothing panics, what loads is saved, as a file and through encoding/json, what was saved once is saved the same for ever, and what goccy/go-json makes of a
// header is what encoding/json makes of it.
func FuzzRead(f *testing.F) {
	f.Add([]byte(written(f, sample(f))))
	f.Add([]byte(foreign(f)))
	var b bytes.Buffer
	require.NoError(f, json.Indent(&b, []byte(foreign(f)), "", " "))
	f.Add(b.Bytes())
	f.Add([]byte(written(f, dag.New())))
	f.Add([]byte(journalOf(f, sample(f))))
	f.Add([]byte(`{"format":"plait","version":1,"nodes":[]}`))
	f.Add([]byte(`{"nodes":[{}],"version":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := dag.ReadWithin(bytes.NewReader(data), 1<<20)
		throughJSON(t, data, d, err)
		if err != nil {
			var where *dag.LoadError
			require.ErrorAs(t, err, &where)
			require.Nil(t, d.Heads())
			return
		}
		if line, _, _ := bytes.Cut(bytes.TrimSpace(data), []byte("\n")); !json.Valid(line) || !bytes.Contains(line, []byte("journal")) {
			sameHeader(t, data, d)
		}
		once := written(t, d)
		require.True(t, json.Valid([]byte(once)))
		again := read(t, once)
		require.Equal(t, once, written(t, again))
		require.Equal(t, len(d.WithChildren()), len(again.WithChildren()))
	})
}

// repeated is a conversation in which two Sources have given the same ids.
func repeated() dag.DAG {
	at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	d := dag.New().WithSource(node.Counting(at)).User("one").Assistant("two")
	return d.WithSource(node.Counting(at)).User("three").Assistant("four")
}

func TestDuplicateIDIsNotSaved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	good := dag.New().User("good")
	require.NoError(t, good.Save(path))
	require.ErrorIs(t, repeated().Save(path), dag.ErrDuplicateID)
	loaded, err := dag.Load(path)
	require.NoError(t, err)
	require.True(t, dag.Equal(good, loaded))

	var out bytes.Buffer
	require.ErrorIs(t, repeated().Write(&out), dag.ErrDuplicateID)
	require.Zero(t, out.Len())

	j, err := dag.OpenJournal(filepath.Join(t.TempDir(), "j"), nil)
	require.NoError(t, err)
	defer j.Close()
	require.ErrorIs(t, j.Append(repeated()), dag.ErrDuplicateID)
}

func TestLoadErrorIsSafeToPrint(t *testing.T) {
	for _, file := range []string{
		"{\"format\":\"plait\",\"version\":1,\"\\u001b[2J\":1,\"\\u001b[2J\":2,\"nodes\":[]}",
		"{\"format\":\"plait\",\"version\":1,\"nodes\":[{\"id\":\"\\u001b[2J\"}]}",
	} {
		_, err := dag.Read(strings.NewReader(file))
		require.Error(t, err)
		require.NotContains(t, err.Error(), "\x1b")
	}
}

func TestMaximumLimitDoesNotPanic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	require.NoError(t, dag.New().User("one").Save(path))
	_, err := dag.LoadWithin(path, math.MaxInt)
	require.NoError(t, err)
	j, err := dag.OpenJournal(filepath.Join(t.TempDir(), "j"), &dag.JournalOptions{MaxNode: math.MaxInt})
	require.NoError(t, err)
	require.NoError(t, j.Append(dag.New().User("one")))
	require.NoError(t, j.Close())
	j, err = dag.OpenJournal(filepath.Join(filepath.Dir(path), "k"), &dag.JournalOptions{MaxNode: math.MaxInt})
	require.NoError(t, err)
	require.NoError(t, j.Close())
	_, err = dag.OpenJournal(path, &dag.JournalOptions{MaxNode: math.MaxInt})
	require.ErrorIs(t, err, dag.ErrFormat)
}

func TestSaveFollowsLinkToMissingFile(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	symlink(t, "next", link)
	symlink(t, "real", filepath.Join(dir, "next"))
	require.NoError(t, dag.New().User("one").Save(link))
	to, err := os.Readlink(link)
	require.NoError(t, err)
	require.Equal(t, "next", to)
	_, err = dag.Load(filepath.Join(dir, "real"))
	require.NoError(t, err)
}

func TestFileErrorsNameThePath(t *testing.T) {
	var at *fs.PathError
	path := filepath.Join(t.TempDir(), "none", "a.json")
	require.ErrorAs(t, dag.New().Save(path), &at)
	require.Equal(t, path, at.Path)
	require.ErrorIs(t, at, fs.ErrNotExist)
	require.EqualError(t, dag.New().Save(""), "save : no path is given")
	folder := filepath.Dir(filepath.Dir(path))
	require.EqualError(t, dag.New().Save(folder), "save "+folder+": it is not a regular file")

	_, err := dag.Load(path)
	var load *dag.LoadError
	require.ErrorAs(t, err, &load)
	require.Zero(t, load.Line)
	require.NotContains(t, err.Error(), "line")
}

func TestSaveAcceptsLongestFileName(t *testing.T) {
	require.NoError(t, dag.New().Save(filepath.Join(t.TempDir(), strings.Repeat("a", 255))))
}
