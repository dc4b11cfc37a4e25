package sqlstore

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// Append implements store.Driver.
func (d *Driver) Append(ctx context.Context, a store.AppendRequest) (store.Head, error) {
	if err := a.Check(); err != nil {
		return store.Head{}, err
	}
	if err := ctx.Err(); err != nil {
		return store.Head{}, err
	}

	// One statement if possible. Otherwise a transaction reads the head and the links first.
	head, done, err := d.appendOnce(ctx, a)
	if err == nil && !done {
		err = d.write(ctx, func(tx Tx) (err error) {
			head, err = d.append(ctx, tx, a)
			return err
		})
	}
	if err != nil {
		return store.Head{}, err
	}

	d.news.Ring(a.Conversation)
	return head, nil
}

// errAgain ends a transaction if its conversation, head or record was made or removed while it ran. The transaction is
// run again. After maxAgain attempts the caller gets the error, with this text.
var errAgain = fmt.Errorf("not written: another program made or removed the conversation during each of %d attempts", maxAgain)

// maxAgain is how often a transaction is run, the first time included.
const maxAgain = 10

// write runs f in a transaction, and runs it again after errAgain.
func (d *Driver) write(ctx context.Context, f func(tx Tx) error) (err error) {
	for range maxAgain {
		if err = d.db.Write(ctx, f); err != errAgain {
			break
		}
	}
	return err
}

// OnceAppender is a DB with a faster path for a usual append: one statement. Several appends may share a statement.
type OnceAppender interface {
	// AppendOnce appends new records to an existing head, and returns the head's header. It does nothing
	// and reports false in these cases:
	//
	//   - the head does not have the version a.Expect;
	//   - the column nodes of the head is not known, unless known is empty;
	//   - a record is stored already.
	//
	// Records are the columns id, links, sum and line; to is the new column nodes, and a.Header the new column header, nil
	// to keep it.
	AppendOnce(ctx context.Context, a store.AppendRequest, known []byte, records [4][][]byte, to []byte) (
		header []byte, done bool, err error)
}

// appendOnce stores an append with one statement if possible.
func (d *Driver) appendOnce(ctx context.Context, a store.AppendRequest) (h store.Head, done bool, err error) {
	once, ok := d.db.(OnceAppender)
	if !ok {
		return store.Head{}, false, nil
	}
	known, usual := continues(a)
	if !usual || len(a.Taken) > 0 {
		return store.Head{}, false, nil
	}

	header, done, err := once.AppendOnce(ctx, sealedHeader(a), known, columnsOf(a), headColumn(a))
	if !done || err != nil {
		return store.Head{}, false, err
	}
	h, err = moved(a, header)
	return h, true, err
}

// headColumn returns the column nodes of the head after an append.
func headColumn(a store.AppendRequest) []byte {
	return sealHead(a.Conversation, a.Head, a.Expect+1, packIDs(a.Nodes))
}

// sealedHeader returns an append with the column header of the head after it; nil to keep it.
func sealedHeader(a store.AppendRequest) store.AppendRequest {
	if a.Header != nil {
		a.Header = sealHeader(a.Conversation, a.Head, a.Header)
	}
	return a
}

// moved returns the head after an append, with the column header.
func moved(a store.AppendRequest, header []byte) (store.Head, error) {
	return readHead(a.Conversation, a.Head, int64(a.Expect)+1, headColumn(a), header)
}

// columnsOf returns the records of an append as columns: a statement takes a column, not a row, in each parameter.
func columnsOf(a store.AppendRequest) (records [4][][]byte) {
	for _, r := range a.Records {
		for i, value := range [4][]byte{r.ID[:], packIDs(r.Links), packSum(r), notNull(r.Line)} {
			records[i] = append(records[i], value)
		}
	}
	return records
}

// continues reports whether an append is a usual one: it continues a head, and its records have no outline. It also
// returns the column nodes of a head with the known records: IDs in links, but not in the batch; empty for none. If the
// head points to exactly these, no link has to be checked, because the records of a head are stored and never removed.
func continues(a store.AppendRequest) (known []byte, usual bool) {
	if a.Expect == 0 || a.Replace {
		return nil, false
	}

	// Not nil: that would be NULL in the database, without a length.
	known = []byte{}
	seen := map[node.ID]bool{}
	refer := func(ids []node.ID) {
		for _, id := range ids {
			if !seen[id] {
				seen[id] = true
				known = append(known, id[:]...)
			}
		}
	}

	// A record is seen after its own links: Check has refused links to later records.
	for _, r := range a.Records {
		if r.Outline != nil {
			return nil, false
		}
		refer(r.Links)
		seen[r.ID] = true
	}
	refer(a.Nodes)
	if len(known) > 0 {
		known = sealHead(a.Conversation, a.Head, a.Expect, known)
	}
	return known, true
}

