package dag

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// Errors of a [Journal].
var (
	// ErrDamaged marks a journal that is broken elsewhere than at its end, where a crash cannot have done it.
	ErrDamaged = errors.New("the journal is damaged")
	// ErrLocked marks a journal that is open for writing already, in this program or in another.
	ErrLocked = errors.New("the journal is open for writing elsewhere")
	// ErrChanged marks a journal whose file was changed, replaced or removed while it was open for writing.
	ErrChanged = errors.New("the journal was changed by somebody else")
)

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
// member "header" where what else a document's header says of the conversation (its metadata, say) has changed. Of many heads only those
// that changed are written: with "keep":[first,last] the first and the last heads of the append before stay, so many of each, and
// "heads" stand between them. [Load] reads a journal as well.
//
// A Journal is safe for concurrent use. The file has one writer at a time, and any number of readers by [Load]:
//
//   - OpenJournal takes a lock of the operating system on the file. A second writer, in this program or in another, gets ErrLocked.
//     The lock ends with Close or with the program, also after a crash. Linux, macOS, the BSDs and Windows have such locks; other
//     platforms (WebAssembly, Solaris, AIX, Plan 9) and some network file systems do not.
//   - Every Append compares the size and the identity of the file with what the last append left. A file that was truncated,
//     extended, replaced or removed in between is ErrChanged, and is left as it is. This holds on all platforms.
//
// To append each step of a run, set executor.Agent.Save.
type Journal struct {
	disk      disk
	path      string // absolute
	noSync    bool
	recovered *Recovery

	mu    sync.Mutex // guards what follows
	file  file       // nil in the zero value
	state journalState
	err   error // the reason why every later Append fails; nil while the file is known to hold state
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

// OpenJournal opens the journal at path for writing. It creates an empty one if there is no file.
//
// A journal whose last append was cut short is truncated to the end of the last complete append, which is its last line with heads.
// Nodes after that line are removed, complete or not: they belong to an append that did not end. An append that was reported as done
// is never removed. [Journal.Recovered] reports what was.
//
// When OpenJournal returns nil, what the journal holds is durable (see [JournalOptions]). Errors: ErrLocked for a journal that is
// open already; ErrDamaged for damage anywhere but at the end; ErrFormat for a file that is no journal; ErrVersion; and those of the
// file system. Errors about the content are *LoadError, and leave the file as it is.
func OpenJournal(path string, opts *JournalOptions) (*Journal, error) {
	return openJournal(systemDisk{}, path, opts)
}

func openJournal(on disk, path string, opts *JournalOptions) (*Journal, error) {
	if opts == nil {
		opts = &JournalOptions{}
	}
	absolute, err := filepath.Abs(path) // the program may change its working directory
	if err != nil {
		return nil, err
	}

	f, err := openLocked(on, absolute, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, renamed(err, "open", path)
	}
	j := &Journal{disk: on, path: absolute, noSync: opts.NoSync, file: f}
	if err := j.open(path, opts.MaxNode); err != nil {
		return nil, errors.Join(err, j.closeFile())
	}
	return j, nil
}

// openLocked opens the file at path and takes its lock.
func openLocked(on disk, path string, flag int) (file, error) {
	const tries = 10
	for range tries {
		f, err := on.OpenFile(path, flag, 0o666)
		if err != nil {
			return nil, err
		}
		if err := on.Lock(f); err != nil {
			return nil, errors.Join(&fs.PathError{Op: "lock", Path: path, Err: err}, f.Close())
		}

		// The file may have been replaced between opening and locking it. The lock is then on a file without a name.
		same, err := isAt(on, f, path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, on.Unlock(f), f.Close())
		}
		if same {
			return f, nil
		}
		if err := errors.Join(on.Unlock(f), f.Close()); err != nil {
			return nil, err
		}
	}
	return nil, &fs.PathError{Op: "lock", Path: path, Err: ErrChanged}
}

