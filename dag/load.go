package dag

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"
	"github.com/google/uuid"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// Errors that loading returns, inside a *LoadError, beside node.ErrParse, node.ErrParent and ErrLimit.
var (
	// ErrFormat marks what is not a saved conversation, or is one whose frame is broken.
	ErrFormat = errors.New("not a saved conversation")
	// ErrVersion marks a file that another version of Plait wrote; a *VersionError names the version.
	ErrVersion = errors.New("written by another version of Plait")
	// ErrDuplicateID marks an id that two nodes have.
	ErrDuplicateID = errors.New("the id is used twice")
	// ErrHeads marks a head, or a ref's head, that is not among the nodes.
	ErrHeads = errors.New("no such node for a head")
)

// LoadError says where in a file something is wrong. Where a field of a node is to blame, a *node.FieldError is in its chain.
type LoadError struct {
	// File is the path; empty for [Read].
	File string
	// Line is the line at which reading stopped, from 1; 0 where the file could not be opened.
	Line int
	// Node is which of the file's nodes it was, from 1; 0 outside the nodes.
	Node int
	Err  error
}

// Error names the file, the line and the node. What the file holds is cut where it is too long.
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

// VersionError names the version of a file, or of other saved data, that this program cannot read. Its chain holds ErrVersion.
type VersionError struct {
	// Version is the version of the data, and Supported the newest version that can be read.
	Version, Supported int
}

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("%v: it has version %d, and this program reads version %d", ErrVersion, e.Version, e.Supported)
}

// Unwrap returns ErrVersion.
func (e *VersionError) Unwrap() error { return ErrVersion }

// Loader reads saved conversations with other limits than [Load] and [Read] have. The zero value is what those use.
type Loader struct {
	// MaxNode is the most bytes that one node, or one member of the header, may have. Reading takes memory for what is kept and
	// in proportion to MaxNode, whatever the file holds. Defaults to 256 MiB.
	MaxNode int
}

func (l Loader) limit() int {
	if l.MaxNode <= 0 {
		return 256 << 20
	}
	return min(l.MaxNode, math.MaxInt-1) // a scanner looks one byte further
}

// Load reads a conversation that [DAG.Save] or a [Journal] wrote; a journal as its last complete append left it, and without
// changing the file. Every error is a *LoadError; the conversation beside it is empty.
//
// A file is read in one pass, which is why a node must come after all nodes that it names: a cycle shows as a node.ErrParent. A
// document may be printed anew by another tool, with other spaces and line breaks; those inside its nodes are not kept. Where
// it has no member "heads", the nodes that no other names are the heads, in order. A head, of the conversation or of a ref, that is
// not among the nodes is ErrHeads; a ref with a name that none can have is ErrRefName.
func Load(path string) (DAG, error) { return Loader{}.Load(path) }

// Read is Load for what r gives, up to its end.
func Read(r io.Reader) (DAG, error) { return Loader{}.Read(r) }

// Load is the function Load with l's limits.
func (l Loader) Load(path string) (DAG, error) {
	f, err := os.Open(path)
	if err != nil {
		return DAG{}, &LoadError{File: path, Err: err}
	}
	defer f.Close()
	return l.read(f, path)
}

// Read is the function Read with l's limits.
func (l Loader) Read(r io.Reader) (DAG, error) { return l.read(r, "") }

func (l Loader) read(r io.Reader, path string) (DAG, error) {
	in := reader{scanner: newScanner(r, l.limit())}
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
	node int // which node is being read; 0 for none
	at   int // the line on which it begins; 0 for none
}

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
	if r.head.format == journalFormat {
		state, _, err := r.journal()
		return state.dag, err
	}
	if err := r.head.complete(); err != nil {
		return DAG{}, err
	}
	if c, err := r.peek(); err == nil {
		return DAG{}, fmt.Errorf("%w: %q after its end", ErrFormat, c)
	} else if !errors.Is(err, io.ErrUnexpectedEOF) {
		return DAG{}, err
	}
	heads, err := r.heads(r.head.heads, r.head.heads == nil)
	if err != nil {
		return DAG{}, err
	}
	d := DAG{heads: heads, env: &env{}}
	if d.env.refs, err = r.refs(nil, r.head.refs); err != nil {
		return DAG{}, err
	}
	h := r.head.header
	h.loose = r.loose(node.Distinct(d.roots()))
	d.env.file = &h
	return d, nil
}

// begin looks at the first byte, so that what is no JSON object at all is called by its name.
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

