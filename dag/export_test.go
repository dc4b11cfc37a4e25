package dag

import (
	"io"
	"time"

	"github.com/plait-dev/plait/internal/filelock"
	"github.com/plait-dev/plait/node"
)

// LocksFiles reports whether this platform has file locks.
const LocksFiles = filelock.Supported

// Errors that programs do not tell apart.
var (
	ErrHeads      = errHeads
	ErrNoCalls    = errNoCalls
	ErrNoExchange = errNoExchange
	ErrPrefix     = errPrefix
	ErrRefName    = errRefName
)

// ReadWithin is Read with another limit on a node.
func ReadWithin(r io.Reader, limit int) (DAG, error) { return read(r, "", limit) }

// LoadWithin is Load with another limit on a node.
func LoadWithin(path string, limit int) (DAG, error) { return loadWithin(path, limit) }

// The parts of a Difference, which programs read as JSON.
type (
	Op   = diffOp
	Line = diffLine
)

const (
	Same    = opSame
	Removed = opRemoved
	Added   = opAdded
	Changed = opChanged
)

// ChangesOf returns the changes of a difference.
func ChangesOf(d Difference) []nodeChange { return d.changes }

// AfterOf returns the number of equal nodes after the last change.
func AfterOf(d Difference) int { return d.after }

// Created returns the time at which the conversation began: the time in its file, or else the time of its first node.
// It returns the zero time if there is neither.
func (d DAG) Created() time.Time {
	var t time.Time
	if j := d.header().created; j != "" {
		_ = j.Decode(&t) // checked when it was read
	} else if first := d.first(); first != nil {
		t = first.Time()
	}
	return t.UTC()
}

// first returns the node that is saved first, or nil if there is none.
func (d DAG) first() *node.Node {
	for _, root := range d.roots() {
		return New().WithHeads(root).WithChildren()[0]
	}
	return nil
}