// KnownIDs returns the IDs in known of [OnceAppender].
func KnownIDs(known []byte) [][]byte {
	return slices.Collect(slices.Chunk(known[:max(len(known)-sealSize, 0)], len(node.ID{})))
}

// append is Append in a transaction. a was checked.
func (d *Driver) append(ctx context.Context, tx Tx, a store.AppendRequest) (store.Head, error) {
	s := step{AppendRequest: a, tx: tx, ctx: ctx, dialect: d.dialect}
	if h, done, err := s.inOne(); done || err != nil {
		return h, err
	}
	if err := s.removeTaken(); err != nil {
		return store.Head{}, err
	}
	if h, done, err := s.moveFirst(); done || err != nil {
		return h, err
	}

	if err := s.open(); err != nil {
		return store.Head{}, err
	}
	if s.old.Version != a.Expect {
		return store.Head{}, s.conflict()
	}
	if err := s.makeConversation(); err != nil {
		return store.Head{}, err
	}

	if err := s.checkLinks(); err != nil {
		return store.Head{}, err
	}
	if err := s.storeRecords(); err != nil {
		return store.Head{}, err
	}
	return s.moveHead()
}

// step is one append in its transaction.
type step struct {
	store.AppendRequest
	ctx     context.Context
	tx      Tx
	dialect Dialect

	conv int64      // the conversation's number; 0 until there is one
	num  int64      // the head's number; 0 for a new head
	old  store.Head // the head as it was
}

func (s *step) exec(query string, args ...any) (int64, error) {
	return s.tx.Exec(s.ctx, query, args...)
}

