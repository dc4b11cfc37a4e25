package mcp

// Stale reports whether the server has announced a change of its list.
func (s *Server) Stale() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes != s.listed
}

// Announced returns how often the server has announced a change of its list.
func (s *Server) Announced() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes
}

// OriginOf is originOf, and ToolName is toolName, for tests.
var (
	OriginOf = originOf
	ToolName = toolName
)

// Names of the record in a conversation, and of a refused origin, for tests.
type (
	Record      = record
	OriginError = originError
)

// RecordName is recordName, for tests.
const RecordName = recordName

// The errors of the package, for tests.
var (
	ErrToolName      = errToolName
	ErrToolNew       = errToolNew
	ErrToolChanged   = errToolChanged
	ErrToolWithdrawn = errToolWithdrawn
	ErrClosed        = errClosed
	ErrLost          = errLost
	ErrOrigin        = errOrigin
)

// LimitError is limitError, for tests.
type LimitError = limitError
