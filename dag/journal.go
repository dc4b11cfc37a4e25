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
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/node"
)

// Errors of a [Journal].
var (
	// ErrDamaged marks a journal with damage before its end. A crash cannot cause this.
	ErrDamaged = errors.New("the journal is damaged")
	// ErrLocked marks a journal already open for writing, in this program or in another.
	ErrLocked = errors.New("the journal is open for writing elsewhere")
	// ErrChanged marks a journal file changed, replaced or removed while it was open for writing.
	ErrChanged = errors.New("the journal was changed by another program")
)

const journalFormat = "plait-journal"

// journalHeader is the first line of a journal.
const journalHeader = `{"format":"` + journalFormat + `","version":1}` + "\n"

// headsPrefix begins the last line of an append.
const headsPrefix = `{"heads":`

// Journal is a file that a conversation is appended to, step by step. Only new nodes are written, so the cost of a step
// does not grow with the length of the conversation.
//
// The file has a line for each node, as node.Append writes it. A line with the heads ends each append:
//
//	{"format":"plait-journal","version":1}
//	{"id":"…","parents":[],"kind":"system",…}
//	{"id":"…","parents":["…"],"kind":"message",…}
//	{"heads":["…"],"at":41}
//
// The members of the last line are:
//
//   - at: the offset of the append. It shows whether lines are missing.
//   - refs: the heads of each ref set since the last append, by name, and null for each removed ref. Left out if no ref
//     has changed.
//   - header: the other members of a document's header, such as its metadata. Left out if none has changed.
//   - heads and keep: "keep":[first,last] keeps the given numbers of first and last heads from the append before, and
//     heads holds the heads between them. Without keep, heads holds all.
//
// [Load] reads a journal as well.
//
// A Journal is safe for concurrent use. The file has one writer at a time, and any number of readers by [Load]:
//
//   - OpenJournal takes a lock of the operating system on the file. A second writer, in this program or in another,
//     gets ErrLocked. The lock ends with Close or with the program, also after a crash. Linux, macOS, the BSDs and
//     Windows have such locks; other platforms (WebAssembly, Solaris, AIX, Plan 9) and some network file systems do
//     not.
//   - Every Append compares the size and the identity of the file with their values after the last append. If the file
//     was truncated, extended, replaced or removed in between, it returns ErrChanged and writes nothing. This holds on
//     all platforms.
//
// To append each step of a run, set executor.Agent.Save.
type Journal struct {
	disk   disk
	path   string // absolute
	noSync bool

	mu     sync.Mutex  // guards the fields below
	file   file        // nil in the zero value
	opened fs.FileInfo // identifies file
	state  journalState
	lines  []byte // buffer for the lines of an append
	err    error  // returned by every later Append; nil as long as the file is known to hold state
}

// journalState is the content of a journal's complete appends.
type journalState struct {
	dag     DAG
	heads   []*node.Node // while the file is read: those of dag, in a list that is changed in place
	written NodeSet      // all nodes in the file
	header  string       // the latest header in the file: the header of dag
	size    int64        // the offset of the next append
}

// JournalOptions are options of [OpenJournal]. Nil is the same as the zero value.
type JournalOptions struct {
	// NoSync lets the operating system decide when an append reaches the disk. An append then survives a crash of the
	// program, but not of the machine. Defaults to false: an append is on disk when Append returns.
	NoSync bool
	// MaxNode is the maximum size of one line, in bytes. Defaults to 256 MiB.
	MaxNode int
}

// OpenJournal opens the journal at path for writing. It creates an empty one if there is no file.
//
// If the last append is incomplete, the journal is truncated to the end of the last complete append: to its last line
// with heads. Nodes after that line are removed even if they are complete. An append reported as done is never removed.
//
// When OpenJournal returns nil, the content of the journal is durable (see [JournalOptions]). Errors:
//
//   - ErrLocked for a journal already open for writing;
//   - ErrDamaged for damage before the end;
//   - ErrFormat for a file that is not a journal;
//   - ErrVersion;
//   - errors of the file system.
//
// An error about the content is a *LoadError, and leaves the file unchanged.
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

	// Errors name the path as the program gave it.
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

		// If the file was replaced between opening and locking, the lock is on a file without a name: try again.
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

// open reads the file, or writes the first line of an empty one.
func (j *Journal) open(path string, maxNode int) error {
	opened, err := j.file.Stat()
	if err != nil {
		return err
	}
	j.opened = opened

	// A crash in the first write leaves part of the header. Nothing is lost by beginning again.
	torn, err := j.tornHeader()
	if err != nil {
		return err
	}
	if torn {
		return j.create()
	}

	in := reader{scanner: newScanner(j.file, limitOf(maxNode))}
	incomplete, err := in.journalFile(j)
	if err != nil {
		return in.blame(path, err)
	}

	// Remove an incomplete append, or the next one would continue its last line.
	if incomplete {
		if err := j.file.Truncate(j.state.size); err != nil {
			return err
		}
	}

	// The last writer may have crashed before its appends, or the name of its file, reached the disk.
	return j.syncAll()
}

