package sessions_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/dag/sessions"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

// fuzz checks that whatever a file holds, it is imported or refused with an error that is typed; that what is imported
// is a conversation which can be saved, loaded and sent; and that importing it again gives the same.
func fuzz(f *testing.F, format sessions.Format, seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	if path := samples[format]; path != "" {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, text string) {
		in, err := sessions.Import(format, strings.NewReader(text), &sessions.Options{Session: "s"})
		if err != nil {
			var e *sessions.Error
			require.ErrorAs(t, err, &e)
			require.NotEmpty(t, e.Error())
			require.Zero(t, in.DAG.Len())
			return
		}
		sound(t, in)
		for _, d := range in.Conversations {
			d.Validate()
		}
		for _, n := range in.Notes {
			require.NotEmpty(t, n.String())
		}
		again, err := sessions.Import(format, strings.NewReader(text), &sessions.Options{Session: "s"})
		require.NoError(t, err)
		var a, b bytes.Buffer
		require.NoError(t, in.DAG.Write(&a))
		require.NoError(t, again.DAG.Write(&b))
		require.Equal(t, a.String(), b.String())
	})
}

func FuzzNanoAgent(f *testing.F) {
	fuzz(f, sessions.NanoAgent,
		nano(`"c"`, saved("a", "", `{"role":"user","content":"x"}`),
			saved("b", `"a"`, `{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"t","name":"f","input":null}]}`),
			saved("g", `"b"`, `{"type":"sub_graph","tool_name":"f","tool_use_id":"","system_prompt":"p","nodes":{`+saved("a", "", `{"type":"system_prompt","content":"p"}`)+`},"head_ids":["a"],"summary":"s","depth":1}`),
			saved("e", `"g"`, `{"type":"tool_execution","tool_name":"f","tool_use_id":"t","result":[{"type":"text","text":"r"}]}`),
			saved("c", `"e"`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]}`),
			saved("s", `"c","a"`, `{"type":"stop_reason","reason":"end_turn","usage":{"input_tokens":5,"cached_tokens":3}}`)),
		nano(``, saved("a", `"a"`, `{"type":"tool_definitions","tools":[{"name":"f","input_schema":{"type":"object"}}]}`)),
		`{"nodes":{}}`, `[]`, "")
}

func FuzzClaudeCode(f *testing.F) {
	var c claude
	c.user("u", "null", "go")
	c.assistant("a1", "u", "m", "one", "t1")
	c.result("r1", "a1", "t1", `,"toolUseResult":{"agentId":"x"}`)
	c.assistant("a2", "r1", "m", "two", "t2")
	c.user("s", "null", "ask t1", `,"isSidechain":true,"agentId":"x"`)
	c.add("b", "null", "system", `"subtype":"compact_boundary","logicalParentUuid":"r1","compactMetadata":{"preservedSegment":{"headUuid":"u"}}`)
	c.user("k", "b", "sum", `,"isCompactSummary":true`)
	fuzz(f, sessions.ClaudeCode, c.String(), c.String()+"\n"+c.String(), `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":""}]}}`)
}

func FuzzCodex(f *testing.F) {
	item := func(payload string) string { return `{"type":"response_item","payload":` + payload + "}\n" }
	fuzz(f, sessions.Codex,
		item(`{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,eA=="}]}`)+
			item(`{"type":"function_call","name":"f","arguments":"{","call_id":""}`)+item(`{"type":"function_call_output","call_id":"","output":{"content":"x"}}`),
		item(`{"type":"function_call_output","call_id":"x","output":["a"]}`)+`{"type":"token_usage_record"}`,
		`{"type":"session_meta","payload":{"id":"x","base_instructions":{"text":"x"}}}`+"\n"+item(`{"type":"web_search_call"}`))
}

func FuzzOpenCode(f *testing.F) {
	message := func(role, parts string) string {
		return `{"info":{},"messages":[{"info":{"role":"` + role + `"},"parts":[` + parts + `]}]}`
	}
	fuzz(f, sessions.OpenCode, message("user", `{"type":"text","text":"x"},{"type":"file","mime":"text/plain","url":"data:text/plain;base64,eA=="},7`),
		message("assistant", `{"type":"tool","callID":"","tool":"","state":{"status":"error"}},{"type":"tool","state":{"input":[]}},{"type":"reasoning"}`),
		`{"info":{},"messages":[]}`, `{"info":{"id":7},"messages":{}}`, `[]`)
}

func FuzzPi(f *testing.F) {
	fuzz(f, sessions.Pi, piSays(`{"role":"user","content":"a"}`, `{"role":"bashExecution","command":"x"}`, `{"role":"assistant","api":"openai-responses","content":[{"type":"thinking","thinking":"","thinkingSignature":"{\"id\":\"x\"}"}]}`),
		`{"type":"message","message":{"role":"user","content":"a"}}`+"\n"+`{"type":"compaction","summary":"s","firstKeptEntryIndex":1}`+"\n"+`{"type":"leaf","targetId":"line 1"}`)
}

func TestLargeAndHostileFilesTakeTimeInProportion(t *testing.T) {
	n := seedtest.Rounds(2500, 20_000)
	id := func(i int) string { return "n" + strings.Repeat("0", i%3) + string(rune('a'+i%26)) + itoa(i) }
	build := func(line func(c *claude, i int)) string {
		var c claude
		for i := range n {
			line(&c, i)
		}
		return c.String()
	}
	above := func(i int) string {
		if i == 0 {
			return "null"
		}
		return id(i - 1)
	}
	meg := strings.Repeat("x", 1<<20)
	for name, text := range map[string]string{
		"a chain":           build(func(c *claude, i int) { c.user(id(i), above(i), "x") }),
		"a chain backwards": build(func(c *claude, i int) { c.user(id(n-i), id(n-i-1), "x") }) + "\n" + `{"uuid":"` + id(0) + `","type":"user","message":{"content":"x"}}`,
		"a cycle":           build(func(c *claude, i int) { c.user(id(i), id((i+1)%n), "x") }),
		"records, then lines after them": build(func(c *claude, i int) {
			if i < n/2 {
				c.add(id(i), above(i), "progress", `"x":1`)
			} else {
				c.assistant(id(i), id(n/2-1), "m", "x")
			}
		}),
		"forks":                   build(func(c *claude, i int) { c.user(id(i), id(0)[:len(id(0))*min(i, 1)]+"", "x") }),
		"summaries of everything": build(func(c *claude, i int) { c.user(id(i), above(i), "x", `,"isCompactSummary":true`) }),
		"lines of one answer":     build(func(c *claude, i int) { c.assistant(id(i), above(i), "m", "x", "t"+itoa(i)) }),
		"one call, many results": build(func(c *claude, i int) {
			if i == 0 {
				c.assistant(id(0), "null", "m", "x", "t")
			} else {
				c.result(id(i), id(0), "t")
			}
		}),
		"one id for all calls": build(func(c *claude, i int) {
			if i%2 == 0 {
				c.assistant(id(i), above(i), "", "x", "t")
			} else {
				c.result(id(i), above(i), "t")
			}
		}),
		"agents that nobody called": build(func(c *claude, i int) { c.user(id(i), "null", "x", `,"isSidechain":true`) }),
		"agents that call each other": build(func(c *claude, i int) {
			me := `,"isSidechain":true,"agentId":"` + itoa(i/2) + `"`
			if i%2 == 0 {
				c.user(id(i), "null", "ask "+itoa(i/2), me)
			} else {
				c.add(id(i), id(i-1), "assistant", `"message":{"role":"assistant","id":"m`+itoa(i)+`","content":[{"type":"tool_use","id":"t`+itoa(i)+`","name":"f","input":{"prompt":"ask `+itoa(i/2+1)+`"}}]}`+me)
			}
		}),
		"a line of a megabyte": `{"uuid":"a","type":"user","message":{"role":"user","content":"` + meg + `"}}`,
		"not a line at all":    meg,
		"deep":                 `{"uuid":"a","type":"x","y":` + strings.Repeat(`[`, 9000) + strings.Repeat(`]`, 9000) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sessions.Import(sessions.ClaudeCode, strings.NewReader(text), nil)
			var e *sessions.Error
			require.True(t, err == nil || errors.As(err, &e))
		})
	}
}