// removeTaken removes the rows of the inbox that the conversation has after the append. An append that fails undoes it.
func (s *step) removeTaken() error {
	for taken := s.Taken; len(taken) > 0; {
		n := rowsOf(len(taken))
		args := make([]any, n)
		for i, num := range taken[:n] {
			args[i] = num
		}
		taken = taken[n:]

		query := inQuery(`DELETE FROM plait_inbox
			WHERE conv = (SELECT num FROM plait_conversations WHERE name = $1) AND num IN (…)`, n)
		if _, err := s.exec(query, append([]any{s.Conversation}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// Appender is a Tx with a faster path for an append: one statement.
type Appender interface {
	// Append is OnceAppender.AppendOnce in a transaction, and it also removes the rows a.Taken of the inbox. It returns the
	// number of the conversation, 0 if it has done nothing, and the number of the records that were not stored before. The
	// IDs in known may be those of any stored records.
	Append(ctx context.Context, a store.AppendRequest, known []byte, records [4][][]byte, to []byte) (
		conv int64, header []byte, inserted int, err error)
}

// inOne stores a usual append (see continues) with one statement if possible. Otherwise it reports false.
func (s *step) inOne() (h store.Head, done bool, err error) {
	one, ok := s.tx.(Appender)
	if !ok {
		return h, false, nil
	}
	known, usual := continues(s.AppendRequest)
	if !usual {
		return h, false, nil
	}
	a := s.AppendRequest
	conv, header, inserted, err := one.Append(s.ctx, sealedHeader(a), known, columnsOf(a), headColumn(a))
	if err != nil || conv == 0 {
		return h, false, err
	}

	s.conv = conv
	if h, err = moved(a, header); err != nil {
		return h, false, err
	}
	if inserted < len(a.Records) {
		err = s.storeRecords() // compares them
	}
	return h, err == nil, err
}

// moveFirst stores a usual append (see continues) without reading first. It moves the head if the head is as expected,
// and inserts the records. If that is not possible, it does nothing and reports false.
func (s *step) moveFirst() (h store.Head, done bool, err error) {
	known, usual := continues(s.AppendRequest)
	if !usual {
		return h, false, nil
	}

	// The known records are those of the head, or are looked up. One of the latter may be unreachable: the lock keeps
	// Prune from removing it until the commit, and a Prune that this statement does not see makes it do nothing.
	header := sealedHeader(s.AppendRequest).Header
	args := []any{headColumn(s.AppendRequest), headerOrNull(header), s.Conversation, s.Head, int64(s.Expect), known}
	stored := ""
	if ids := KnownIDs(known); len(ids) > 0 && len(ids) <= maxLookedUp {
		stored = lookUps()[len(ids)]
		for _, id := range ids {
			args = append(args, id)
		}
	}
	done, err = first(s.ctx, s.tx, `UPDATE plait_heads SET version = version + 1, nodes = $1, header = COALESCE($2, header)
		WHERE conv = (SELECT num FROM plait_conversations WHERE name = $3`+s.dialect.ShareUnpruned+`) AND name = $4 AND version = $5
		AND (nodes = $6 OR LENGTH($6) = 0`+stored+`) RETURNING conv, header`, args, &s.conv, &header)
	if !done || err != nil {
		return h, false, err
	}

	if h, err = moved(s.AppendRequest, header); err != nil {
		return h, false, err
	}
	return h, true, s.storeRecords()
}

// maxLookedUp is the maximum number of records that moveFirst looks up.
const maxLookedUp = 8

// lookUps holds conditions for the records with the parameters from $7 on, by their number: all of them are stored.
var lookUps = sync.OnceValue(func() *[maxLookedUp + 1]string {
	var list [maxLookedUp + 1]string
	for n := 1; n <= maxLookedUp; n++ {
		var names []string
		for i := range n {
			names = append(names, "$"+strconv.Itoa(7+i))
		}
		list[n] = ` OR (SELECT COUNT(*) FROM plait_nodes WHERE plait_nodes.conv = plait_heads.conv AND id IN (` +
			strings.Join(names, ", ") + `)) = ` + strconv.Itoa(n)
	}
	return &list
})

// headerOrNull returns a header as a parameter, null for none. A nil slice is not null for every driver.
func headerOrNull(header []byte) any {
	if header == nil {
		return nil
	}
	return header
}

// refuse returns an error about one record.
func (s *step) refuse(id node.ID, err error) error {
	return &store.RecordError{Conversation: s.Conversation, ID: id, Err: err}
}

func (s *step) conflict() error {
	current := s.old
	current.Name = s.Head
	return &store.ConflictError{Conversation: s.Conversation, Head: s.Head, Expect: s.Expect, Current: current}
}

// open reads the head, and locks the conversation against removal of anything in it.
func (s *step) open() error {
	conv, num, old, err := openHead(s.ctx, s.tx, s.Conversation, s.Head, s.dialect.Share)
	s.conv, s.num, s.old = conv, num, old
	return err
}

// openHead reads a head. It returns the numbers of the conversation and the head; each is 0 if it does not exist, and h
// is then the zero Head. The lock, a clause of the dialect or "", applies to the conversation.
func openHead(ctx context.Context, tx Tx, conversation, name, lock string) (conv, num int64, h store.Head, err error) {
	// A left join: it finds the conversation even without this head.
	query := `SELECT c.num, COALESCE(h.num, 0), COALESCE(h.version, 0), h.nodes, h.header
		FROM plait_conversations c LEFT JOIN plait_heads h ON h.conv = c.num AND h.name = $1 WHERE c.name = $2`
	if lock != "" {
		query += lock + ` OF c`
	}

	var version int64
	var nodes, header []byte
	_, err = first(ctx, tx, query, []any{name, conversation}, &conv, &num, &version, &nodes, &header)
	if err != nil || num == 0 {
		return conv, 0, store.Head{}, err
	}

	h, err = readHead(conversation, name, version, nodes, header)
	return conv, num, h, err
}

// makeConversation makes the conversation if there is none.
func (s *step) makeConversation() error {
	if s.conv != 0 {
		return nil
	}

	made, err := first(s.ctx, s.tx, `INSERT INTO plait_conversations (name) VALUES ($1) ON CONFLICT (name) DO NOTHING
		RETURNING num`, []any{s.Conversation}, &s.conv)
	if made || err != nil {
		return err
	}

	// Another writer may have made it since, with or without the head.
	if err := s.open(); err != nil {
		return err
	}
	if s.old.Version != s.Expect {
		return s.conflict()
	}
	if s.conv == 0 {
		return errAgain // it was there, and was removed
	}
	return nil
}

// checkLinks returns an error for a missing record or head.
func (s *step) checkLinks() error {
	// The records of the head are stored: nothing removes a record within reach of a head.
	known := make(map[node.ID]bool, len(s.old.Nodes)+len(s.Records))
	for _, id := range s.old.Nodes {
		known[id] = true
	}

	// Most appends refer only to the head and to the batch itself: then nothing is looked up, however long the
	// conversation is.
	var unknown []node.ID
	lookUp := func(id node.ID) {
		if _, seen := known[id]; !seen {
			known[id] = false
			unknown = append(unknown, id)
		}
	}
	for _, r := range s.Records {
		for _, id := range r.Links {
			lookUp(id)
		}
		// Later records may link to it, earlier ones may not.
		if _, seen := known[r.ID]; !seen {
			known[r.ID] = true
		}
	}
	for _, id := range s.Nodes {
		lookUp(id)
	}

	// open has locked the conversation, so a record found now is not removed before the commit.
	err := s.rows(`SELECT id FROM plait_nodes WHERE conv = $1 AND id IN (…)`, idArgs(unknown),
		func(scan func(...any) error) error {
			var packed []byte
			if err := scan(&packed); err != nil {
				return err
			}
			id, err := unpackID(packed)
			known[id] = true
			return err
		})
	if err != nil {
		return err
	}

	for _, r := range s.Records {
		for _, id := range r.Links {
			if !known[id] {
				return s.refuse(r.ID, fmt.Errorf("%w: %s", node.ErrParent, id))
			}
		}
	}
	for _, id := range s.Nodes {
		if !known[id] {
			return s.refuse(id, store.ErrNotStored)
		}
	}
	return nil
}

// storeRecords inserts the new records, and compares the others with the stored ones.
func (s *step) storeRecords() error {
	for rest := s.Records; len(rest) > 0; {
		batch := rest[:rowsOf(len(rest))]
		rest = rest[len(batch):]

		// The rows have the order of the records, so seq rises from links to records.
		args := []any{s.conv}
		for _, r := range batch {
			args = append(args, r.ID[:], packIDs(r.Links), packSum(r), notNull(r.Line))
		}
		inserted, err := s.exec(insertNodes(len(batch)), args...)
		if err != nil {
			return err
		}

		// The insert skips known IDs.
		if inserted < int64(len(batch)) {
			if err := s.compare(batch); err != nil {
				return err
			}
		}

		for _, r := range batch {
			if err := s.storeOutline(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// storeOutline stores the outline of the record, if it has none yet.
func (s *step) storeOutline(r store.Record) error {
	if r.Outline == nil {
		return nil
	}
	_, err := s.exec(`UPDATE plait_nodes SET outline = $1 WHERE conv = $2 AND id = $3 AND outline IS NULL`,
		r.Outline, s.conv, r.ID[:])
	return err
}

// compare compares records with the stored ones. It replaces them if the request has Replace.
func (s *step) compare(batch []store.Record) error {
	type row struct{ links, sum []byte }
	stored := make(map[node.ID]row, len(batch))
	ids := make([]node.ID, len(batch))
	for i, r := range batch {
		ids[i] = r.ID
	}

	err := s.rows(`SELECT id, links, sum FROM plait_nodes WHERE conv = $1 AND id IN (…)`, idArgs(ids),
		func(scan func(...any) error) error {
			var packed []byte
			var r row
			if err := scan(&packed, &r.links, &r.sum); err != nil {
				return err
			}
			id, err := unpackID(packed)
			stored[id] = r
			return err
		})
	if err != nil {
		return err
	}

	for _, r := range batch {
		old, found := stored[r.ID]
		if !found {
			return errAgain // it was there when the others were inserted, and was removed
		}

		// Links are the structure: they never change. The line may, if the caller replaces it on purpose.
		same := bytes.HasPrefix(old.sum, r.Sum[:]) // a seal follows
		if !bytes.Equal(old.links, packIDs(r.Links)) || !same && !s.Replace {
			return s.refuse(r.ID, dag.ErrDuplicateID)
		}
		if !same {
			if err := s.replace(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// replace replaces a stored record.
func (s *step) replace(r store.Record) error {
	_, err := s.exec(`UPDATE plait_nodes SET sum = $1, line = $2 WHERE conv = $3 AND id = $4`,
		packSum(r), notNull(r.Line), s.conv, r.ID[:])
	return err
}

// moveHead moves or makes the head, if its version has not changed since it was read.
func (s *step) moveHead() (store.Head, error) {
	h := store.Head{Name: s.Head, Version: s.Expect + 1, Nodes: cloneIDs(s.Nodes), Header: s.old.Header}
	if s.Header != nil {
		h.Header = orNil(bytes.Clone(s.Header))
	}
	nodes, header := headColumn(s.AppendRequest), sealHeader(s.Conversation, s.Head, h.Header)

	// Each statement changes one row, or none if the head has changed since open read it.
	var moved int64
	var err error
	switch {
	case s.num == 0:
		moved, err = s.exec(`INSERT INTO plait_heads (conv, name, version, nodes, header) VALUES ($1, $2, 1, $3, $4)
			ON CONFLICT (conv, name) DO NOTHING`, s.conv, s.Head, nodes, header)
	case s.Header == nil:
		moved, err = s.exec(`UPDATE plait_heads SET version = version + 1, nodes = $1 WHERE num = $2 AND version = $3`,
			nodes, s.num, int64(s.Expect))
	default:
		moved, err = s.exec(`UPDATE plait_heads SET version = version + 1, nodes = $1, header = $2
			WHERE num = $3 AND version = $4`, nodes, header, s.num, int64(s.Expect))
	}
	if err != nil {
		return store.Head{}, err
	}
	if moved == 1 {
		return h, nil
	}

	// Another writer has moved, made or removed it since it was read.
	if err := s.open(); err != nil {
		return store.Head{}, err
	}
	if s.old.Version == s.Expect { // another writer made and removed it, or removed it and made it again
		return store.Head{}, errAgain
	}
	return store.Head{}, s.conflict()
}

// notNull returns data for a NOT NULL column.
func notNull(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// orNil returns data, or nil if it is empty. Some databases treat both alike.
func orNil(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	return data
}

// maxRows is the maximum number of rows in one statement.
const maxRows = 64

// rowsOf returns the number of rows, out of n, for the next statement. It returns few different numbers: each has its
// own statement, prepared once and kept.
func rowsOf(n int) int {
	switch {
	case n >= maxRows:
		return maxRows
	case n > 8:
		return 8
	default:
		return n
	}
}

// inserts holds the statement of insertNodes, by the number of rows.
var inserts = sync.OnceValue(func() *[maxRows + 1]string {
	var list [maxRows + 1]string
	for rows := 1; rows <= maxRows; rows++ {
		var b strings.Builder
		b.WriteString(`INSERT INTO plait_nodes (conv, id, links, sum, line) VALUES `)
		for i := range rows {
			if i > 0 {
				b.WriteString(`, `)
			}
			// All rows share the conversation, $1. Each has four parameters of its own.
			b.WriteString(`($1`)
			for k := range 4 {
				b.WriteString(`, $` + strconv.Itoa(2+4*i+k))
			}
			b.WriteString(`)`)
		}
		b.WriteString(` ON CONFLICT (conv, id) DO NOTHING`)
		list[rows] = b.String()
	}
	return &list
})

func insertNodes(rows int) string { return inserts()[rows] }

// rows runs a query for all values of args, at most maxRows at a time, and calls f for every row. In the query, $1 is
// the conversation, and "…" is replaced by the parameters of the list.
func (s *step) rows(query string, args []any, f func(scan func(...any) error) error) error {
	return in(s.ctx, s.tx, query, s.conv, args, f)
}

// in is step.rows for any transaction.
func in(ctx context.Context, tx Tx, query string, conv int64, args []any, f func(scan func(...any) error) error) error {
	for len(args) > 0 {
		n := rowsOf(len(args))
		if err := each(ctx, tx, inQuery(query, n), append([]any{conv}, args[:n]...), f); err != nil {
			return err
		}
		args = args[n:]
	}
	return nil
}

// inQuery replaces … by the parameters $2 to $n+1.
func inQuery(query string, n int) string { return strings.Replace(query, "…", parameters()[n], 1) }

// parameters holds "$2, $3, …" for each number of them.
var parameters = sync.OnceValue(func() *[maxRows + 1]string {
	var list [maxRows + 1]string
	for n := 1; n <= maxRows; n++ {
		list[n] = strings.TrimPrefix(list[n-1]+", $"+strconv.Itoa(n+1), ", ")
	}
	return &list
})

func idArgs(ids []node.ID) []any {
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id[:]
	}
	return args
}
