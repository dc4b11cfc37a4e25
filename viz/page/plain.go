package page

import (
	"fmt"
	"strings"

	"github.com/plait-dev/plait/node"
)

// mostPlain is how much text a page has for browsers without JavaScript, in bytes: more would be most of it twice.
const mostPlain = 64 << 10

// plain is what the nodes say as text, as far as it is not long.
func plain(nodes []*node.Node, numbers map[node.ID]int) string {
	var b strings.Builder
	for _, n := range nodes {
		who, text := says(n)
		if text == "" {
			continue
		}
		if b.Len()+len(text) > mostPlain {
			b.WriteString("… (the rest needs JavaScript)\n")
			break
		}
		fmt.Fprintf(&b, "n%d %s\n%s\n\n", numbers[n.ID()], who, text)
	}
	return b.String()
}

// says is who speaks in n, and what is said.
func says(n *node.Node) (who, text string) {
	switch p := n.Payload().(type) {
	case node.System:
		return "system", p.Text
	case node.Message:
		return string(p.Role), p.Blocks.Text()
	case node.ToolExecution:
		return p.Tool, string(p.Input) + "\n" + p.Result.Text()
	case node.SubGraph:
		return p.Title, p.Summary
	case node.Compaction:
		return "compaction", p.Summary.Text()
	case node.StopReason:
		return "stop", strings.TrimSpace(string(p.Reason) + " " + p.Detail)
	}
	return "", ""
}
