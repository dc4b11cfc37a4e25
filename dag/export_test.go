package dag

import "io"

// LocksFiles reports whether this platform has file locks.
const LocksFiles = locksFiles

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
	Moved   = opMoved
)

// ChangesOf returns the changes of a difference.
func ChangesOf(d Difference) []nodeChange { return d.changes }

// AfterOf returns the number of equal nodes after the last change.
func AfterOf(d Difference) int { return d.after }
