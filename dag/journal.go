package dag

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// ErrDamaged is in the chain of an error about a journal that is broken elsewhere than at its end, where a crash cannot have
// done it.
var ErrDamaged = errors.New("the journal is damaged")

const journalFormat = "plait-journal"

// journalHeader is the first line of a journal.
const journalHeader = `{"format":"` + journalFormat + `","version":1}` + "\n"

// headsPrefix begins the line that ends an append.
const headsPrefix = `{"heads":`

// Journal is a file that a conversation is appended to, step by step. The cost of a step does not grow with the length of the
// conversation: only nodes that the file does not hold yet are written.
//
// The file has a line for each node, as node.Append writes it, and after the nodes of each append a line with the heads:
//
//	{"format":"plait-journal","version":1}
//	{"id":"…","parents":[],"kind":"system",…}
//	{"id":"…","parents":["…"],"kind":"message",…}
//	{"heads":["…"],"at":41}
//
// "at" is where in the file the append begins, so that lines which are missing are noticed. A member "refs" follows where refs have
// changed since the last append: the heads of each one that was set, by its name, and null for one that was removed. So does a
// member "header" where what else a document's header says of the conversation (its metadata, say) has changed. [Load] reads a journal as
// well.
//
// A Journal is safe for concurrent use. The file has one writer at a time: nothing keeps another program, or a second Journal,
// from writing to it, because locks on files differ between systems; a program that may run twice must see to it.
type Journal struct {
	mu        sync.Mutex
	file      *os.File
	noSync    bool
	recovered *Recovery
	state     journalState
	err       error // why nothing can be appended any more
}

// journalState is what a journal's complete appends hold.
type journalState struct {
	dag     DAG
	written map[node.ID]*node.Node
	header  string // the last header in it
	size    int64  // where the next append goes
}

// JournalOptions change how a journal is read and written. Nil is the same as the zero value.
type JournalOptions struct {
	// NoSync leaves it to the system when an append reaches the disk: it is then safe from a crash of the program, and not from
	// one of the machine. Defaults to false: what was appended is on disk when Append returns.
	NoSync bool
	// MaxNode is the most bytes that one line may have. Defaults to 256 MiB.
	MaxNode int
}

// Recovery says what was cut from the end of a journal when it was opened: an append that a crash cut short, and that was
// therefore never reported as done.
type Recovery struct {
	// Bytes is how many bytes were cut.
	Bytes int64
	// Line is the first line that was cut, from 1.
	Line int
	// Reason says what was found there.
	Reason error
}

// String says in one line what was cut off, and why.
func (r *Recovery) String() string {
	return fmt.Sprintf("%d bytes were cut from line %d on: %v", r.Bytes, r.Line, r.Reason)
}

