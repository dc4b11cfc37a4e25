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
