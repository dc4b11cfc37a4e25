package dag

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"
	"github.com/google/uuid"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// Errors of loading, inside a *LoadError, beside node.ErrParse, node.ErrParent and ErrLimit.
var (
	// ErrFormat marks a file that is not a saved conversation, or is broken outside its nodes.
	ErrFormat = errors.New("not a saved conversation")
	// ErrVersion marks a file written by another version of Plait; the text names the version.
	ErrVersion = errors.New("written by another version of Plait")
	// ErrDuplicateID marks an ID of two nodes.
	ErrDuplicateID = errors.New("duplicate ID")
)

// LoadError is an error at a position in a file. For an error in a field of a node, its chain holds a *node.FieldError.
type LoadError struct {
	// File is the path; empty for [Read].
	File string
	// Line is the line at which reading stopped, from 1; 0 if the file could not be opened.
	Line int
	// Node is the number of the node in the file, from 1; 0 outside the nodes.
	Node int
	// Err is the reason, never nil.
	Err error
}

// Error returns the file, the line, the node and the reason. A long quotation from the file is cut.
func (e *LoadError) Error() string {
	text := "load"
	if e.File != "" {
		text += " " + e.File
	}
	text += ": "
	if e.Line > 0 {
		text += "line " + strconv.Itoa(e.Line) + ": "
	}
	if e.Node > 0 {
		text += "node " + strconv.Itoa(e.Node) + " of the file: "
	}
	return text + safetext.Escape(e.Err.Error(), 1000)
}

// Unwrap returns the reason.
func (e *LoadError) Unwrap() error { return e.Err }

// limitOf returns the maximum size of one node, or of one member of the header, in bytes. Reading takes memory for the
// conversation, and beside it at most in proportion to it. set is 0 for the default.
func limitOf(set int) int {
	if set <= 0 {
		return 256 << 20
	}
	return min(set, math.MaxInt-1) // a scanner reads one byte more
}

// Load reads a conversation written by [DAG.Save] or a [Journal]. It returns the conversation of a journal's last
// complete append, and does not change the file. Every error is a *LoadError, returned with an empty conversation.
//
//   - A file is read in one pass. A node must come after all nodes it refers to; a cycle is a node.ErrParent.
//   - The file may have been reformatted by another tool. Spaces and line breaks inside its nodes are not kept.
//   - Without a member "heads", the heads are the nodes without references from other nodes, in order.
//   - A head without a node, of the conversation or of a ref, and an invalid name of a ref are errors.
//
// A node, or a member of the header, may have 256 MiB. Beyond it the error is ErrLimit.
func Load(path string) (DAG, error) { return loadWithin(path, 0) }

// Read reads a conversation from r, up to its end. It is otherwise like Load.
func Read(r io.Reader) (DAG, error) { return read(r, "", 0) }

func loadWithin(path string, limit int) (DAG, error) {
	f, err := os.Open(path)
	if err != nil {
		return DAG{}, &LoadError{File: path, Err: err}
	}
	defer f.Close()
	return read(f, path, limit)
}

// UnmarshalJSON replaces *d by the saved conversation in data, as [Read] reads it, with the same limits. As usual, it
// ignores null. To bind its executable tools again, call [DAG.Tools].
//
// The error is a *LoadError, and *d is then unchanged.
func (d *DAG) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	loaded, err := Read(bytes.NewReader(data))
	if err == nil {
		*d = loaded
	}
	return err
}

func read(r io.Reader, path string, limit int) (DAG, error) {
	in := reader{scanner: newScanner(r, limitOf(limit))}
	d, err := in.conversation()
	if err != nil {
		return DAG{}, in.blame(path, err)
	}
	return d, nil
}

// reader reads one file.
type reader struct {
	*scanner
	graph
	head headReader
	node int // number of the current node, from 1; 0 for none
	at   int // first line of the current node; 0 for none
}

// blame returns err with the position of the reader.
func (r *reader) blame(path string, err error) error {
	e := &LoadError{File: path, Line: r.line, Node: r.node, Err: err}
	if r.at > 0 {
		e.Line = r.at
	}
	return e
}

