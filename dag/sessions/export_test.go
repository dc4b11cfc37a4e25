package sessions

// The reasons of errors and the kinds of notes, for the tests. Programs read their texts.
var (
	ErrUnknownFormat = errUnknownFormat
	ErrSyntax        = errSyntax
	ErrShape         = errShape
	ErrCycle         = errCycle
)

const (
	NoteRecord  = noteRecord
	NoteOpaque  = noteOpaque
	NoteChanged = noteChanged
	NoteAssumed = noteAssumed
	NoteLeftOut = noteLeftOut
)
