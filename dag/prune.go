package dag

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/plait-dev/plait/internal/pattern"
	"github.com/plait-dev/plait/node"
)

// ErrNotErased marks a conversation with redacted nodes whose content a journal or a store still holds.
var ErrNotErased = errors.New("redacted content is still stored: rewrite it")

// Unreached lists the unreachable nodes of a file.
type Unreached struct {
	// Nodes are in the order of saving.
	Nodes []*node.Node
	// Bytes is the space they take in a file.
	Bytes int64
}

// String returns a line with the counts of nodes and bytes, and a line for each node.
func (u Unreached) String() string {
	var out strings.Builder
	out.WriteString(count(len(u.Nodes), "node") + " out of reach, " + count(int(u.Bytes), "byte"))
	for _, n := range u.Nodes {
		out.WriteString("\n" + n.String())
	}
	return out.String()
}

// Unreachable returns the nodes that [DAG.Prune] would remove: nodes of the loaded file without a path from a head, a
// ref or a child conversation. They are saved with the conversation. [DAG.WithHeads] makes them heads again.
//
// A node counts as reached if its ID occurs anywhere in a node of an unknown kind, because a newer version may need it.
//
// Only a file has unreachable nodes. In memory, nodes left behind by a rewind are freed once nothing uses them. A
// [Journal] keeps them until [RewriteJournal].
func (d DAG) Unreachable() Unreached {
	h := d.header()
	if len(h.loose) == 0 {
		return Unreached{}
	}

	var u Unreached
	reached := d.reached()
	nodes, _, _ := h.nodes(d.roots())
	for _, n := range nodes {
		if !reached[n.ID()] {
			u.Nodes = append(u.Nodes, n)

			// In a file, a comma and a line break follow a node.
			u.Bytes += int64(len(n.Append(nil)) + len(",\n"))
		}
	}
	return u
}

// Prune returns the conversation without the nodes of [DAG.Unreachable]: they are no longer saved. It returns d if
// there are none.
func (d DAG) Prune() DAG {
	h := d.header()
	if d.err != nil || len(h.loose) == 0 {
		return d
	}

	// The lists are shared with other values of the conversation: filter copies.
	reached, pruned := d.reached(), false
	loose := map[*node.Node][]*node.Node{}
	for before, nodes := range h.loose {
		kept := slices.DeleteFunc(slices.Clone(nodes), func(n *node.Node) bool { return !reached[n.ID()] })
		if len(kept) > 0 {
			loose[before] = kept
		}
		pruned = pruned || len(kept) < len(nodes)
	}

	if !pruned {
		return d
	}

	h.loose = loose
	return d.change(func(e *env) { e.file = &h })
}

// idText matches an ID in its saved form.
var idText = pattern.Of(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// reached returns the IDs of the nodes reachable from the heads and refs, through nodes of unknown kinds too.
func (d DAG) reached() map[node.ID]bool {
	// A node without a path from a head may still be named by a node of an unknown kind.
	loose := map[node.ID]*node.Node{}
	for _, nodes := range d.header().loose {
		for _, n := range nodes {
			loose[n.ID()] = n
		}
	}

	reached := map[node.ID]bool{}

	// Each round follows the IDs found by the round before.
	for next := d.roots(); len(next) > 0; {
		w := walk{known: func(n *node.Node) bool { return reached[n.ID()] }}
		nodes := w.from(next)
		next = nil
		for _, n := range nodes {
			reached[n.ID()] = true
			if _, unknown := n.Payload().(node.Unknown); !unknown {
				continue
			}

			// The members of an unknown kind are unknown too: any ID in its text may be a reference.
			for _, text := range idText().FindAll(n.Append(nil), -1) {
				if named := loose[uuid.MustParse(string(text))]; named != nil {
					next = append(next, named)
				}
			}
		}
	}
	return reached
}

// RewriteJournal replaces the journal at path by one with only d: without nodes of earlier appends that d no longer
// reaches, and without redacted content. Like [DAG.Save] it replaces the file as a whole, and creates it if there is
// none.
//
// Close the journal first. If it is open, RewriteJournal returns ErrLocked; on a platform without locks (see [Journal])
// the journal's next Append returns ErrChanged. The other errors are those of Save.
func RewriteJournal(path string, d DAG) error { return rewriteJournal(systemDisk{}, path, d) }

func rewriteJournal(on disk, path string, d DAG) error {
	if d.err != nil {
		return d.err
	}

	// Nothing is in the new file, so every node of d is missing in it.
	state := journalState{size: int64(len(journalHeader))}
	state.setHeader(header{})
	d, fresh, err := state.missing(d)
	if err != nil {
		return err
	}
	lines, _ := state.lines(nil, d, fresh)

	// An open journal holds the lock of the old file. After the replacement its appends would be lost.
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

// lockForRewrite locks the file to be replaced, if there is one.
func lockForRewrite(on disk, path string) (unlock func() error, err error) {
	none := func() error { return nil }
	old, err := on.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !old.Mode().IsRegular():
		return none, nil // for a file that is not regular, replaceFile returns the error
	case err != nil:
		return nil, err
	}

	// Some network file systems lock only files that are open for writing. A read-only file may be replaced too.
	f, err := openLocked(on, path, os.O_RDWR)
	if errors.Is(err, fs.ErrPermission) {
		f, err = openLocked(on, path, os.O_RDONLY)
	}
	if err != nil {
		return nil, err
	}

	unlock = func() error { return errors.Join(on.Unlock(f), f.Close()) }
	if runtime.GOOS == "windows" {
		return none, unlock() // Windows cannot replace an open file
	}
	return unlock, nil
}