func (r *reader) conversation() (DAG, error) {
	if err := r.begin(); err != nil {
		return DAG{}, err
	}
	if err := r.members(&r.head, r.nodes); err != nil {
		return DAG{}, err
	}
	// A journal begins with an object too: its header.
	if r.head.format == journalFormat {
		state, _, err := r.journal()
		return state.dag, err
	}

	// Nothing may follow the object of a document.
	if err := r.head.complete(); err != nil {
		return DAG{}, err
	}
	if c, err := r.peek(); err == nil {
		return DAG{}, fmt.Errorf("%w: %q after the end", ErrFormat, c)
	} else if !errors.Is(err, io.ErrUnexpectedEOF) {
		return DAG{}, err
	}
	return r.document()
}

// document returns the conversation of a document, after all of it was read.
func (r *reader) document() (DAG, error) {
	// A file without the member "heads" ends in its leaves.
	heads := r.leaves()
	if r.head.heads != nil {
		var err error
		if heads, err = r.named("heads", r.head.heads); err != nil {
			return DAG{}, err
		}
	}
	refs, err := r.refs(nil, r.head.refs)
	if err != nil {
		return DAG{}, err
	}

	// Set the heads and the refs first: the nodes out of their reach are loose.
	d := DAG{env: &env{refs: refs}}.atAll(heads)
	h := r.head.header
	h.loose = r.loose(node.Distinct(d.roots()))
	d.env.file = &h
	return d, nil
}

// begin checks the first byte. For a file that is not an object, its error is clearer than a JSON error.
func (r *reader) begin() error {
	c, err := r.peek()
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: it is empty", ErrFormat)
	case err != nil:
		return err
	case c == 0xEF:
		return fmt.Errorf("%w: it begins with a byte order mark", ErrFormat)
	case c != '{':
		return fmt.Errorf("%w: it begins with %q", ErrFormat, c)
	}
	return nil
}

// members reads an object into h. nodes is called to read the value of the member "nodes".
func (s *scanner) members(h *headReader, nodes func() error) error {
	if _, err := s.expect("{"); err != nil {
		return err
	}
	if c, _ := s.peek(); c == '}' { // member returns the error
		s.take(1)
		return nil
	}

	for {
		if err := s.member(h, nodes); err != nil {
			return err
		}
		if c, err := s.expect(",}"); err != nil || c == '}' {
			return err
		}
	}
}

func (s *scanner) member(h *headReader, nodes func() error) error {
	key, err := s.value()
	if err != nil {
		return err
	}
	m := member{key: string(key)}

	// The name is decoded for comparing, and kept as written for saving.
	if err := json.Unmarshal(key, &m.name); err != nil {
		return fmt.Errorf("%w: a member name in the header: %w", ErrFormat, err)
	} else if key[0] != '"' {
		return fmt.Errorf("%w: a member name in the header is not a string", ErrFormat)
	}
	if _, err := s.expect(":"); err != nil {
		return err
	}

	// The nodes are the bulk of a file: they are read one by one, and never held as one value.
	if m.name == "nodes" {
		if err := h.add(m, s.limit); err != nil {
			return err
		}
		return nodes()
	}

	value, err := s.value()
	if err != nil {
		return err
	}
	m.value = string(value)
	return h.add(m, s.limit)
}

// headReader is the header as far as it was read.
type headReader struct {
	header
	format  string
	version int
	heads   []string            // IDs; nil if the member is missing
	refs    map[string][]string // IDs of the heads by name
	size    int                 // of all members, in bytes
	seen    map[string]bool     // names of the members
}

// add adds one member. All members together must stay within limit, in bytes.
func (h *headReader) add(m member, limit int) error {
	if h.size += len(m.key) + len(m.value); h.size > limit {
		return fmt.Errorf("%w: a header of more than %d bytes", ErrLimit, limit)
	}

	if h.seen[m.name] {
		return h.bad(m.name, errors.New("duplicate member"))
	}
	if h.seen == nil {
		h.seen = map[string]bool{}
	}
	h.seen[m.name] = true

	if err := h.decode(&m); err != nil {
		return err
	}
	h.members = append(h.members, m)
	return nil
}

func (h *headReader) bad(field string, err error) error {
	return fmt.Errorf("%w: %w", ErrFormat, &node.FieldError{Field: safetext.Cut(field, 100), Err: err})
}

