package live_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/report"
	"github.com/plait-dev/plait/viz/page/live"
)

// The conversations of the tasks: see tasks_check_test.go.

var taskPrices = api.Prices{"claude-sonnet-4-5": {Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}}

// workday writes the conversation of a coding agent, with times and with tokens as a provider with a prompt cache
// counts them.
type workday struct {
	dag.DAG
	now    time.Time
	calls  int
	size   int   // characters that the next request has
	cached int64 // tokens that it can read from the cache
}

func newWorkday() *workday {
	w := &workday{now: time.Date(2026, 3, 2, 8, 30, 0, 0, time.UTC)}
	w.DAG = dag.New().WithSource(node.Source{NewID: node.Counting(w.now).NewID, Now: func() time.Time {
		w.now = w.now.Add(5 * time.Millisecond)
		return w.now
	}})
	return w
}

// system sets the system prompt. Nothing that was cached can be read after it.
func (w *workday) system(text string) {
	w.DAG = w.SetSystem("rules", text)
	w.size += len(text)
	w.cached = 0
}

func (w *workday) user(text string) {
	w.DAG = w.User(text)
	w.size += len(text)
}

// answer appends a response. It read from the cache what the request before it had, and wrote the rest to it.
func (w *workday) answer(text string, output int64, calls ...content.ToolUse) {
	blocks, stop := content.Words(text).Slice(), content.StopEndTurn
	for _, c := range calls {
		w.calls++
		c.ID = fmt.Sprintf("toolu_%04d", w.calls)
		blocks, stop = append(blocks, c), content.StopToolUse
	}
	list, err := content.Of(blocks...)
	if err != nil {
		panic(err)
	}

	whole, took := int64(w.size/4), 900*time.Millisecond+time.Duration(output)*9*time.Millisecond
	w.now = w.now.Add(took)
	w.DAG = w.Append(node.Message{Role: content.Assistant, Blocks: list, Answer: node.Answer{
		API: "anthropic", Model: "claude-sonnet-4-5", Stop: stop, Latency: took,
		Usage: content.Usage{Input: 12, Output: output, CacheRead: w.cached, CacheWrite: whole - w.cached},
	}})
	w.cached = whole
	w.size += len(list.Append(nil))
}

// execution is what became of a call.
type execution struct {
	seconds float64
	result  string
	failed  bool
}

// closes executes the calls of the last response, one after another.
func (w *workday) closes(executions ...execution) {
	var list []node.ToolExecution
	calls := w.OpenCalls()
	for i, e := range executions {
		began := w.now
		w.now = w.now.Add(time.Duration(e.seconds * float64(time.Second)))
		list = append(list, node.ToolExecution{Index: calls[i].Index, Result: content.Words(e.result), IsError: e.failed, Started: began, Ended: w.now})
		w.size += len(e.result) + 60
	}
	w.DAG = w.CloseTools(list...)
	if w.Err() != nil {
		panic(w.Err())
	}
}

const taskRules = "You are a coding agent. Move the packages of this repository from the old storage API to the new one, one package at a time. " +
	"Read before you write. Run the tests of a package after each change. "

// longDay returns 2,000 nodes of moving packages to another API. In it, tests fail three times, the system prompt
// changes once in the middle, three responses are dear, and in the end two branches differ in one decision.
func longDay() dag.DAG {
	w := newWorkday()
	w.system("Date: Monday, 2 March 2026.\n" + strings.Repeat(taskRules, 12))
	w.DAG = w.Tools(tool("read_file", "Reads a file."), tool("search", "Searches the repository."), tool("edit", "Replaces text in a file."), tool("run_tests", "Runs the tests of a package."))

	failures := map[int]string{
		131: "--- FAIL: TestReopen (0.42s)\n    reopen_test.go:57: after reopening: got 41 keys, want 42\nFAIL",
		242: "--- FAIL: TestConcurrentWrites (2.10s)\n    write_test.go:112: context deadline exceeded\nFAIL",
		365: "panic: close of closed channel\n    flush.go:88\nFAIL",
	}
	for i := 0; w.Len() < 1988; i++ {
		pkg := fmt.Sprintf("storage/part%02d", i/10)
		w.turn(i, pkg, failures[i])
	}

	asked := w.DAG
	w.decides("Keep the old API as a thin wrapper?", "Yes: I keep the old API as a wrapper of 40 lines, marked as deprecated. Callers outside this repository still build.", "ok  example.org/storage  4.810s")
	kept := w.WithRef("wrapper")
	w.DAG = asked
	w.decides("Keep the old API as a thin wrapper?", "No: I remove the old API. Callers outside this repository have to change 3 lines, which CHANGELOG.md names.", "ok  example.org/storage  4.127s")
	return kept.Join(w.WithRef("removed"))
}