// tornHeader reports whether the file has only a part of the first line. An empty file has a part of 0 bytes.
func (j *Journal) tornHeader() (bool, error) {
	start := make([]byte, len(journalHeader))
	n, err := j.file.ReadAt(start, 0)
	if err != io.EOF {
		return false, err
	}
	return n < len(start) && strings.HasPrefix(journalHeader, string(start[:n])), nil
}

// create writes the first line, over a part of itself.
func (j *Journal) create() error {
	if err := writeAt(j.file, []byte(journalHeader), 0); err != nil {
		return err
	}

	j.state.size = int64(len(journalHeader))
	j.state.setHeader(header{})
	return j.syncAll()
}

// sync makes the content of the file durable.
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

// DAG returns the conversation of the last append.
func (j *Journal) DAG() DAG {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state.dag
}

// Append saves d as the journal's conversation. It appends the heads and the new nodes, with the nodes of child
// conversations, in one write. If nothing is new it writes nothing. After a rewind, nodes out of reach of the heads
// stay in the file for later appends.
//
// Append does not join. If two runs continue the same conversation at once, the heads are those of the last append, and
// no head reaches the messages of the other run. Let one run at a time continue [Journal.DAG] (with a mutex for each
// session, for example), or append the result of [DAG.Join].
//
// When Append returns nil, d is durable (see [JournalOptions]). After an error the journal holds the conversation of
// the append before. Errors:
//
//   - the chain's own error;
//   - ErrDuplicateID for a node with the ID of another node in the file;
//   - ErrNotErased for a redacted node with its content in the file;
//   - ErrChanged for a file changed since the last append;
//   - fs.ErrClosed after Close;
//   - errors of writing.
//
// After ErrChanged, and after an error that leaves the state of the disk unknown, every later Append returns the same
// error: open the journal again.
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

	// The file only grows, so erased content cannot be removed from it here.
	if err := j.state.written.checkErased(d); err != nil {
		return err
	}
	d, fresh, err := j.state.missing(d)
	if err != nil {
		return err
	}

	// Check the file even if there is nothing to write: a nil error promises that d is durable.
	if err := j.unchanged(); err != nil {
		return err
	}

	// Reuse the buffer, but do not keep it after a single large append.
	lines, header := j.state.lines(j.lines[:0], d, fresh)
	if cap(lines) <= maxKeptLines {
		j.lines = lines
	}
	if len(lines) > 0 {
		if err := j.write(lines); err != nil {
			return err
		}
	}

	// Only now: after a failed write the journal has its old content.
	j.state.written.Add(fresh...)
	j.state.dag, j.state.header = d, header
	j.state.size += int64(len(lines))
	return nil
}

// maxKeptLines is the maximum size of the kept buffer of a Journal, in bytes. The buffer of a large append is not kept.
const maxKeptLines = 64 << 10

// unchanged returns an error with ErrChanged if the file has changed since the last append.
func (j *Journal) unchanged() error {
	// Look at the path: an open file stays the same when another one takes its name.
	found, err := j.disk.Stat(j.path)

	var reason string
	switch {
	case errors.Is(err, fs.ErrNotExist):
		reason = "it was removed"
	case err != nil:
		return err
	case !os.SameFile(j.opened, found):
		reason = "another file has replaced it"
	case found.Size() != j.state.size:
		reason = fmt.Sprintf("it has %d bytes, but had %d after the last append", found.Size(), j.state.size)
	default:
		return nil
	}

	// What is in the file is not known any more, so every later Append fails too.
	j.err = &fs.PathError{Op: "append", Path: j.path, Err: fmt.Errorf("%w: %s", ErrChanged, reason)}
	return j.err
}

// missing returns the nodes of d that are not in the file, in the order of writing. It also returns the saved form of
// d: a node redacted in a part of d, or in the file, is redacted everywhere.
func (s journalState) missing(d DAG) (DAG, []*node.Node, error) {
	return d.missingAlike(s.missingFrom)
}

func (s journalState) missingFrom(d DAG) ([]*node.Node, mixture, error) {
	// Heads and refs of the last append are in the file, with all nodes in their reach.
	first, last := s.kept(d.heads())
	roots := slices.Clone(d.heads()[first : len(d.heads())-last])
	changedRefs(d.environment().refs, s.dag.environment().refs, func(r Ref, gone bool) {
		if !gone {
			roots = append(roots, r.Heads...)
		}
	})
	return s.written.missing(d, roots, nil)
}

