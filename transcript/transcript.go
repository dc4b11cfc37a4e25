package transcript

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// Errors that importing returns, inside an *Error, beside those of the reader and of package node.
var (
	// ErrUnknownFormat marks a format that there is no import for.
	ErrUnknownFormat = errors.New("no such format")
	// ErrSyntax marks text that is not JSON.
	ErrSyntax = errors.New("not JSON")
	// ErrShape marks JSON that is not what the format has in this place.
	ErrShape = errors.New("not what the format has here")
	// ErrParent marks a line or a node whose parent is missing. It is node.ErrParent.
	ErrParent = node.ErrParent
	// ErrCycle marks a line or a node that follows itself.
	ErrCycle = errors.New("it follows itself")
	// ErrDuplicateID marks an id that two different lines have. It is dag.ErrDuplicateID.
	ErrDuplicateID = dag.ErrDuplicateID
	// ErrLimit marks a file that is longer, or nests deeper, than the limits of reading allow. It is dag.ErrLimit.
	ErrLimit = dag.ErrLimit
)

// Error says where in a file something cannot be imported.
type Error struct {
	Format Format
	// Line is the line, from 1; 0 where it is not known.
	Line int
	// Where is the place within the line, or the node; it may be empty.
	Where string
	Err   error
}

// mostShown is how many bytes of an error or a note are shown.
const mostShown = 1000

