package viz

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
)

// sketch is an outline with its labeller, to draw it by any plan.
type sketch struct {
	*outline
	labels labeller
}

func newSketch(t testing.TB, d dag.DAG, o *Options) sketch {
	t.Helper()
	out, l, err := outlineOf(d, o)
	require.NoError(t, err)
	return sketch{out, l}
}

// drawn returns the labeled boxes of a plan.
func (s sketch) drawn(p plan) *plot {
	box := s.fold(p)
	m := s.plot(box)
	m.label(s.labels, lineCells)
	m.setNote(s.labels.note(box, s.fold(plans[0])))
	return m
}
