package sessions

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// Reasons inside an *Error, besides node.ErrParent for a missing parent, dag.ErrDuplicateID for an ID shared by two
// different lines, and dag.ErrLimit for a file that is too long or nests too deeply. Errors of the reader and of package
// node are returned in the same way.
var (
	errUnknownFormat = errors.New("unknown format")
	errSyntax        = errors.New("not JSON")
	errShape         = errors.New("unexpected shape") // JSON with another shape than the format requires at this position
	errCycle         = errors.New("it is its own ancestor")
)

// Error is a failed import: the place in the file and the reason.
type Error struct {
	Format Format
	// Line is the line number, from 1, or 0 if it is not known.
	Line int
	// Where is the position within the line, or the node. It may be empty.
	Where string
	// Err is the reason, never nil.
	Err error
}

// maxShown limits the shown part of an error or a note, in bytes.
const maxShown = 1000

// Error returns the format, the line, the position and the reason. The text is safe to print.
func (e *Error) Error() string {
	text := "import " + string(e.Format) + ": "
	if e.Line > 0 {
		text += "line " + strconv.Itoa(e.Line) + ": "
	}
	if e.Where != "" {
		text += e.Where + ": "
	}
	return safetext.Escape(text+e.Err.Error(), maxShown)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Format is the name of another program's file format for conversations.
type Format string

// The formats. The package comment lists how each part of a file is imported.
const (
	// NanoAgent is a graph saved by nano-agent: one JSON object.
	NanoAgent Format = "nano-agent"
	// ClaudeCode is a session of Claude Code: JSON lines, linked to their parents by uuid.
	ClaudeCode Format = "claude-code"
	// Pi is a session of the coding agent pi: JSON lines, linked to their parents by id.
	Pi Format = "pi"
	// Codex is a rollout of OpenAI's Codex: JSON lines.
	Codex Format = "codex"
	// OpenCode is a session as "opencode export" prints it and "opencode import" reads it: one JSON object.
	OpenCode Format = "opencode"
	// ATIF is the Agent Trajectory Interchange Format. It is written, and not read.
	ATIF Format = "atif"
)

// Formats returns the formats that [Import] reads, in alphabetical order.
func Formats() []Format { return []Format{ClaudeCode, Codex, NanoAgent, OpenCode, Pi} }

// Options change how a file is read. A nil *Options means the defaults.
type Options struct {
	// Limit is the maximum length of a file in bytes. Memory use is proportional to the length. Defaults to 1 GiB.
	Limit int64
	// Time is the time of a node if the file has none for the node or for any node before it. Defaults to the beginning
	// of 1970.
	Time time.Time
	// Session takes the place of the session's ID in a file without one. The IDs of nodes are derived from it. Never
	// derive it from the content: such IDs would confirm guesses of content that is erased later. Defaults to a random
	// text, so that importing such a file twice returns different IDs.
	Session string
}

// Imported is the content of a file.
type Imported struct {
	// DAG holds all conversations. Its heads are theirs, in order.
	DAG dag.DAG
	// Conversations holds each conversation as a value of its own. They share their nodes. The first is the main
	// conversation: the one marked as current in the file, or else the one with the newest line.
	Conversations []dag.DAG
	// Notes lists the parts of the file that were changed, kept as a node or block of another kind, or left out. They
	// are sorted by line.
	Notes []Note
}

// Main returns the main conversation, or an empty one if the file has none.
func (i Imported) Main() dag.DAG {
	if len(i.Conversations) == 0 {
		return dag.New()
	}
	return i.Conversations[0]
}

// Note reports how a part of a file was imported.
type Note struct {
	// Line is the line number, from 1, or 0 if it is not known.
	Line int
	// Where is the position within the line, or the node. It may be empty.
	Where string
	// Kind is how the part was imported:
	//
	//	record    kept as a node.Custom and never sent
	//	opaque    kept byte for byte as a content.Opaque, because this package does not know the block
	//	changed   kept with a change
	//	assumed   a fact is missing in the file and was assumed
	//	left out  not kept: a kept part makes it redundant, no node or block can hold it, or the file was cut off in it
	Kind string
	// Detail has the description and the reason. It is safe to print.
	Detail string
}

// The kinds of notes.
const (
	noteRecord  = "record"
	noteOpaque  = "opaque"
	noteChanged = "changed"
	noteAssumed = "assumed"
	noteLeftOut = "left out"
)

// String returns the note as one line. It is safe to print.
func (n Note) String() string {
	text := ""
	if n.Line > 0 {
		text = "line " + strconv.Itoa(n.Line) + ": "
	}
	if n.Where != "" {
		text += n.Where + ": "
	}
	return safetext.Escape(text+n.Kind+": "+n.Detail, maxShown)
}

// Import reads a file of this format, to the end of r. Every error is an *Error. The Imported returned with an error is
// empty.
func Import(format Format, r io.Reader, o *Options) (Imported, error) {
	im := &importer{format: format, used: map[node.ID]bool{}}
	if o != nil {
		im.opts = *o
	}

	if im.opts.Limit <= 0 {
		im.opts.Limit = 1 << 30
	}
	if im.opts.Time.IsZero() {
		im.opts.Time = time.Unix(0, 0)
	}
	if im.opts.Session == "" {
		im.opts.Session = uuid.NewString()
	}

	read, ok := importers[format]
	if !ok {
		return Imported{}, &Error{Format: format, Err: fmt.Errorf("%w: the formats are %s", errUnknownFormat, joinNames(Formats()))}
	}

	if err := read(im, r); err != nil {
		var e *Error
		if !errors.As(err, &e) {
			err = &Error{Format: format, Err: err}
		}
		return Imported{}, err
	}

	return im.imported(), nil
}

// seenElsewhere is the node.Answer.Seen of responses in files without the system prompt and the tools. It is that
// of no conversation. Thinking bound to its preceding transcript is therefore kept, but not sent again.
var seenElsewhere = node.Seen(sha256.Sum256([]byte("plait.transcript.seen elsewhere")))

var importers = map[Format]func(*importer, io.Reader) error{
	NanoAgent:  (*importer).nanoAgent,
	ClaudeCode: (*importer).claudeCode,
	Pi:         (*importer).pi,
	Codex:      (*importer).codex,
	OpenCode:   (*importer).openCode,
}

func joinNames(formats []Format) string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// importer is the state of one call of Import.
type importer struct {
	format  Format
	opts    Options
	session string // the ID in the file, or ""
	used    map[node.ID]bool
	notes   []Note
	heads   [][]*node.Node // of each conversation, the main one first
	about   []about        // metadata of every conversation
	// replaced counts the nodes replaced by compactions, up to maxReplaced.
	replaced int
	// own is set once a line was recognized. foreign is the number of the first unrecognized line, or 0.
	own     bool
	foreign int
}

// about is a member of the metadata.
type about struct {
	key   string
	value content.JSON
}

// imported returns the result, once all nodes are made.
func (im *importer) imported() Imported {
	// The program that wrote the file recorded no starts: a call without a result may have been executed.
	env := dag.New().WithMetadata(lineage.NoStarts, true)
	for _, a := range im.about {
		env = env.WithMetadata(a.key, a.value)
	}

	out := Imported{Notes: im.notes}
	var heads []*node.Node
	for _, ends := range im.heads {
		heads = append(heads, ends...)
		out.Conversations = append(out.Conversations, env.WithHeads(ends...))
	}

	out.DAG = env.WithHeads(heads...)

	// build adds notes after the last line was read, and they belong among those of their lines.
	slices.SortStableFunc(out.Notes, func(a, b Note) int { return a.Line - b.Line })
	return out
}

// errorf returns an *Error around kind. The format, if any, adds the details.
func (im *importer) errorf(line int, where string, kind error, format string, args ...any) error {
	err := kind
	if format != "" {
		err = fmt.Errorf("%w: "+format, append([]any{kind}, args...)...)
	}
	return &Error{Format: im.format, Line: line, Where: where, Err: err}
}

func (im *importer) note(line int, where string, kind, format string, args ...any) {
	im.notes = append(im.notes, Note{
		Line: line, Where: safetext.Escape(where, maxShown), Kind: kind, Detail: safetext.Escape(fmt.Sprintf(format, args...), maxShown),
	})
}
