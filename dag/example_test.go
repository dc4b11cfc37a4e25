package dag_test

import (
	"fmt"
	"os"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"gonum.org/v1/gonum/graph/flow"
	"gonum.org/v1/gonum/graph/path"
	"gonum.org/v1/gonum/graph/topo"
)

func Example() {
	d := dag.New().
		System("Answer briefly.").
		User("What is a DAG?").
		Assistant("A graph without cycles.")
	fmt.Println(d.Text())
	fmt.Println(d)
	// Output:
	// A graph without cycles.
	// ◆ system    Answer briefly.
	// ○ user      What is a DAG?
	// ● assistant A graph without cycles.
}

// A conversation is a value: extending it leaves it as it was, and both share their past.
func Example_fork() {
	d := dag.New().User("Name a city.").Assistant("Tokyo.")
	metric := d.User("How big is it?")
	history := d.User("How old is it?")
	fmt.Println(d.Len(), metric.Len(), history.Len())
	fmt.Println(metric.Nodes()[1] == history.Nodes()[1])
	// Output:
	// 2 3 3
	// true
}

func ExampleDAG_Back() {
	d := dag.New().User("Weather in Paris?").Assistant("64 °F.")
	fmt.Println(d.Back(1).User("Weather in Paris, in Celsius?"))
	// Output:
	// ○ user      Weather in Paris, in Celsius?
}

func ExampleDAG_Join() {
	start := dag.New().User("Name a city.")
	tokyo, lima := start.Assistant("Tokyo."), start.Assistant("Lima.")

	both := tokyo.Join(lima)
	fmt.Println(len(both.Heads()), "heads")
	fmt.Println(both.User("Which is bigger?"))
	// Output:
	// 2 heads
	// ○ user      Name a city.
	// ├─╮
	// │ ● assistant Tokyo.
	// ● │ assistant Lima.
	// ├─╯
	// ○ user      Which is bigger?
}

// Tools can be run by hand: one node for each call hangs on the assistant's message, and a message with all results follows
// them. CloseTools does the same in one step.
func ExampleDAG_AppendTo() {
	forecast := map[string]string{"t1": "22 °C", "t2": "18 °C"}
	d := dag.New().User("Weather in Tokyo and Paris?").Assistant("",
		content.ToolUse{ID: "t1", Name: "get_weather", Input: `{"city":"Tokyo"}`},
		content.ToolUse{ID: "t2", Name: "get_weather", Input: `{"city":"Paris"}`})

	said := d.Heads()
	var results []content.ToolResult
	for _, call := range d.OpenCalls() {
		done := node.ToolExecution{CallID: call.ID, Index: call.Index, Tool: call.Name, Input: call.Input,
			Result: content.Words(forecast[call.ID])}
		var err error
		if d, _, err = d.AppendTo(said, done); err != nil {
			fmt.Println(err)
			return
		}
		results = append(results, done.Answer())
	}
	fmt.Println(d.ToolResults(results...).Assistant("22 °C and 18 °C."))
	// Output:
	// ○ user      Weather in Tokyo and Paris?
	// ● assistant → get_weather ×2
	// ├─╮
	// ▪ │ get_weather(city: "Tokyo") → 22 °C
	// │ ▪ get_weather(city: "Paris") → 18 °C
	// ├─╯
	// ◇ results   2
	// ● assistant 22 °C and 18 °C.
}

func ExampleDAG_CloseTools() {
	d := dag.New().User("Weather in Tokyo and Paris?").Assistant("",
		content.ToolUse{ID: "t1", Name: "get_weather", Input: `{"city":"Tokyo"}`},
		content.ToolUse{ID: "t2", Name: "get_weather", Input: `{"city":"Paris"}`})

	d = d.CloseTools(node.ToolExecution{Index: 0, Result: content.Words("22 °C")})
	for _, m := range d.Messages() {
		for _, r := range m.Blocks.ToolResults() {
			fmt.Println(r.CallID, r.IsError, r.Content.Text())
		}
	}
	// Output:
	// t1 false 22 °C
	// t2 true No result: the tool call was not completed.
}