// OpenJournal opens the journal at path, and makes an empty one where there is none.
//
// A journal whose last append was cut short is cut back to the end of the last complete one, the last line with heads; what was
// appended and reported as done is never cut. Nodes after that line go, complete or not: they were part of an append that did
// not end. [Journal.Recovered] reports it. Damage anywhere else is ErrDamaged, with the file left as it is, and a file that is
// no journal is ErrFormat. Errors are *LoadError where the content is to blame.
func OpenJournal(path string, opts *JournalOptions) (*Journal, error) {
	if opts == nil {
		opts = &JournalOptions{}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	j := &Journal{file: f, noSync: opts.NoSync}
	if err := j.open(path, opts.MaxNode); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

func (j *Journal) open(path string, maxNode int) error {
	torn, err := j.tornHeader()
	if err != nil {
		return err
	}
	if torn >= 0 {
		return j.create(path, torn)
	}
	in := reader{scanner: newScanner(j.file, Loader{MaxNode: maxNode}.limit())}
	if err := in.journalFile(j); err != nil {
		return in.blame(path, err)
	}
	if j.recovered == nil {
		return nil
	}
	return errors.Join(j.file.Truncate(j.state.size), j.sync())
}

func (j *Journal) sync() error {
	if j.noSync {
		return nil
	}
	return j.file.Sync()
}

// tornHeader returns the length of a file that holds no more than a part of the first line; -1 for any other.
func (j *Journal) tornHeader() (int, error) {
	start := make([]byte, len(journalHeader))
	n, err := j.file.ReadAt(start, 0)
	if n < len(start) && err == io.EOF && strings.HasPrefix(journalHeader, string(start[:n])) {
		return n, nil
	}
	if err == io.EOF {
		err = nil
	}
	return -1, err
}

// create writes the first line. A name that is new in its folder is made durable too.
func (j *Journal) create(path string, torn int) error {
	if torn > 0 {
		j.recovered = &Recovery{Bytes: int64(torn), Line: 1, Reason: io.ErrUnexpectedEOF}
	}
	if _, err := j.file.WriteAt([]byte(journalHeader), 0); err != nil {
		return err
	}
	j.state.size, j.state.written = int64(len(journalHeader)), map[node.ID]*node.Node{}
	j.state.setHeader(header{})
	if j.noSync {
		return nil
	}
	return errors.Join(j.file.Sync(), syncFolder(filepath.Dir(path)))
}

// DAG returns the conversation as the last append left it.
func (j *Journal) DAG() DAG {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state.dag
}

// Recovered reports what OpenJournal cut from the file; nil when it was whole.
func (j *Journal) Recovered() *Recovery { return j.recovered }

// Append makes d what the journal holds. It writes the nodes that are not in the file yet, with those of child conversations, and
// the heads, all in one write, and nothing where nothing is new. Nodes that no head reaches any more, after a rewind, stay in
// the file, so that a later append may have them again.
//
// When Append returns nil, d is durable (see [JournalOptions]). After an error the journal holds what it held before. Errors:
// the chain's own; ErrDuplicateID for a node whose id another node in the file has; ErrNotErased for a node that was redacted and
// is in the file as it was; fs.ErrClosed; and those of writing. After an error that leaves open what is on disk, every later Append returns it too: open the journal again.
func (j *Journal) Append(d DAG) error {
	if d.err != nil {
		return d.err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return j.err
	}
	if err := j.state.whole(d); err != nil {
		return err
	}
	fresh, err := j.state.missing(d)
	if err != nil {
		return err
	}
	lines, header := j.state.lines(d, fresh)
	if lines != nil {
		if err := j.write(lines); err != nil {
			return err
		}
	}
	for _, n := range fresh {
		j.state.written[n.ID()] = n
	}
	j.state.dag, j.state.header = d, header
	j.state.size += int64(len(lines))
	return nil
}

// missing returns the nodes of d that are not in the file, in the order in which they are written.
func (s journalState) missing(d DAG) ([]*node.Node, error) {
	var w walk
	w.known = func(n *node.Node) bool {
		old := s.written[n.ID()]
		if old != nil {
			w.compare(old, n)
		}
		return old != nil
	}
	roots := slices.Clone(d.heads)
	d.environment().refs.since(s.dag.environment().refs, func(r Ref, gone bool) {
		if !gone {
			roots = append(roots, r.Heads...)
		}
	})
	nodes := w.from(roots)
	return nodes, w.clash
}

// lines returns what has to be written for d, nil for nothing, and d's header.
func (s journalState) lines(d DAG, fresh []*node.Node) ([]byte, string) {
	header := d.header().journal()
	moved := s.moved(d)
	if len(fresh) == 0 && moved == nil && header == s.header && sameNodes(d.heads, s.dag.heads) {
		return nil, header
	}
	var lines []byte
	for _, n := range fresh {
		lines = append(n.Append(lines), '\n')
	}
	lines = appendHeads(append(lines, headsPrefix...), d.heads)
	lines = strconv.AppendInt(append(lines, `,"at":`...), s.size, 10)
	if moved != nil {
		lines = append(append(append(lines, `,"refs":{`...), moved...), '}')
	}
	if header != s.header {
		lines = append(append(lines, `,"header":`...), header...)
	}
	return append(lines, "}\n"...), header
}

// moved is the members of "refs" for d: what has changed since the last append.
func (s journalState) moved(d DAG) []byte {
	var members []byte
	d.environment().refs.since(s.dag.environment().refs, func(r Ref, gone bool) {
		if gone {
			members = append(content.AppendRaw(members, r.Name), "null"...)
		} else {
			members = r.append(members)
		}
	})
	return members
}

// sameNodes compares by id: the nodes of a conversation that was loaded twice are the same.
func sameNodes(a, b []*node.Node) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].ID() != b[i].ID() {
			return false
		}
	}
	return true
}

// journal is what a journal keeps of the header, as an object.
func (h header) journal() string {
	dst := []byte{'{'}
	for _, m := range h.layout() {
		dst = h.own(dst, m)
	}
	return string(append(dst, '}'))
}

// write appends lines to the file, or leaves it as it was.
func (j *Journal) write(lines []byte) error {
	if _, err := j.file.WriteAt(lines, j.state.size); err != nil {
		if undo := j.file.Truncate(j.state.size); undo != nil {
			j.err = errors.Join(err, undo)
			return j.err
		}
		return err
	}
	j.err = j.sync() // after one that failed nobody knows what is on disk
	return j.err
}

// Close closes the file. A second Close does nothing. [Journal.DAG] still works.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil || errors.Is(j.err, os.ErrClosed) {
		return nil
	}
	j.err = &os.PathError{Op: "append", Path: j.file.Name(), Err: os.ErrClosed}
	return j.file.Close()
}