// turn is what the agent does in one turn: it reads, edits or runs tests.
func (w *workday) turn(i int, pkg, failure string) {
	if i%40 == 0 {
		w.user(fmt.Sprintf("Go on with the packages %02d to %02d.", i/10, i/10+3))
	}
	if i == 300 { // a new day: the date is in the system prompt, before everything else
		w.now = w.now.Add(2 * time.Minute)
		w.system("Date: Tuesday, 3 March 2026.\n" + strings.Repeat(taskRules, 12))
	}

	output := int64(90 + i*37%180)
	switch i {
	case 88:
		output = 21_400
	case 411:
		output = 30_200
	}
	switch {
	case failure != "", i%10 == 9:
		result := execution{18 + float64(i*7%23), "ok  example.org/" + pkg + "  7.912s", false}
		if failure != "" {
			result.result, result.failed = failure, true
		}
		w.answer("I run the tests of "+pkg+".", output, content.ToolUse{Name: "run_tests", Input: content.JSON(`{"package":"./` + pkg + `"}`)})
		w.closes(result)
	case i%10 < 4:
		file := fmt.Sprintf("%s/file%d.go", pkg, i%10)
		w.answer("I read "+file+".", output, content.ToolUse{Name: "read_file", Input: content.JSON(`{"path":"` + file + `"}`)})
		w.closes(execution{0.012, "package part\n\nfunc Open(path string) (*Store, error) {\n\treturn open(path, nil)\n}\n" + strings.Repeat("// …\n", i%7), false})
	case i%10 < 6:
		w.answer("Who calls it?", output, content.ToolUse{Name: "search", Input: content.JSON(`{"query":"Open(","path":"` + pkg + `"}`)})
		w.closes(execution{0.4 + float64(i%5)/10, pkg + "/file1.go:12: s, err := Open(path)", false})
	default:
		file := fmt.Sprintf("%s/file%d.go", pkg, i%10-5)
		w.answer("I change "+file+".", output, content.ToolUse{Name: "edit", Input: content.JSON(`{"path":"` + file + `","old":"Open(path)","new":"Open(ctx, path)"}`)})
		w.closes(execution{0.02, "1 replacement", false})
	}
}

// decides ends the day with a decision, and the tests after it.
func (w *workday) decides(question, decision, result string) {
	w.user(question)
	w.answer(decision, 120, content.ToolUse{Name: "run_tests", Input: `{"package":"./..."}`})
	w.closes(execution{31, result, false})
	w.answer("The tests pass.", 20)
	w.DAG = w.Stop(content.StopEndTurn)
}

func tool(name, description string) content.Tool {
	return content.Tool{Name: name, Description: description, Schema: `{"type":"object"}`}
}