// Error names the format, the line and the place. It is safe to print.
func (e *Error) Error() string {
	text := "import " + string(e.Format) + ": "
	if e.Line > 0 {
		text += "line " + strconv.Itoa(e.Line) + ": "
	}
	if e.Where != "" {
		text += e.Where + ": "
	}
	return safetext.Escape(text+e.Err.Error(), mostShown)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Format names a form in which another program keeps conversations.
type Format string

// The formats. What becomes of each line is in the package's comment.
const (
	// NanoAgent is a graph that nano-agent saved: one JSON object.
	NanoAgent Format = "nano-agent"
	// ClaudeCode is a session of Claude Code: JSON lines that name their parents by uuid.
	ClaudeCode Format = "claude-code"
	// Pi is a session of the coding agent pi: JSON lines that name their parents by id.
	Pi Format = "pi"
	// Chat is messages as OpenAI's Chat Completions has them: a list of messages, an object with "messages", one such object a
	// line (as files for fine-tuning are), or one message a line.
	Chat Format = "chat"
	// LangChain is messages of LangChain, as dumpd, messages_to_dict or model_dump write them, in a list or one a line; or a state
	// or a checkpoint of LangGraph with a list "messages".
	LangChain Format = "langchain"
)

// Formats returns all formats, in alphabetical order.
func Formats() []Format { return []Format{Chat, ClaudeCode, LangChain, NanoAgent, Pi} }

// Options change how a file is read. nil is all defaults.
type Options struct {
	// Lenient goes on where a line alone is broken: one that cannot be read is kept as a record and noted, one that follows a line
	// which is not there begins a conversation, a cycle is cut, and of lines with one id the first holds. Defaults to false: each
	// is an error.
	Lenient bool
	// Limit is the most bytes of a file that are read. Memory is taken in proportion to what was read. Defaults to 1 GiB.
	Limit int64
	// Time is when nodes were made of which the file does not say it, neither for them nor for one before them. Defaults to the
	// beginning of 1970, so that importing a file twice gives the same conversation.
	Time time.Time
}

// Imported is what was in a file.
type Imported struct {
	// DAG is everything. Its heads are those of all conversations, in order.
	DAG dag.DAG
	// Conversations are the places to go on from, each as a value of its own; they share their nodes. The first is the main one:
	// the one that was gone on with last or, in a format that says so, the one that it names first.
	Conversations []dag.DAG
	// Notes says what was changed, what is kept as something else and what is left out, in the order of the file.
	Notes []Note
}

// Main returns the main conversation, an empty one where the file has none.
func (i Imported) Main() dag.DAG {
	if len(i.Conversations) == 0 {
		return dag.New()
	}
	return i.Conversations[0]
}

// NoteKind says what became of something in a file.
type NoteKind string

// The kinds of notes.
const (
	// NoteRecord: it is kept as a node.Custom, which is never sent.
	NoteRecord NoteKind = "record"
	// NoteOpaque: a block that this package does not know is kept as a content.Opaque, byte for byte.
	NoteOpaque NoteKind = "opaque"
	// NoteChanged: it is kept, and something in it was changed.
	NoteChanged NoteKind = "changed"
	// NoteAssumed: the file does not say it, and something was assumed.
	NoteAssumed NoteKind = "assumed"
	// NoteLeftOut: it is not kept, because something else says the same, or because it is the end of a file that was cut off.
	NoteLeftOut NoteKind = "left out"
)

// Note is what became of something in a file.
type Note struct {
	// Line is the line, from 1; 0 where it is not known.
	Line int
	// Where is the place within the line, or the node; it may be empty.
	Where string
	Kind  NoteKind
	// Detail says what and why. It is safe to print.
	Detail string
}

// String says where, what and why in one line.
func (n Note) String() string {
	text := ""
	if n.Line > 0 {
		text = "line " + strconv.Itoa(n.Line) + ": "
	}
	if n.Where != "" {
		text += n.Where + ": "
	}
	return safetext.Escape(text+string(n.Kind)+": "+n.Detail, mostShown)
}

// Import reads a conversation of that format, to the end of r. Every error is an *Error; what is returned beside it is empty.
func Import(format Format, r io.Reader, o *Options) (Imported, error) {
	im := &importer{format: format, used: map[node.ID]bool{}, sum: sha256.New()}
	if o != nil {
		im.opts = *o
	}
	if im.opts.Limit <= 0 {
		im.opts.Limit = 1 << 30
	}
	if im.opts.Time.IsZero() {
		im.opts.Time = time.Unix(0, 0)
	}
	r = io.TeeReader(r, im.sum)
	read, ok := importers[format]
	if !ok {
		return Imported{}, &Error{Format: format, Err: fmt.Errorf("%w: there are %s", ErrUnknownFormat, joinNames(Formats()))}
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

// seenElsewhere stands for what a model had seen in a session whose file holds neither its system prompt nor its tools: no conversation
// has this digest. Thinking that is bound to what was seen is therefore kept, and not sent again.
var seenElsewhere = node.Digest(sha256.Sum256([]byte("plait.transcript.seen elsewhere")))

var importers = map[Format]func(*importer, io.Reader) error{
	NanoAgent:  (*importer).nanoAgent,
	ClaudeCode: (*importer).claudeCode,
	Chat:       (*importer).chat,
	LangChain:  (*importer).langChain,
	Pi:         (*importer).pi,
}

func joinNames(formats []Format) string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// importer is one import.
type importer struct {
	format  Format
	opts    Options
	session string // what ids are derived of, beside the ids in the file
	used    map[node.ID]bool
	sum     hash.Hash // of all that was read
	notes   []Note
	ends    [][]*node.Node // where each conversation ends, the main one first
	about   []about        // metadata of the whole
	// replaced counts what compactions replace.
	replaced int
	// own reports that a line was recognized. foreign is the first line that was not, from 1; 0 for none.
	own     bool
	foreign int
}

type about struct {
	key   string
	value content.JSON
}

func (im *importer) imported() Imported {
	env := dag.New()
	for _, a := range im.about {
		env = env.WithMetadata(a.key, a.value)
	}
	out := Imported{Notes: im.notes}
	var heads []*node.Node
	for _, ends := range im.ends {
		heads = append(heads, ends...)
		out.Conversations = append(out.Conversations, env.WithHeads(ends...))
	}
	out.DAG = env.WithHeads(heads...)
	slices.SortStableFunc(out.Notes, func(a, b Note) int { return a.Line - b.Line })
	return out
}

// errorf is an error of that kind.
func (im *importer) errorf(line int, where string, kind error, format string, args ...any) error {
	err := kind
	if format != "" {
		err = fmt.Errorf("%w: "+format, append([]any{kind}, args...)...)
	}
	return &Error{Format: im.format, Line: line, Where: where, Err: err}
}

func (im *importer) note(line int, where string, kind NoteKind, format string, args ...any) {
	im.notes = append(im.notes, Note{
		Line: line, Where: safetext.Escape(where, mostShown), Kind: kind, Detail: safetext.Escape(fmt.Sprintf(format, args...), mostShown),
	})
}
