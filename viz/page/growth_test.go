package page_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz/page"
)

// TestGrowthOfPages checks pages of what is rare in a conversation, and what a hostile file may have much of.
func TestGrowthOfPages(t *testing.T) {
	users := func(n int) dag.DAG {
		d := dag.New()
		for range n {
			d = d.User("More.")
		}
		return d
	}
	stops := func(n int) dag.DAG {
		d := dag.New().User("Hi.")
		for range n {
			d = d.Append(node.StopReason{Reason: content.StopError, Detail: "overloaded"})
		}
		return d
	}

	forkedHelpers := func(n int) dag.DAG {
		helper, d := users(n), dag.New()
		for range n {
			d = d.SubGraph("helper", helper.Assistant("answer"))
		}
		return d
	}
	continuedHelpers := func(n int) dag.DAG {
		helper, d := dag.New(), dag.New()
		for range n {
			helper = helper.User("on").Assistant("answer")
			d = d.SubGraph("helper", helper)
		}
		return d
	}

	var cases []growthtest.Case
	for name, build := range map[string]func(n int) dag.DAG{
		"messages without a response": users, "failures without a response": stops,
		"forked helpers": forkedHelpers, "continued helpers": continuedHelpers,
	} {
		cases = append(cases, growthtest.Case{Name: name, Growth: growthtest.Linear, Small: 200, Large: 2000, Setup: func(t testing.TB, n int) func() {
			d := build(n)
			request := func(dag.DAG, *node.Node) ([]byte, error) { return []byte("{}"), nil }
			return func() { require.NoError(t, page.Write(io.Discard, d, &page.Options{Request: request})) }
		}})
	}
	growthtest.Run(t, cases)
}