// taskRequest is the request that a conversation makes.
func taskRequest(d dag.DAG, _ *node.Node) ([]byte, error) {
	type message struct {
		Role    content.Role    `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	t := d.Transcript()
	messages := []message{}
	for _, m := range t.Messages {
		messages = append(messages, message{m.Role, m.Blocks.Append(nil)})
	}
	return json.Marshal(map[string]any{"model": "claude-sonnet-4-5", "max_tokens": 32000, "system": strings.Join(t.System, "\n"), "messages": messages, "stream": true})
}

// nightlyRuns returns 200 runs of one task. 22 of them failed because a server was not reached, and one because a
// booking was refused.
func nightlyRuns() []report.Row {
	var rows []report.Row
	for i := range 200 {
		w := newWorkday()
		w.now = w.now.Add(time.Duration(i) * time.Minute)
		w.DAG = w.WithMetadata("variant", []string{"short", "long"}[i%2])
		w.system("You check invoices.")
		w.user(fmt.Sprintf("Check invoice %d.", 4100+i))
		w.answer("I read it.", 60, content.ToolUse{Name: "read_invoice", Input: content.JSON(fmt.Sprintf(`{"number":%d}`, 4100+i))})
		w.closes(execution{0.2, "3 positions, 412.50 EUR", false})
		w.answer("I look up the customer.", 70, content.ToolUse{Name: "find_customer", Input: `{"name":"Acme"}`})

		switch {
		case i == 137:
			w.closes(execution{0.3, "customer 88", false})
			w.answer("I book it.", 50, content.ToolUse{Name: "book", Input: `{"customer":88,"amount":4125.0}`})
			w.closes(execution{0.1, "the amount does not match the invoice: 4125.00 is not 412.50", true})
			w.DAG = w.Stop(content.StopError)
		case i%9 == 4:
			w.closes(execution{5, fmt.Sprintf("connection refused: 10.0.0.%d:5432", 1+i%4), true})
			w.DAG = w.Stop(content.StopError)
		default:
			w.closes(execution{0.3, "customer 88", false})
			w.answer("I book it.", 50, content.ToolUse{Name: "book", Input: `{"customer":88,"amount":412.5}`})
			w.closes(execution{0.1, "booked", false})
			w.answer("The invoice is booked.", 20)
			w.DAG = w.Stop(content.StopEndTurn)
		}
		rows = append(rows, report.Of(fmt.Sprintf("runs/%03d.json", i), w.DAG, &report.Options{Prices: taskPrices}))
	}
	return rows
}

const deployed = "Version 2.4.0 is deployed."

func deployment() dag.DAG {
	return dag.New().System("You deploy what was released.").User("Bring version 2.4.0 into production.")
}

// deployer is an agent whose only tool needs approval. It is called that many times at once.
func deployer(calls int) executor.Agent {
	type target struct {
		Version string `json:"version"`
		Place   string `json:"place"`
	}
	deploy := executor.Func("deploy", "Deploys a version.", func(_ context.Context, in target) (string, error) {
		return in.Version + " runs in " + in.Place, nil
	})
	var uses []content.ToolUse
	for _, place := range []string{"production", "Paris", "Rome"}[:calls] {
		uses = append(uses, apitest.Use("deploy", target{"2.4.0", place}))
	}
	return executor.Agent{
		Provider: apitest.NewScript(
			apitest.Call(uses...),
			apitest.Say(deployed)),
		Tools: []dag.Tool{deploy},
		Hooks: []executor.Hook{executor.RequireApproval("deploy")},
	}
}

// longRun returns 20,001 nodes of a run that has not failed.
func longRun() dag.DAG {
	w := newWorkday()
	w.system(taskRules)
	w.DAG = w.Tools(tool("read_file", "Reads a file."), tool("deploy", "Deploys a version."))
	for i := 0; w.Len() < 20_000; i++ {
		if i%50 == 0 {
			w.user("Go on.")
		}
		file := fmt.Sprintf("storage/file%d.go", i)
		w.answer("I read "+file+".", 80, content.ToolUse{Name: "read_file", Input: content.JSON(`{"path":"` + file + `"}`)})
		w.closes(execution{0.1, "package storage", false})
	}
	return w.DAG
}

// failsAtTheEnd continues d with a call that fails.
func failsAtTheEnd(d dag.DAG) dag.DAG {
	w := newWorkday()
	w.now, w.DAG = d.Head().Time(), d
	w.answer("I deploy it.", 60, content.ToolUse{Name: "deploy", Input: `{"version":"2.4.1"}`})
	w.closes(execution{4, "copying\nerror: no space left on device: /var/lib/app", true})
	w.answer("The disk is full.", 20)
	return w.DAG
}

// arabic is a conversation in Arabic, with numbers.
func arabic() dag.DAG {
	return newWorkday().User("أخبرني عن مدينة لبنانية.").Assistant("مدينة بيروت على البحر المتوسط. عدد سكانها 2,400,000.").
		User("وما هي أقدم مدينة؟").Assistant("جبيل من أقدم مدن العالم.")
}

// failures returns 500 nodes with five calls that failed, each for another reason.
func failures() dag.DAG {
	reasons := map[int]string{
		20: "exit status 1\nerror: no such file: storage/a.go", 51: "=== RUN TestFlush\n--- FAIL: TestFlush (0.31s)\nFAIL",
		88: "context deadline exceeded", 120: "# storage\nundefined: Reopen", 160: "permission denied: /etc/app.conf",
	}
	w := newWorkday()
	w.system(taskRules)
	w.DAG = w.Tools(tool("run_tests", "Runs the tests of a part."))
	w.user("Test all parts.")
	for i := 0; w.Len() < 497; i++ {
		w.answer(fmt.Sprintf("I test part %d.", i), 60, content.ToolUse{Name: "run_tests", Input: content.JSON(fmt.Sprintf(`{"part":%d}`, i))})
		result := execution{3, "ok", false}
		if reasons[i] != "" {
			result = execution{3, reasons[i], true}
		}
		w.closes(result)
	}
	w.answer("Five parts failed.", 20)
	return w.DAG
}

// tickets lists a thousand conversations.
func tickets() []live.Entry {
	list := make([]live.Entry, 1000)
	for i := range list {
		list[i] = live.Entry{Key: fmt.Sprintf("tickets/%04d", i), State: []string{"done", "running", "done", "done"}[i%4], Changed: time.Now().Add(-time.Duration(i) * time.Minute)}
		if i == 173 || i == 512 || i == 988 {
			list[i].State, list[i].Detail = "parked", "failed 5 times: the customer's record is locked"
		}
	}
	return list
}
