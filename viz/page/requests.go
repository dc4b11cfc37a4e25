package page

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz/page/internal/web"
)

// budget limits the requests of a page, in bytes.
type budget struct {
	made   int // of all requests made: most of the time for them is quadratic
	stored int // of the requests in their stored form, and of whole requests kept for comparison
}

// pageBudget takes about two seconds. The requests of 900 turns of 2 KB fit, and add a third to the page.
var pageBudget = budget{made: 1 << 30, stored: 32 << 20}

const tooMany = "This page has the requests of the first failures and of the last responses. All requests of a " +
	"conversation this long are many times its size: \"plait serve FILE\" shows each of them."

// requests returns the requests of the responses among the nodes. Each is stored as the difference from the request of
// the call before it. If some are missing, the string is the reason.
func requests(
	d dag.DAG, nodes []*node.Node, keys map[node.ID]int, limit budget,
	request func(before dag.DAG, answer *node.Node) ([]byte, error),
) ([]web.Request, string) {
	if request == nil {
		return nil, "This page was written without requests."
	}

	// The conversation before a sub-agent's request is not the main one.
	main := map[node.ID]bool{} // nodes outside of sub-agents
	for _, n := range d.Nodes() {
		main[n.ID()] = true
	}
	ask := func(n *node.Node) ([]byte, error) { return request(before(d, n, main[n.ID()]), n) }

	// Add all requests if they fit. Otherwise begin with the ones of most interest to a reader.
	missing := ""
	c := collection{keys: keys, limit: limit}
	if !c.addAll(backward(nodes), ask) {
		missing = tooMany
		c = collection{keys: keys, limit: limit}
		c.addAll(byInterest(nodes), ask)
	}

	var list []web.Request
	for _, n := range nodes {
		if r := c.list[n.ID()]; r != nil {
			list = append(list, *r)
		}
	}
	return list, missing
}

// collection holds the requests made so far. A request is stored whole until the request of the preceding response is
// made, and then as the difference from it.
type collection struct {
	keys  map[node.ID]int
	limit budget
	used  budget

	list    map[node.ID]*web.Request
	waiting map[node.ID][]*web.Request // the whole requests, by the preceding response
}

// addAll adds the requests of the responses in order, and reports whether all fit into the limit. It stops at the first
// one that does not fit.
func (c *collection) addAll(answers []*node.Node, ask func(*node.Node) ([]byte, error)) bool {
	c.list, c.waiting = map[node.ID]*web.Request{}, map[node.ID][]*web.Request{}
	for _, n := range answers {
		body, err := ask(n)
		switch c.used.made += len(body); {
		case c.used.made > c.limit.made:
			return false

		case err != nil:
			c.list[n.ID()] = &web.Request{Key: c.keys[n.ID()], Base: -1, Missing: "The request is not known: " + err.Error()}
			if c.used.made += 512 * n.Depth(); c.used.made > c.limit.made { // an estimate of the work until the error
				return false
			}

		case !utf8.Valid(body):
			const why = "The request is not UTF-8 and cannot be shown byte for byte."
			c.list[n.ID()] = &web.Request{Key: c.keys[n.ID()], Base: -1, Missing: why}

		case !c.add(n, string(body)):
			return false
		}
	}
	return true
}

// add adds the request of n, or nothing if it does not fit into the limit. It reports whether it fit.
func (c *collection) add(n *node.Node, body string) bool {
	key, size := c.keys[n.ID()], c.used.stored+len(body)
	whole := c.waiting[n.ID()]

	// Later requests that waited for this one are now stored as differences from it. Compute the new total size first.
	differences := make([]web.Request, len(whole))
	for i, r := range whole {
		differences[i] = difference(*r, key, body)
		size += len(differences[i].Middle) - len(r.Middle)
	}

	if size > c.limit.stored {
		return false
	}

	for i, r := range whole {
		*r = differences[i]
	}
	c.used.stored = size
	c.list[n.ID()] = &web.Request{Key: key, Base: -1, Middle: body}
	if last := web.CallBefore(n); last != nil {
		c.waiting[last.ID()] = append(c.waiting[last.ID()], c.list[n.ID()])
	}
	return true
}

// difference returns a whole request as its difference from another one.
func difference(r web.Request, base int, other string) web.Request {
	body := r.Middle
	start, end := sharedEnds(other, body)

	// The page counts in units of UTF-16, Go in bytes. Clone the middle: a substring would keep all of body in memory.
	r.Base, r.Middle = base, strings.Clone(body[start:len(body)-end])
	r.Prefix, r.Suffix = units(body[:start]), units(body[len(body)-end:])
	return r
}

// backward returns the responses among the nodes, the last one first.
func backward(nodes []*node.Node) []*node.Node {
	var list []*node.Node
	for _, n := range slices.Backward(nodes) {
		if isAnswer(n) {
			list = append(list, n)
		}
	}
	return list
}

// maxFailures is the number of failures whose requests come first.
const maxFailures = 10

// byInterest returns the responses among the nodes, those of most interest first. It begins with responses that failed
// or had a failed call, each followed by the response before it. All others follow, the last one first.
func byInterest(nodes []*node.Node) []*node.Node {
	var list []*node.Node
	listed := map[node.ID]bool{}
	add := func(n *node.Node) {
		if n != nil && !listed[n.ID()] {
			listed[n.ID()] = true
			list = append(list, n)
		}
	}

	// Parents precede their children in nodes, so one pass is enough.
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

	for _, n := range backward(nodes) {
		add(n)
	}
	return list
}

// before returns the conversation that n responds to. main is false for a node of a sub-agent: its conversation has no
// metadata of the conversation around it.
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

// sharedEnds returns the length in bytes of the common prefix and suffix of two texts. It does not cut characters.
func sharedEnds(a, b string) (start, end int) {
	const many = 4 << 10 // bytes per comparison
	shorter := min(len(a), len(b))
	for start+many <= shorter && a[start:start+many] == b[start:start+many] {
		start += many
	}
	for start < shorter && a[start] == b[start] {
		start++
	}
	for start > 0 && start < len(b) && !utf8.RuneStart(b[start]) {
		start--
	}

	// The suffix must not overlap the prefix: it has at most shorter-start bytes.
	tail := func(s string, n int) string { return s[len(s)-end-n : len(s)-end] }
	for end+many <= shorter-start && tail(a, many) == tail(b, many) {
		end += many
	}
	for end < shorter-start && tail(a, 1) == tail(b, 1) {
		end++
	}
	for end > 0 && !utf8.RuneStart(b[len(b)-end]) {
		end--
	}
	return start, end
}

// units returns the length of s in UTF-16 code units, as in JavaScript.
func units(s string) int {
	n := utf8.RuneCountInString(s)
	for first := byte(0xf0); first <= 0xf4; first++ { // first bytes of characters with two units
		n += strings.Count(s, string([]byte{first}))
	}
	return n
}
