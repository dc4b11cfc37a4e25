package page

import (
	"fmt"
	"strings"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// release is a conversation that has one of everything: a team prepares a release with an agent. Tools run side by side and fail, one
// call is changed by a hook, a sub-agent asks a sub-agent, the plan is tried in two ways, and one of them runs out of tokens.
func release() dag.DAG {
	b := newBook()
	d := b.begin().System("You are the release engineer of a small team. Work step by step. Run what you can side by side, and say what you are not sure of.").
		Tools(def("run_tests", "Runs the tests of one package."), def("read_file", "Reads a file."), def("search_issues", "Searches the tracker."), def("review", "Asks a reviewer who reads the change in full."))
	d = d.User("We want to release 2.4 today. Are we ready? Look at the tests, at the changelog and at the open issues.")
	d = b.answer(d, "I look at the three of them at once.", content.StopToolUse, [4]int64{1840, 212, 0, 1600},
		use("run_tests", `{"package":"./store","race":true,"timeout_s":120}`),
		use("read_file", `{"path":"CHANGELOG.md"}`),
		use("search_issues", `{"query":"milestone:2.4 is:open","limit":20}`))
	d = d.CloseTools(
		b.failed(2, 8.4, "--- FAIL: TestCompaction (0.31s)\n    compact_test.go:88: after a crash: got 3 segments, want 2\nFAIL\texample.org/store\t7.912s"),
		b.ran(3, 0.004, "## 2.4\n\n- Compaction keeps the newest segment.\n- `store.Open` takes a context."),
		b.ran(4, 0.61, `[{"number":412,"title":"Compaction loses a segment after a crash","labels":["bug"]}]`))
	d = b.answer(d, "One test fails: TestCompaction finds three segments after a crash. Issue 412 says the same. I ask the reviewer for the cause before anything is released.", content.StopToolUse, [4]int64{410, 388, 1600, 420},
		use("review", `{"question":"Why does compaction keep a third segment after a crash?","paths":["store/compact.go"]}`))
	began := b.now
	reviewer := b.reviewer()
	b.now = began
	review := b.ran(1, 21.7, "The rename is not followed by a sync of the folder, so that after a crash the old segment is still listed.")
	review.Child = node.ListOf(reviewer.Heads()...)
	review.Usage = content.Usage{Input: 5210, Output: 890}
	d = d.CloseTools(review)
	d = b.answer(d, "The cause is known: after `os.Rename` the folder is not synced. Two ways lie open:\n\n1. sync the folder after the rename, three lines, and release today;\n2. move compaction behind a flag, and release the fix in 2.5.\n\nWhich one?", content.StopEndTurn, [4]int64{96, 241, 2020, 0})
	asked := d
	fix := b.fixed(asked)
	b.now = b.now.Add(3 * time.Hour) // the second way was tried in the afternoon
	flag := b.flagged(asked)
	return fix.WithRef("fix").Join(flag.WithRef("flag")).WithMetadata("team", "storage")
}

func (b *book) fixed(d dag.DAG) dag.DAG {
	b.now = b.now.Add(4 * time.Minute) // the team thinks about it
	d = d.User("Take the first way, and run the tests again.")
	d = b.answer(d, "I run them again with the fix.", content.StopToolUse, [4]int64{130, 96, 2020, 240},
		use("run_tests", `{"package":"./store","race":true,"timeout_s":600}`))
	again := b.ran(1, 9.1, "ok  \texample.org/store\t9.004s")
	again.Ran = node.Ran{Input: `{"package":"./store","race":true,"timeout_s":120}`}
	again.Details = `{"hook":"timeouts are cut to 120 s","exit_code":0}`
	d = d.CloseTools(again)
	d = b.answer(d, "The tests pass, and 412 can be closed with the release. Ready: tag 2.4 after the changelog names the fix.", content.StopEndTurn, [4]int64{88, 164, 2260, 0})
	return d.Append(node.StopReason{Reason: content.StopEndTurn, Turns: 5, ToolCalls: 5, Usage: content.Usage{Input: 2564, Output: 1101, CacheRead: 7900, CacheWrite: 2260}, Elapsed: 52 * time.Second, Cost: 0.0412})
}

func (b *book) flagged(d dag.DAG) dag.DAG {
	d = d.User("Take the second way, and run the tests again.")
	d = b.answer(d, "I put it behind a flag. The change touches", content.StopMaxTokens, [4]int64{131, 1024, 2020, 240})
	return d.Append(node.StopReason{Reason: content.StopMaxTurns, Detail: "the limit of 5 turns was reached", Turns: 5, Elapsed: 44 * time.Second})
}

// reviewer is a sub-agent, which asks another.
func (b *book) reviewer() dag.DAG {
	d := b.begin().System("You review changes. Read everything, then name the cause.").Tools(def("read_file", "Reads a file."), def("history", "Asks who wrote a line, when and why."))
	d = d.User("Why does compaction keep a third segment after a crash?")
	d = b.answer(d, "", content.StopToolUse, [4]int64{2600, 140, 0, 0}, use("read_file", `{"path":"store/compact.go"}`), use("history", `{"path":"store/compact.go","line":88}`))
	began := b.now
	history := b.begin().User("When was the rename in store/compact.go written?")
	history = b.answer(history, "In March, in a change that promised durability and has no test for a crash.", content.StopEndTurn, [4]int64{220, 60, 0, 0})
	b.now = began
	asked := b.ran(2, 6.2, "In March, in a change that promised durability.")
	asked.Child = node.ListOf(history.Heads()...)
	d = d.CloseTools(b.ran(1, 0.003, "func (s *Store) compact() error {\n\t…\n\treturn os.Rename(tmp, s.path)\n}"), asked)
	return b.answer(d, "The rename is not followed by a sync of the folder.", content.StopEndTurn, [4]int64{2390, 690, 0, 0}).Stop(content.StopEndTurn)
}

// book keeps the time of a made-up run.
type book struct {
	source node.Source
	now    time.Time
	end    time.Time // of the tool calls that run
	calls  int
}

func newBook() *book {
	at := time.Date(2026, 3, 2, 9, 30, 0, 0, time.UTC)
	b := &book{now: at}
	b.source = node.Source{Now: b.clock, NewID: node.Counting(at).NewID}
	return b
}

// clock is the time at which the next node is made: after all tool calls, and a moment after the node before it.
func (b *book) clock() time.Time {
	if b.end.After(b.now) {
		b.now = b.end
	}
	b.now = b.now.Add(5 * time.Millisecond)
	return b.now
}

func (b *book) begin() dag.DAG { return dag.New().WithSource(b.source) }

func (b *book) answer(d dag.DAG, text string, stop content.Stop, usage [4]int64, calls ...content.ToolUse) dag.DAG {
	blocks := content.Words(text).Slice()
	if len(calls) > 1 {
		blocks = append([]content.Block{content.Thinking{Text: "These do not depend on one another, so they can run side by side.", Signature: "c2ln"}}, blocks...)
	}
	for _, c := range calls {
		b.calls++
		c.ID = fmt.Sprintf("toolu_%02d", b.calls)
		blocks = append(blocks, c)
	}
	list, err := content.Of(blocks...)
	if err != nil {
		panic(err)
	}
	latency := time.Duration(900+11*len(text)) * time.Millisecond
	b.now = b.now.Add(latency)
	return d.Append(node.Message{Role: content.Assistant, Blocks: list, Answer: node.Answer{
		API: "anthropic", Model: "claude-sonnet-4-5", Stop: stop, Latency: latency,
		Usage: content.Usage{Input: usage[0], Output: usage[1], CacheRead: usage[2], CacheWrite: usage[3]},
	}})
}

func use(name, input string) content.ToolUse {
	return content.ToolUse{Name: name, Input: content.JSON(input)}
}

func (b *book) ran(i int, seconds float64, result string) node.ToolExecution {
	started := b.now.Add(20 * time.Millisecond)
	ended := started.Add(time.Duration(seconds * float64(time.Second)))
	if ended.After(b.end) {
		b.end = ended
	}
	return node.ToolExecution{Index: i, Result: content.Words(result), Started: started, Ended: ended}
}

func (b *book) failed(i int, seconds float64, result string) node.ToolExecution {
	e := b.ran(i, seconds, result)
	e.IsError = true
	return e
}

func def(name, description string) content.Tool {
	return content.Tool{Name: name, Description: description, Schema: `{"type":"object"}`}
}

// request stands in for what a provider would be sent.
func request(d dag.DAG, _ *node.Node) ([]byte, error) {
	t := d.Transcript()
	var b strings.Builder
	fmt.Fprintf(&b, `{"model":"claude-sonnet-4-5","max_tokens":4096,"system":%q,"messages":[`, strings.Join(t.System, "\n"))
	for i, m := range t.Messages {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"role":%q,"content":%s}`, m.Role, m.Blocks.Append(nil))
	}
	b.WriteString(`],"stream":true}`)
	return []byte(b.String()), nil
}
