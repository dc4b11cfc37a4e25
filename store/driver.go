package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"iter"

	"github.com/plait-dev/plait/node"
)

// Driver stores conversations for a [Store]: in memory or in a database. It stores records and heads without knowing
// the format of a node. Package storetest tests a driver, with a case for each rule below.
//
// # Model
//
// A conversation has a key. It holds records and named heads:
//
//   - A record is a node in its saved form. Only [AppendRequest.Replace] changes a record. A record has links to other
//     records; these are always stored too.
//   - A head has a name, a version, the records it points to, and a header. The driver does not read the header.
//
// Conversations share nothing: a driver may keep each in another place. A conversation exists as long as it has a head.
//
// # Rules for all methods
//
//   - A driver is safe for concurrent use, also by several programs if its database is.
//   - Keys of conversations and names of heads are compared and sorted byte by byte: "a", "A" and "a " are three. A
//     Store gives no others than [CheckName] accepts, and no pages that [Page.Check] rejects.
//   - If the context is done before a method has an effect, the error of the method holds the context's error.
//   - A driver keeps no slice of its caller, and the caller may change every slice it gets from the driver.
//   - A driver may do without Read, Records, Watch and Prune. The first three return nil then, and Prune returns
//     errors.ErrUnsupported. A driver without Read returns all records of the conversation from Open, and one without
//     Records leaves Opened.Outlined empty. Without Watch, a head is looked at once a second.
//   - Each method is atomic: other callers see all of its effect or nothing, also after a crash. When it returns nil,
//     the effect is as durable as the driver promises.
//   - After an error from outside this package, the effect of a change is unknown: the change may be made, and only the
//     reply lost. Repeating an Append is safe. If the first one was stored, the second returns a *ConflictError, and
//     its Current is the head after the first one.
type Driver interface {
	// Append stores records and moves one head. It returns the head as it is now. [AppendRequest.Apply] makes
	// the checks:
	//
	//   - It compares the version of the head with Expect. If they differ, the error is a *ConflictError with the head
	//     as it is. With Expect 0 the head must not exist. Of several writers with the same Expect one wins.
	//   - The new version is Expect+1.
	//   - An equal record, with the same sum and links as a stored one, is accepted and not stored again. For another
	//     sum or other links the error is a *RecordError with dag.ErrDuplicateID, unless Replace is set.
	//   - Each link of a record must be a stored record, or one before it in Records. If it is not, the error is a
	//     *RecordError with node.ErrParent for the record with the link.
	//   - Each ID in Nodes must be a stored record or one in Records. If it is not, the error is a *RecordError with
	//     ErrNotStored for the ID.
	//   - For an append rejected by [AppendRequest.Check], Append returns its error.
	//   - After any of these errors nothing is stored.
	//   - Its cost does not grow with the conversation.
	Append(ctx context.Context, a AppendRequest) (Head, error)

	// Head returns a head. The error holds ErrNotStored if there is no such head.
	Head(ctx context.Context, conversation, name string) (Head, error)

	// Heads returns one page of the heads of a conversation, sorted by name. A missing conversation has none.
	Heads(ctx context.Context, conversation string, page Page) ([]Head, error)

	// Read yields the records in from, and all records within reach of them through links.
	//
	//   - Each record comes once, and after all its links.
	//   - Records in have are left out, and so are records within reach of have alone. A record within reach of both
	//     have and from may be left out or not. Unknown IDs in have are ignored.
	//   - A record in from or have counts once if it is there twice. A record in both is left out.
	//   - If a record in from is not stored, the error is a *RecordError with ErrNotStored.
	//   - An error ends the sequence. It comes with a zero Record.
	//   - The sequence can be ranged over once. Meanwhile the caller calls no other method of the driver on the same
	//     goroutine: the sequence may hold the only connection.
	Read(ctx context.Context, conversation string, from, have []node.ID) iter.Seq2[Record, error]

	// Open returns a head like Head, with what its conversation is loaded from. It may leave out what is within reach of
	// have. In a database it is one query.
	Open(ctx context.Context, conversation, name string, have []node.ID) (Opened, error)

	// Records yields the records with these IDs, with their outlines, each once and after all its links. Unlike Read, it
	// does not follow links. It is otherwise like Read.
	Records(ctx context.Context, conversation string, ids []node.ID) iter.Seq2[Record, error]

	// Conversations returns the keys of the conversations, sorted, as the page selects them.
	Conversations(ctx context.Context, page Page) ([]string, error)

	// RemoveHead removes a head if it has this version. Otherwise it returns a *ConflictError, also if there is no such
	// head. It removes no records, but the last head is removed with the conversation. A new head of the same name has
	// version 1.
	RemoveHead(ctx context.Context, conversation, name string, version uint64) error

	// Delete removes a conversation with all it holds. It does nothing if there is none.
	Delete(ctx context.Context, conversation string) error

	// Prune removes the records out of reach of all heads through links. It returns how much it has removed. With dryRun it removes nothing, and returns how much it would remove. A head
	// that moves at the same time keeps everything it reaches. If there is much to remove, Prune may use several
	// transactions, the newest records first. A database rests after each for as long as it took, to give other writers
	// their turn. After an error or a crash, a part may be removed.
	Prune(ctx context.Context, conversation string, dryRun bool) (Pruned, error)

	// Watch yields the heads of a conversation: first all current heads, sorted by name, and then each head that has
	// moved since it was yielded.
	//
	//   - The versions of one head rise until it is removed. Versions may be skipped, but never the last one.
	//   - A removed head is yielded with its name and version 0, unless it has been made again by then.
	//   - A head may have its earlier version again after it was removed and made anew. It is yielded if it differs in
	//     anything: compare whole heads, not versions.
	//   - The conversation may be made or deleted while it is watched, and the caller may call other methods.
	//   - Watch yields heads until the caller breaks off or the context is done. The context's error comes last.
	Watch(ctx context.Context, conversation string) iter.Seq2[Head, error]
}

