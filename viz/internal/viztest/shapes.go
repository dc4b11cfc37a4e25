package viztest

import (
	"fmt"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// Shapes build conversations of about n nodes. A tool call fails if fails returns true for it.
var Shapes = map[string]func(n int, fails func() bool) dag.DAG{
	"long": func(n int, fails func() bool) dag.DAG {
		d := start().System("You fix bugs. Run the tests before you say that you are done.").Tools(tool("bash"), tool("read"))
		for made := 2; made < n-4; made += 6 {
			d = phase(d.User("Fix issue "+fmt.Sprint(made)+"."), 2, fails)
			d = d.Assistant("The cause is that the cursor is moved twice. I changed that.")
		}
		return d.Stop(content.StopEndTurn)
	},
	"wide": func(n int, fails func() bool) dag.DAG {
		d := start().User("Read all the files.")
		for made := 0; made < n; made += 62 {
			d = phase(d, min(60, max(n-4, 1)), fails).Assistant("Now the next ones.")
		}
		return d
	},
	"deep": func(n int, fails func() bool) dag.DAG {
		src := start().Source()
		inner := phase(dag.New().WithSource(src).User("Look at the last file."), 1, fails).Assistant("I have.")
		for made := 6; made < n; made += 12 {
			around := dag.New().WithSource(src)
			for range 2 {
				around = phase(around.User("Delegate that."), 1, fails)
			}
			e := node.ToolExecution{Result: content.Words("The sub-agent is done."), Child: node.ListOf(inner.Heads()...), IsError: fails()}
			call := content.ToolUse{ID: "1", Name: "delegate", Input: `{"task":"look"}`}
			inner = around.Assistant("", call).CloseTools(e).Assistant("Done.")
		}
		return inner
	},
	"forked": func(n int, fails func() bool) dag.DAG {
		d := start().User("Try it in different ways.")
		var branches []dag.DAG
		for i := range max(n/6, 2) {
			branches = append(branches, phase(d.User(fmt.Sprint("Way ", i)), 2, fails).Assistant("It works."))

			// The next ten branches fork from the end of this one, not from the beginning.
			if i%10 == 9 {
				d = branches[i]
			}
		}
		return branches[0].Join(branches[1:]...)
	},
	"merged": func(n int, fails func() bool) dag.DAG {
		d := start().User("Try it in three ways.")
		for made := 1; made < n-4; made += 20 {
			var ways []dag.DAG
			for i := range 3 {
				ways = append(ways, phase(d.User(fmt.Sprint("Way ", i)), 2, fails).Assistant("It works."))
			}
			d = ways[0].Join(ways[1:]...).User("Which is best?").Assistant("The second.")
		}
		return d
	},
}

// Sample is a conversation of one of Shapes, with failed calls.
type Sample struct {
	Shape         string
	Nodes, Failed int // the requested size, and the number of failed calls
	DAG           dag.DAG
}

// Name returns a text for the name of a test or of a file.
func (s Sample) Name() string {
	return fmt.Sprintf("%s, %d nodes, %d failed", s.Shape, s.Nodes, s.Failed)
}

// Samples yields each of Shapes in the sizes 10, 60, 200, 2,000 and 20,000 nodes, up to the given number. Each size has
// three samples: without a failed call, with one, and with 200 (or all calls, if there are fewer). The failures are
// spread over the conversation.
func Samples(nodes int, yield func(Sample)) {
	for _, shape := range []string{"long", "wide", "deep", "forked", "merged"} {
		build := Shapes[shape]
		for _, size := range []int{10, 60, 200, 2000, 20_000} {
			if size > nodes {
				continue
			}

			// Build it once without failures, to count its calls.
			calls := 0
			build(size, func() bool { calls++; return false })
			for _, failed := range []int{0, 1, 200} {
				failed = min(failed, calls)
				yield(Sample{shape, size, failed, build(size, failures(failed, calls))})
			}
		}
	}
}

// failures returns a function to ask once for each of calls tool calls. It returns true n times in all, at about equal
// distances.
func failures(n, calls int) func() bool {
	called, failed := 0, 0
	return func() bool {
		called++

		// Divide the calls into n equal sections: the one in the middle of each fails.
		if failed < n && called*n >= (failed+1)*calls-calls/2 {
			failed++
			return true
		}
		return false
	}
}

// phase appends a tool phase of so many calls.
func phase(d dag.DAG, calls int, fails func() bool) dag.DAG {
	var uses []content.Block
	var runs []node.ToolExecution
	for i := range calls {
		tool := []string{"bash", "read"}[i%2]
		input := content.JSON(fmt.Sprintf(`{"path":"src/package%d/file_%d.go"}`, d.Head().Depth(), i))
		uses = append(uses, content.ToolUse{ID: fmt.Sprint(i), Name: tool, Input: input})

		e := node.ToolExecution{Index: i, Result: content.Words("ok, 31 lines")}
		if fails() {
			e.Result, e.IsError = content.Words("exit status 1: undefined: cursor.Advance"), true
		}
		runs = append(runs, e)
	}
	return d.Assistant("", uses...).CloseTools(runs...)
}

// start returns a conversation with reproducible IDs.
func start() dag.DAG {
	return dag.New().WithSource(node.Counting(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
}

func tool(name string) content.Tool {
	return content.Tool{Name: name, Description: name, Schema: `{"type":"object"}`}
}
