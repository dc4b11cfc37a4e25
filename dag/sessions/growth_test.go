package sessions_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag/sessions"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
)

// TestGrowth checks how the cost of an import grows with the file.
func TestGrowth(t *testing.T) {
	var cases []growthtest.Case
	for _, file := range []struct {
		format sessions.Format
		shape  string
		write  func(b *strings.Builder, n int)
	}{
		{sessions.ClaudeCode, "chain", func(b *strings.Builder, n int) {
			claudeCode(b, 0, "null", "user", `"Go."`)
			for i := 1; i <= n; i++ {
				claudeCode(b, 2*i-1, fmt.Sprintf(`"u%d"`, 2*i-2), "assistant", `[{"type":"text","text":"answer"}]`)
				claudeCode(b, 2*i, fmt.Sprintf(`"u%d"`, 2*i-1), "user", `"on"`)
			}
		}},
		{sessions.ClaudeCode, "many forks", func(b *strings.Builder, n int) {
			claudeCode(b, 0, "null", "user", `"Go."`)
			for i := 1; i <= n; i++ {
				claudeCode(b, i, `"u0"`, "assistant", `[{"type":"text","text":"answer"}]`)
			}
		}},
		{sessions.ClaudeCode, "comb", func(b *strings.Builder, n int) {
			claudeCode(b, 0, "null", "user", `"Go."`)
			for i := 1; i <= n; i++ {
				claudeCode(b, 2*i-1, fmt.Sprintf(`"u%d"`, 2*i-2), "user", `"tooth"`)
				claudeCode(b, 2*i, fmt.Sprintf(`"u%d"`, 2*i-2), "user", `"on"`)
			}
		}},
		{sessions.ClaudeCode, "many calls in one message, a line each", func(b *strings.Builder, n int) {
			claudeCode(b, 0, "null", "user", `"Go."`)
			for i := range n {
				claudeCode(b, i+1, fmt.Sprintf(`"u%d"`, i), "assistant", fmt.Sprintf(`[{"type":"tool_use","id":"c%d","name":"f","input":{}}]`, i))
			}
			for i := range n {
				claudeCode(b, n+i+1, fmt.Sprintf(`"u%d"`, i+1), "user",
					fmt.Sprintf(`[{"type":"tool_result","tool_use_id":"c%d","content":"done"}]`, i))
			}
		}},
		{sessions.Pi, "chain", func(b *strings.Builder, n int) {
			b.WriteString(piHeader)
			piLine(b, 0, "null", `{"role":"user","content":"Go."}`)
			for i := 1; i <= n; i++ {
				piLine(b, 2*i-1, fmt.Sprintf(`"p%d"`, 2*i-2), `{"role":"assistant","content":[{"type":"text","text":"answer"}]}`)
				piLine(b, 2*i, fmt.Sprintf(`"p%d"`, 2*i-1), `{"role":"user","content":"on"}`)
			}
		}},
		{sessions.Pi, "many forks", func(b *strings.Builder, n int) {
			b.WriteString(piHeader)
			piLine(b, 0, "null", `{"role":"user","content":"Go."}`)
			for i := 1; i <= n; i++ {
				piLine(b, i, `"p0"`, `{"role":"assistant","content":[{"type":"text","text":"answer"}]}`)
			}
		}},
		{sessions.Pi, "many calls in one message", func(b *strings.Builder, n int) {
			b.WriteString(piHeader)
			piLine(b, 0, "null", `{"role":"user","content":"Go."}`)
			var calls strings.Builder
			list(&calls, n, func(i int) { fmt.Fprintf(&calls, `{"type":"toolCall","id":"c%d","name":"f","arguments":{}}`, i) })
			piLine(b, 1, `"p0"`, `{"role":"assistant","content":[`+calls.String()+`]}`)
			for i := range n {
				piLine(b, i+2, fmt.Sprintf(`"p%d"`, i+1),
					fmt.Sprintf(`{"role":"toolResult","toolCallId":"c%d","toolName":"f","content":[{"type":"text","text":"done"}],"isError":false}`, i))
			}
		}},
		{sessions.Pi, "many compactions", func(b *strings.Builder, n int) {
			b.WriteString(piHeader)
			piLine(b, 0, "null", `{"role":"user","content":"Go."}`)
			for i := 1; i <= n; i++ {
				piLine(b, 2*i-1, fmt.Sprintf(`"p%d"`, 2*i-2), `{"role":"user","content":"on"}`)
				fmt.Fprintf(b, `{"type":"compaction","id":"p%d","parentId":"p%d","timestamp":"2026-04-01T08:00:00.000Z","summary":"short",`+
					`"firstKeptEntryId":"p%d","tokensBefore":9}`+"\n", 2*i, 2*i-1, 2*i-1)
			}
		}},
		{sessions.NanoAgent, "chain", func(b *strings.Builder, n int) {
			nanoAgent(b, fmt.Sprintf(`"n%d"`, n-1), n, func(i int) string {
				parents := ""
				if i > 0 {
					parents = fmt.Sprintf(`"n%d"`, i-1)
				}
				return nanoNode(i, parents, `{"role":"`+[]string{"user", "assistant"}[i%2]+`","content":"text"}`)
			})
		}},
		{sessions.NanoAgent, "many heads", func(b *strings.Builder, n int) {
			var heads strings.Builder
			list(&heads, n-1, func(i int) { fmt.Fprintf(&heads, `"n%d"`, i+1) })
			nanoAgent(b, heads.String(), n, func(i int) string {
				if i == 0 {
					return nanoNode(0, "", `{"role":"user","content":"Go."}`)
				}
				return nanoNode(i, `"n0"`, `{"role":"assistant","content":"answer"}`)
			})
		}},
		{sessions.NanoAgent, "ladder", func(b *strings.Builder, n int) {
			// Node 3k has the parents 3k-2 and 3k-1, which both have the parent 3k-3.
			n -= (n - 1) % 3
			nanoAgent(b, fmt.Sprintf(`"n%d"`, n-1), n, func(i int) string {
				switch {
				case i == 0:
					return nanoNode(i, "", `{"role":"user","content":"Go."}`)
				case i%3 == 0:
					return nanoNode(i, fmt.Sprintf(`"n%d","n%d"`, i-2, i-1), `{"role":"user","content":"both"}`)
				}
				return nanoNode(i, fmt.Sprintf(`"n%d"`, (i-1)/3*3), `{"role":"assistant","content":"one"}`)
			})
		}},
	} {
		cases = append(cases, growthtest.Case{Name: string(file.format) + "/" + file.shape, Growth: growthtest.Linear, Setup: func(t testing.TB, n int) func() {
			var b strings.Builder
			file.write(&b, n)
			return func() {
				in, err := sessions.Import(file.format, strings.NewReader(b.String()), nil)
				require.NoError(t, err)
				require.NotEmpty(t, in.Conversations)
			}
		}})
	}
	growthtest.Run(t, cases)
}

