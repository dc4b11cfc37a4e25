package page

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz/internal/web"
)

// budget limits the requests of a page, in bytes.
type budget struct {
	made   int // of all requests that are made, which is the time that it takes: most of it is quadratic
	stored int // of the requests as they are stored, and of those that are held to compare others with
}

// pageBudget takes about two seconds. The requests of 900 turns of 2 KB fit, and add a third to the page.
var pageBudget = budget{made: 1 << 30, stored: 32 << 20}

const tooMany = "This page has the requests of the first failures and of the last responses. All requests of a " +
	"conversation this long are many times its size: \"plait serve FILE\" shows each of them."

// requests returns the requests of the responses among the nodes, each as the difference from that of the call before
// it, and the reason why some are missing.
func requests(
	d dag.DAG, nodes []*node.Node, keys map[node.ID]int, limit budget,
	request func(before dag.DAG, answer *node.Node) ([]byte, error),
) ([]web.Request, string) {
	if request == nil {
		return nil, "This page was written without requests."
	}

	// A request of a sub-agent has another conversation before it.
	main := map[node.ID]bool{} // nodes that are not a sub-agent's
	for _, n := range d.Nodes() {
		main[n.ID()] = true
	}
	ask := func(n *node.Node) ([]byte, error) { return request(before(d, n, main[n.ID()]), n) }

	// All of them if they fit, or else those that a reader asks about first.
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

// collection is the requests that were made so far. A request is stored whole until that of the response before it is
// made, and then as the difference from that.
type collection struct {
	keys  map[node.ID]int
	limit budget
	used  budget

	list    map[node.ID]*web.Request
	waiting map[node.ID][]*web.Request // the whole requests, by the response before
}

// addAll adds the requests of the responses, and reports whether they fit into the limit. Those that fit are added.
func (c *collection) addAll(answers []*node.Node, ask func(*node.Node) ([]byte, error)) bool {
	c.list, c.waiting = map[node.ID]*web.Request{}, map[node.ID][]*web.Request{}
	for _, n := range answers {
		body, err := ask(n)
		switch c.used.made += len(body); {
		case c.used.made > c.limit.made:
			return false

		case err != nil:
			c.list[n.ID()] = &web.Request{Key: c.keys[n.ID()], Base: -1, Missing: "The request is not known: " + err.Error()}
			if c.used.made += 512 * n.Depth(); c.used.made > c.limit.made { // what it took to find that out
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

// add adds the request of n, and reports whether it fits into the limit.
func (c *collection) add(n *node.Node, body string) bool {
	key, size := c.keys[n.ID()], c.used.stored+len(body)
	whole := c.waiting[n.ID()]
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

	// The page counts in units of UTF-16, Go in bytes.
	r.Base, r.Middle = base, strings.Clone(body[start:len(body)-end]) // a part of body would keep all of it
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

	for _, n := range backward(nodes) {
		add(n)
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

// sharedEnds returns the length in bytes of the common prefix and suffix of two texts. It does not cut characters.
func sharedEnds(a, b string) (start, end int) {
	const many = 4 << 10 // bytes that are compared at once
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
	for first := byte(0xf0); first <= 0xf4; first++ { // of the characters that are two units
		n += strings.Count(s, string([]byte{first}))
	}
	return n
}