// Results that come one by one are added as they come. Nothing is lost between two of them: the conversation can be saved.
func ExampleDAG_AppendExecutions() {
	d := dag.New().User("Weather in Tokyo and Paris?").Assistant("",
		content.ToolUse{ID: "t1", Name: "get_weather", Input: `{"city":"Tokyo"}`},
		content.ToolUse{ID: "t2", Name: "get_weather", Input: `{"city":"Paris"}`})

	d = d.AppendExecutions(node.ToolExecution{Index: 1, Result: content.Words("18 °C")})
	fmt.Println("waits for", d.OpenCalls()[0].ID)
	d = d.AppendExecutions(node.ToolExecution{Index: 0, Result: content.Words("22 °C")}).CloseTools()
	fmt.Println(d)
	// Output:
	// waits for t1
	// ○ user      Weather in Tokyo and Paris?
	// ● assistant → get_weather ×2
	// ├─╮
	// ▪ │ get_weather(city: "Tokyo") → 22 °C
	// │ ▪ get_weather(city: "Paris") → 18 °C
	// ├─╯
	// ◇ results   2
}

func ExampleDAG_OpenCalls() {
	d := dag.New().User("Add them.").Assistant("", content.ToolUse{ID: "a", Name: "add", Input: `{"x":1,"y":2}`})
	for _, call := range d.OpenCalls() {
		fmt.Println(call.Index, call.Name, call.Input)
	}
	fmt.Println(len(d.CloseTools().OpenCalls()))
	// Output:
	// 0 add {"x":1,"y":2}
	// 0
}

func ExampleDAG_Transcript() {
	d := dag.New().
		System("Answer briefly.").
		Tools(content.Tool{Name: "clock", Description: "The time.", Schema: `{"type":"object"}`}).
		User("What time is it?").
		Custom("acme.trace", 42). // is never sent
		Assistant("Noon.")
	t := d.Transcript()
	fmt.Println(t.System, t.Tools[0].Name)
	for _, m := range t.Messages {
		fmt.Println(m.Role, m.Blocks.Text())
	}
	// Output:
	// [Answer briefly.] clock
	// user What time is it?
	// assistant Noon.
}

func ExampleDAG_Validate() {
	d := dag.New().WithSource(node.Counting(time.Unix(0, 0))).
		User("Weather?").
		Assistant("", content.ToolUse{ID: "t1", Name: "get_weather", Input: `["Tokyo"]`}).
		User("Never mind.")
	for _, finding := range d.Validate() {
		fmt.Println(finding)
	}
	// Output:
	// message 00000002: arguments are not an object: block 0 calls "get_weather" with ["Tokyo"]
	// message 00000002: undeclared tool: "get_weather"
	// message 00000002: call without result: call 0, "t1" of "get_weather"
}

func ExampleDAG_String() {
	d := dag.New().User("Weather in Tokyo, Paris and New York?").Assistant("I'll look.",
		content.ToolUse{ID: "t1", Name: "get_weather", Input: `{"city":"Tokyo"}`},
		content.ToolUse{ID: "t2", Name: "get_weather", Input: `{"city":"Paris"}`},
		content.ToolUse{ID: "t3", Name: "get_weather", Input: `{"city":"New York"}`}).
		CloseTools(
			node.ToolExecution{Index: 1, Result: content.Words("22 °C, sunny")},
			node.ToolExecution{Index: 2, Result: content.Words("18 °C, rain")},
			node.ToolExecution{Index: 3, Result: content.Words("the station does not answer"), IsError: true}).
		Assistant("Sunny in Tokyo, rain in Paris.").
		Stop(content.StopEndTurn)
	fmt.Println(d)
	// Output:
	// ○ user      Weather in Tokyo, Paris and New York?
	// ● assistant I'll look. → get_weather ×3
	// ├─┬─╮
	// ▪ │ │ get_weather(city: "Tokyo") → 22 °C, sunny
	// │ ▪ │ get_weather(city: "Paris") → 18 °C, rain
	// │ │ ▪ get_weather ✗ the station does not answer (city: "New York")
	// ├─┴─╯
	// ◇ results   3, 1 failed
	// ● assistant Sunny in Tokyo, rain in Paris.
	// ■ stop      end_turn
}

