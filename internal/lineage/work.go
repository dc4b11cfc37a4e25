package lineage

import (
	"iter"
	"slices"
	"strings"

	"github.com/plait-dev/plait/node"
)

// WorkKey is the key of background work: in the Details of the execution that holds it, with the number of the work,
// and in the metadata of the message that ends it, with the key of the call.
const WorkKey = "plait.background"

// WorkID returns the number of the work that an execution holds, or 0.
func WorkID(e node.ToolExecution) int {
	if !strings.Contains(string(e.Details), WorkKey) {
		return 0
	}
	var details map[string]int
	if e.Details.Decode(&details) != nil {
		return 0
	}
	return max(details[WorkKey], 0)
}

// OpenWork returns the executions among nodes that hold work without a message that ends it, in order. last is the
// greatest number of any work.
func OpenWork(nodes iter.Seq[*node.Node]) (open []*node.Node, last int) {
	ended := map[string]bool{}
	for n := range nodes {
		if e, is := n.Payload().(node.ToolExecution); is {
			if id := WorkID(e); id > 0 {
				open, last = append(open, n), max(last, id)
			}
			continue
		}
		var call string
		if n.Meta().Get(WorkKey).Decode(&call) == nil {
			ended[call] = true
		}
	}
	return slices.DeleteFunc(open, func(n *node.Node) bool {
		key, is := n.Call()
		return !is || ended[key.String()]
	}), last
}
