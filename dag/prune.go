package dag

import (
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	json "github.com/goccy/go-json/v2"
	"github.com/google/uuid"
	"github.com/plait-dev/plait/node"
)

// ErrNotErased marks a conversation with redacted nodes that a journal still holds whole.
var ErrNotErased = errors.New("the journal holds what was redacted, and has to be written anew")

// Unreached is the nodes of a file that nothing reaches.
type Unreached struct {
	// Nodes is the nodes, in the order in which they are saved.
	Nodes []*node.Node
	// Bytes is how much shorter a file is without them.
	Bytes int64
}

// String counts the nodes and the bytes, and has a line for each node.
func (u Unreached) String() string {
	var out strings.Builder
	out.WriteString(count(len(u.Nodes), "node") + " out of reach, " + count(int(u.Bytes), "byte"))
	for _, n := range u.Nodes {
		out.WriteString("\n" + n.String())
	}
	return out.String()
}

// MarshalJSON returns an object with the members nodes, which are ids, and bytes.
func (u Unreached) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Nodes []node.ID `json:"nodes"`
		Bytes int64     `json:"bytes"`
	}{idsOf(u.Nodes), u.Bytes})
}

// Unreachable returns what [DAG.Prune] drops, and changes nothing: those nodes of the file that the conversation was loaded
// from that are saved with it, and that no head, no ref and no child conversation reaches. A node that stands by its id
// anywhere in a node of a kind that this version does not know is reached, because a newer version may need it. [DAG.WithHeads]
// takes nodes back into the conversation.
//
// Only files have such nodes. Those that a rewind leaves behind in memory are gone when nothing uses them; a [Journal] keeps them
// until [RewriteJournal].
func (d DAG) Unreachable() Unreached {
	h := d.header()
	if len(h.loose) == 0 {
		return Unreached{}
	}
	reached := d.reached()
	var u Unreached
	nodes, _ := h.nodes(d.roots())
	for _, n := range nodes {
		if !reached[n.ID()] {
			u.Nodes = append(u.Nodes, n)
			u.Bytes += int64(len(n.Append(nil)) + len(",\n"))
		}
	}
	return u
}

// Prune returns the conversation without what nothing reaches, so that it is not saved any more. [DAG.Unreachable] tells
// beforehand what that is. Where it is nothing, Prune returns d.
func (d DAG) Prune() DAG {
	if d.err != nil || len(d.header().loose) == 0 {
		return d
	}
	reached, h, pruned := d.reached(), d.header(), false
	loose := map[*node.Node][]*node.Node{}
	for before, nodes := range h.loose {
		left := slices.DeleteFunc(slices.Clone(nodes), func(n *node.Node) bool { return !reached[n.ID()] })
		if len(left) > 0 {
			loose[before] = left
		}
		pruned = pruned || len(left) < len(nodes)
	}
	if !pruned {
		return d
	}
	h.loose = loose
	return d.change(func(e *env) { e.file = &h })
}

// idText is an id as it is written in a file.
var idText = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// reached returns the ids of the nodes that are in use.
func (d DAG) reached() map[node.ID]bool {
	loose := map[node.ID]*node.Node{}
	for _, nodes := range d.header().loose {
		for _, n := range nodes {
			loose[n.ID()] = n
		}
	}
	reached := map[node.ID]bool{}
	for next := d.roots(); len(next) > 0; {
		w := walk{known: func(n *node.Node) bool { return reached[n.ID()] }}
		nodes := w.from(next)
		next = nil
		for _, n := range nodes {
			reached[n.ID()] = true
			if _, unknown := n.Payload().(node.Unknown); !unknown {
				continue
			}
			for _, text := range idText.FindAll(n.Append(nil), -1) {
				if named := loose[uuid.MustParse(string(text))]; named != nil {
					next = append(next, named)
				}
			}
		}
	}
	return reached
}

// RewriteJournal replaces the journal at path by one that holds d as it is now and nothing else: without the nodes that only
// earlier appends reach, and without content that was redacted since. Like [DAG.Save] it replaces the file as a whole. The
// journal must not be open: a [Journal] that is goes on writing to the file that was there before. The errors are those of Save.
func RewriteJournal(path string, d DAG) error {
	if d.err != nil {
		return d.err
	}
	state := journalState{written: map[node.ID]*node.Node{}, size: int64(len(journalHeader))}
	state.setHeader(header{})
	fresh, err := state.missing(d)
	if err != nil {
		return err
	}
	lines, _ := state.lines(d, fresh)
	return replaceFile(path, func(w io.Writer) error {
		_, err := io.WriteString(w, journalHeader)
		if err == nil {
			_, err = w.Write(lines)
		}
		return err
	})
}

// whole returns an error when the journal holds a node otherwise than as d was left by Redact.
func (s journalState) whole(d DAG) error {
	for id, erased := range d.environment().erased {
		if n := s.written[id]; n != nil && n != erased && string(n.Append(nil)) != string(erased.Append(nil)) {
			return &node.FieldError{ID: id.String(), Field: "redacted", Err: ErrNotErased}
		}
	}
	return nil
}
