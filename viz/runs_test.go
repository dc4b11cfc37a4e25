package viz

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// TestDrawingsLeaveOutTheStartsOfRuns compares the drawings of a conversation with and without the starts of its runs.
func TestDrawingsLeaveOutTheStartsOfRuns(t *testing.T) {
	build := func(start func(dag.DAG) dag.DAG) dag.DAG {
		child := start(dag.New().User("Find it.")).Assistant("Found.").Stop(content.StopEndTurn)
		d := start(dag.New().System("s").User("One.")).Assistant("", content.ToolUse{ID: "0", Name: "f", Input: "{}"}).
			CloseTools(node.ToolExecution{Result: content.Words("ok"), Child: node.ListOf(child.Heads()...)}).
			Assistant("1").Stop(content.StopEndTurn)
		d = start(start(d.User("Two."))).Assistant("2").Stop(content.StopEndTurn).SubGraph("again", child)
		return start(d.User("Three.")).Assistant("3").WithRef("here").Join(start(d.User("Four.")).Assistant("4"))
	}
	without := build(func(d dag.DAG) dag.DAG { return d })
	with := build(func(d dag.DAG) dag.DAG { return d.Append(node.RunStart{Agent: "support", Run: "r"}) })
	require.NoError(t, with.Err())

	for name, draw := range map[string]func(io.Writer, dag.DAG) error{
		"Mermaid": func(w io.Writer, d dag.DAG) error { return Mermaid(w, d, nil) },
		"full":    func(w io.Writer, d dag.DAG) error { return Mermaid(w, d, &Options{Full: true}) },
		"DOT":     func(w io.Writer, d dag.DAG) error { return DOT(w, d, nil) },
		"SVG":     func(w io.Writer, d dag.DAG) error { return SVG(w, d, nil) },
	} {
		var a, b bytes.Buffer
		require.NoError(t, draw(&a, without))
		require.NoError(t, draw(&b, with))
		require.Equal(t, a.String(), b.String(), name)
	}

	// The page asks for all of them.
	p, err := Layout(with, &Options{Runs: true})
	require.NoError(t, err)
	runs := 0
	for _, b := range p.Boxes {
		if b.Lines[0] == "run by support" {
			runs++
		}
	}
	require.Equal(t, 6, runs)
}

func TestDrawingsShowAStartThatMatters(t *testing.T) {
	boxes := func(d dag.DAG, o *Options) int {
		var b strings.Builder
		require.NoError(t, Mermaid(&b, d, o))
		return strings.Count(b.String(), "run by")
	}

	first := dag.New().User("One.").Append(node.RunStart{Agent: "a"})
	require.Equal(t, 1, boxes(first, nil), "a head has a box")
	require.Equal(t, 1, boxes(first.WithRef("here").Assistant("1"), nil), "so has a ref")
	first = first.Assistant("1")
	require.Zero(t, boxes(first, nil))
	handed := first.User("Two.").Append(node.RunStart{Agent: "b"}).Assistant("2")
	require.Equal(t, 1, boxes(handed, nil), "and a start by another agent")
}
