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

// maxPlain is how much text a page has for browsers without JavaScript, in bytes: more would be most of it twice.
const maxPlain = 64 << 10

// plain is what the nodes say as text, as far as it is not long.
func plain(d dag.DAG, nodes []*node.Node, numbers map[node.ID]int) string {
	var b strings.Builder
	waiting := shared.Waiting(d.Heads())
	for _, n := range nodes {
		who, text := says(n, waiting[n.ID()])
		if text == "" {
			continue
		}
		if b.Len()+len(text) > maxPlain {
			b.WriteString("… (the rest needs JavaScript)\n")
			break
		}
		fmt.Fprintf(&b, "n%d %s\n%s\n\n", numbers[n.ID()], who, text)
	}
	return b.String()
}

// says returns what n is, and what it says in words. waiting is how many of its calls are open.
func says(n *node.Node, waiting int) (head, text string) {
	d := describe.Of(n)
	d.Waiting = waiting
	parts := []string{d.Text, d.Blocks.Text()}
	if d.Sort == describe.Call {
		parts = append([]string{string(d.Called.Input)}, parts...)
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return d.Head(false, asIs), strings.Join(parts, "\n")
}

func asIs(s string) string { return s }
