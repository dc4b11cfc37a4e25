package viz_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/viz"
)

// TestZeroOptionsDrawAsNil also draws the zero conversation.
func TestZeroOptionsDrawAsNil(t *testing.T) {
	drawn := func(draw func(w io.Writer) error) string {
		var text strings.Builder
		require.NoError(t, draw(&text))
		require.NotEmpty(t, text.String())
		return text.String()
	}
	for _, d := range []dag.DAG{{}, dag.New().User("Hello.").Assistant("Hi.")} {
		require.Equal(t, drawn(func(w io.Writer) error { return viz.Mermaid(w, d, nil) }),
			drawn(func(w io.Writer) error { return viz.Mermaid(w, d, &viz.Options{}) }))
		require.Equal(t, drawn(func(w io.Writer) error { return viz.DOT(w, d, nil) }),
			drawn(func(w io.Writer) error { return viz.DOT(w, d, &viz.Options{}) }))
		require.Equal(t, drawn(func(w io.Writer) error { return viz.SVG(w, d, nil) }),
			drawn(func(w io.Writer) error { return viz.SVG(w, d, &viz.Options{}) }))

		zero, err := viz.Layout(d, &viz.Options{})
		require.NoError(t, err)
		none, err := viz.Layout(d, nil)
		require.NoError(t, err)
		require.Equal(t, none, zero)
	}
}
