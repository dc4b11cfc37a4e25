package promptcache_test

import (
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/report/promptcache"
)

// TestGrowth holds that a request is not compared from its beginning if it only adds to another.
func TestGrowth(t *testing.T) {
	thinks, err := content.Of(content.Thinking{Text: "Hm.", Signature: "s"}, content.Text{Text: "Yes."})
	if err != nil {
		t.Fatal(err)
	}

	line := func(n int) dag.DAG {
		d, _ := asked(claude)
		for i := range n {
			d = d.User("And now?").Append(response(claude, int64(5000+10*i), int64(4990+10*i)))
		}
		return d
	}
	shapes := map[string]func(n int) dag.DAG{
		"a line": line,
		"tool calls": func(n int) dag.DAG {
			d, _ := asked(claude)
			call, _ := content.Of(content.ToolUse{ID: "c", Name: "open", Input: "{}"})
			for range n {
				m := response(claude, 0, 0)
				m.Answer.Stop, m.Blocks = content.StopToolUse, call
				d = d.Append(m).CloseTools(node.ToolExecution{Result: content.Words("a page")})
			}
			return d
		},
		"thinking": func(n int) dag.DAG {
			d, _ := start()
			for range n {
				d = d.User("Think.")
				m := response(claude, 5000, 0)
				m.Blocks, m.Answer.Seen = thinks, d.Seen()
				d = d.Append(m)
			}
			return d
		},
		"two models in turn": func(n int) dag.DAG {
			d, _ := asked(claude)
			for range n {
				d = d.User("One?").Append(response(claude, 5000, 0)).User("Other?").Append(response(gpt, 5000, 0))
			}
			return d
		},
		"branches from one node": func(n int) dag.DAG {
			d, _ := asked(claude)
			heads := make([]*node.Node, n)
			for i := range heads {
				heads[i] = d.User("And now?").Append(response(claude, 5010, 0)).Head()
			}
			return d.WithHeads(heads...)
		},
	}

	var cases []growthtest.Case
	for name, build := range shapes {
		cases = append(cases, growthtest.Case{Name: name, Growth: growthtest.Linear, Setup: func(t testing.TB, n int) func() {
			d := build(n)
			if err := d.Err(); err != nil {
				t.Fatal(err)
			}
			return func() { promptcache.Calls(d, nil) }
		}})
	}
	growthtest.Run(t, cases)
}
