// Package page writes a conversation as a page for the browser: one self-contained HTML file to read, search and share.
//
// The smallest whole program:
//
//	d := dag.New().User("What is a DAG?").Assistant("A graph without cycles.")
//	err := page.Write(os.Stdout, d, nil)
//
// The page shows the path to a head as an outline, with the graph beside it. For each node it shows the content and the
// cost; for a response also its exact request, and the new part of that request. A table sorts all calls by cost, time,
// tokens and failures, and sums them up by model, tool and sub-agent. A timeline shows when each call ran. The page
// finds failures, compares two heads, opens the conversations of sub-agents, and prints. "?" lists its keys.
//
// [WriteReport] writes a page about many conversations, to find the ones to look at.
//
// The texts of a conversation are untrusted. The page shows them letter for letter. Nothing in them can run, fetch or
// link, and a Content-Security-Policy allows only the page's own script and style. Nothing is loaded from elsewhere.
// The page contains the whole conversation: use [dag.DAG.Redact] to erase content before sharing it.
//
// # Concurrency
//
// The functions keep no state and are safe for concurrent use.
//
// # Errors
//
// [Write] returns the error of the chain that built the conversation ([dag.DAG.Err]) and the error of the writer
// unchanged.
package page

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
	"github.com/plait-dev/plait/viz/page/internal/web"
)

// Options configure the content of a page beside the conversation. The zero value and nil are the defaults.
type Options struct {
	// Title is the heading above the conversation and the title of the browser's tab. Defaults to "Conversation".
	Title string
	// Prices are the models' prices. The page shows the cost of each call, and the total cost of everything after a
	// node. Defaults to none: a page then shows tokens, and a run's own cost if the run recorded it.
	Prices api.Prices
	// Cache is the cache policy of the sent requests, as in promptcache.Options. From it, the page predicts how much a
	// request could read from the prompt cache. Defaults to api.CacheShort.
	Cache api.Cache
	// Request returns the exact body, in UTF-8, of the request for answer. answer is a message of the assistant in the
	// conversation. before is the conversation sent to the model; for a response of a sub-agent it has no metadata.
	//
	// The page shows the request beside the response, with its new part since the previous call. If Request returns an
	// error, the page shows it in place of the request.
	//
	// The total size of all requests is quadratic in the conversation's length, so it is limited: to 1 GiB in all, and
	// to 32 MiB in stored form, each as its difference from the request of the call before. Beyond these limits, the
	// page has only the requests of the first failures and then of the last responses, as many as fit. Request may be
	// called twice for a response. Defaults to nil: no request is known.
	Request func(before dag.DAG, answer *node.Node) ([]byte, error)
}

// Write writes a page with d: the graph under its heads, and nodes that only a ref reaches. The same conversation gives
// the same bytes. Size and time are proportional to d's saved form, apart from Request.
func Write(w io.Writer, d dag.DAG, o *Options) error {
	if o == nil {
		o = &Options{}
	}

	m := web.NewModel()
	m.Prices, m.Cache = o.Prices, o.Cache

	// Nodes that only a ref reaches are shown too, under additional heads.
	shown := withRefs(d)
	whole, err := m.Update(shown)
	if err != nil {
		return err
	}

	nodes, keys := drawn(m, shown)
	static := &web.Static{}
	static.Requests, static.NoRequests = requests(shown, nodes, keys, pageBudget, o.Request)
	diagram(static, d)
	file(static, d, nodes, keys)

	return web.WritePage(w, web.Config{Title: o.Title, Static: static}, whole)
}

// withRefs returns d with additional heads: those of refs to nodes that no head of d reaches.
func withRefs(d dag.DAG) dag.DAG {
	if d.Err() != nil {
		return d
	}

	seen := map[node.ID]bool{}
	for _, n := range d.Nodes() {
		seen[n.ID()] = true
	}

	heads := d.Heads()
	for _, r := range d.Refs() {
		for _, h := range r.Heads {
			if !seen[h.ID()] {
				heads = append(heads, h)
			}

			// All ancestors of this head are drawn with it, so a later ref to one of them adds no head.
			for stack := []*node.Node{h}; len(stack) > 0; {
				n := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				if !seen[n.ID()] {
					seen[n.ID()] = true
					stack = append(stack, n.Parents()...)
				}
			}
		}
	}

	return d.WithHeads(heads...)
}