// decode reads the value of a known member into h. It checks the value of an unknown member, and removes line breaks
// from it.
func (h *headReader) decode(m *member) error {
	raw := jsontext.Value(m.value)

	// A member must stay on one line when the file is written back.
	if bytes.ContainsAny(raw, "\n\r") {
		if err := raw.Compact(); err != nil {
			return h.bad(m.name, err)
		}
	}

	// The created time is kept as text too, to write it back with the same precision.
	var err error
	switch m.name {
	case "format":
		err = json.Unmarshal(raw, &h.format)
	case "version":
		err = json.Unmarshal(raw, &h.version)
	case "created":
		var t time.Time
		err = json.Unmarshal(raw, &t)
		h.created = content.JSON(raw)
	case "metadata":
		err = json.Unmarshal(raw, &h.metadata)
	case "heads":
		err = json.Unmarshal(raw, &h.heads)
	case "refs":
		err = json.Unmarshal(raw, &h.refs)
	case "nodes":
	default:
		// A newer version wrote this member: keep it unchanged.
		m.value = string(raw)
		if !raw.IsValid() {
			err = content.ErrJSON
		}
	}

	if err != nil {
		return h.bad(m.name, err)
	}
	return h.check(m.name)
}

// check rejects another format or version as soon as it is read.
func (h *headReader) check(name string) error {
	switch {
	case name == "format" && h.format != documentFormat && h.format != journalFormat:
		return h.bad(name, fmt.Errorf("it is %.100q, not %q or %q", h.format, documentFormat, journalFormat))
	case name == "version" && h.version > formatVersion:
		return fmt.Errorf("%w: it has version %d, this program reads version %d", ErrVersion, h.version, formatVersion)
	case name == "version" && h.version < 1:
		return h.bad(name, fmt.Errorf("it is %d, and the first version is 1", h.version))
	}
	return nil
}

// complete returns an error if a required member of a document is missing.
func (h *headReader) complete() error {
	for _, name := range []string{"format", "version", "nodes"} {
		if !h.seen[name] {
			return h.bad(name, errors.New("it is missing"))
		}
	}
	return nil
}

// nodes reads the array of nodes.
func (r *reader) nodes() error {
	if _, err := r.expect("["); err != nil {
		return err
	}
	if c, err := r.peek(); err != nil {
		return err
	} else if c == ']' {
		r.take(1)
		return nil
	}

	for {
		_, _ = r.peek() // skip to the line on which the value begins; value returns the error
		r.node, r.at = r.node+1, r.line
		value, err := r.value()
		if err != nil {
			return err
		}
		if err := r.add(value); err != nil {
			return err
		}

		// Between two nodes, an error has the line of the scanner.
		r.at = 0
		if c, err := r.expect(",]"); err != nil {
			return err
		} else if c == ']' {
			r.node = 0
			return nil
		}
	}
}

// graph holds the nodes that were read so far.
type graph struct {
	order []*node.Node
	used  []bool          // used[i] reports whether another node refers to order[i]
	index map[node.ID]int // index in order; nil as long as the IDs ascend, as they usually do
}

// add parses and adds one node.
func (g *graph) add(value jsontext.Value) error {
	n, err := g.parse(value)
	if err != nil {
		return err
	}

	id := n.ID()

	// The first ID that does not ascend ends the binary search of at: from then on there is a map.
	if last := len(g.order) - 1; last >= 0 && g.index == nil && compareIDs(g.order[last].ID(), id) >= 0 {
		g.makeIndex()
	}

	if g.index != nil {
		if _, twice := g.index[id]; twice {
			return &node.FieldError{ID: id.String(), Field: "id", Err: ErrDuplicateID}
		}
		g.index[id] = len(g.order)
	}

	g.order = append(g.order, n)
	g.used = append(g.used, false)
	return nil
}

func (g *graph) parse(value jsontext.Value) (*node.Node, error) {
	// Another tool may have reformatted the file, but the saved form of a node is one line.
	if bytes.IndexByte(value, '\n') >= 0 || bytes.IndexByte(value, '\r') >= 0 {
		value = value.Clone()
		if err := value.Compact(); err != nil {
			return nil, fmt.Errorf("%w: %w", node.ErrParse, err)
		}
	}
	return node.Parse(value, g.resolve)
}