// list writes n elements with commas between them.
func list(b *strings.Builder, n int, element func(i int)) {
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		element(i)
	}
}

// claudeCode writes a line of a session of Claude Code. All answers are parts of one message, as calls at the same time are.
func claudeCode(b *strings.Builder, i int, parent, role, blocks string) {
	answer := ""
	if role == "assistant" {
		answer = `"id":"msg_1","type":"message","model":"claude-sonnet-4-5",`
	}
	fmt.Fprintf(b, `{"parentUuid":%s,"isSidechain":false,"sessionId":"s","version":"2.1.0","type":%q,"message":{%s"role":%[2]q,"content":%[4]s},`+
		`"uuid":"u%[5]d","timestamp":"2026-03-01T09:00:01.250Z"}`+"\n", parent, role, answer, blocks, i)
}

const piHeader = `{"type":"session","version":3,"id":"s","timestamp":"2026-04-01T08:00:00.000Z","cwd":"/home/kim"}` + "\n"

func piLine(b *strings.Builder, i int, parent, message string) {
	fmt.Fprintf(b, `{"type":"message","id":"p%d","parentId":%s,"timestamp":"2026-04-01T08:00:01.000Z","message":%s}`+"\n", i, parent, message)
}

// nanoAgent writes a saved graph of n nodes, one a line.
func nanoAgent(b *strings.Builder, heads string, n int, element func(i int) string) {
	fmt.Fprintf(b, `{"session_id":"s","metadata":{},"head_ids":[%s],"nodes":{`, heads)
	list(b, n, func(i int) { b.WriteString("\n" + element(i)) })
	b.WriteString("\n}}")
}

func nanoNode(i int, parents, data string) string {
	return fmt.Sprintf(`"n%d":{"id":"n%[1]d","parent_ids":[%s],"data":%s,"timestamp":1777000000.5,"metadata":{}}`, i, parents, data)
}
