package viz

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/viz/internal/viztest"
)

// TestEachNodeHasABoxInOnePictureInsideFoldedBoxes opens every folded box of conversations of many sizes and shapes:
// each picture inside is legible as the outermost one is, counts the failures in it, and few steps lead to each node.
func TestEachNodeHasABoxInOnePictureInsideFoldedBoxes(t *testing.T) {
	viztest.Samples(seedtest.Rounds(200, 2000), func(s viztest.Sample) {
		t.Run(s.Name(), func(t *testing.T) {
			full, folded := layout(t, s.DAG, &Options{Full: true}), layout(t, s.DAG, &Options{})
			nested := layout(t, s.DAG, &Options{Inside: true})
			require.Equal(t, len(folded.Boxes), len(nested.Boxes), "the outermost picture is the folded one")

			o := opener{T: t, full: full, seen: make([]int, len(full.Boxes))}
			require.Equal(t, s.Failed, o.open(nested, 0))
			for number, times := range o.seen {
				require.Equal(t, 1, times, "n%d", number)
			}
			require.LessOrEqual(t, o.deepest, 10)
		})
	})
}

// opener opens folded boxes.
type opener struct {
	*testing.T
	full    *Picture
	seen    []int // by number of a node: how many boxes it has
	deepest int
}

// open checks a picture in so many others, and those inside it. It returns how many nodes in it failed.
func (o *opener) open(p *Picture, depth int) (failed int) {
	o.Helper()
	o.deepest = max(o.deepest, depth)
	require.LessOrEqual(o, len(p.Boxes), legibleBoxes)
	require.LessOrEqual(o, p.Width, legibleWidth)
	requireTidy(o.T, p)

	for _, b := range p.Boxes {
		if b.Results != nil {
			require.Equal(o, o.full.Boxes[b.ResultsNumber].Node.ID(), b.Results.ID())
			o.seen[b.ResultsNumber]++
		}
		if b.Nodes == 1 {
			o.requireNode(b)
			if b.Node.Failed() {
				failed++
			}
			continue
		}

		require.NotNil(o, b.Inside)
		require.Greater(o, len(b.Inside.Boxes), 1, "%q opens to something else", b.Lines)
		inside := o.open(b.Inside, depth+1)
		require.Equal(o, inside > 0, b.Style == styleFailed, "%q has %d failures", b.Lines, inside)
		if inside > 0 && b.Inside.Boxes[0].Number != b.Number {
			require.Contains(o, strings.Join(b.Lines, " "), "failed")
		}
		failed += inside
	}
	return failed
}

// requireNode requires that a box of one node is as in the picture of all nodes.
func (o *opener) requireNode(b Box) {
	o.Helper()
	require.Nil(o, b.Inside)
	alone := o.full.Boxes[b.Number]
	require.Equal(o, alone.Node.ID(), b.Node.ID())
	require.Equal(o, []any{alone.Head, alone.Style, alone.Shape}, []any{b.Head, b.Style, b.Shape})

	owner := none
	if alone.Frame != none {
		owner = o.full.Frames[alone.Frame].Owner
	}
	require.Equal(o, owner, b.Owner)
	o.seen[b.Number]++
}
