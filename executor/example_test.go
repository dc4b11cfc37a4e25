package executor_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

type Forecast struct {
	City string `json:"city" jsonschema:"the city's name"`
}

var temperatures = map[string]string{"Tokyo": "22°C", "Paris": "18°C", "New York": "25°C"}

var weather = executor.Func("get_weather", "Current weather for ONE city. Call it once for each city.",
	func(ctx context.Context, in Forecast) (string, error) {
		t, known := temperatures[in.City]
		if !known {
			return "", fmt.Errorf("no weather station in %s", in.City)
		}
		return in.City + ": " + t, nil
	})

func in(city string) content.ToolUse { return apitest.Use("get_weather", Forecast{City: city}) }

// called is a conversation whose last answer calls tools.
func called(calls ...content.ToolUse) dag.DAG {
	blocks := make([]content.Block, len(calls))
	for i, c := range calls {
		c.ID = fmt.Sprintf("call_%d", i+1)
		blocks[i] = c
	}
	return dag.New().Tools(weather).User("What's the weather?").Assistant("", blocks...)
}

// shape prints the kinds of a conversation's nodes, and what results and texts say.
func shape(d dag.DAG) {
	for _, n := range d.Nodes() {
		fmt.Print(n.Kind())
		switch p := n.Payload().(type) {
		case node.ToolExecution:
			fmt.Printf(" %s %s -> %s", p.Tool, p.Input, p.Result.Text())
		case node.Message:
			fmt.Printf(" %s", p.Role)
			if text := p.Blocks.Text(); text != "" {
				fmt.Print(": ", text)
			}
			for _, call := range p.Blocks.ToolUses() {
				fmt.Printf(" [%s]", call.Name)
			}
			for _, result := range p.Blocks.ToolResults() {
				fmt.Printf(" [%s = %s]", result.CallID, result.Content.Text())
			}
		case node.StopReason:
			fmt.Printf(" %s after %d turns and %d tool calls", p.Reason, p.Turns, p.ToolCalls)
		}
		fmt.Println()
	}
}

// One tool call, by hand: ask, carry out, answer, ask again.
func Example_singleTool() {
	d := called(in("Tokyo"))

	var results []content.ToolResult
	for _, call := range d.OpenCalls() {
		result, err := weather.Call(context.Background(), call)
		if err != nil {
			result, _ = executor.ResultOf("Error executing " + call.Name + ": " + err.Error())
		}
		results = append(results, content.ToolResult{CallID: call.ID, Content: result.Content, IsError: err != nil})
	}
	d = d.ToolResults(results...)

	shape(d)
	// Output:
	// tools
	// message user: What's the weather?
	// message assistant [get_weather]
	// message user [call_1 = Tokyo: 22°C]
}

// Parallel tool calls by hand, with a node for each execution: the program builds the branches and the merge itself.
func Example_byHand() {
	d := called(in("Tokyo"), in("Paris"))
	said := d.Head()

	var branches []*node.Node
	var results []content.Block
	for _, call := range d.OpenCalls() {
		result, err := weather.Call(context.Background(), call)
		if err != nil {
			panic(err)
		}
		execution := node.ToolExecution{CallID: call.ID, Index: call.Index, Tool: call.Name, Input: call.Input, Result: result.Content}
		var branch *node.Node
		d, branch, err = d.AppendTo([]*node.Node{said}, execution)
		if err != nil {
			panic(err)
		}
		branches = append(branches, branch)
		results = append(results, execution.Answer())
	}
	merged, err := content.Of(results...)
	if err != nil {
		panic(err)
	}
	d = d.WithHeads(branches...).Append(node.Message{Role: content.User, Blocks: merged})

	shape(d)
	fmt.Println(d.Head().NumParents(), "parents, one head:", len(d.Heads()) == 1)
	// Output:
	// tools
	// message user: What's the weather?
	// message assistant [get_weather] [get_weather]
	// tool_execution get_weather {"city":"Tokyo"} -> Tokyo: 22°C
	// tool_execution get_weather {"city":"Paris"} -> Paris: 18°C
	// message user [call_1 = Tokyo: 22°C] [call_2 = Paris: 18°C]
	// 2 parents, one head: true
}

