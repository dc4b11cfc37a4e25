package viz

import (
	"fmt"
	"slices"
	"testing"

	"github.com/plait-dev/plait/dag"
	"github.com/stretchr/testify/require"
)

func layout(t testing.TB, d dag.DAG, o *LayoutOptions) *Picture {
	t.Helper()
	p, err := Layout(d, o)
	require.NoError(t, err)
	return p
}

// rect is a box or a frame.
type rect struct{ x, y, w, h int }

func (r rect) holds(s rect) bool {
	return r.x < s.x && r.y < s.y && s.x+s.w < r.x+r.w && s.y+s.h < r.y+r.h
}

func (r rect) meets(s rect) bool {
	return r.x < s.x+s.w && s.x < r.x+r.w && r.y < s.y+s.h && s.y < r.y+r.h
}

func boxRect(b Box) rect     { return rect{b.X, b.Y, b.W, b.H} }
func frameRect(f Frame) rect { return rect{f.X, f.Y, f.W, f.H} }

// requireTidy requires that no boxes overlap, that frames hold their own and nothing else, and that edges lead downwards.
func requireTidy(t *testing.T, p *Picture) {
	t.Helper()
	whole := rect{0, 0, p.Width, p.Height}
	around := func(frame int) []int { // the frames around it
		var all []int
		for ; frame >= 0; frame = p.Frames[frame].Outer {
			all = append(all, frame)
		}
		return all
	}
	for i, b := range p.Boxes {
		require.True(t, whole.holds(boxRect(b)), "box %d is not in the picture", i)
		for j := range i {
			if boxRect(b).meets(boxRect(p.Boxes[j])) {
				require.Fail(t, "boxes overlap", "%d %v and %d %v", i, boxRect(b), j, boxRect(p.Boxes[j]))
			}
		}
		in := around(b.Frame)
		for f, frame := range p.Frames {
			if slices.Contains(in, f) {
				require.True(t, frameRect(frame).holds(boxRect(b)), "box %d leaves frame %d", i, f)
			} else if frameRect(frame).meets(boxRect(b)) {
				require.Fail(t, "a frame cuts a box", "frame %d, box %d", f, i)
			}
		}
	}
	for i, f := range p.Frames {
		require.True(t, whole.holds(frameRect(f)), "frame %d is not in the picture", i)
		require.Less(t, f.Outer, i)
		in := around(f.Outer)
		for j := range i {
			if slices.Contains(in, j) {
				require.True(t, frameRect(p.Frames[j]).holds(frameRect(f)), "frame %d leaves frame %d", i, j)
			} else if frameRect(p.Frames[j]).meets(frameRect(f)) {
				require.Fail(t, "frames overlap", "%d and %d", i, j)
			}
		}
	}
	for _, e := range p.Edges {
		a, b := p.Boxes[e.From], p.Boxes[e.To]
		if a.Frame == b.Frame && !e.Dashed {
			require.LessOrEqual(t, a.Y+a.H, b.Y, "edge %d-%d leads up", e.From, e.To)
		}
		require.Equal(t, Point{a.X + a.W/2, a.Y + a.H}, e.Points[0])
		require.Equal(t, Point{b.X + b.W/2, b.Y}, e.Points[len(e.Points)-1])
	}
}

func TestLayoutIsTidy(t *testing.T) {
	seeded(t, 1000, 120, func(t *testing.T, d dag.DAG) {
		requireTidy(t, layout(t, d, nil))
		requireTidy(t, layout(t, d, &LayoutOptions{Fold: true}))
	})
}

func TestLayoutOfAnEmptyConversation(t *testing.T) {
	p := layout(t, dag.New(), nil)
	require.Empty(t, p.Boxes)
	require.Positive(t, p.Width)
	require.Positive(t, p.Height)
}

func TestLayoutOfSamples(t *testing.T) {
	for name, d := range map[string]dag.DAG{"single": sampleSingle(), "parallel": sampleParallel(), "sub-agents": sampleSubAgents()} {
		t.Run(name, func(t *testing.T) { requireTidy(t, layout(t, d, nil)) })
	}
	p := layout(t, sampleSubAgents(), nil)
	require.Len(t, p.Frames, 2)
	require.Equal(t, "sub-agent: Research", p.Frames[0].Title)
	require.Equal(t, 0, p.Frames[1].Outer)
	require.Equal(t, []string{"Research(question: Why DAGs?)", "Because history forks."}, p.Boxes[p.Frames[0].Owner].Lines)
	require.Equal(t, fmt.Sprint("◀ head ", 2), p.Boxes[len(p.Boxes)-1].Lines[2])
}