// isAt reports whether f is the file at path.
func isAt(on disk, f file, path string) (bool, error) {
	opened, err := f.Stat()
	if err != nil {
		return false, err
	}
	found, err := on.Stat(path)
	if err != nil {
		return false, err
	}
	return os.SameFile(opened, found), nil
}

func (j *Journal) open(path string, maxNode int) error {
	torn, err := j.tornHeader()
	if err != nil {
		return err
	}
	if torn >= 0 {
		return j.create(torn)
	}

	in := reader{scanner: newScanner(j.file, Loader{MaxNode: maxNode}.limit())}
	if err := in.journalFile(j); err != nil {
		return in.blame(path, err)
	}
	if j.recovered != nil {
		if err := j.file.Truncate(j.state.size); err != nil {
			return err
		}
	}

	// The last writer may have ended before its appends, or the name of its file, had reached the disk.
	return j.syncAll()
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

// create writes the first line, of which the file holds torn bytes.
func (j *Journal) create(torn int) error {
	if torn > 0 {
		j.recovered = &Recovery{Bytes: int64(torn), Line: 1, Reason: io.ErrUnexpectedEOF}
	}
	if err := writeAt(j.file, []byte(journalHeader), 0); err != nil {
		return err
	}
	j.state.size, j.state.written = int64(len(journalHeader)), map[node.ID]*node.Node{}
	j.state.setHeader(header{})

	return j.syncAll()
}

// sync makes what the file holds durable.
func (j *Journal) sync() error {
	if j.noSync {
		return nil
	}
	return j.file.Sync()
}

// syncAll makes the file durable, and then its name.
func (j *Journal) syncAll() error {
	if j.noSync {
		return nil
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	return j.disk.SyncFolder(filepath.Dir(followed(j.path)))
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
// Append does not join: where two runs go on from the same conversation at once, the last append decides the heads, and no head
// reaches the answer of the other run. Let one run at a time go on from [Journal.DAG], with a mutex for each session say, or append what
// [DAG.Join] makes of both.
//
// When Append returns nil, d is durable (see [JournalOptions]). After an error the journal holds what it held before. Errors:
//
//   - the chain's own;
//   - ErrDuplicateID for a node whose id another node in the file has;
//   - ErrNotErased for a node that was redacted and is in the file as it was;
//   - ErrChanged for a file that somebody else changed;
//   - fs.ErrClosed after Close;
//   - those of writing.
//
// After ErrChanged, and after an error that leaves open what is on disk, every later Append returns the same error: open the journal
// again.
func (j *Journal) Append(d DAG) error {
	if d.err != nil {
		return d.err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return &fs.PathError{Op: "append", Err: os.ErrClosed} // the zero value
	}
	if j.err != nil {
		return j.err
	}
	if err := j.state.checkErased(d); err != nil {
		return err
	}
	fresh, err := j.state.missing(d)
	if err != nil {
		return err
	}

	// Compare the file also where there is nothing to write: nil means that d is durable.
	if err := j.unchanged(); err != nil {
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

// unchanged returns an error with ErrChanged if the file is not as the last append left it.
func (j *Journal) unchanged() error {
	opened, err := j.file.Stat()
	if err != nil {
		return err
	}
	found, err := j.disk.Stat(j.path)

	var reason string
	switch {
	case errors.Is(err, fs.ErrNotExist):
		reason = "it was removed"
	case err != nil:
		return err
	case !os.SameFile(opened, found):
		reason = "another file has replaced it"
	case opened.Size() != j.state.size:
		reason = fmt.Sprintf("it has %d bytes, and the last append left %d", opened.Size(), j.state.size)
	default:
		return nil
	}
	j.err = &fs.PathError{Op: "append", Path: j.path, Err: fmt.Errorf("%w: %s", ErrChanged, reason)}
	return j.err
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
	first, last := s.kept(d.heads)
	roots := slices.Clone(d.heads[first : len(d.heads)-last])
	changedRefs(d.environment().refs, s.dag.environment().refs, func(r Ref, gone bool) {
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

	const few = 8 // heads that are written whole, for people who read the file
	first, last := s.kept(d.heads)
	if first+last <= few {
		first, last = 0, 0
	}
	lines = appendHeads(append(lines, headsPrefix...), d.heads[first:len(d.heads)-last])
	if first+last > 0 {
		lines = fmt.Appendf(lines, `,"keep":[%d,%d]`, first, last)
	}
	lines = strconv.AppendInt(append(lines, `,"at":`...), s.size, 10)
	if moved != nil {
		lines = append(append(append(lines, `,"refs":{`...), moved...), '}')
	}
	if header != s.header {
		lines = append(append(lines, `,"header":`...), header...)
	}
	return append(lines, "}\n"...), header
}

// kept returns how many of the first and of the last heads are those of the last append. Only then they are the same nodes: another one
// with the same ID may say something else.
func (s journalState) kept(heads []*node.Node) (first, last int) {
	old := s.dag.heads
	n := min(len(old), len(heads))
	for first < n && old[first] == heads[first] {
		first++
	}
	for last < n-first && old[len(old)-1-last] == heads[len(heads)-1-last] {
		last++
	}
	return first, last
}

// moved is the members of "refs" for d: what has changed since the last append.
func (s journalState) moved(d DAG) []byte {
	var members []byte
	changedRefs(d.environment().refs, s.dag.environment().refs, func(r Ref, gone bool) {
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
	if err := writeAt(j.file, lines, j.state.size); err != nil {
		if undo := j.file.Truncate(j.state.size); undo != nil {
			j.err = errors.Join(err, undo)
			return j.err
		}
		return err
	}

	// After a failed sync nobody knows what is on disk, and the next sync may report success for lost bytes.
	j.err = j.sync()
	return j.err
}

// Close closes the file and gives its lock back. A second Close does nothing. [Journal.DAG] still works.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil || errors.Is(j.err, os.ErrClosed) {
		return nil
	}
	j.err = &fs.PathError{Op: "append", Path: j.path, Err: os.ErrClosed}
	return j.closeFile()
}

func (j *Journal) closeFile() error { return errors.Join(j.disk.Unlock(j.file), j.file.Close()) }

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
			return state.distinct(), nil, nil
		case err == io.EOF:
			return state.distinct(), &Recovery{r.offset - state.size, first, errNoHeads}, nil
		case err != nil:
			return journalState{}, nil, err
		case !complete:
			return state.distinct(), &Recovery{r.offset - state.size, first, io.ErrUnexpectedEOF}, nil
		}
		if err := r.entry(&state, line); err != nil {
			if !r.unwritten(line, state.size) {
				return journalState{}, nil, fmt.Errorf("%w: %w", ErrDamaged, err)
			}
			return state.distinct(), &Recovery{r.offset - state.size, first, err}, nil
		}
		if r.offset == state.size {
			first = r.line
		}
	}
}

// distinct returns the state with each head once: the heads that an append keeps were not compared with those that it adds.
func (s journalState) distinct() journalState {
	s.dag.heads = node.Distinct(s.dag.heads)
	return s
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
	Keep   []int               `json:"keep"`
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
	heads, err := r.named("heads", entry.Heads)
	keep := []int{0, 0}
	if entry.Keep != nil {
		keep = entry.Keep
	}
	if err == nil {
		err = s.checkKeep(keep)
	}
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
	// In place, because there may be many: nobody else has the slice while the file is read.
	s.dag.heads = slices.Replace(s.dag.heads, keep[0], len(s.dag.heads)-keep[1], heads...)
	s.size = r.offset
	return nil
}

// checkKeep returns an error if an append cannot keep so many of the first and the last heads.
func (s *journalState) checkKeep(keep []int) error {
	old := len(s.dag.heads)
	if len(keep) != 2 || keep[0] < 0 || keep[1] < 0 || keep[0] > old || keep[1] > old-keep[0] {
		return &node.FieldError{Field: "keep", Err: fmt.Errorf("%w: it is %v, and there are %d heads", ErrHeads, keep, old)}
	}
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