// The tools that travel with the conversation carry out the calls; branches and merge come of themselves.
func ExampleExecuteTools() {
	d := called(in("Tokyo"), in("Paris"), in("Atlantis"))

	d, err := executor.ExecuteTools(context.Background(), d)

	shape(d)
	fmt.Println(err)
	// Output:
	// tools
	// message user: What's the weather?
	// message assistant [get_weather] [get_weather] [get_weather]
	// tool_execution get_weather {"city":"Tokyo"} -> Tokyo: 22°C
	// tool_execution get_weather {"city":"Paris"} -> Paris: 18°C
	// tool_execution get_weather {"city":"Atlantis"} -> no weather station in Atlantis
	// message user [call_1 = Tokyo: 22°C] [call_2 = Paris: 18°C] [call_3 = no weather station in Atlantis]
	// <nil>
}

// One function carries out the calls of all tools, which are declared only.
func ExampleExecuteToolsFunc() {
	d := dag.New().
		Tools(
			content.Tool{Name: "calculator", Schema: `{"type":"object"}`},
			content.Tool{Name: "weather", Schema: `{"type":"object"}`},
		).
		User("What's 2+2, and the weather?").
		Assistant("", apitest.Use("calculator", content.JSON(`{"sum":"2+2"}`)), apitest.Use("weather", content.JSON(`{}`)),
			apitest.Use("oracle", content.JSON(`{}`)))

	d, err := executor.ExecuteToolsFunc(context.Background(), d, func(ctx context.Context, call executor.Call) (any, error) {
		switch call.Name {
		case "calculator":
			return 4, nil
		case "weather":
			return content.Text{Text: "sunny"}, nil
		}
		return nil, fmt.Errorf("unknown tool: %s", call.Name)
	})

	for _, result := range d.Messages()[2].Blocks.ToolResults() {
		fmt.Println(result.Content.Text(), result.IsError)
	}
	fmt.Println(err)
	// Output:
	// 4 false
	// sunny false
	// unknown tool: oracle true
	// <nil>
}

// The whole loop: three calls in parallel, and the answer.
func ExampleRun() {
	model := apitest.NewScript(
		apitest.Say("Let me look.").Call(in("Tokyo"), in("Paris"), in("New York")),
		apitest.Say("Warmest is New York, with 25°C."),
	)
	d := dag.New().
		System("You help with weather. Call tools in parallel when possible.").
		Tools(weather).
		User("What's the weather in Tokyo, Paris and New York?")

	d, err := executor.Run(context.Background(), model, d)

	shape(d)
	fmt.Println(err)
	// Output:
	// system
	// tools
	// message user: What's the weather in Tokyo, Paris and New York?
	// run_start
	// message assistant: Let me look. [get_weather] [get_weather] [get_weather]
	// tool_execution get_weather {"city":"Tokyo"} -> Tokyo: 22°C
	// tool_execution get_weather {"city":"Paris"} -> Paris: 18°C
	// tool_execution get_weather {"city":"New York"} -> New York: 25°C
	// message user [call_1_1 = Tokyo: 22°C] [call_1_2 = Paris: 18°C] [call_1_3 = New York: 25°C]
	// message assistant: Warmest is New York, with 25°C.
	// stop_reason end_turn after 2 turns and 3 tool calls
	// <nil>
}

// What a run came to, from its conversation: the same value after loading it from a file.
func ExampleAgent_lastRun() {
	agent := executor.Agent{
		Name: "weather", Version: "2", Tools: []dag.Tool{weather},
		Provider: apitest.NewScript(apitest.Call(in("Tokyo")), apitest.Say("22 degrees.").Usage(content.Usage{Input: 90, Output: 10})),
	}
	d, err := agent.Run(context.Background(), dag.New().User("And Tokyo?"))

	run, ok := d.LastRun()
	fmt.Println(run.Start.Agent, run.Start.Version, ok, err)
	fmt.Println(run.Stop.Reason, run.Stop.Turns, run.Stop.ToolCalls, run.Stop.Usage.Total(), run.Final)
	// Output:
	// weather 2 true <nil>
	// end_turn 2 1 100 true
}

