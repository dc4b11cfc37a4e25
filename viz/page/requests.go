package page

import (
	"slices"
	"unicode/utf8"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz/internal/web"
)

// maxRequests limits the bytes of all requests together.
const maxRequests = 32 << 20

const tooMany = "The requests of a long conversation are many times its size: " +
	"this page has those of the first failures and of the last responses, up to 32 MiB."

// requests returns the requests of the responses among the nodes, each as the difference from that of the call before
// it, and the reason why some are missing.
func requests(
	d dag.DAG, nodes []*node.Node, keys map[node.ID]int, request func(before dag.DAG, answer *node.Node) ([]byte, error),
) ([]web.Request, string) {
	if request == nil {
		return nil, "This page was written without requests."
	}
	bodies, why := map[node.ID]string{}, map[node.ID]string{}

	// A request of a sub-agent has another conversation before it.
	missing := ""
	main := map[node.ID]bool{} // nodes that are not a sub-agent's
	for _, n := range d.Nodes() {
		main[n.ID()] = true
	}

	size := 0
	for _, n := range byInterest(nodes) {
		if size >= maxRequests {
			missing = tooMany
			break
		}

		body, err := request(before(d, n, main[n.ID()]), n)
		if size+len(body) > maxRequests {
			missing = tooMany
			break
		}

		switch {
		case err != nil:
			why[n.ID()] = "The request is not known: " + err.Error()
			size += 16 * n.Depth() // what it took to find that out
		case !utf8.Valid(body):
			why[n.ID()] = "The request is not UTF-8 and cannot be shown byte for byte."
		default:
			bodies[n.ID()] = string(body)
			size += len(body)
		}
	}

	// In reading order again, each as a difference to an earlier one.
	var list []web.Request
	for _, n := range nodes {
		switch body, ok := bodies[n.ID()]; {
		case ok:
			list = append(list, delta(n, body, bodies, keys))
		case why[n.ID()] != "":
			list = append(list, web.Request{Key: keys[n.ID()], Base: -1, Missing: why[n.ID()]})
		}
	}
	return list, missing
}

// maxFailures is the number of failures whose requests come first.
const maxFailures = 10

// byInterest returns the responses among the nodes, those first that a reader asks about: the responses that failed or
// whose calls failed, with the response before each, and then the last ones.
func byInterest(nodes []*node.Node) []*node.Node {
	var list []*node.Node
	listed := map[node.ID]bool{}
	add := func(n *node.Node) {
		if n != nil && !listed[n.ID()] {
			listed[n.ID()] = true
			list = append(list, n)
		}
	}

	// Parents come first in nodes, so that nothing is walked for each node anew.
	last := map[node.ID]*node.Node{} // by node: the response before it, on its line of first parents
	failures := 0
	for _, n := range nodes {
		if failures == maxFailures {
			break
		}

		if n.NumParents() > 0 {
			parent := n.Parent(0)
			last[n.ID()] = last[parent.ID()]
			if isAnswer(parent) {
				last[n.ID()] = parent
			}
		}

		asked := n
		if !isAnswer(n) {
			asked = last[n.ID()]
		}
		if asked != nil && describe.Of(n).Grave() {
			failures++
			add(asked)
			add(last[asked.ID()])
		}
	}

	for _, n := range slices.Backward(nodes) {
		if isAnswer(n) {
			add(n)
		}
	}
	return list
}

// before returns the conversation that n responds to. That of a sub-agent does not get the metadata of the conversation
// around it.
func before(d dag.DAG, n *node.Node, main bool) dag.DAG {
	if main {
		return d.WithHeads(n.Parents()...)
	}
	return dag.New().WithHeads(n.Parents()...)
}

func isAnswer(n *node.Node) bool {
	m, ok := n.Message()
	return ok && m.Role == content.Assistant
}

// delta returns the request that n responds to as its difference from that of the call before.
func delta(n *node.Node, body string, bodies map[node.ID]string, keys map[node.ID]int) web.Request {
	// Without a request to compare with, the whole body is sent.
	r := web.Request{Key: keys[n.ID()], Base: -1, Middle: body}
	last := web.CallBefore(n)
	if last == nil {
		return r
	}
	base, ok := bodies[last.ID()]
	if !ok {
		return r
	}

	// The page counts in units of UTF-16, Go in bytes.
	start, end := sharedEnds(base, body)
	r.Base, r.Middle = keys[last.ID()], body[start:len(body)-end]
	r.Prefix, r.Suffix = units(body[:start]), units(body[len(body)-end:])
	return r
}

// sharedEnds returns the length in bytes of the common prefix and suffix of two texts. It does not cut characters.
func sharedEnds(a, b string) (start, end int) {
	shorter := min(len(a), len(b))
	for start < shorter && a[start] == b[start] {
		start++
	}

	for start > 0 && start < len(b) && !utf8.RuneStart(b[start]) {
		start--
	}

	for end < shorter-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	for end > 0 && !utf8.RuneStart(b[len(b)-end]) {
		end--
	}

	return start, end
}

// units returns the length of s in UTF-16 code units, as in JavaScript.
func units(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}
