package dag

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/internal/memo"
	"github.com/plait-dev/plait/node"
)

// Values of the header's members format and version.
const (
	documentFormat = "plait"
	formatVersion  = 1
)

// header is the part of a file about the whole conversation. It is immutable after it was set in a DAG.
type header struct {
	members  []member     // all members of a loaded file, in its order; known members have no value here
	created  content.JSON // as it was read; empty if it was not loaded
	metadata node.Meta

	// loose holds the unreachable nodes of a file, by the node that follows them; nil for the end of the file. They are
	// kept because a node of an unknown kind may need them.
	loose map[*node.Node][]*node.Node
}

// member is one member of the header's object.
type member struct {
	name       string
	key, value string // the JSON that was read: the quoted name, and the value
}

// known lists Plait's own members, in the order of writing.
var known = []string{"format", "version", "created", "metadata", "heads", "refs", "nodes"}

func (d DAG) header() header {
	if f := d.environment().file; f != nil {
		return *f
	}
	return header{}
}

// layout returns all members in the order of writing. A loaded file keeps its order. A member that was not in the file
// is written after its predecessor in known.
func (h header) layout() []member {
	members := slices.Clone(h.members)
	next := 0
	for _, name := range known {
		i := slices.IndexFunc(members, func(m member) bool { return m.name == name })
		if i < 0 {
			i = next
			members = slices.Insert(members, i, member{name: name})
		}
		next = i + 1
	}
	return members
}

// WithMetadata sets a value in the metadata of the whole conversation. The value is encoded as JSON. Metadata is saved
// and loaded, and never sent. If the value cannot be encoded, the chain's error holds content.ErrJSON.
func (d DAG) WithMetadata(key string, value any) DAG {
	if d.err != nil {
		return d
	}

	h := d.header()
	meta, err := h.metadata.With(key, value)
	if err != nil {
		return d.fail("WithMetadata", err)
	}
	h.metadata = meta
	return d.change(func(e *env) { e.file = &h })
}

// Metadata returns the metadata of the whole conversation.
func (d DAG) Metadata() node.Meta { return d.header().metadata }

// Save writes the conversation to a file, as [DAG.Write] does.
//
//   - The file is replaced as a whole. It holds either its old content or the new conversation, also after a crash.
//   - Its content is on disk when Save returns.
//   - It keeps its permissions. A read-only file is replaced too, if the folder's permissions allow it.
//   - A symbolic link is followed.
//   - If the chain has an error, or Write returns one, Save returns it and leaves the file unchanged.
//
// To save after every step of a long conversation, use a [Journal].
func (d DAG) Save(path string) error {
	if d.err != nil {
		return d.err
	}
	return replaceFile(systemDisk{}, path, d.Write)
}

// Write writes the conversation in its saved form, version 1: a JSON object with the members
//
//   - format: "plait"; version: 1;
//   - created: the time at which the conversation began (see [DAG.Created]);
//   - metadata: the conversation's metadata, if there is any;
//   - heads: the IDs of the heads, in order;
//   - refs: the IDs of each ref's heads, by the ref's name, if there is any ref;
//   - nodes: the nodes in the order of [DAG.WithChildren], and then the other nodes of refs. Every node comes after all
//     nodes it refers to. There is one node on a line, in the form of node.Append.
//
// A loaded conversation is written back byte for byte: nodes with all their fields, unknown members of the header in
// their position, and unreachable nodes.
//
// Before it writes anything, Write returns the chain's error, or ErrDuplicateID for two different nodes with one ID.
func (d DAG) Write(w io.Writer) error { return d.write(w, (*node.Node).Append) }

// write is Write with another form of the nodes.
func (d DAG) write(w io.Writer, form func(n *node.Node, dst []byte) []byte) error {
	if d.err != nil {
		return d.err
	}

	// After a join, a node may be there with its content and redacted. Only the redacted form may be saved.
	h := d.header()
	nodes, twins, err := h.nodes(d.roots())
	if twins && err == nil {
		if d = d.redactAlike(); d.err != nil {
			return d.err
		}
		h = d.header()
		nodes, _, err = h.nodes(d.roots())
	}

	// The walk has loaded what was not loaded yet.
	if err := cmp.Or(err, d.Err()); err != nil {
		return err
	}

	// Swap takes the kept buffer, so that no other Write uses it at the same time.
	out := writer{w: w, form: form}
	if kept := keptBuffer.Swap(nil); kept != nil {
		out.buf = (*kept)[:0]
	}
	defer func() {
		if cap(out.buf) <= maxKeptBuffer {
			keptBuffer.Store(&out.buf)
		}
	}()

	// Members keep the order and the text of the loaded file.
	before := byte('{')
	for _, m := range h.layout() {
		if text := h.member(m, d, nodes); len(text) > 0 {
			out.buf = append(append(out.buf, before), text...)
			before = ','
		}
		if m.name == "nodes" {
			out.nodes(nodes)
		}
	}

	out.buf = append(out.buf, "}\n"...)
	return out.flush()
}