func (g *graph) makeIndex() {
	g.index = make(map[node.ID]int, 2*len(g.order))
	for i, n := range g.order {
		g.index[n.ID()] = i
	}
}

func compareIDs(a, b node.ID) int { return bytes.Compare(a[:], b[:]) }

// at returns the index of the node with that ID in order, or -1.
func (g *graph) at(id node.ID) int {
	// Most nodes refer to one of the last few.
	for i := len(g.order) - 1; i >= max(len(g.order)-4, 0); i-- {
		if g.order[i].ID() == id {
			return i
		}
	}

	i, ok := 0, false
	if g.index != nil {
		i, ok = g.index[id]
	} else {
		i, ok = slices.BinarySearchFunc(g.order, id, func(n *node.Node, id node.ID) int { return compareIDs(n.ID(), id) })
	}
	if !ok {
		return -1
	}
	return i
}

// resolve returns the node with that ID, or nil, and marks it as referred to by another node.
func (g *graph) resolve(id node.ID) *node.Node {
	i := g.at(id)
	if i < 0 {
		return nil
	}
	g.used[i] = true
	return g.order[i]
}

// leaves returns the nodes without references from other nodes, in order.
func (g *graph) leaves() []*node.Node {
	var leaves []*node.Node
	for i, n := range g.order {
		if !g.used[i] {
			leaves = append(leaves, n)
		}
	}
	return leaves
}

// named returns the nodes with the IDs in a field of the file.
func (g *graph) named(field string, ids []string) ([]*node.Node, error) {
	return namedNodes(field, ids, g.find)
}

// refs returns old with the refs of a file: the IDs of their heads by name.
func (g *graph) refs(old *refs, named map[string][]string) (*refs, error) {
	return namedRefs(old, named, g.find)
}

// find returns the node with that ID, or nil.
func (g *graph) find(id node.ID) *node.Node {
	if i := g.at(id); i >= 0 {
		return g.order[i]
	}
	return nil
}

// namedNodes returns the nodes with the IDs in a field.
func namedNodes(field string, ids []string, find func(node.ID) *node.Node) ([]*node.Node, error) {
	var nodes []*node.Node
	for i, text := range ids {
		id, err := uuid.Parse(text)
		n := find(id)

		// Only the form in which an ID is saved counts, as in the nodes.
		if err != nil || n == nil || id.String() != text {
			err := fmt.Errorf("%w: %.100q", errHeads, text)
			return nil, &node.FieldError{Field: field + "/" + strconv.Itoa(i), Err: err}
		}
		nodes = append(nodes, n)
	}
	return node.Distinct(nodes), nil
}

// namedRefs returns old with refs: the IDs of their heads by name.
func namedRefs(old *refs, named map[string][]string, find func(node.ID) *node.Node) (*refs, error) {
	for name, ids := range named {
		if err := checkRefName(name); err != nil {
			return nil, &node.FieldError{Field: "refs", Err: err}
		}
		heads, err := namedNodes("refs/"+name, ids, find)
		if err != nil {
			return nil, err
		}
		old = old.with(name, heads)
	}
	return old, nil
}

// loose returns the nodes not reachable from the heads, by the node that follows them in the file; nil for the end. The
// heads must be distinct.
func (g *graph) loose(heads []*node.Node) map[*node.Node][]*node.Node {
	// Usually the heads reach every node, and nothing has to be searched.
	if g.reachesAll(heads) {
		return nil
	}

	w := walk{}
	w.from(heads)
	loose := map[*node.Node][]*node.Node{}
	var unreached []*node.Node // since the last node that the heads reach
	for _, n := range g.order {
		if w.seen[n.ID()] == nil {
			unreached = append(unreached, n)
		} else if unreached != nil {
			loose[n], unreached = unreached, nil
		}
	}

	if unreached != nil {
		loose[nil] = unreached
	}
	return loose
}

// reachesAll reports whether every leaf is a head. If so, the heads reach every node.
func (g *graph) reachesAll(heads []*node.Node) bool {
	leaves := 0
	for _, used := range g.used {
		if !used {
			leaves++
		}
	}

	// A head before other nodes is no leaf, and does not count.
	for _, h := range heads {
		if !g.used[g.at(h.ID())] {
			leaves--
		}
	}
	return leaves == 0
}