// drawn returns the nodes of d in reading order, and their keys.
func drawn(m *web.Model, d dag.DAG) ([]*node.Node, map[node.ID]int) {
	nodes := d.WithChildren()
	keys := make(map[node.ID]int, len(nodes))
	for _, n := range nodes {
		keys[n.ID()], _ = m.Key(n.ID())
	}
	slices.SortStableFunc(nodes, func(a, b *node.Node) int { return cmp.Compare(keys[a.ID()], keys[b.ID()]) })
	return nodes, keys
}

// diagram adds the Mermaid diagram of the conversation, unless it is too large for Mermaid.
func diagram(s *web.Static, d dag.DAG) {
	var text strings.Builder
	if err := viz.Mermaid(&text, d, nil); err != nil {
		s.NoMermaid = err.Error() +
			`; copy it as JSON, save that as copied.json, and draw it with "plait render --as svg copied.json"`
		return
	}
	s.Mermaid = text.String()
}

// file adds the saved form of the conversation. The page already has its nodes, so they are replaced by their keys.
func file(s *web.Static, d dag.DAG, nodes []*node.Node, keys map[node.ID]int) {
	p := pieces{nodes: make(map[node.ID]*node.Node, len(nodes)), keys: keys}
	for _, n := range nodes {
		p.nodes[n.ID()] = n
	}

	if err := d.Write(&p); err != nil {
		s.NoFile = err.Error()
		return
	}
	s.File = append(p.list, p.end+p.text+string(p.rest))
}

// pieces is a writer of the saved form. It splits it into nodes and the texts between them.
type pieces struct {
	nodes map[node.ID]*node.Node
	keys  map[node.ID]int
	list  []any // texts, and the keys of nodes

	rest    []byte // an incomplete line
	text    string // since the last node
	end     string // of the last node's line
	scratch []byte
}

// Write processes whole lines, and keeps the rest for the next call.
func (p *pieces) Write(data []byte) (int, error) {
	for rest := data; ; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		if !whole {
			p.rest = append(p.rest, line...)
			return len(data), nil
		}

		if len(p.rest) > 0 {
			line = append(p.rest, line...)
			p.rest = line[:0]
		}
		p.line(line)
		rest = after
	}
}

// line processes a line without its line break.
func (p *pieces) line(line []byte) {
	saved, comma := bytes.CutSuffix(line, []byte(","))
	n := p.nodeOf(saved)
	if n == nil {
		p.text += p.end + string(line) + "\n"
		p.end = ""
		return
	}

	// Right after another node there is no text. The page inserts the ",\n" between the two by itself.
	if p.text != "" {
		p.list = append(p.list, p.text)
	}
	p.list = append(p.list, p.keys[n.ID()])
	p.text, p.end = "", "\n"
	if comma {
		p.end = ",\n"
	}
}

// redacted marks the saved form of a redacted node.
const redacted = `"redacted":true`

// nodeOf returns the node with the saved form line, or nil if the page has no such node. A conversation may hold a node
// both redacted and with its content. The page has one of these forms; the other one must be saved as text.
func (p *pieces) nodeOf(line []byte) *node.Node {
	const begin = `{"id":"`
	const size = len("00000000-0000-0000-0000-000000000000")
	text, ok := bytes.CutPrefix(line, []byte(begin))
	if !ok || len(text) < size {
		return nil
	}
	id, err := uuid.ParseBytes(text[:size])
	n := p.nodes[id]
	if err != nil || n == nil {
		return nil
	}

	// Only if the line or the node is redacted can the two forms differ. Spare the others the encoding.
	if !n.Redacted() && !bytes.Contains(line, []byte(redacted)) {
		return n
	}
	if p.scratch = n.Append(p.scratch[:0]); !bytes.Equal(p.scratch, line) {
		return nil
	}
	return n
}