// MarshalJSON returns the conversation in its saved form, without line breaks, so that a conversation can be a value in
// other JSON. A zero DAG is an empty conversation. Executable tools are not saved: see [DAG.Tools].
//
// JSON in arguments, records and unknown blocks keeps its value, but not its spaces and escapes, which encoders would
// remove. To keep them, use [DAG.Write].
//
// Errors: those of [DAG.Write].
func (d DAG) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	portable := func(n *node.Node, dst []byte) []byte { return memo.AppendPortable(n, dst) }
	if err := d.write(&out, portable); err != nil {
		return nil, err
	}

	// Line breaks stand between nodes only: in a string they are escaped.
	return bytes.ReplaceAll(out.Bytes(), []byte("\n"), nil), nil
}

// nodes returns all nodes to save, or ErrDuplicateID. twins reports that two values of one node were found: one of them
// may be redacted.
func (h header) nodes(roots []*node.Node) (nodes []*node.Node, twins bool, err error) {
	if nodes, ok := ascending(roots); ok && h.loose == nil {
		return nodes, false, nil
	}
	w := walk{extra: h.loose}
	nodes = w.from(append(slices.Clone(roots), h.loose[nil]...))
	return nodes, w.twins, w.clash
}

// ascending returns the nodes to save of a simple conversation: a trunk (see DAG.backward) without child conversations
// and with ascending IDs. Most conversations are simple, because IDs begin with a time. Ascending IDs are distinct, so
// no map is needed: 40 ns a node in place of 200.
func ascending(roots []*node.Node) (nodes []*node.Node, ok bool) {
	if len(roots) != 1 {
		return nil, false
	}

	nodes = make([]*node.Node, 0, roots[0].Depth()+1)
	ok = true
	_, more := backAlongTrunk(roots[0], func(n *node.Node) bool {
		// The walk goes backward: each ID must be lower than the one before.
		if len(nodes) > 0 {
			id, next := n.ID(), nodes[len(nodes)-1].ID()
			ok = bytes.Compare(id[:], next[:]) < 0
		}
		ok = ok && n.Children().Len() == 0
		nodes = append(nodes, n)
		return ok
	})

	slices.Reverse(nodes)
	return nodes, ok && !more
}

// member returns the JSON of one member with its name. It returns nothing for an omitted member.
func (h header) member(m member, d DAG, nodes []*node.Node) []byte {
	switch m.name {
	case "format":
		return []byte(`"format":"` + documentFormat + `"`)
	case "version":
		return []byte(`"version":1`)
	case "created":
		// A conversation that was not loaded begins with its first node.
		if h.created == "" && len(nodes) > 0 {
			return write.OptString(nil, "created", nodes[0].Time().Format(time.RFC3339Nano))
		}
		return h.own(nil, m)
	case "heads":
		return appendHeads(write.Name(nil, "heads"), d.heads())
	case "refs":
		if refs := d.environment().refs; refs != nil {
			return appendRefs(write.Name(nil, "refs"), refs)
		}
	case "nodes":
		return write.Name(nil, "nodes")
	}
	return h.own(nil, m)
}

// own appends a member about the conversation, as opposed to the file. A journal has these members too.
func (h header) own(dst []byte, m member) []byte {
	switch {
	case m.name == "created" && h.created != "":
		return append(write.Name(dst, "created"), h.created...)
	case m.name == "metadata" && h.metadata.Len() > 0:
		return h.metadata.Append(write.Name(dst, "metadata"))
	case slices.Contains(known, m.name):
		return dst
	}

	// A newer version wrote this member: write it back unchanged.
	return append(append(append(write.Comma(dst), m.key...), ':'), m.value...)
}