// AppendRequest is one step of [Driver.Append].
type AppendRequest struct {
	// Conversation is the key of the conversation. The append makes it if it does not exist.
	Conversation string
	// Head is the name of the head to move or make.
	Head string
	// Expect is the required version of the head; 0 if it must not exist.
	Expect uint64
	// Records are the records to store. Each comes after the records it is linked to.
	Records []Record
	// Nodes are the records of the head after the append. It replaces the old list, and may be empty.
	Nodes []node.ID
	// Header is the head's new header. Nil keeps the old header; for a new head it is an empty one.
	Header []byte
	// Taken are the rows of the inbox (package executor/durable) that are part of the conversation after the append: they
	// are removed with it. Only a [Transactor] has an inbox.
	Taken []int64
	// Replace replaces a stored record with the same links and another sum. Without Replace such a record is an error.
	// It is for redaction.
	Replace bool
}

// Head is a named position in a conversation.
type Head struct {
	// Name identifies the head in its conversation.
	Name string
	// Version counts the appends to the head, from 1. It is 0 for a missing head.
	Version uint64
	// Nodes are the records of the head, in the order of the last append.
	Nodes []node.ID
	// Header is the header of the last append with a header.
	Header []byte
}

// Opened is what [Driver.Open] returns.
type Opened struct {
	Head Head
	// Outlined are the IDs of the conversation's records with an outline, in any order. A driver without Read or Records
	// leaves it empty.
	Outlined []node.ID
	// Records are what Read yields from Head.Nodes on, or all records of the conversation, in the order of Read. Nil
	// means that Read has to be called.
	Records []Record
}

// Record is a node in its saved form.
type Record struct {
	// ID is the node's ID.
	ID node.ID
	// Links are the referenced nodes: the parents, in order, then the heads of the child conversation, and other needed
	// nodes. Each ID comes once.
	Links []node.ID
	// Line is the line of node.Node.Append.
	Line []byte
	// Sum is the sum of the line.
	Sum Sum
	// Outline lists what a conversation that ends in this record is loaded from, with a sum of its own. Nil for most
	// records. An append sets it for a stored record without one, too. Read leaves it out.
	Outline []byte
}

// Sum is a SHA-256.
type Sum [sha256.Size]byte

// SumOf returns the SHA-256 of data.
func SumOf(data []byte) Sum { return sha256.Sum256(data) }

// String returns the sum in hexadecimal.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// Page selects a part of a sorted list.
type Page struct {
	// Prefix selects names by their beginning. It is compared byte by byte. Defaults to all.
	Prefix string
	// After selects the names after it, in the order of bytes. Give the last name of a page to get the next page.
	// Defaults to the beginning of the list.
	After string
	// Limit is the maximum number of names. A page with fewer is the last one. Defaults to 1000.
	Limit int
}

// defaultLimit is the default of Page.Limit.
const defaultLimit = 1000

// Check returns an error with ErrName if Prefix or After is neither empty nor allowed by [CheckName].
func (p Page) Check() error {
	for _, text := range []string{p.Prefix, p.After} {
		if text == "" {
			continue
		}
		if err := CheckName(text); err != nil {
			return err
		}
	}
	return nil
}

// Max returns Limit or its default.
func (p Page) Max() int {
	if p.Limit <= 0 {
		return defaultLimit
	}
	return p.Limit
}

// Pruned holds the counts of [Driver.Prune].
type Pruned struct {
	// Records is the number of records.
	Records int
	// Bytes is the size of their lines.
	Bytes int64
}
