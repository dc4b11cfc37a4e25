package viz_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
)

// growingShapes are conversations of about n nodes.
var growingShapes = []struct {
	name  string
	build func(n int) dag.DAG
}{
	{"chain", growingChain}, {"fan", growingFan}, {"comb", growingComb}, {"ladder", growingLadder}, {"many refs", growingRefs},
	{"many sub-agents", growingAgents}, {"nested", growingNested},
}

// TestGrowth checks how the cost of each drawing grows with the conversation.
//
// A conversation of up to 80 boxes is drawn in one attempt. Of a larger one several plans are tried, each of which is
// linear: that is a step, not growth, so that sizes on both sides of it cannot be compared. Drawings without folding
// and folded ones are cases of their own.
func TestGrowth(t *testing.T) {
	full := viz.Options{Full: true}
	var cases []growthtest.Case

	for _, shape := range growingShapes {
		for _, draw := range []struct {
			name         string
			small, large int
			fixed        bool
			do           func(d dag.DAG) error
		}{
			// Mermaid takes 500 edges; the most that any of the shapes has is two for each node.
			{"Mermaid, in full", 24, 240, true, func(d dag.DAG) error { return viz.Mermaid(io.Discard, d, &viz.Options{Full: true}) }},
			{"Mermaid, folded", 200, 2000, false, func(d dag.DAG) error { return viz.Mermaid(io.Discard, d, nil) }},
			{"DOT", 0, 0, false, func(d dag.DAG) error { return viz.DOT(io.Discard, d, &full) }},
			{"Layout", 0, 0, false, func(d dag.DAG) error {
				_, err := viz.Layout(d, &full)
				return err
			}},
			{"Layout, folded", 200, 2000, false, func(d dag.DAG) error {
				_, err := viz.Layout(d, nil)
				return err
			}},
			{"Layout, inside", 500, 4000, false, func(d dag.DAG) error {
				_, err := viz.Layout(d, &viz.Options{Inside: true})
				return err
			}},
			{"SVG", 0, 0, false, func(d dag.DAG) error { return viz.SVG(io.Discard, d, &full) }},
		} {
			cases = append(cases, growthtest.Case{
				Name: draw.name + "/" + shape.name, Growth: growthtest.Linear, Small: draw.small, Large: draw.large, Fixed: draw.fixed,
				Setup: func(t testing.TB, n int) func() {
					d := shape.build(n)
					return func() { require.NoError(t, draw.do(d)) }
				},
			})
		}
	}

	growthtest.Run(t, cases)
}

func growingChain(n int) dag.DAG {
	d := dag.New()
	for i := 0; i < n; i += 2 {
		d = d.User(fmt.Sprint("question ", i)).Assistant("answer")
	}
	return d
}

func growingFan(n int) dag.DAG {
	uses, results := make([]content.Block, n), make([]node.ToolExecution, n)
	for i := range n {
		uses[i] = content.ToolUse{ID: fmt.Sprint("call_", i), Name: "f", Input: "{}"}
		results[i] = node.ToolExecution{Index: i, Result: content.Words("18 °C")}
	}
	return dag.New().User("All.").Assistant("", uses...).CloseTools(results...)
}

func growingComb(n int) dag.DAG {
	spine, heads := dag.New().User("Start"), []*node.Node(nil)
	for i := 0; i < n; i += 2 {
		heads = append(heads, spine.Assistant("tooth").Head())
		spine = spine.User("on")
	}
	return spine.WithHeads(append(heads, spine.Head())...)
}

func growingLadder(n int) dag.DAG {
	d := dag.New().User("Start")
	for i := 0; i < n; i += 3 {
		d = d.Assistant("left").Join(d.Assistant("right")).User("both")
	}
	return d
}

func growingRefs(n int) dag.DAG {
	d := dag.New().User("Start")
	for i := range n {
		d = d.Assistant("answer").WithRef(fmt.Sprint("ref ", i))
	}
	return d
}

// growingAgents is conversations of sub-agents one after the other.
func growingAgents(n int) dag.DAG {
	d := dag.New().User("Start")
	for i := 0; i < n; i += 3 {
		d = d.SubGraph("agent", dag.New().User("Task").Assistant("Done"))
	}
	return d
}

// growingNested is sub-graphs in sub-graphs.
func growingNested(n int) dag.DAG {
	d := dag.New().User("Innermost")
	for range n {
		d = dag.New().SubGraph("outer", d)
	}
	return d
}
