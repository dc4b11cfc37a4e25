package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// Errors of a [Driver] and a [Store].
var (
	// ErrMoved marks a head with another version than expected; a *ConflictError has the head.
	ErrMoved = errors.New("the head was moved by another writer")
	// ErrNotStored marks a missing head or record.
	ErrNotStored = errors.New("it is not in the store")
	// ErrRecord marks a record that cannot be stored or read; a *RecordError names it.
	ErrRecord = errors.New("invalid record")
	// ErrName marks an invalid key of a conversation or name of a head.
	ErrName = errors.New("not a name in a store")
)

// ConflictError reports a head that another writer moved, made or removed. Its chain holds ErrMoved.
type ConflictError struct {
	// Conversation and Head name the head.
	Conversation, Head string
	// Expect is the writer's expected version.
	Expect uint64
	// Current is the head as it is. If there is no such head, it has its name and version 0.
	Current Head
	// KeptHead is the name of the head with the refused nodes, set by [Conversation.Append]. A [Driver] leaves it
	// empty.
	KeptHead string
}

// Error returns the head, both versions, and the head with the refused nodes.
func (e *ConflictError) Error() string {
	text := fmt.Sprintf("store: %s: head %s has version %d instead of %d: %v",
		quoted(e.Conversation), quoted(e.Head), e.Current.Version, e.Expect, ErrMoved)
	if e.KeptHead != "" {
		text += "; the new nodes are kept under head " + quoted(e.KeptHead)
	}
	return text
}

// Unwrap returns ErrMoved.
func (e *ConflictError) Unwrap() error { return ErrMoved }

// RecordError is an error about one record. Its chain holds ErrRecord and the reason.
type RecordError struct {
	// Conversation is the key of the conversation.
	Conversation string
	// ID is the ID of the record.
	ID node.ID
	// Err is the reason.
	Err error
}

// Error returns the conversation, the record and the reason.
func (e *RecordError) Error() string {
	reason := safetext.Escape(e.Err.Error(), 1000)
	return fmt.Sprintf("store: %s: node %s: %v: %s", quoted(e.Conversation), e.ID, ErrRecord, reason)
}

// Unwrap returns ErrRecord and the reason.
func (e *RecordError) Unwrap() []error { return []error{ErrRecord, e.Err} }

// maxName is the maximum size of a name, in bytes.
const maxName = 200

// CheckName returns an error with ErrName if name cannot be the key of a conversation or the name of a head. Both have
// 1 to 200 bytes of UTF-8, without control characters and line breaks.
func CheckName(name string) error {
	reason := ""
	switch {
	case name == "":
		reason = "it is empty"
	case len(name) > maxName:
		reason = fmt.Sprintf("it has %d bytes, and the maximum is %d", len(name), maxName)
	case !utf8.ValidString(name):
		reason = "it is not UTF-8"
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }):
		reason = "it holds a control character or a line break"
	default:
		return nil
	}
	return fmt.Errorf("store: %w: %s: %s", ErrName, quoted(name), reason)
}

// checkNames returns the error of CheckName for the first name that has one.
func checkNames(names ...string) error {
	for _, name := range names {
		if err := CheckName(name); err != nil {
			return err
		}
	}
	return nil
}

// quoted returns the beginning of text for an error text.
func quoted(text string) string { return safetext.Quote(text, 80) }

// Check returns an error for an invalid append. It needs no stored state. [AppendRequest.Apply] calls it
// first. The rules:
//
//   - The key and the name must pass [CheckName].
//   - No record has the zero ID, and none comes twice: a *RecordError, with dag.ErrDuplicateID for the second.
//   - No record is linked to itself, to the zero ID, to a record after it, or twice to one record: a *RecordError with
//     node.ErrParent.
//   - No ID comes twice in Nodes: a *RecordError with dag.ErrDuplicateID.
func (a AppendRequest) Check() error {
	if err := checkNames(a.Conversation, a.Head); err != nil {
		return err
	}

	// Collect all positions before checking links: a link to a later record is an error.
	position := make(map[node.ID]int, len(a.Records))
	for i, r := range a.Records {
		if _, twice := position[r.ID]; twice {
			return &RecordError{a.Conversation, r.ID, dag.ErrDuplicateID}
		}
		position[r.ID] = i
	}
	for i, r := range a.Records {
		if err := r.check(i, position); err != nil {
			return &RecordError{a.Conversation, r.ID, err}
		}
	}

	if id, twice := repeated(a.Nodes); twice {
		return &RecordError{a.Conversation, id, dag.ErrDuplicateID}
	}
	return nil
}

// check checks the record at an index of the batch.
func (r Record) check(index int, position map[node.ID]int) error {
	if r.ID == (node.ID{}) {
		return errors.New("it has no ID")
	}
	for _, id := range r.Links {
		if at, inside := position[id]; id == (node.ID{}) || inside && at >= index {
			return fmt.Errorf("%w: %s", node.ErrParent, id)
		}
	}
	if id, twice := repeated(r.Links); twice {
		return fmt.Errorf("%w: %s is linked twice", node.ErrParent, id)
	}

	return nil
}

// repeated returns an ID with two occurrences, and whether there is one.
func repeated(ids []node.ID) (node.ID, bool) {
	const few = 16 // up to this length, comparing costs less than a map
	if len(ids) <= few {
		for i, id := range ids {
			if slices.Contains(ids[:i], id) {
				return id, true
			}
		}
		return node.ID{}, false
	}

	seen := make(map[node.ID]bool, len(ids))
	for _, id := range ids {
		if seen[id] {
			return id, true
		}
		seen[id] = true
	}
	return node.ID{}, false
}