// Watching a run: what the model writes, and what its tools do.
func ExampleStream() {
	model := apitest.NewScript(apitest.Call(in("Tokyo")), apitest.Say("22 degrees."))
	d := dag.New().Tools(weather).User("And Tokyo?")

	for event, err := range executor.Stream(context.Background(), model, d) {
		switch e := event.(type) {
		case executor.TurnStart:
			fmt.Println("turn", e.Turn)
		case executor.MessageDelta:
			if whole, ok := e.Event.(api.BlockEnd); ok {
				fmt.Printf("  a whole %T\n", whole.Block)
			}
		case executor.MessageEnd:
			fmt.Println("  said", e.Node.Kind())
		case executor.ToolStart:
			fmt.Println("  calls", e.Call.Name, e.Call.Input)
		case executor.ToolEnd:
			fmt.Println("  got", e.Execution.Result.Text())
		case executor.TurnEnd:
			fmt.Println("  nodes so far:", e.DAG.Len())
		case executor.End:
			fmt.Println(e.Stop.Reason, e.DAG.Text(), err)
		}
	}
	// Output:
	// turn 1
	//   a whole content.ToolUse
	//   said message
	//   calls get_weather {"city":"Tokyo"}
	//   got Tokyo: 22°C
	//   said message
	//   nodes so far: 6
	// turn 2
	//   a whole content.Text
	//   said message
	//   nodes so far: 7
	// end_turn 22 degrees. <nil>
}

// An agent bundles a model, tools and limits, and runs any number of conversations.
func ExampleAgent() {
	model := apitest.NewScript(apitest.Call(in("Tokyo")).Always())
	agent := executor.Agent{Provider: model, Tools: []dag.Tool{weather}, Limits: executor.Limits{Turns: 3}}

	d, err := agent.Run(context.Background(), dag.New().User("Never stop asking."))

	stop := d.Head().Payload().(node.StopReason)
	fmt.Println(stop.Reason, stop.Turns, stop.ToolCalls, err)
	// Output: max_turns 3 3 <nil>
}

// A run has a limit of dollars, by the prices of its models. The call that follows is answered without being executed.
func ExampleLimits() {
	model := apitest.NewScript(apitest.Call(in("Tokyo")).As("acme", "acme-1").Usage(content.Usage{Input: 1_000_000}).Always())
	agent := executor.Agent{
		Provider: model, Tools: []dag.Tool{weather},
		Limits: executor.Limits{Cost: 3}, Prices: api.Prices{"acme-1": {Input: 2, Output: 8}},
	}

	d, err := agent.Run(context.Background(), dag.New().User("Never stop asking."))

	stop := d.Head().Payload().(node.StopReason)
	fmt.Printf("%s %d turns $%.2f %v\n", stop.Reason, stop.Turns, stop.Cost, err)
	// Output: cost_limit 2 turns $4.00 <nil>
}

// A tool's failure is told to the model, which can react; no Go error comes of it.
func Example_toolErrors() {
	flaky := executor.Func("read", "Reads a file.", func(context.Context, struct {
		Path string `json:"path"`
	}) (string, error) {
		return "", errors.New("File not found")
	})
	d := dag.New().Tools(flaky).User("Read it.").
		Assistant("", apitest.Use("read", content.JSON(`{"path":"a.txt"}`)), apitest.Use("write", content.JSON(`{}`)),
			apitest.Use("read", content.JSON(`{"file":"a.txt"}`)))

	d, err := executor.ExecuteTools(context.Background(), d)

	for _, result := range d.Messages()[2].Blocks.ToolResults() {
		fmt.Println("error:", result.IsError)
		fmt.Println(result.Content.Text())
	}
	fmt.Println(err)
	// Output:
	// error: true
	// File not found
	// error: true
	// Tool "write" not found. Available tools: read
	// error: true
	// Validation failed for tool "read":
	//   - path: is required
	//   - file: is not an argument of this tool
	//
	// Received arguments:
	// {"file":"a.txt"}
	// <nil>
}

