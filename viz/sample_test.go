package viz

import (
	"strings"
	"testing"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// The three conversations that nano-agent's samples hold, built in Plait: a single tool, three parallel calls of which two
// fail, and sub-agents inside sub-agents beside images and a branch.

func sampleStart() dag.DAG {
	return dag.New().WithSource(node.Counting(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
}

func tool(name string) content.Tool {
	return content.Tool{Name: name, Description: name, Schema: `{"type":"object"}`}
}

func use(id, name, input string) content.ToolUse {
	return content.ToolUse{ID: id, Name: name, Input: content.JSON(input)}
}

func ran(i int, result string) node.ToolExecution {
	return node.ToolExecution{Index: i, Result: content.Words(result)}
}

func failing(i int, result string) node.ToolExecution {
	return node.ToolExecution{Index: i, Result: content.Words(result), IsError: true}
}

func sampleSingle() dag.DAG {
	return sampleStart().
		System("You are a weather assistant.").
		Tools(tool("get_weather")).
		User("What's the weather in Tokyo?").
		Assistant("Let me check.", use("toolu_01", "get_weather", `{"city":"Tokyo"}`)).
		CloseTools(ran(0, "Tokyo: 22°C")).
		Assistant("It is 22°C in Tokyo.").
		Stop(content.StopEndTurn)
}

func sampleParallel() dag.DAG {
	return sampleStart().
		System("You help with weather. Call tools in parallel when possible.").
		Tools(tool("get_weather"), tool("boom")).
		User("What's the weather in Tokyo, Paris and NYC?").
		Assistant("", content.Thinking{Text: "Three cities.", Signature: "c2ln"},
			use("t1", "get_weather", `{"city":"Tokyo"}`), use("t2", "boom", `{}`), use("t3", "nope", `{"x":1}`)).
		CloseTools(ran(0, "Tokyo: 22°C"), failing(1, "Tool error: boom <went> \"off\""), failing(2, "Unknown tool: nope")).
		Assistant("Tokyo has 22°C; the other two calls failed.").
		Stop(content.StopEndTurn)
}

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

func sampleSubAgents() dag.DAG {
	image := content.Image{Source: content.Source{MediaType: "image/png", Data: pixel}}
	leaf := dag.New().System("You are a leaf.").User("deep?").Assistant("Very deep.").Stop(content.StopEndTurn)
	researcher := dag.New().System("You are a researcher.").Tools(tool("Leaf")).User("Why DAGs?").
		Assistant("", use("s1", "Leaf", `{"question":"deep?"}`)).
		CloseTools(node.ToolExecution{Index: 0, Result: content.Words("Very deep."), Child: node.ListOf(leaf.Heads()...)}).
		Assistant("Because history forks.").Stop(content.StopEndTurn)
	shot, err := content.Of(image)
	if err != nil {
		panic(err)
	}
	d := sampleStart().
		System("Main system").System("Second system").
		Tools(tool("Research"), tool("Screenshot")).
		User("look:", image).
		Assistant("", content.Thinking{Text: "plan"}, use("c1", "Research", `{"question":"Why DAGs?"}`), use("c2", "Screenshot", `{"path":"/tmp/x"}`)).
		CloseTools(
			node.ToolExecution{Index: 0, Result: content.Words("Because history forks."), Child: node.ListOf(researcher.Heads()...)},
			node.ToolExecution{Index: 1, Result: shot})
	return d.Assistant("DAGs let history fork.").Stop(content.StopEndTurn).Join(d.User("And a tree?"))
}

func draw(t testing.TB, d dag.DAG, o *MermaidOptions) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, Mermaid(&b, d, o))
	return b.String()
}
