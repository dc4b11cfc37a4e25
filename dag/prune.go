package dag

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"runtime"
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

// Unreachable returns what [DAG.Prune] drops, and changes nothing: those nodes of the file that the conversation was
// loaded from that are saved with it, and that no head, no ref and no child conversation reaches. A node that stands by
// its id anywhere in a node of a kind that this version does not know is reached, because a newer version may need it.
// [DAG.WithHeads] takes nodes back into the conversation.
//
// Only files have such nodes. Those that a rewind leaves behind in memory are gone when nothing uses them; a [Journal]
// keeps them until [RewriteJournal].
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

// Prune returns the conversation without what nothing reaches, so that it is not saved any more. [DAG.Unreachable]
// tells beforehand what that is. Where it is nothing, Prune returns d.
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

// RewriteJournal replaces the journal at path by one that holds d and nothing else: without the nodes that only earlier
// appends reach, and without content that was redacted since. Like [DAG.Save] it replaces the file as a whole, and
// creates one if there is none. Close the journal first: one that is open is ErrLocked, where there are locks (see
// [Journal]), and otherwise its next Append is ErrChanged. The other errors are those of Save.
func RewriteJournal(path string, d DAG) error { return rewriteJournal(systemDisk{}, path, d) }

func rewriteJournal(on disk, path string, d DAG) error {
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

	unlock, err := lockForRewrite(on, path)
	if err != nil {
		return renamed(err, "save", path)
	}
	text := strings.NewReader(journalHeader + string(lines))
	err = replaceFile(on, path, func(w io.Writer) error {
		_, err := text.WriteTo(w)
		return err
	})
	return errors.Join(err, unlock())
}

// lockForRewrite takes the lock of the file that is about to be replaced, if there is one.
func lockForRewrite(on disk, path string) (unlock func() error, err error) {
	none := func() error { return nil }
	old, err := on.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !old.Mode().IsRegular():
		return none, nil // replaceFile returns the error, if it is one
	case err != nil:
		return nil, err
	}

	// Some network file systems lock only what is open for writing. A file that is read-only may be replaced all the
	// same.
	f, err := openLocked(on, path, os.O_RDWR)
	if errors.Is(err, fs.ErrPermission) {
		f, err = openLocked(on, path, os.O_RDONLY)
	}
	if err != nil {
		return nil, err
	}

	unlock = func() error { return errors.Join(on.Unlock(f), f.Close()) }
	if runtime.GOOS == "windows" { // it cannot replace an open file
		return none, unlock()
	}
	return unlock, nil
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