// A tool can return pictures, several blocks, and results that are errors.
func Example_blocks() {
	chart := executor.Func("chart", "Draws a chart.", func(context.Context, struct{}) ([]content.Block, error) {
		png := base64.StdEncoding.EncodeToString([]byte("not really a picture"))
		return []content.Block{
			content.Text{Text: "Sales by month:"},
			content.Image{Source: content.Source{MediaType: "image/png", Data: png}},
		}, nil
	})
	look := executor.Func("look", "Looks for a file.", func(context.Context, struct{}) (executor.Result, error) {
		return executor.Result{Content: content.Words("File not found"), IsError: true}, nil
	})
	d := dag.New().Tools(chart, look).User("Draw.").
		Assistant("", apitest.Use("chart", content.JSON(`{}`)), apitest.Use("look", content.JSON(``)))

	d, err := executor.ExecuteTools(context.Background(), d)

	for _, result := range d.Messages()[2].Blocks.ToolResults() {
		for _, block := range result.Content.All() {
			fmt.Printf("%T %v\n", block, result.IsError)
		}
	}
	fmt.Println(err)
	// Output:
	// content.Text false
	// content.Image false
	// content.Text true
	// <nil>
}

type Unit string

func (Unit) Enum() []any { return []any{"celsius", "fahrenheit"} }

// The schema of a tool is inferred from the type of its arguments.
func ExampleFunc() {
	type Place struct {
		City    string  `json:"city" jsonschema:"the city's name"`
		Country *string `json:"country"`
	}
	type Args struct {
		Places []Place `json:"places"`
		Unit   Unit    `json:"unit,omitempty"`
		Detail string  `json:"detail,omitempty" enum:"short,long"`
	}
	tool := executor.Func("forecast", "The weather of tomorrow.", func(ctx context.Context, a Args) (map[string]int, error) {
		return map[string]int{"places": len(a.Places)}, nil
	})
	fmt.Println(strings.ReplaceAll(string(tool.Definition().Schema), `"properties"`, "\n\"properties\""))

	result, err := tool.Call(context.Background(), executor.Call{Input: `{"places": [{"city": "Tokyo"}], "unit": "celsius"}`})
	fmt.Println(result.Content.Text(), err)
	// Output:
	// {"type":"object",
	// "properties":{"places":{"type":"array","items":{"type":"object",
	// "properties":{"city":{"type":"string","description":"the city's name"},"country":{"type":"string"}},"required":["city"],"additionalProperties":false}},"unit":{"type":"string","enum":["celsius","fahrenheit"]},"detail":{"type":"string","enum":["short","long"]}},"required":["places"],"additionalProperties":false}
	// {"places":1} <nil>
}

// A tool that is known at run time only: its definition comes from somewhere else, and one function carries it out.
func ExampleNewTool() {
	def := content.Tool{
		Name: "roll", Description: "Rolls dice.",
		Schema: `{"type":"object","properties":{"dice":{"type":"integer","minimum":1}},"required":["dice"]}`,
	}
	roll := executor.NewTool(def, func(_ context.Context, call executor.Call) (executor.Result, error) {
		var in struct{ Dice int }
		if err := json.Unmarshal([]byte(call.Input), &in); err != nil {
			return executor.Result{}, err
		}
		return executor.ResultOf(strings.Repeat("⚂", in.Dice))
	})

	result, err := roll.Call(context.Background(), executor.Call{Input: `{"dice": 3}`})
	fmt.Println(result.Content.Text(), err)
	_, err = roll.Call(context.Background(), executor.Call{Input: `{"dice": 0}`})
	fmt.Println(err)
	// Output:
	// ⚂⚂⚂ <nil>
	// Validation failed for tool "roll":
	//   - dice: must be at least 1
	//
	// Received arguments:
	// {"dice": 0}
}