// lines appends the lines of an append of d to lines, nothing if nothing is new. It also returns d's header. fresh are
// the nodes that are not in the file.
func (s journalState) lines(lines []byte, d DAG, fresh []*node.Node) (_ []byte, header string) {
	// The metadata can differ only if the pointer does. Encode the header only then.
	header = s.header
	if d.environment().file != s.dag.environment().file {
		header = d.header().journal()
	}
	refs := s.changedRefs(d)

	// An append without a change writes nothing, not even a line of heads.
	if len(fresh) == 0 && refs == nil && header == s.header && sameNodes(d.heads(), s.dag.heads()) {
		return lines, header
	}

	for _, n := range fresh {
		lines = append(n.Append(lines), '\n')
	}

	const few = 8 // up to this number heads are written in full, for human readers
	first, last := s.kept(d.heads())
	if first+last <= few {
		first, last = 0, 0
	}
	lines = appendHeads(append(lines, headsPrefix...), d.heads()[first:len(d.heads())-last])
	if first+last > 0 {
		lines = fmt.Appendf(lines, `,"keep":[%d,%d]`, first, last) // only of conversations with many heads
	}

	// The offset of the append: the reader refuses a moved or copied line.
	lines = strconv.AppendInt(append(lines, `,"at":`...), s.size, 10)

	if refs != nil {
		lines = append(append(append(lines, `,"refs":{`...), refs...), '}')
	}
	if header != s.header {
		lines = append(append(lines, `,"header":`...), header...)
	}
	return append(lines, "}\n"...), header
}

// kept returns how many of the first and of the last heads are heads of the last append. It compares pointers: another
// node with the same ID may have different content.
func (s journalState) kept(heads []*node.Node) (first, last int) {
	old := s.dag.heads()
	n := min(len(old), len(heads))
	for first < n && old[first] == heads[first] {
		first++
	}
	for last < n-first && old[len(old)-1-last] == heads[len(heads)-1-last] {
		last++
	}
	return first, last
}

// changedRefs returns the members of "refs" for d: the refs changed since the last append, or nil.
func (s journalState) changedRefs(d DAG) []byte {
	var members []byte
	changedRefs(d.environment().refs, s.dag.environment().refs, func(r Ref, gone bool) {
		if gone {
			members = append(write.Name(members, r.Name), "null"...)
		} else {
			members = r.append(members)
		}
	})
	return members
}

// sameNodes compares by ID, because a conversation may have been loaded twice.
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

// journal returns the header's members for a journal, as an object.
func (h header) journal() string {
	dst := []byte{'{'}
	for _, m := range h.layout() {
		dst = h.own(dst, m)
	}
	return string(append(dst, '}'))
}

// write appends lines to the file. After an error the file is truncated to its old size.
func (j *Journal) write(lines []byte) error {
	if err := writeAt(j.file, lines, j.state.size); err != nil {
		if undo := j.file.Truncate(j.state.size); undo != nil {
			j.err = errors.Join(err, undo)
			return j.err
		}
		return err
	}

	// After a failed sync the content of the disk is unknown, and the next sync may report success for lost bytes.
	j.err = j.sync()
	return j.err
}

// Close closes the file and releases its lock. A second Close does nothing. [Journal.DAG] still works.
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

// journalFile reads the file of a journal for OpenJournal, and reports whether its last append is incomplete.
func (r *reader) journalFile(j *Journal) (incomplete bool, err error) {
	if err = r.begin(); err != nil {
		return false, err
	}
	if err = r.members(&r.head, r.nodes); err != nil {
		return false, err
	}
	if r.head.format != journalFormat {
		return false, fmt.Errorf("%w to append to: it is a document; Load reads it", ErrFormat)
	}
	j.state, incomplete, err = r.journal()
	return incomplete, err
}

// journal reads the lines after the header of a journal, and reports whether the last append is incomplete.
func (r *reader) journal() (state journalState, incomplete bool, err error) {
	if err := r.headerEnds(); err != nil {
		return journalState{}, false, err
	}

	state.size = r.offset
	state.setHeader(r.head.header)
	if incomplete, err = r.entries(&state); err != nil {
		return journalState{}, false, err
	}

	// The kept heads of an append were not compared with its new heads.
	state.dag, state.heads = state.dag.WithHeads(state.heads...), nil
	return state, incomplete, nil
}

