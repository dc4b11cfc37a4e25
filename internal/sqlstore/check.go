package sqlstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// DamageError lists the damage in a database.
type DamageError struct {
	// Problems are the first problems found, at most 100.
	Problems []string
}

// Error returns the number of problems and the first one.
func (e *DamageError) Error() string {
	text := fmt.Sprintf("the database is damaged: %d problems", len(e.Problems))
	if len(e.Problems) > 0 {
		text += ", the first: " + e.Problems[0]
	}
	return text
}

// maxProblems is the maximum length of DamageError.Problems.
const maxProblems = 100

// Check reads all records, heads and the inbox. It compares every sum, and looks up the targets of all links and
// heads. The error is a *DamageError, or an error of reading. What is derived is checked too: outlines by their sums, and
// that a row of the index belongs to a head.
func (d *Driver) Check(ctx context.Context) error {
	var c checker
	err := d.db.Snapshot(ctx, func(tx Tx) error {
		c = checker{ctx: ctx, tx: tx}
		return c.conversations()
	})
	if err == nil && c.problems != nil {
		err = &DamageError{c.problems}
	}
	return err
}

// checker is one run of Check.
type checker struct {
	ctx      context.Context
	tx       Tx
	problems []string

	// The conversation under check. nodes holds its records read so far.
	conv  int64
	name  string
	nodes map[node.ID]bool
}

func (c *checker) report(format string, args ...any) {
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, fmt.Sprintf("%q: ", c.name)+fmt.Sprintf(format, args...))
	}
}

func (c *checker) conversations() error {
	type conversation struct {
		num  int64
		name string
	}

	// The list is read to its end first: a Tx runs one query at a time.
	var list []conversation
	err := each(c.ctx, c.tx, `SELECT num, name FROM plait_conversations ORDER BY num`, nil, func(scan func(...any) error) error {
		var conv conversation
		err := scan(&conv.num, &conv.name)
		list = append(list, conv)
		return err
	})
	if err != nil {
		return err
	}

	if err := c.orphans(); err != nil {
		return err
	}
	for _, conv := range list {
		c.conv, c.name = conv.num, conv.name
		c.nodes = map[node.ID]bool{}

		// The records first: heads looks into c.nodes.
		for _, check := range []func() error{c.records, c.heads, c.inbox} {
			if err := check(); err != nil {
				return err
			}
		}
	}
	return nil
}

// orphans finds rows of no conversation, and rows of the index and the inbox of no head.
func (c *checker) orphans() error {
	for _, table := range []string{"plait_nodes", "plait_heads", "plait_inbox"} {
		err := each(c.ctx, c.tx, `SELECT DISTINCT conv FROM `+table+` t
			WHERE NOT EXISTS (SELECT 1 FROM plait_conversations c WHERE c.num = t.conv)`, nil,
			func(scan func(...any) error) error {
				var conv int64
				err := scan(&conv)
				c.report("%s has rows of conversation %d, which does not exist", table, conv)
				return err
			})
		if err != nil {
			return err
		}
	}

	return each(c.ctx, c.tx, `SELECT id FROM plait_index i WHERE busy NOT IN (0, 1) OR busy = 1 AND NOT EXISTS (
		SELECT 1 FROM plait_conversations c JOIN plait_heads h ON h.conv = c.num
		WHERE c.name = i.conversation AND h.name = i.head)`, nil,
		func(scan func(...any) error) error {
			var id string
			err := scan(&id)
			c.report("run %q of the index is of no head", id)
			return err
		})
}