// members reads an object. nodes is called where the value of the member of that name stands.
func (s *scanner) members(h *headReader, nodes func() error) error {
	if _, err := s.expect("{"); err != nil {
		return err
	}
	if c, err := s.peek(); err != nil {
		return err
	} else if c == '}' {
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
	if err := json.Unmarshal(key, &m.name); err != nil {
		return fmt.Errorf("%w: the name of a member of the header: %w", ErrFormat, err)
	} else if key[0] != '"' {
		return fmt.Errorf("%w: a member of the header has no name", ErrFormat)
	}
	if _, err := s.expect(":"); err != nil {
		return err
	}
	if m.name != "nodes" {
		value, err := s.value()
		if err != nil {
			return err
		}
		m.value = string(value)
	}
	if err := h.add(m, s.limit); err != nil {
		return err
	}
	if m.name == "nodes" {
		return nodes()
	}
	return nil
}

// headReader is the header as far as it was read.
type headReader struct {
	header
	format  string
	version int
	heads   []string
	refs    map[string][]string
	size    int
	seen    map[string]bool
}

// add takes in one member. All of them together must stay within limit.
func (h *headReader) add(m member, limit int) error {
	if h.size += len(m.key) + len(m.value); h.size > limit {
		return fmt.Errorf("%w: a header of more than %d bytes", ErrLimit, limit)
	}
	if h.seen[m.name] {
		return h.bad(m.name, errors.New("it is there twice"))
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

// decode reads the value of a member that this version knows, and checks that of another. Line breaks inside it are not kept.
func (h *headReader) decode(m *member) error {
	raw := jsontext.Value(m.value)
	var err error
	if bytes.ContainsAny(raw, "\n\r") {
		err = raw.Compact()
	}
	var t time.Time
	if err == nil {
		switch m.name {
		case "format":
			err = json.Unmarshal(raw, &h.format)
		case "version":
			err = json.Unmarshal(raw, &h.version)
		case "created":
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
			m.value = string(raw)
			if !raw.IsValid() {
				err = content.ErrJSON
			}
		}
	}
	if err != nil {
		return h.bad(m.name, err)
	}
	return h.check(m.name)
}

// check refuses another format and another version as soon as they are read.
func (h *headReader) check(name string) error {
	switch {
	case name == "format" && h.format != documentFormat && h.format != journalFormat:
		return h.bad(name, fmt.Errorf("it is %.100q, not %q or %q", h.format, documentFormat, journalFormat))
	case name == "version" && h.version > formatVersion:
		return &VersionError{Version: h.version, Supported: formatVersion}
	case name == "version" && h.version < 1:
		return h.bad(name, fmt.Errorf("it is %d", h.version))
	}
	return nil
}

// complete reports what a document must have and this one does not.
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
		_, _ = r.peek() // to the line on which the value begins; value returns the error
		r.node, r.at = r.node+1, r.line
		value, err := r.value()
		if err == nil {
			err = r.add(value)
		}
		if err != nil {
			return err
		}
		r.at = 0
		if c, err := r.expect(",]"); err != nil {
			return err
		} else if c == ']' {
			r.node = 0
			return nil
		}
	}
}

// graph is the nodes that were read so far.
type graph struct {
	order []*node.Node
	used  []bool // whether another node names order[i]
	index map[node.ID]int
}

// add reads one node.
func (g *graph) add(value jsontext.Value) error {
	if bytes.IndexByte(value, '\n') >= 0 || bytes.IndexByte(value, '\r') >= 0 {
		value = value.Clone()
		if err := value.Compact(); err != nil {
			return fmt.Errorf("%w: %w", node.ErrParse, err)
		}
	}
	n, err := node.Parse(value, g.resolve)
	if err != nil {
		return err
	}
	if _, twice := g.index[n.ID()]; twice {
		return &node.FieldError{ID: n.ID().String(), Field: "id", Err: ErrDuplicateID}
	}
	if g.index == nil {
		g.index = map[node.ID]int{}
	}
	g.index[n.ID()] = len(g.order)
	g.order = append(g.order, n)
	g.used = append(g.used, false)
	return nil
}

// resolve returns the node with that id for one that names it.
func (g *graph) resolve(id node.ID) *node.Node {
	i, ok := g.index[id]
	if !ok {
		return nil
	}
	g.used[i] = true
	return g.order[i]
}

// heads returns the nodes with the given ids, or those that no other names.
func (g *graph) heads(ids []string, guess bool) ([]*node.Node, error) {
	var heads []*node.Node
	if guess {
		for i, n := range g.order {
			if !g.used[i] {
				heads = append(heads, n)
			}
		}
		return heads, nil
	}
	return g.named("heads", ids)
}

// named returns the nodes with the ids that a field of the file holds.
func (g *graph) named(field string, ids []string) ([]*node.Node, error) {
	var nodes []*node.Node
	for i, text := range ids {
		id, err := uuid.Parse(text)
		at, ok := g.index[id]
		if err != nil || !ok || id.String() != text {
			return nil, &node.FieldError{Field: field + "/" + strconv.Itoa(i), Err: fmt.Errorf("%w: %.100q", ErrHeads, text)}
		}
		nodes = append(nodes, g.order[at])
	}
	return node.Distinct(nodes), nil
}

// refs returns old with the refs that a file names.
func (g *graph) refs(old *refs, named map[string][]string) (*refs, error) {
	for name, ids := range named {
		if err := checkRefName(name); err != nil {
			return nil, &node.FieldError{Field: "refs", Err: err}
		}
		heads, err := g.named("refs/"+name, ids)
		if err != nil {
			return nil, err
		}
		old = old.with(name, heads)
	}
	return old, nil
}

// loose returns the nodes that the heads, which are given once each, do not reach, by the node that they stand before.
func (g *graph) loose(heads []*node.Node) map[*node.Node][]*node.Node {
	if g.reachesAll(heads) {
		return nil
	}
	w := walk{}
	w.from(heads)
	loose := map[*node.Node][]*node.Node{}
	var waiting []*node.Node
	for _, n := range g.order {
		if w.seen[n.ID()] == nil {
			waiting = append(waiting, n)
		} else if waiting != nil {
			loose[n], waiting = waiting, nil
		}
	}
	if waiting != nil {
		loose[nil] = waiting
	}
	return loose
}

// reachesAll reports whether every node that no other names is a head: then nothing is out of their reach.
func (g *graph) reachesAll(heads []*node.Node) bool {
	ends := 0
	for _, used := range g.used {
		if !used {
			ends++
		}
	}
	for _, h := range heads {
		if !g.used[g.index[h.ID()]] {
			ends--
		}
	}
	return ends == 0
}
