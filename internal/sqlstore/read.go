package sqlstore

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// Read implements store.Driver. It first walks from the newest record to the oldest, without their lines, and then
// reads the lines from the oldest to the newest. No query is open while the caller handles a record, so it may use the
// driver.
func (d *Driver) Read(ctx context.Context, conversation string, from, have []node.ID) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if err := d.read(ctx, conversation, from, have, func(r store.Record) bool { return yield(r, nil) }); err != nil {
			yield(store.Record{}, err)
		}
	}
}

func (d *Driver) read(ctx context.Context, conversation string, from, have []node.ID,
	yield func(store.Record) bool) error {
	if err := check(ctx, conversation); err != nil {
		return err
	}
	if len(from) == 0 {
		return nil
	}

	// Often the newest records are all that is wanted: then one query is enough.
	if records, err := d.readNewest(ctx, conversation, from, have); err != nil || records != nil {
		for _, r := range records {
			if !yield(r) {
				break
			}
		}
		return err
	}

	// Find the records.
	w := newWalk(conversation, have)
	for _, id := range from {
		w.want(id)
	}
	err := d.db.Read(ctx, func(tx Tx) (err error) {
		w.conv, err = number(ctx, tx, conversation)
		if err != nil {
			return err
		}
		if err := w.check(ctx, tx, from); err != nil {
			return err
		}
		return w.run(ctx, tx)
	})
	if err != nil {
		return err
	}

	// The walk ends with the oldest record. Read yields it first.
	slices.Reverse(w.found)
	return d.readLines(ctx, w, yield)
}

// maxNewest is the number of records that readNewest reads, and maxNewestLine the size of a line that it reads: larger
// ones may not be wanted.
const (
	maxNewest     = 16
	maxNewestLine = 64 << 10
)

// newestRecords selects the newest records of a conversation, with NULL for a large line. The limit is part of the text:
// SQLite prepares a statement again whenever a parameter of LIMIT is bound.
func newestRecords(columns string) string {
	return fmt.Sprintf(`SELECT %s, id, links, sum, CASE WHEN LENGTH(line) <= %d THEN line END AS line FROM plait_nodes
		WHERE conv = (SELECT num FROM plait_conversations WHERE name = $1) ORDER BY seq DESC LIMIT %d`,
		columns, maxNewestLine, maxNewest)
}