// journalFile reads the file of a journal that is being opened.
func (r *reader) journalFile(j *Journal) (err error) {
	if err = r.begin(); err != nil {
		return err
	}
	if err = r.members(&r.head, r.nodes); err != nil {
		return err
	}
	if r.head.format != journalFormat {
		return fmt.Errorf("%w to append to: it is a document; Load reads it", ErrFormat)
	}
	j.state, j.recovered, err = r.journal()
	return err
}

// journal reads what follows the header of a journal. The recovery says what an append that was cut short has left at the end.
func (r *reader) journal() (journalState, *Recovery, error) {
	if err := r.headerEnds(); err != nil {
		return journalState{}, nil, err
	}
	state := journalState{written: map[node.ID]*node.Node{}, size: r.offset}
	state.setHeader(r.head.header)
	first := r.line // of the append that is being read
	for {
		r.at = r.line
		line, complete, err := r.text()
		switch {
		case err == io.EOF && r.offset == state.size:
			return state, nil, nil
		case err == io.EOF:
			return state, &Recovery{r.offset - state.size, first, errNoHeads}, nil
		case err != nil:
			return journalState{}, nil, err
		case !complete:
			return state, &Recovery{r.offset - state.size, first, io.ErrUnexpectedEOF}, nil
		}
		if err := r.entry(&state, line); err != nil {
			if !r.unwritten(line, state.size) {
				return journalState{}, nil, fmt.Errorf("%w: %w", ErrDamaged, err)
			}
			return state, &Recovery{r.offset - state.size, first, err}, nil
		}
		if r.offset == state.size {
			first = r.line
		}
	}
}

// errNoHeads is the reason of a recovery whose lines are whole.
var errNoHeads = errors.New("the nodes are not followed by a line with the heads")

// headerEnds checks that nothing but the end of the line follows the header.
func (r *reader) headerEnds() error {
	rest, complete, err := r.text()
	switch {
	case err != nil && err != io.EOF:
		return err
	case len(rest) > 0 || !complete || !r.head.seen["version"] || r.head.seen["nodes"] || r.head.seen["heads"] || r.head.seen["refs"]:
		return fmt.Errorf("%w: its first line is not the header of a journal", ErrFormat)
	}
	return nil
}

// headsLine is the line that ends an append.
type headsLine struct {
	Heads  []string            `json:"heads"`
	At     int64               `json:"at"`
	Refs   map[string][]string `json:"refs"`
	Header jsontext.Value      `json:"header"`
}

// entry reads one complete line.
func (r *reader) entry(s *journalState, line []byte) error {
	if !bytes.HasPrefix(line, []byte(headsPrefix)) {
		r.node = len(r.order) + 1
		return r.add(line)
	}
	r.node = 0
	var entry headsLine
	if err := json.Unmarshal(line, &entry); err != nil {
		return err
	}
	if entry.At != s.size {
		return fmt.Errorf("the append says that it begins at byte %d, and it begins at %d", entry.At, s.size)
	}
	heads, err := r.heads(entry.Heads, false)
	if err != nil {
		return err
	}
	if entry.Header != nil {
		var h headReader
		in := newScanner(bytes.NewReader(entry.Header), len(line))
		if err := in.members(&h, func() error { return ErrFormat }); err != nil {
			return err
		}
		s.setHeader(h.header)
	}
	if err := s.moveRefs(r.graph, entry.Refs); err != nil {
		return err
	}
	for _, n := range r.order[len(s.written):] {
		s.written[n.ID()] = n
	}
	s.dag.heads, s.size = heads, r.offset
	return nil
}

func (s *journalState) setHeader(h header) {
	s.dag = s.dag.change(func(e *env) { e.file = &h })
	s.header = h.journal()
}

// moveRefs takes in what an append says of refs.
func (s *journalState) moveRefs(g graph, moved map[string][]string) error {
	if moved == nil {
		return nil
	}
	now := s.dag.environment().refs
	for name, ids := range moved {
		if ids == nil {
			now = now.without(name)
			delete(moved, name)
		}
	}
	now, err := g.refs(now, moved)
	if err == nil {
		s.dag = s.dag.change(func(e *env) { e.refs = now })
	}
	return err
}

// unwritten reports whether a broken line is what a machine leaves that lost power before the last append had reached the disk:
// blocks of zeros in an append that begins at from, with nothing after it. A crash of the program alone leaves no broken line
// that is complete.
func (r *reader) unwritten(line []byte, from int64) bool {
	zeros := bytes.IndexByte(line, 0) >= 0
	for ended := false; ; {
		line, _, err := r.text()
		if err != nil {
			return err == io.EOF && zeros
		}
		if ended {
			return false
		}
		zeros = zeros || bytes.IndexByte(line, 0) >= 0
		if bytes.HasPrefix(line, []byte(headsPrefix)) {
			var entry headsLine
			if json.Unmarshal(line, &entry) == nil && entry.At != from {
				return false
			}
			ended = true
		}
	}
}