func appendHeads(dst []byte, heads []*node.Node) []byte {
	dst = append(dst, '[')
	for _, h := range heads {
		dst = write.UUID(write.Comma(dst), h.ID())
	}
	return append(dst, ']')
}

// writer writes to w in large pieces. Nodes are encoded into its buffer, not copied to it.
type writer struct {
	w    io.Writer
	form func(n *node.Node, dst []byte) []byte // appends a node
	buf  []byte                                // not written yet
	err  error                                 // the first error of w
}

// writeSize is the size of the pieces, in bytes.
const writeSize = 64 << 10

// keptBuffer is the buffer of the last writer, for the next one, or nil. Allocating a new one would take half of the
// time of writing 1,000 nodes a second time.
var keptBuffer atomic.Pointer[[]byte]

// maxKeptBuffer is the maximum size of a kept buffer, in bytes. The buffer of a large node is not kept.
const maxKeptBuffer = 512 << 10

func (w *writer) nodes(nodes []*node.Node) {
	// The buffer is flushed after the node that fills it, so leave room for one more node.
	w.buf = append(slices.Grow(w.buf, writeSize+writeSize/4), "[\n"...)
	for i, n := range nodes {
		w.buf = w.form(n, w.buf)
		if i < len(nodes)-1 {
			w.buf = append(w.buf, ',')
		}
		w.buf = append(w.buf, '\n')

		if len(w.buf) >= writeSize && w.flush() != nil {
			return
		}
	}
	w.buf = append(w.buf, ']')
}

// flush writes the buffer, and returns the first error of w.
func (w *writer) flush() error {
	// After an error nothing more is written: w would get a text with a gap.
	if w.err == nil {
		var n int
		if n, w.err = w.w.Write(w.buf); w.err == nil && n < len(w.buf) {
			w.err = io.ErrShortWrite
		}
	}
	w.buf = w.buf[:0]
	return w.err
}

// replaceFile replaces the file at path, or leaves it unchanged and returns an error. Errors of the file system name
// path.
func replaceFile(on disk, path string, write func(io.Writer) error) error {
	if path == "" {
		return &fs.PathError{Op: "save", Path: path, Err: errors.New("no path is given")}
	}
	return renamed(replaceReal(on, followed(path), write), "save", path)
}

// renamed returns err with another op and path if it is an error of the file system. The caller does not know the path
// of the temporary file.
func renamed(err error, op, path string) error {
	var link *os.LinkError
	var at *fs.PathError
	switch {
	case errors.As(err, &link):
		return &fs.PathError{Op: op, Path: path, Err: link.Err}
	case errors.As(err, &at):
		return &fs.PathError{Op: op, Path: path, Err: at.Err}
	}
	return err
}

// followed resolves the symbolic links in path, also if the file they lead to does not exist yet.
func followed(path string) string {
	const maxLinks = 40 // the limit of Linux
	for range maxLinks {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real
		}

		// EvalSymlinks fails for a link without a file: follow it one step.
		to, err := os.Readlink(path)
		if err != nil {
			break
		}

		// The target of a relative link is relative to the real folder of the link.
		if !filepath.IsAbs(to) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				break
			}
			to = filepath.Join(dir, to)
		}
		path = to
	}
	return path
}

// replaceReal is replaceFile for a path without links: it writes a temporary file beside path and renames it.
func replaceReal(on disk, path string, write func(io.Writer) error) error {
	// A device or a folder cannot be replaced by a rename without destroying it.
	old, err := on.Stat(path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil && !old.Mode().IsRegular():
		return &fs.PathError{Op: "save", Path: path, Err: errors.New("it is not a regular file")}
	}

	// Use the same folder, because a rename works only within one file system.
	temp := filepath.Join(filepath.Dir(path), ".plait-"+rand.Text()+".tmp")
	f, err := on.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}

	// The new file has the permissions of the umask, and the replaced file had its own.
	if old != nil {
		err = f.Chmod(old.Mode().Perm())
	}
	if err == nil {
		err = write(f)
	}

	// The content must be on disk before the rename, or a crash leaves an empty file in place of the old one.
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = on.Rename(temp, path)
	}

	// Leave no temporary file behind.
	if err != nil {
		return errors.Join(err, on.Remove(temp))
	}
	return on.SyncFolder(filepath.Dir(path))
}