// A tool with a timeout of its own. The others are not kept waiting, and the model learns what happened.
func ExampleWithTimeout() {
	stuck := executor.Func("stuck", "Never comes back.", func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	d := dag.New().Tools(executor.WithTimeout(stuck, 10*time.Millisecond), weather).User("Try both.").
		Assistant("", apitest.Use("stuck", content.JSON(`{}`)), in("Paris"))

	d, err := executor.ExecuteTools(context.Background(), d)

	for _, result := range d.Messages()[2].Blocks.ToolResults() {
		fmt.Println(result.IsError, result.Content.Text())
	}
	fmt.Println(err)
	// Output:
	// true Tool exceeded timeout of 10ms.
	// false Paris: 18°C
	// <nil>
}

// A run that is cancelled in the middle of an answer keeps what arrived of it, and can go on from there.
func ExampleRun_cancelled() {
	model := apitest.NewScript(
		apitest.Say("Once upon a time there was a fox.").Usage(content.Usage{Input: 12, Output: 4}),
		apitest.Say("there was a fox."),
	)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	d := dag.New().User("Tell me a story.")
	for event := range executor.Stream(ctx, model, d) {
		switch e := event.(type) {
		case executor.MessageDelta:
			if e.Text() == "time " {
				cancel() // the user pressed a key
			}
		case executor.End:
			d = e.DAG
		}
	}
	for _, n := range d.Nodes() {
		if m, ok := n.Message(); ok && m.Answer.Stop == content.StopCut {
			fmt.Printf("%s: %q, %d tokens or more\n", m.Answer.Stop, m.Blocks.Text(), m.Answer.Usage.Total())
		}
	}

	d, err := executor.Run(context.Background(), model, d)
	fmt.Println(err)
	for _, m := range d.Messages() {
		fmt.Printf("%s: %q\n", m.Role, m.Blocks.Text())
	}
	// Output:
	// cut_off: "Once upon a time ", 16 tokens or more
	// <nil>
	// user: "Tell me a story."
	// assistant: "Once upon a time "
	// assistant: "there was a fox."
}

// Printing what the model writes, as it writes it.
func ExampleMessageDelta_Text() {
	model := apitest.NewScript(apitest.Say("It is 22 degrees.").Think("Easy.", ""))
	d := dag.New().User("And Tokyo?")

	for event := range executor.Stream(context.Background(), model, d) {
		if delta, ok := event.(executor.MessageDelta); ok {
			fmt.Print(delta.Text())
		}
	}
	fmt.Println()
	// Output: It is 22 degrees.
}

// An agent's prompt may be made for each run. It replaces the one of the run before.
func ExampleAgent_instructions() {
	model := apitest.NewScript(apitest.Say("Good morning."), apitest.Say("Good evening."))
	hour := "9:00"
	agent := executor.Agent{
		Provider: model,
		Instructions: func(context.Context, dag.DAG) (string, error) {
			return "You are a concierge. It is " + hour + ".", nil
		},
	}

	d, err := agent.Run(context.Background(), dag.New().User("Hello."))
	if err != nil {
		fmt.Println(err)
		return
	}
	hour = "20:00"
	if _, err = agent.Run(context.Background(), d.User("I am back.")); err != nil {
		fmt.Println(err)
		return
	}
	for _, request := range model.Requests() {
		fmt.Println(request.System)
	}
	// Output:
	// [You are a concierge. It is 9:00.]
	// [You are a concierge. It is 20:00.]
}

// A saved session may declare tools that the program no longer has. They are left out, and the session goes on.
func ExampleRunStart() {
	var file bytes.Buffer
	grep := content.Tool{Name: "grep", Description: "Search files.", Schema: `{"type":"object"}`}
	if err := dag.New().Tools(grep, weather).User("Weather in Tokyo?").Write(&file); err != nil {
		fmt.Println(err)
		return
	}
	d, err := dag.Read(&file)
	if err != nil {
		fmt.Println(err)
		return
	}

	model := apitest.NewScript(apitest.Call(in("Tokyo")), apitest.Say("22°C."))
	agent := executor.Agent{Provider: model, Tools: []dag.Tool{weather}, Log: slog.New(slog.DiscardHandler)}
	for event := range agent.Stream(context.Background(), d) {
		switch e := event.(type) {
		case executor.RunStart:
			fmt.Println("left out:", e.Unbound)
		case executor.End:
			fmt.Println(e.DAG.Text())
		}
	}
	// Output:
	// left out: [grep]
	// 22°C.
}