func itoa(i int) string {
	var digits []byte
	for ; i > 0 || digits == nil; i /= 10 {
		digits = append([]byte{byte('0' + i%10)}, digits...)
	}
	return string(digits)
}

func TestCompactionsThatNameMoreThanThereIsAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it takes memory, in -short")
	}
	var c claude
	above := "null"
	for i := range 6000 {
		id := "n" + itoa(i)
		c.user(id, above, "x")
		above = id
	}
	for i := range 3000 {
		c.user("s"+itoa(i), above, "s", `,"isCompactSummary":true`)
	}
	_, err := sessions.Import(sessions.ClaudeCode, strings.NewReader(c.String()), nil)
	require.ErrorIs(t, err, dag.ErrLimit)
}

func TestLimits(t *testing.T) {
	data, err := os.ReadFile("testdata/claude-code.jsonl")
	require.NoError(t, err)
	for _, format := range sessions.Formats() {
		_, err := sessions.Import(format, bytes.NewReader(data), &sessions.Options{Limit: int64(len(data)) - 1})
		require.ErrorIs(t, err, dag.ErrLimit, format)
	}
	_, err = sessions.Import(sessions.ClaudeCode, bytes.NewReader(data), &sessions.Options{Limit: int64(len(data))})
	require.NoError(t, err)

	inner := `{"type":"sub_graph","tool_name":"f","nodes":{}}`
	for range 40 {
		inner = `{"type":"sub_graph","tool_name":"f","nodes":{` + saved("a", "", inner) + `}}`
	}
	_, err = sessions.Import(sessions.NanoAgent, strings.NewReader(nano(``, saved("a", "", inner))), nil)
	require.ErrorIs(t, err, dag.ErrLimit)

	_, err = sessions.Import("gopher", strings.NewReader(""), nil)
	require.ErrorIs(t, err, sessions.ErrUnknownFormat)
	require.EqualError(t, err, "import gopher: unknown format: the formats are claude-code, codex, nano-agent, opencode, pi")

	failing := errors.New("the disk is gone")
	for _, format := range sessions.Formats() {
		_, err := sessions.Import(format, iotestErr{failing}, nil)
		require.ErrorIs(t, err, failing)
	}
}

