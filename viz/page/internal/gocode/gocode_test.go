package gocode_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz/internal/viztest"
	"github.com/plait-dev/plait/viz/page/internal/gocode"
)

func start() dag.DAG {
	return dag.New().WithSource(node.Counting(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
}

func use(id, name, input string) content.ToolUse {
	return content.ToolUse{ID: id, Name: name, Input: content.JSON(input)}
}

func blocks(list ...content.Block) content.Blocks {
	b, err := content.Of(list...)
	if err != nil {
		panic(err)
	}
	return b
}

var weather = content.Tool{Name: "get_weather", Description: `The weather "now"`, Schema: `{"type":"object"}`}

func weatherTalk() dag.DAG {
	return start().
		System("Be brief.").
		Tools(weather).
		User("Weather in Tokyo and Paris?").
		Assistant("Let me look.", use("1", "get_weather", `{"city":"Tokyo"}`), use("2", "get_weather", `{"city":"Paris"}`)).
		CloseTools(
			node.ToolExecution{Index: 1, Result: content.Words("22°C")},
			node.ToolExecution{Index: 2, Result: content.Words("no such city"), IsError: true}).
		Assistant("Tokyo has 22°C.").
		Stop(content.StopEndTurn)
}

func TestWriteIsTheChainThatAPersonWouldWrite(t *testing.T) {
	require.Equal(t, `package fixture

import (
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// Conversation returns a conversation of 9 nodes.
func Conversation() dag.DAG {
	return dag.New().
		System("Be brief.").
		Tools(
			content.Tool{Name: "get_weather", Description: `+"`The weather \"now\"`"+`, Schema: `+"`{\"type\":\"object\"}`"+`},
		).
		User("Weather in Tokyo and Paris?").
		Assistant("Let me look.",
			content.ToolUse{ID: "1", Name: "get_weather", Input: `+"`{\"city\":\"Tokyo\"}`"+`},
			content.ToolUse{ID: "2", Name: "get_weather", Input: `+"`{\"city\":\"Paris\"}`"+`},
		).
		CloseTools(
			node.ToolExecution{Index: 1, Result: content.Words("22°C")},
			node.ToolExecution{Index: 2, Result: content.Words("no such city"), IsError: true},
		).
		Assistant("Tokyo has 22°C.").
		Stop("end_turn")
}
`, code(t, weatherTalk()))
}

func TestBranchesAreVariables(t *testing.T) {
	question := start().User("Name a tree.")
	require.Equal(t, `package fixture

import (
	"github.com/plait-dev/plait/dag"
)

// Conversation returns a conversation of 4 nodes.
func Conversation() dag.DAG {
	d0 := dag.New().
		User("Name a tree.")
	d1 := d0.
		Assistant("An oak.")
	d2 := d0.
		Assistant("A red-black tree.")
	d3 := d1.Join(d2).
		User("Both?")
	return d3
}
`, code(t, question.Assistant("An oak.").Join(question.Assistant("A red-black tree.")).User("Both?")))
}

func TestWriteKeepsTheNameOfASystemPrompt(t *testing.T) {
	written := code(t, start().System("Be brief.").SetSystem("style", "Rhyme."))
	require.Contains(t, written, "\t\tSystem(\"Be brief.\").\n\t\tSetSystem(\"style\",\n\t\t\t\"Rhyme.\",\n\t\t)\n")

	// SetSystem would not add a prompt that is set already.
	written = code(t, start().SetSystem("style", "Rhyme.").Append(node.System{Name: "style", Text: "Rhyme."}))
	require.Contains(t, written, `Append(node.System{Name: "style", Text: "Rhyme."})`)
}

func TestWriteReturnsErrors(t *testing.T) {
	var b bytes.Buffer
	require.ErrorIs(t, gocode.Write(&b, dag.New().User("")), dag.ErrEmpty)
	require.Empty(t, b.String())
	full := errors.New("full")
	require.ErrorIs(t, gocode.Write(failing{full}, dag.New()), full)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// hostile is what would end a literal, begin a comment, turn the text around, or be taken for a use of a package.
var hostile = []string{
	"`", "\"", "\\", "`\"`", "a`+panic(\"x\")+`", "\"); panic(\"out\"); (\"", "*/ //", "\n}\nfunc init() { panic(1) }\n", "\r\n", "\x00\x1b[2J",
	"\u202egnp.exe", "\u2028\u2029\ufeff", "content.Words(node.New())", "strings.Join", "\xff\xfe", "日本語 👩‍👩‍👧 e\u0301", "\"\u202e{", "\\\u2066\"", `\u0022`, "%d%s",
}

func everything(text string) dag.DAG {
	extra := content.Extra{API: "a" + text, JSON: `{"x":"</script>"}`}
	leaf := start2(900).User("deep? " + text).Assistant("Very deep.")
	child := start2(901).System(text+".").User("Why?").Assistant("", use("s", "Leaf"+text, `{}`)).
		CloseTools(node.ToolExecution{Index: 0, Result: content.Words("Very deep."), Child: node.ListOf(leaf.Heads()...)}).
		Assistant("Because.")
	twoHeads := child.Join(start2(902).User("another end"))
	d := start().System(text).Tools(weather).
		Tools(content.Tool{Name: "web_search", Extra: content.Extra{API: "anthropic", JSON: `{"type":"web_search_1"}`}}).
		User(text+"!", content.Image{Source: content.Source{MediaType: "image/png", Data: "iVBORw0KGgo="}}, content.Text{Text: text, Extra: extra},
			content.Document{Source: content.Source{Text: text + "?"}, Title: text}).
		Assistant("", content.Thinking{Text: text, Signature: text, Redacted: text}, use(text, "get_weather", text), use("", text, "{}"),
			content.Opaque{API: "x" + text, JSON: `{"type":"server","text":"\u0060"}`},
			content.CutToolUse{Name: "n" + text, Input: content.JSON("{" + text)}).
		CloseTools(
			node.ToolExecution{Index: 1, Child: node.ListOf(twoHeads.Heads()...), Result: blocks(content.Text{Text: text + "."}, content.Text{Text: "", Extra: extra},
				content.Image{Source: content.Source{URL: text + "u"}})},
			node.ToolExecution{Index: 2, IsError: true, Result: blocks(content.Text{Text: text, Extra: extra})}).
		Assistant("Then "+text, use("h1", "by_hand", `{"a":[1,2]}`)).
		ToolResults(content.ToolResult{CallID: "h1", Content: content.Words(text), IsError: true}).
		SubGraph(text, leaf).
		Custom(text, map[string]string{text: text})
	nodes := d.Nodes()
	d = d.Append(node.Compaction{Summary: content.Words("In short: " + text), Replaced: node.ListOf(nodes[3].ID(), nodes[4].ID())}).
		Append(node.StopReason{Reason: content.Stop(text + "stop"), Detail: text}).
		Append(node.SubGraph{Title: "hand made", CallID: "x", Heads: node.ListOf(leaf.Heads()...), Summary: text + "another"})
	return d.Join(d.Back(1).User("A branch."), d.User("half done").Assistant("", use("o1", "a", "{}"), use("o2", "b", "{}")).
		AppendExecutions(node.ToolExecution{Index: 1, Result: content.Words("one of two")}))
}

func start2(day int) dag.DAG {
	return dag.New().WithSource(node.Counting(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, day)))
}

// loaded is a conversation that no builder makes: kinds of a newer version, and a node that was redacted.
func loaded(t *testing.T) dag.DAG {
	t.Helper()
	d := weatherTalk()
	d = d.Redact(d.Nodes()[2].ID())
	var b bytes.Buffer
	require.NoError(t, d.Write(&b))
	text := strings.Replace(b.String(), `"kind":"system"`, `"kind":"mood"`, 1)
	d, err := dag.Read(strings.NewReader(text))
	require.NoError(t, err)
	return d
}

func random(seed uint64) dag.DAG {
	r := rand.New(rand.NewPCG(seed, 1))
	ends := []dag.DAG{start().User("begin")}
	for i := range 60 {
		d := ends[r.IntN(len(ends))]
		switch r.IntN(6) {
		case 0:
			d = d.Assistant(fmt.Sprint("call ", i), use("a", "x", "{}"), use("b", "y", "{}"), use("c", "z", "{}")).
				CloseTools(node.ToolExecution{Index: 3, Result: content.Words(hostile[r.IntN(len(hostile))])})
		case 1:
			d = d.Join(ends[r.IntN(len(ends))], ends[r.IntN(len(ends))]).User("merged")
		case 2:
			d = d.SubGraph("sub", ends[r.IntN(len(ends))])
		default:
			d = d.Assistant(fmt.Sprint("answer ", i)).User(hostile[r.IntN(len(hostile))] + "?")
		}
		ends = append(ends, d)
	}
	return dag.New().Join(ends[len(ends)-5:]...)
}

// TestGeneratedCodeMakesAnEqualConversation compiles what is written with the real compiler, and runs it.
func TestGeneratedCodeMakesAnEqualConversation(t *testing.T) {
	long := start()
	for i := range 1200 {
		long = long.User(fmt.Sprint("question ", i))
	}

	// The message after the execution is not the one that CloseTools makes.
	interrupted := start().User("Weather?").Assistant("", use("1", "get_weather", `{}`)).
		Append(node.ToolExecution{Index: 0, Result: content.Words("22°C")}).User("Never mind.")

	// A program has ended in the middle of two calls, of which one was started.
	crashed := start().User("Weather?").Assistant("", use("1", "get_weather", `{}`), use("2", "get_weather", `{}`)).
		AppendExecutions(node.ToolExecution{Index: 0, State: node.ExecutionStarted})

	cases := []dag.DAG{dag.New(), weatherTalk(), interrupted, crashed, crashed.CloseTools(), loaded(t), long, long.Back(250), everything("plain")}
	for _, text := range hostile {
		cases = append(cases, everything(text))
	}
	for seed := range uint64(10) {
		cases = append(cases, random(seed))
	}
	temp := t.TempDir()
	written := map[string]string{}
	for i, d := range cases {
		require.NoError(t, d.Err())
		saved := filepath.Join(temp, fmt.Sprintf("case%d.json", i))
		require.NoError(t, d.Save(saved))
		written[saved] = code(t, d)
	}
	viztest.RequireGoCode(t, written)
}

func TestFormsByWhatTheBuilderCanMake(t *testing.T) {
	require.Contains(t, code(t, loaded(t)), "dag.Read(")
	require.NotContains(t, code(t, everything("plain")), "dag.Read(")
	for _, text := range hostile {
		require.NotContains(t, code(t, everything(text)), "dag.Read(", "%q", text)
	}
	for seed := range uint64(10) {
		require.NotContains(t, code(t, random(seed)), "dag.Read(")
	}
}

func TestLiteralsHoldPrintableCharactersOnly(t *testing.T) {
	for _, text := range hostile {
		for _, r := range code(t, everything(text)) {
			require.True(t, r == '\n' || r == '\t' || r >= ' ' && r != 0x7f && r != 0x202e && r != 0x2066 && r != 0x2028 && r != 0xfeff && r != 0xfffe, "%q: %U", text, r)
		}
	}
}

// TestLiteralsHaveEveryField writes fields that conversations rarely have.
func TestLiteralsHaveEveryField(t *testing.T) {
	def := content.Tool{Name: "b", Description: "B.", Schema: `{"type":"object"}`}
	user := func(b content.Block) node.Message {
		blocks, err := content.Of(b)
		require.NoError(t, err)
		return node.Message{Role: content.User, Blocks: blocks}
	}

	for literal, payload := range map[string]node.Payload{
		"node.Tools{Defs: node.ListOf(content.Tool{Name: \"b\", Description: \"B.\", Schema: `{\"type\":\"object\"}`}), Withdrawn: node.ListOf(\"a\")}": node.Tools{
			Defs: node.ListOf(def), Withdrawn: node.ListOf("a")},
		`node.ToolExecution{CallID: "1", Index: 2, Tool: "f", Input: "{}", State: "started"}`: node.ToolExecution{
			CallID: "1", Index: 2, Tool: "f", Input: "{}", State: node.ExecutionStarted},
		`node.SubGraph{Title: "t", CallID: "1", Summary: "s"}`:                        node.SubGraph{Title: "t", CallID: "1", Summary: "s"},
		`content.ToolResult{CallID: "1", Content: content.Words("x"), IsError: true}`: user(content.ToolResult{CallID: "1", Content: content.Words("x"), IsError: true}),
		`content.Source{MediaType: "image/png", FileID: "file-1"}`:                    user(content.Image{Source: content.Source{MediaType: "image/png", FileID: "file-1"}}),
	} {
		written := code(t, start().System("Be brief.").Append(payload))
		require.Contains(t, written, literal)
		require.Equal(t, strings.Contains(written, "node."), strings.Contains(written, `"github.com/plait-dev/plait/node"`))
		require.Equal(t, strings.Contains(written, "content."), strings.Contains(written, `"github.com/plait-dev/plait/content"`))
	}
}

func TestACompactionNamesTheNodesItReplaces(t *testing.T) {
	d := start().System("s").User("a").Assistant("b")
	nodes := d.Nodes()
	d = d.Append(node.Compaction{Summary: content.Words("short"), Replaced: node.ListOf(nodes[2].ID(), nodes[1].ID())})
	require.Contains(t, code(t, d), "Append(node.Compaction{Summary: content.Words(\"short\"), Replaced: ids(d0, 2, 1)})")
}

func code(t testing.TB, d dag.DAG) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, gocode.Write(&b, d))
	return b.String()
}