// entries reads lines up to the end of the file, and reports whether it ends within an append.
func (r *reader) entries(state *journalState) (incomplete bool, err error) {
	for {
		r.at = r.line
		line, complete, err := r.text()

		// The file may end only after a line with the heads. Any other end is that of an incomplete append.
		if err == io.EOF {
			return r.offset > state.size, nil
		}
		if err != nil || !complete {
			return !complete, err
		}

		// A bad line at the end of the file is an incomplete append. Anywhere else it is damage.
		if err := r.entry(state, line); err != nil {
			if r.unwritten(line, state.size) {
				return true, nil
			}
			return false, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
}

// headerEnds returns an error unless the line ends after the header.
func (r *reader) headerEnds() error {
	r.at = r.line // an error is one of this line, although the next one begins after text
	rest, complete, err := r.text()
	seen := r.head.seen
	switch {
	case err != nil && err != io.EOF:
		return err
	case len(rest) > 0 || !complete || !seen["version"] || seen["nodes"] || seen["heads"] || seen["refs"]:
		return fmt.Errorf("%w: its first line is not the header of a journal", ErrFormat)
	}
	return nil
}

// headsLine is the last line of an append.
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

	// An error in the line with the heads is not one of a node.
	r.node = 0
	var entry headsLine
	if err := json.Unmarshal(line, &entry); err != nil {
		return err
	}
	if entry.At != s.size {
		return fmt.Errorf("the append has \"at\":%d but begins at byte %d", entry.At, s.size)
	}
	return r.endAppend(s, entry, len(line))
}

// endAppend adds an append to s. Its last line is entry, of size bytes.
func (r *reader) endAppend(s *journalState, entry headsLine, size int) error {
	heads, err := r.named("heads", entry.Heads)
	if err != nil {
		return err
	}

	// Only conversations with many heads write keep.
	keep := []int{0, 0}
	if entry.Keep != nil {
		keep = entry.Keep
	}
	if err := s.checkKeep(keep); err != nil {
		return err
	}

	if entry.Header != nil {
		// The object has the members of a document's header, without the nodes.
		var h headReader
		in := newScanner(bytes.NewReader(entry.Header), size)
		if err := in.members(&h, func() error { return ErrFormat }); err != nil {
			return err
		}
		s.setHeader(h.header)
	}
	if err := s.moveRefs(r.graph, entry.Refs); err != nil {
		return err
	}

	// The nodes count only from here: without the line of heads their append is incomplete.
	s.written.Add(r.order[len(s.written.nodes):]...)

	// Heads may be many: replace them in place. The slice is not shared while the file is read.
	s.heads = slices.Replace(s.heads, keep[0], len(s.heads)-keep[1], heads...)
	s.size = r.offset
	return nil
}

// checkKeep returns an error if keep does not fit the heads of the append before.
func (s *journalState) checkKeep(keep []int) error {
	// The numbers come from a file: their sum might overflow.
	old := len(s.heads)
	if len(keep) != 2 || keep[0] < 0 || keep[1] < 0 || keep[0] > old || keep[1] > old-keep[0] {
		err := fmt.Errorf("%w: %v of the %d before", errHeads, keep, old)
		return &node.FieldError{Field: "keep", Err: err}
	}
	return nil
}

func (s *journalState) setHeader(h header) {
	s.dag = s.dag.change(func(e *env) { e.file = &h })
	s.header = h.journal()
}

// moveRefs applies the refs of an append: the IDs of each ref's heads by name, nil for a removed ref.
func (s *journalState) moveRefs(g graph, moved map[string][]string) error {
	if moved == nil {
		return nil
	}

	refs := s.dag.environment().refs
	for name, ids := range moved {
		// null removes a ref. The other IDs are resolved below, all at once.
		if ids == nil {
			refs = refs.without(name)
			delete(moved, name)
		}
	}

	refs, err := g.refs(refs, moved)
	if err == nil {
		s.dag = s.dag.change(func(e *env) { e.refs = refs })
	}
	return err
}

// unwritten reports whether the broken line was left by a machine that lost power before the last append reached the
// disk: the append at offset from holds blocks of zeros, and nothing follows it. A crash of the program alone leaves no
// broken line with an end.
func (r *reader) unwritten(line []byte, from int64) bool {
	// Read to the end of the file: only its last append can be unwritten.
	zeros := bytes.IndexByte(line, 0) >= 0
	for ended := false; ; {
		line, _, err := r.text()
		if err != nil {
			return err == io.EOF && zeros
		}

		// A further line follows, so this append was not the last one.
		if ended {
			return false
		}

		zeros = zeros || bytes.IndexByte(line, 0) >= 0
		if bytes.HasPrefix(line, []byte(headsPrefix)) {
			// A line with another offset ends another append: the broken line is not in the last one.
			var entry headsLine
			if json.Unmarshal(line, &entry) == nil && entry.At != from {
				return false
			}
			ended = true
		}
	}
}
