package viz

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/plait-dev/plait/internal/testkit/goldentest"
)

// The golden files hold whole drawings, so that a change of any word, line or place is seen. Look at the difference before -update.

func TestDrawingsOfEveryKindAreAsWrittenDown(t *testing.T) {
	d := sampleEveryKind()
	goldentest.Require(t, "every_kind.mmd", draw(t, d, &Options{Full: true}))
	goldentest.Require(t, "every_kind.dot", dotOf(t, d, &Options{Full: true}))
	goldentest.Require(t, "every_kind.svg", svg(t, d, &Options{Title: "Every kind", Full: true}))
	goldentest.Require(t, "every_kind_short.mmd", draw(t, d, &Options{LabelLines: 1, LabelChars: 8, Full: true}))
}

func TestFoldedDrawingsAreAsWrittenDown(t *testing.T) {
	s := newSketch(t, sampleWide(), &Options{})
	for _, i := range []int{10, len(plans) - 1} {
		goldentest.Require(t, fmt.Sprintf("folded_%d.mmd", i), s.drawn(plans[i]).mermaid(false))
	}
	goldentest.Require(t, "folded.svg", svg(t, sampleWide(), &Options{}))
}

// TestRandomGraphsAreFoldedAndLaidOutAsWrittenDown writes down which nodes each plan puts into one box, and where a picture has its boxes.
func TestRandomGraphsAreFoldedAndLaidOutAsWrittenDown(t *testing.T) {
	var folds, places strings.Builder
	for seed := range uint64(16) {
		d := randomGraph(rand.New(rand.NewPCG(seed, 7)), 4+2*int(seed), 2)
		s := newSketch(t, d, &Options{})
		fmt.Fprintf(&folds, "seed %d, %d nodes\n", seed, len(s.vertices))
		var before [][]int
		for i, p := range plans {
			if got := members(s.fold(p)); !slices.EqualFunc(before, got, slices.Equal) {
				before = got
				fmt.Fprintf(&folds, "  plan %d:", i)
				for _, in := range got {
					if len(in) > 1 {
						fmt.Fprint(&folds, " ", in)
					}
				}
				folds.WriteString("\n")
			}
		}

		p := layout(t, d, &Options{Full: seed%4 != 3})
		fmt.Fprintf(&places, "seed %d: %dx%d\n", seed, p.Width, p.Height)
		for _, b := range p.Boxes {
			fmt.Fprintf(&places, "  n%d at %d,%d %dx%d nodes %d head %d frame %d\n", b.Number, b.X, b.Y, b.W, b.H, b.Nodes, b.Head, b.Frame)
		}
		for _, e := range p.Edges {
			fmt.Fprintf(&places, "  %d-%d %v\n", e.From, e.To, e.Points)
		}
		for i, f := range p.Frames {
			fmt.Fprintf(&places, "  f%d of %d in %d at %d,%d %dx%d\n", i, f.Owner, f.Outer, f.X, f.Y, f.W, f.H)
		}
	}
	goldentest.Require(t, "folds.txt", folds.String())
	goldentest.Require(t, "layouts.txt", places.String())
}
