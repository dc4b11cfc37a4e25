package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/node"
)

// maxPlain limits the text for browsers without JavaScript, in bytes. Without a limit, a page would hold a long
// conversation twice.
const maxPlain = 64 << 10

// plain returns the text of the nodes, up to maxPlain bytes.
func plain(d dag.DAG, nodes []*node.Node, numbers map[node.ID]int) string {
	var b strings.Builder
	waiting := shared.Waiting(d.Heads())
	for _, n := range nodes {
		head, text := textOf(n, waiting[n.ID()])
		if text == "" {
			continue
		}

		if b.Len()+len(text) > maxPlain {
			b.WriteString("… (the rest needs JavaScript)\n")
			break
		}
		fmt.Fprintf(&b, "n%d %s\n%s\n\n", numbers[n.ID()], head, text)
	}
	return b.String()
}

// textOf returns the heading of n and its text. waiting is the number of its open calls.
func textOf(n *node.Node, waiting int) (head, text string) {
	d := describe.Of(n)
	d.Waiting = waiting

	// A call begins with its arguments, and ends with its result.
	parts := []string{d.Text, d.Blocks.Text()}
	if d.Sort == describe.Call {
		parts = append([]string{string(d.Called.Input)}, parts...)
	}

	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return d.Head(false, asIs), strings.Join(parts, "\n")
}

func asIs(s string) string { return s }
