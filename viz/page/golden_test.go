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

func TestCopiesAreLeftOutBeyondTheirLimits(t *testing.T) {
	chain := func(n int) dag.DAG {
		d := start()
		for range n {
			d = d.User("x")
		}
		return d
	}
	tooLarge := func(edges int) string {
		return fmt.Sprintf("a part is taken from the diagram of all nodes, which this page does not have: "+
			"too large for a Mermaid diagram: %d edges, the maximum is 500; "+
			`copy it as JSON, save that as part.json, and draw it with "plait render --as mermaid part.json"`, edges)
	}
	_, c, _ := written(t, chain(200), nil)
	require.Contains(t, c.Static.Copies["full"], "n199(")
	require.NotContains(t, c.Static.Copies["mermaid"], "n100(")
	_, c, _ = written(t, chain(9), nil)
	require.NotContains(t, c.Static.Copies, "full", "it is the same")
	_, c, _ = written(t, chain(1001), nil)
	require.Equal(t, map[string]string{"full": tooLarge(1000)}, c.Static.NoCopies)
}
