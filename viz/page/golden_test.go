package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/plait-dev/plait/internal/testkit/goldentest"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
)

// TestWhatAPageHoldsIsAsWrittenDown holds the requests, the copies and the saved file of a page that
// has one of everything. The nodes themselves stand in the file by their keys. Look at the difference before -update.
func TestWhatAPageHoldsIsAsWrittenDown(t *testing.T) {
	_, c, p := written(t, release(), &Options{Title: "Release 2.4", Prices: prices, Request: request})
	for i, r := range c.Static.Requests {
		if r.Base >= 0 {
			require.Positive(t, r.Prefix, "request %d begins as the one before", i)
		}
	}
	var costs []string // rounded: the last digits depend on the processor
	for _, n := range p.Nodes {
		if n.Cost != nil {
			costs = append(costs, fmt.Sprintf("n%d %.9f", n.Key, *n.Cost))
		}
	}

	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	out.SetIndent("", " ")
	require.NoError(t, out.Encode(c))
	require.NoError(t, out.Encode(costs))
	goldentest.Require(t, "release.txt", b.String())
}

func TestADiagramIsLeftOutBeyondItsLimits(t *testing.T) {
	_, c, _ := written(t, tangled(9), nil)
	require.Contains(t, c.Static.Mermaid, "n26")
	require.Empty(t, c.Static.NoMermaid)

	_, c, _ = written(t, tangled(300), nil)
	require.Empty(t, c.Static.Mermaid)
	require.Equal(t, "too large for a Mermaid diagram: 599 edges, the maximum is 450; "+
		`copy it as JSON, save that as copied.json, and draw it with "plait render --as svg copied.json"`, c.Static.NoMermaid)
}

// tangled is a conversation with n others inside. Each of them is continued outside, so that none is folded.
func tangled(n int) dag.DAG {
	begin := start()
	d, others := begin, begin
	for range n {
		inner := begin.User("Inside?")
		d = d.SubGraph("inner", inner)
		others = others.Join(inner.User("Outside?"))
	}
	return d.Join(others)
}