// Repair removes what Check finds damaged among what is derived: the outlines. A conversation without one is read as a
// whole until its next compaction.
func (d *Driver) Repair(ctx context.Context) error {
	type damaged struct {
		conv int64
		id   []byte
	}

	var list []damaged
	err := d.db.Read(ctx, func(tx Tx) error {
		return each(ctx, tx, `SELECT conv, id, outline FROM plait_nodes WHERE outline IS NOT NULL`, nil,
			func(scan func(...any) error) error {
				var row damaged
				var r store.Record
				if err := scan(&row.conv, &row.id, &r.Outline); err != nil {
					return err
				}
				if r.ID, _ = unpackID(row.id); r.CheckOutline() != nil {
					list = append(list, row)
				}
				return nil
			})
	})
	if err != nil {
		return err
	}

	return d.write(ctx, func(tx Tx) error {
		for _, row := range list {
			_, err := tx.Exec(ctx, `UPDATE plait_nodes SET outline = NULL WHERE conv = $1 AND id = $2`, row.conv, row.id)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// records checks the sums and links of all records, maxLines at a time. A link must be to a record with a smaller seq.
func (c *checker) records() error {
	// Read a page at a time, to limit the memory for lines.
	for after, more := int64(0), true; more; {
		rows := 0
		err := each(c.ctx, c.tx, `SELECT seq, outline, `+columns+` FROM plait_nodes WHERE conv = $1 AND seq > $2 ORDER BY seq LIMIT $3`,
			[]any{c.conv, after, int64(maxLines)}, func(scan func(...any) error) error {
				rows++

				// The first column is seq, the beginning of the next page.
				var outline []byte
				r, err := scanRecord(func(dest ...any) error { return scan(append([]any{&after, &outline}, dest...)...) })
				if errors.Is(err, errPacked) {
					c.report("record %s: its ID, links or sum are damaged", r.ID)
					c.nodes[r.ID] = true
					return nil
				}
				if err != nil {
					return err
				}

				if r.Outline = outline; len(outline) > 0 && r.CheckOutline() != nil {
					c.report("record %s: its outline is damaged; Repair removes it, and the next compaction makes another", r.ID)
				}
				for _, id := range r.Links {
					if !c.nodes[id] {
						c.report("record %s: its link %s is not stored before it", r.ID, id)
					}
				}
				c.nodes[r.ID] = true

				if store.SumOf(r.Line) != r.Sum {
					c.report("record %s: its sum is not that of its line", r.ID)
				}
				return nil
			})
		if err != nil {
			return err
		}

		more = rows == maxLines
	}
	return nil
}

// heads checks that there is a head, and looks up the records of each.
func (c *checker) heads() error {
	heads := 0
	err := each(c.ctx, c.tx, `SELECT name, version, nodes, header FROM plait_heads WHERE conv = $1`, []any{c.conv},
		func(scan func(...any) error) error {
			var name string
			var version int64
			var nodes, header []byte
			if err := scan(&name, &version, &nodes, &header); err != nil {
				return err
			}
			heads++

			h, err := readHead(c.name, name, version, nodes, header)
			if err != nil || version < 1 {
				c.report("head %q: its name, version, nodes or header are damaged, or the name of the conversation", name)
			}
			for _, id := range h.Nodes {
				if !c.nodes[id] {
					c.report("head %q: record %s is not stored", name, id)
				}
			}
			return nil
		})
	// A conversation without a head does not exist, so its rows should be gone.
	if err == nil && heads == 0 {
		c.report("it has no head")
	}
	return err
}

// inbox checks the sum of each reply and message that is not yet in the conversation.
func (c *checker) inbox() error {
	return each(c.ctx, c.tx, `SELECT num, head, call, payload, taken, arrived, sum FROM plait_inbox WHERE conv = $1`,
		[]any{c.conv}, func(scan func(...any) error) error {
			var num int64
			r := InboxRow{Conversation: c.name}
			var packed []byte
			if err := scan(&num, &r.Head, &r.Call, &r.Payload, &r.Taken, &r.Arrived, &packed); err != nil {
				return err
			}
			if sum := r.Sum(); !bytes.Equal(packed, sum[:]) {
				c.report("row %d of the inbox: its sum is not that of its content", num)
			}
			return nil
		})
}