// A chain of steps keeps its first error, and the steps after it change nothing.
func ExampleDAG_Err() {
	d := dag.New().User("Hello.").Assistant("").User("Are you there?")
	fmt.Println(d.Err())
	fmt.Println(d.Len())
	// Output:
	// dag: Assistant: the message is empty
	// 1
}

// fanned is a conversation with a tool phase of two calls.
func fanned() dag.DAG {
	return dag.New().User("Go.").
		Assistant("", content.ToolUse{ID: "a", Name: "f", Input: "{}"}, content.ToolUse{ID: "b", Name: "g", Input: "{}"}).
		CloseTools().
		Assistant("Done.")
}

// gonum's topological order, by the nodes of the conversation.
func ExampleDAG_Graph() {
	order, err := topo.SortStabilized(fanned().Graph(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range order {
		fmt.Println(v.ID(), v.(dag.Vertex).Node.Kind())
	}
	// Output:
	// 0 message
	// 1 message
	// 2 tool_execution
	// 3 tool_execution
	// 4 message
	// 5 message
}

// The dominator of a node is what every path to it goes through: of the closing message, the assistant's message, and not one
// of the executions.
func ExampleDAG_Graph_dominators() {
	g := fanned().Graph()
	tree := flow.Dominators(g.Node(0), g)
	for id := range int64(6) {
		if above := tree.DominatorOf(id); above != nil {
			fmt.Println(above.ID(), "dominates", id)
		}
	}
	// Output:
	// 0 dominates 1
	// 1 dominates 2
	// 1 dominates 3
	// 1 dominates 4
	// 4 dominates 5
}

// The shortest path from the first node to the head. The ID of a vertex is the index of its node.
func ExampleVertex() {
	d := fanned()
	g := d.Graph()
	way, steps := path.DijkstraFrom(g.Node(0), g).To(int64(d.Len() - 1))
	fmt.Println(steps, "steps")
	for _, v := range way {
		fmt.Println(v.(dag.Vertex).Node.Kind())
	}
	// Output:
	// 4 steps
	// message
	// message
	// tool_execution
	// message
	// message
}

// A log for a terminal: with colours, in its width, and only the end. Named heads are shown at their nodes.
func ExampleDAG_WriteLog() {
	d := dag.New().User("Name a city.").Assistant("Tokyo.").WithRef("first-try").User("Another one?").Assistant("Paris.")

	if err := d.WriteLog(os.Stdout, &dag.LogOptions{ASCII: true, Last: 3, Width: 80}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// : 1 node before
	// * assistant (first-try) Tokyo.
	// o user      Another one?
	// * assistant (head) Paris.
}

// A program that no longer has a tool withdraws it. The graph keeps what was declared and called before.
func ExampleDAG_WithdrawTools() {
	grep := content.Tool{Name: "grep", Description: "Search files.", Schema: `{"type":"object"}`}
	bash := content.Tool{Name: "bash", Description: "Run a command.", Schema: `{"type":"object"}`}

	d := dag.New().Tools(grep, bash).User("Look around.").WithdrawTools("grep")
	for _, tool := range d.ToolDefs() {
		fmt.Println(tool.Name)
	}
	// Output: bash
}

// A named system prompt is replaced, where System adds another one.
func ExampleDAG_SetSystem() {
	d := dag.New().System("Answer briefly.").SetSystem("memory", "The user is in Tokyo.").User("Hello.")
	d = d.SetSystem("memory", "The user is in Paris.")
	for _, prompt := range d.SystemPrompts() {
		fmt.Println(prompt)
	}
	// Output:
	// Answer briefly.
	// The user is in Paris.
}