type iotestErr struct{ err error }

func (r iotestErr) Read([]byte) (int, error) { return 0, r.err }

func TestBytesThatAreNoTextAreReplacedAndNoted(t *testing.T) {
	in := imported(t, sessions.ClaudeCode, "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"a\\ud83d \xff\"}}")
	require.Equal(t, []string{"u:a\uFFFD \uFFFD"}, spell(in.Main()))
	require.Equal(t, sessions.NoteChanged, in.Notes[0].Kind)
	require.Equal(t, 1, in.Notes[0].Line)
}

func BenchmarkClaudeCode(b *testing.B) {
	var c claude
	above := "null"
	for i := range 10_000 {
		id, call := "n"+itoa(i), "t"+itoa(i)
		switch i % 4 {
		case 0:
			c.user(id, above, "do it")
		case 1:
			c.assistant(id, above, "m"+itoa(i), strings.Repeat("word ", 40), call)
		case 2:
			c.result(id, above, "t"+itoa(i-1))
		case 3:
			c.assistant(id, above, "m"+itoa(i), "done")
		}
		above = id
	}
	text := c.String()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sessions.Import(sessions.ClaudeCode, strings.NewReader(text), nil); err != nil {
			b.Fatal(err)
		}
	}
}

func TestErrorsAreThoseOfTheGraph(t *testing.T) {
	require.NotErrorIs(t, sessions.ErrUnknownFormat, dag.ErrFormat)
}
