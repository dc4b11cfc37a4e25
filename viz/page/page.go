// Package page writes a conversation as a page for the browser: one HTML file that needs nothing else, to look at, to search and to
// hand on.
//
// The smallest whole program:
//
//	d := dag.New().User("What is a DAG?").Assistant("A graph without cycles.")
//	err := page.Write(os.Stdout, d, nil)
//
// The page shows the path to a head as an outline, the graph beside it, and all that is known of a node: what it says, what it cost,
// the exact request that it answers, and what of that was new. It finds what went wrong, compares two heads, goes into sub-agents, and
// prints. Its keys are under "?".
//
// What was said is untrusted text. The page shows it letter for letter; nothing in it can run, fetch or link, and a
// Content-Security-Policy that allows the page's own script and style alone stands behind that. Nothing is loaded from anywhere. The
// page holds everything that the conversation holds: [dag.DAG.Redact] erases what must not be handed on.
//
// # Concurrency
//
// The functions keep no state and are safe for concurrent use.
//
// # Errors
//
// [Write] returns the error of the chain that built the conversation ([dag.DAG.Err]), and the error of the writer, as they are.
package page

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
	"github.com/plait-dev/plait/viz/internal/gocode"
	"github.com/plait-dev/plait/viz/internal/web"
)

// Options are what a page has beside the conversation. The zero value and nil are the defaults.
type Options struct {
	// Title stands above the conversation and in the browser's tab. Defaults to "Conversation".
	Title string
	// Prices is what models cost. The page shows the cost of each call, and of all that goes on from a node. Defaults to none: a page shows
	// tokens then, and a run's own cost where it knew it.
	Prices api.Prices
	// Request returns the exact body, in UTF-8, of the request that answer, a message of the assistant in the conversation, was given
	// to. Before is the conversation that the model was asked with; for a sub-agent's answer it has no metadata. The page shows the
	// request beside the answer, and what of it is new since the call before. An error says why it is not known. It is called for the
	// last answers first, until the requests are 32 MiB together: what a long conversation has sent altogether grows with the square of
	// its length. Earlier answers are then without theirs. Defaults to nil: no request is known.
	Request func(before dag.DAG, answer *node.Node) ([]byte, error)
}

// Write writes the page that shows d: the graph under its heads, and what only a ref reaches. The same conversation gives the same
// bytes. Its size is in proportion to d's saved form, and so is the time, but for Request.
func Write(w io.Writer, d dag.DAG, o *Options) error {
	if o == nil {
		o = &Options{}
	}
	m := web.NewModel()
	m.Prices = o.Prices
	shown := named(d)
	p, err := m.Update(shown)
	if err != nil {
		return err
	}
	nodes, keys := drawn(m, shown)
	static := &web.Static{Copies: map[string]string{}, NoCopies: map[string]string{}}
	static.Requests, static.NoRequests = requests(shown, nodes, keys, o.Request)
	copies(static, d)
	file(static, d, p.Nodes)
	return web.WritePage(w, web.Config{Title: o.Title, Static: static, Plain: plain(nodes, keys)}, p)
}

// named is d with the ends that only refs have among its heads.
func named(d dag.DAG) dag.DAG {
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

const (
	mostCode  = 1000     // nodes that are written as Go code: beyond that it would be the saved form once more
	mostChars = 64 << 10 // bytes of a copy
)

// copies keeps the conversation in other forms, where that does not make the page much larger.
func copies(s *web.Static, d dag.DAG) {
	keep := func(name string, write func(io.Writer) error) {
		var text strings.Builder
		switch err := write(&text); {
		case err != nil:
			s.NoCopies[name] = err.Error()
		case text.Len() > mostChars:
			s.NoCopies[name] = "it is longer than 64 KiB; the command \"plait\" writes it"
		default:
			s.Copies[name] = text.String()
		}
	}
	keep("mermaid", func(w io.Writer) error { return viz.Mermaid(w, d, nil) })
	keep("go", func(w io.Writer) error {
		if len(d.WithChildren()) > mostCode {
			return errors.New("the conversation has more than 1,000 nodes")
		}
		return gocode.Write(w, d)
	})
}

// file keeps the saved form of the conversation. The nodes in it are in the page already, and stand there by their keys.
func file(s *web.Static, d dag.DAG, told []web.Node) {
	var saved bytes.Buffer
	if err := d.Write(&saved); err != nil {
		s.NoCopies["json"] = err.Error()
		return
	}
	keys := make(map[string]int, len(told))
	for _, n := range told {
		keys[n.Raw] = n.Key
	}
	text, end := "", "" // what is not a node, and what ends the line of the node before it
	for line := range strings.Lines(saved.String()) {
		raw, after := strings.TrimSuffix(line, "\n"), "\n"
		if cut, ok := strings.CutSuffix(raw, ","); ok {
			raw, after = cut, ",\n"
		}
		key, ok := keys[raw]
		switch {
		case !ok:
			text += end + line
			end = ""
			continue
		case text != "":
			s.File = append(s.File, text)
		}
		s.File = append(s.File, key)
		text, end = "", after
	}
	s.File = append(s.File, end+text)
}