// readNewest returns what Read yields if that is among the newest records, or nil.
func (d *Driver) readNewest(ctx context.Context, conversation string, from, have []node.ID) ([]store.Record, error) {
	var records []store.Record
	err := d.db.Read(ctx, func(tx Tx) error {
		records = nil
		return each(ctx, tx, newestRecords(`seq`), []any{conversation}, func(scan func(...any) error) error {
			var seq int64
			r, err := scanRecord(func(to ...any) error { return scan(append([]any{&seq}, to...)...) })
			records = append(records, r)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return within(conversation, records, from, have), nil
}

// within returns what Read yields, if it is all in records, the newest ones first; or nil.
func within(conversation string, records []store.Record, from, have []node.ID) []store.Record {
	w := newWalk(conversation, have)
	leftOut := map[node.ID]bool{} // of from: they only have to be stored
	for _, id := range from {
		if w.left[id] {
			leftOut[id] = true
		}
		w.want(id)
	}

	// From the newest to the oldest, all links to a record come before it.
	found := []store.Record{} // not nil: nothing may be wanted
	for _, r := range records {
		delete(leftOut, r.ID)
		if !w.wanted[r.ID] || r.Line == nil {
			continue
		}
		delete(w.wanted, r.ID)
		found = append(found, r)
		for _, id := range r.Links {
			w.want(id)
		}
	}
	if len(w.wanted)+len(leftOut) > 0 {
		return nil
	}
	slices.Reverse(found)
	return found
}

// readLines reads and yields the records in w.found, sorted by rising seq. Each query is a transaction of its own:
// records may appear and disappear between two of them.
func (d *Driver) readLines(ctx context.Context, w *walk, yield func(store.Record) bool) error {
	for rest := w.found; len(rest) > 0; {
		query, args, n := w.next(rest)
		batch := make([]store.Record, 0, n)
		err := d.db.Read(ctx, func(tx Tx) error {
			return each(ctx, tx, query, args, func(scan func(...any) error) error {
				r, err := scanRecord(scan)
				batch = append(batch, r)
				return err
			})
		})
		if err != nil {
			return err
		}

		for _, r := range batch {
			if n == 0 || r.ID != rest[0].id {
				continue // stored since, by an append with an earlier seq
			}
			rest, n = rest[1:], n-1
			if !yield(r) {
				return nil
			}
		}
		if n > 0 {
			return w.missing(rest[0].id) // removed since
		}
	}
	return nil
}

// number returns the number of a conversation, or 0.
func number(ctx context.Context, tx Tx, conversation string) (conv int64, err error) {
	_, err = first(ctx, tx, `SELECT num FROM plait_conversations WHERE name = $1`, []any{conversation}, &conv)
	return conv, err
}

func scanRecord(scan func(...any) error) (store.Record, error) {
	var id, links, sum, line []byte
	if err := scan(&id, &links, &sum, &line); err != nil {
		return store.Record{}, err
	}
	return unpackRecord(id, links, sum, line)
}

func unpackRecord(id, links, sum, line []byte) (store.Record, error) {
	r := store.Record{Line: line}
	var err error
	if r.ID, err = unpackID(id); err != nil {
		return r, err
	}
	if r.Links, err = unpackIDs(links); err != nil {
		return r, err
	}
	if sum, err = unseal(sum, id, links); err != nil {
		return r, err
	}
	r.Sum, err = unpackSum(sum)
	return r, err
}

// walk finds the records reachable through links, from the newest to the oldest. All links to a record are in newer
// records. When the walk comes to a row, it therefore knows whether the record is wanted.
type walk struct {
	conversation string
	conv         int64
	left         map[node.ID]bool // left out: never wanted
	wanted       map[node.ID]bool // to be found
	unplaced     []node.ID        // wanted, and the seq is not known; some may be found by now
	placed       placeHeap        // wanted, and the seq was looked up; some may be found by now
	lone         bool             // place.lone of the next found record
	found        []place          // by falling seq
}

// place is the position of a record in the table.
type place struct {
	seq  int64
	id   node.ID
	lone bool // there may be other rows between this record and the one found before it, which has a larger seq
}

// newWalk returns a walk that leaves out the records in have.
func newWalk(conversation string, have []node.ID) *walk {
	w := &walk{conversation: conversation, left: map[node.ID]bool{}, wanted: map[node.ID]bool{}}
	for _, id := range have {
		w.left[id] = true
	}
	return w
}

func (w *walk) want(id node.ID) {
	if !w.wanted[id] && !w.left[id] {
		w.wanted[id] = true
		w.unplaced = append(w.unplaced, id)
	}
}

func (w *walk) missing(id node.ID) error {
	return &store.RecordError{Conversation: w.conversation, ID: id, Err: store.ErrNotStored}
}

// check returns an error if one of ids is left out and not stored. The others are checked when they are found.
func (w *walk) check(ctx context.Context, tx Tx, ids []node.ID) error {
	var leftOut []node.ID
	for _, id := range ids {
		if w.left[id] {
			leftOut = append(leftOut, id)
		}
	}
	_, err := w.lookUp(ctx, tx, leftOut)
	return err
}

// Limits of one query of a walk, in rows.
const (
	minWalk = 16
	maxWalk = 4096
)

// run finds all wanted records. It reads the table downwards:
//
//   - As long as many of the rows are wanted, each query reads more rows than the one before.
//   - Among rows of other branches it skips to the newest wanted row.
//
// So it reads at most minWalk rows for each found record, however many branches there are.
func (w *walk) run(ctx context.Context, tx Tx) error {
	if len(w.wanted) == 0 {
		return nil
	}
	below, err := w.newest(ctx, tx)
	if err != nil {
		return err
	}

	limit := minWalk
	for {
		rows, found, lowest, err := w.scan(ctx, tx, below, limit)
		if err != nil || len(w.wanted) == 0 {
			return err
		}

		// The rows begin with the newest wanted record. If it is still wanted, it was removed after newest found it.
		if id := w.placed[0].id; w.wanted[id] {
			return w.missing(id)
		}

		// Many rows were wanted: read on right below them, four times as many.
		if rows == limit && found*minWalk >= rows {
			below, limit = lowest-1, min(4*limit, maxWalk)
			continue
		}

		// Few were wanted: skip to the next wanted record, and read fewer rows there.
		limit = max(limit/4, minWalk)
		if below, err = w.newest(ctx, tx); err != nil {
			return err
		}
	}
}

// newest returns the largest seq of the wanted records. It looks each of them up once.
func (w *walk) newest(ctx context.Context, tx Tx) (seq int64, err error) {
	w.lone = true // the walk skips to this seq

	unplaced := slices.DeleteFunc(w.unplaced, func(id node.ID) bool { return !w.wanted[id] })
	w.unplaced = nil
	places, err := w.lookUp(ctx, tx, unplaced)
	if err != nil {
		return 0, err
	}
	for _, p := range places {
		heap.Push(&w.placed, p)
	}

	// Records found meanwhile are still in the heap.
	for !w.wanted[w.placed[0].id] {
		heap.Pop(&w.placed)
	}
	return w.placed[0].seq, nil
}

// lookUp returns the places of records, and an error if one is not stored.
func (w *walk) lookUp(ctx context.Context, tx Tx, ids []node.ID) ([]place, error) {
	stored := make(map[node.ID]bool, len(ids))
	var places []place
	err := in(ctx, tx, `SELECT seq, id FROM plait_nodes WHERE conv = $1 AND id IN (…)`, w.conv, idArgs(ids),
		func(scan func(...any) error) error {
			var p place
			var packed []byte
			if err := scan(&p.seq, &packed); err != nil {
				return err
			}
			id, err := unpackID(packed)
			p.id, stored[id] = id, true
			places = append(places, p)
			return err
		})
	if err != nil {
		return nil, err
	}

	for _, id := range ids {
		if !stored[id] {
			return nil, w.missing(id)
		}
	}
	return places, nil
}

// scan reads rows downwards from a seq. It returns how many rows it read, how many of them were wanted, and the lowest
// seq.
func (w *walk) scan(ctx context.Context, tx Tx, below int64, limit int) (rows, found int, lowest int64, err error) {
	err = each(ctx, tx, `SELECT seq, id, links FROM plait_nodes WHERE conv = $1 AND seq <= $2 ORDER BY seq DESC LIMIT $3`,
		[]any{w.conv, below, int64(limit)}, func(scan func(...any) error) error {
			var packed, links []byte
			if err := scan(&lowest, &packed, &links); err != nil {
				return err
			}
			rows++

			id, err := unpackID(packed)
			if err != nil {
				return err
			}
			// This row is between two wanted records: they cannot be read as one range.
			if !w.wanted[id] {
				w.lone = true
				return nil
			}

			delete(w.wanted, id)
			w.found = append(w.found, place{lowest, id, w.lone})
			w.lone = false
			found++

			// The linked records are in rows further down.
			ids, err := unpackIDs(links)
			for _, id := range ids {
				w.want(id)
			}
			return err
		})
	return rows, found, lowest, err
}

// placeHeap is a heap with the largest seq first.
type placeHeap []place

func (h placeHeap) Len() int           { return len(h) }
func (h placeHeap) Less(i, j int) bool { return h[i].seq > h[j].seq }
func (h placeHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *placeHeap) Push(x any)        { *h = append(*h, x.(place)) }
func (h *placeHeap) Pop() any {
	last := len(*h) - 1
	p := (*h)[last]
	*h = (*h)[:last]
	return p
}

// columns are the columns for scanRecord.
const columns = `id, links, sum, line`

// maxLines is the maximum number of records read at once.
const maxLines = 256

// next returns the query for the first n records of rest, sorted by seq. A long run of neighbors is read as a range.
// Other records are looked up by seq.
func (w *walk) next(rest []place) (query string, args []any, n int) {
	// A run of neighbors ends with a lone record.
	for n = 1; n < min(len(rest), maxLines) && !rest[n-1].lone; n++ {
	}
	if n >= minWalk || n == len(rest) {
		query := `SELECT ` + columns + ` FROM plait_nodes WHERE conv = $1 AND seq >= $2 AND seq <= $3 ORDER BY seq`
		return query, []any{w.conv, rest[0].seq, rest[n-1].seq}, n
	}

	n = rowsOf(len(rest))
	args = []any{w.conv}
	for _, p := range rest[:n] {
		args = append(args, p.seq)
	}
	return inQuery(`SELECT `+columns+` FROM plait_nodes WHERE conv = $1 AND seq IN (…) ORDER BY seq`, n), args, n
}

// Records implements store.Driver.
func (d *Driver) Records(ctx context.Context, conversation string, ids []node.ID) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		records, err := d.named(ctx, conversation, ids)
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
		if err != nil {
			yield(store.Record{}, err)
		}
	}
}

// named returns the records for Records.
func (d *Driver) named(ctx context.Context, conversation string, ids []node.ID) ([]store.Record, error) {
	if err := check(ctx, conversation); err != nil {
		return nil, err
	}

	w := newWalk(conversation, nil)
	for _, id := range ids {
		w.want(id)
	}
	type placed struct {
		store.Record
		seq int64
	}
	var found []placed
	err := d.db.Read(ctx, func(tx Tx) (err error) {
		found = nil
		if w.conv, err = number(ctx, tx, conversation); err != nil {
			return err
		}
		return in(ctx, tx, `SELECT seq, outline, `+columns+` FROM plait_nodes WHERE conv = $1 AND id IN (…)`, w.conv,
			idArgs(w.unplaced), func(scan func(...any) error) error {
				var p placed
				var outline []byte
				r, err := scanRecord(func(dest ...any) error { return scan(append([]any{&p.seq, &outline}, dest...)...) })
				p.Record, p.Outline = r, orNil(outline)
				found = append(found, p)
				return err
			})
	})
	if err != nil {
		return nil, err
	}

	// A link has a smaller seq than the record.
	slices.SortFunc(found, func(a, b placed) int { return cmp.Compare(a.seq, b.seq) })
	records := make([]store.Record, len(found))
	for i, p := range found {
		records[i] = p.Record
		delete(w.wanted, p.ID)
	}
	for id := range w.wanted {
		return nil, w.missing(id)
	}
	return records, nil
}

// check returns the error of the first invalid name, or the context's error.
func check(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := store.CheckName(name); err != nil {
			return err
		}
	}
	return ctx.Err()
}
