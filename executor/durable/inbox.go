package durable

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// Message is a message of the user that has arrived for a run and is not yet in its conversation.
type Message struct {
	// ID identifies the message in the inbox.
	ID int64
	// Text is the text.
	Text string
	// Arrived is the time of Send.
	Arrived time.Time
}

// Send leaves a message for the unfinished run of a head, and returns its ID. The run takes it before its next request:
// exactly once, in the transaction that appends it to the conversation. Head defaults to "main". The error holds
// ErrNotBusy if there is no such run: start one.
func (e *Engine) Send(ctx context.Context, conversation, head, text string) (id int64, err error) {
	if head == "" {
		head = store.Main
	}
	m, err := sentText(text)
	if err != nil {
		return 0, err
	}
	err = e.db.Update(ctx, func(tx store.Tx) (err error) {
		id, err = e.send(ctx, tx, target{conversation, head}, []sent{m})
		return err
	})
	return id, err
}

// sent is a message in the inbox.
type sent struct {
	Blocks content.Blocks `json:"blocks"`
	Meta   node.Meta      `json:"meta,omitzero"` // names the message, if it has any
}

// sentText returns the message of a text, or the error of executor.Queue.Add.
func sentText(text string) (sent, error) {
	if err := new(executor.Queue).Add(text); err != nil {
		return sent{}, err // an empty message
	}
	blocks, err := content.Of(content.Text{Text: text})
	return sent{Blocks: blocks}, err
}

// messagesAfter returns the messages of the user that d has and before has not.
func messagesAfter(before, d dag.DAG) (list []sent) {
	for _, n := range d.Nodes() {
		m, is := n.Message()
		if is && m.Role == content.User && len(m.Blocks.ToolResults()) == 0 && before.Node(n.ID()) == nil {
			list = append(list, sent{m.Blocks, n.Meta()})
		}
	}
	return list
}

// send leaves messages for the unfinished run of a head, without those that are in the inbox already. It returns the ID of
// the last one.
func (e *Engine) send(ctx context.Context, tx store.Tx, t target, list []sent) (id int64, err error) {
	// The lock keeps the run from ending meanwhile: it would not see the messages.
	busy, err := e.lockedRun(ctx, tx, t)
	if err != nil {
		return 0, err
	}
	if len(busy) == 0 {
		return 0, &RunError{Run: t.conversation + "#" + t.head, Err: ErrNotBusy}
	}

	there, err := named(ctx, tx, t, list)
	if err != nil {
		return 0, err
	}
	for _, m := range list {
		if there[string(m.Meta.Append(nil))] != 0 {
			continue
		}
		payload, err := json.Marshal(m)
		if err != nil {
			return 0, err
		}
		err = query(ctx, tx, insertRow+` RETURNING num`, insertArgs(e.row(t, "", payload)),
			func(rows store.Rows) error { return rows.Scan(&id) })
		if err != nil {
			return 0, err
		}
	}
	return id, nil
}

// named returns the rows of the inbox with one of the messages, by their metadata. Messages without any have no name.
func named(ctx context.Context, tx store.Tx, t target, list []sent) (map[string]int64, error) {
	if !slices.ContainsFunc(list, func(m sent) bool { return m.Meta.Len() > 0 }) {
		return nil, nil
	}
	rows, err := queryInbox(ctx, tx, t.conversation, t.head, ` AND call = ''`)
	if err != nil {
		return nil, err
	}

	there := map[string]int64{}
	for _, row := range rows {
		m, err := row.sent()
		if err != nil {
			return nil, err
		}
		name := string(m.Meta.Append(nil))
		isSame := func(o sent) bool { return string(o.Meta.Append(nil)) == name }
		if m.Meta.Len() > 0 && slices.ContainsFunc(list, isSame) {
			there[name] = row.num
		}
	}
	return there, nil
}

// row returns a row for the inbox of a head.
func (e *Engine) row(t target, call string, payload []byte) sqlstore.InboxRow {
	return sqlstore.InboxRow{
		Conversation: t.conversation, Head: t.head, Call: call, Payload: payload, Arrived: e.time.Now().UnixMicro(),
	}
}

// insertRow inserts a row into the inbox, with the parameters of insertArgs.
const insertRow = `INSERT INTO plait_inbox (conv, head, call, payload, sum, taken, arrived)
	SELECT num, $1, $2, $3, $4, 0, $5 FROM plait_conversations WHERE name = $6`

func insertArgs(r sqlstore.InboxRow) []any {
	sum := r.Sum()
	return []any{r.Head, r.Call, r.Payload, sum[:], r.Arrived, r.Conversation}
}

// Messages returns the messages that wait for a run, in the order of their arrival. A run that pauses before its next
// request gives back what it has taken.
func (e *Engine) Messages(ctx context.Context, conversation, head string) (list []Message, err error) {
	if head == "" {
		head = store.Main
	}
	err = e.db.View(ctx, func(tx store.Tx) error {
		rows, err := queryInbox(ctx, tx, conversation, head, ` AND call = '' AND taken = 0`)
		list = nil
		for _, m := range rows {
			text, err := m.sent()
			if err != nil {
				return err
			}
			list = append(list, Message{m.num, text.Blocks.Text(), time.UnixMicro(m.Arrived)})
		}
		return err
	})
	return list, err
}

// Edit changes the text of a message. The error holds ErrNoMessage if a run has taken it.
func (e *Engine) Edit(ctx context.Context, num int64, text string) error {
	changed, err := sentText(text)
	if err != nil {
		return err
	}
	return e.change(ctx, num, func(tx store.Tx, m message) error {
		was, err := m.sent()
		if err != nil {
			return err
		}
		changed.Meta = was.Meta
		if m.Payload, err = json.Marshal(changed); err != nil {
			return err
		}
		sum := m.Sum()
		_, err = tx.Exec(ctx, `UPDATE plait_inbox SET payload = $1, sum = $2 WHERE num = $3`, m.Payload, sum[:], m.num)
		return err
	})
}

// Withdraw removes a message. The error holds ErrNoMessage if a run has taken it.
func (e *Engine) Withdraw(ctx context.Context, num int64) error {
	return e.change(ctx, num, func(tx store.Tx, m message) error {
		_, err := tx.Exec(ctx, `DELETE FROM plait_inbox WHERE num = $1`, m.num)
		return err
	})
}

// change calls f with a message that no run has taken. It is locked.
func (e *Engine) change(ctx context.Context, num int64, f func(tx store.Tx, m message) error) error {
	return e.db.Update(ctx, func(tx store.Tx) error {
		list, err := rowsOfInbox(ctx, tx, `i.num = $1 AND call = '' AND taken = 0`+e.queue.dialect().lockInbox, num)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return ErrNoMessage
		}
		return f(tx, list[0])
	})
}

// message is a row of the inbox.
type message struct {
	num int64
	sqlstore.InboxRow
}

// sent returns the message in a row. The error holds errDamaged.
func (m message) sent() (s sent, err error) {
	if err := json.Unmarshal(m.Payload, &s); err != nil {
		return sent{}, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return s, nil
}

// errDamaged: the sum of a row of the inbox is not that of the row.
var errDamaged = errors.New("durable: a message of the inbox is damaged")

// queryInbox returns the rows of a head for a further condition.
func queryInbox(ctx context.Context, tx store.Tx, conversation, head, condition string) ([]message, error) {
	return rowsOfInbox(ctx, tx, `c.name = $1 AND i.head = $2`+condition, conversation, head)
}

// rowsOfInbox returns the rows for a condition, in the order of their arrival. The error is errDamaged if the sum of one
// does not fit.
func rowsOfInbox(ctx context.Context, tx store.Tx, condition string, args ...any) (list []message, err error) {
	err = query(ctx, tx, `SELECT i.num, c.name, i.head, i.call, i.payload, i.taken, i.arrived, i.sum
		FROM plait_inbox i JOIN plait_conversations c ON c.num = i.conv WHERE `+condition, args, func(rows store.Rows) error {
		var m message
		var sum []byte
		err := rows.Scan(&m.num, &m.Conversation, &m.Head, &m.Call, &m.Payload, &m.Taken, &m.Arrived, &sum)
		if want := m.Sum(); err == nil && !bytes.Equal(want[:], sum) {
			err = errDamaged
		}
		list = append(list, m)
		return err
	})
	slices.SortFunc(list, func(a, b message) int { return cmp.Compare(a.num, b.num) })
	return list, err
}

// takeInbox marks the messages of a head as taken, and returns them: with again also those that were taken before. They
// stay until the conversation has them.
func (e *Engine) takeInbox(ctx context.Context, tx store.Tx, t target, again bool) ([]message, error) {
	condition := ` AND call = ''`
	if !again {
		condition += ` AND taken = 0`
	}

	// The lock keeps others from editing or withdrawing one after this.
	list, err := queryInbox(ctx, tx, t.conversation, t.head, condition+e.queue.dialect().lockInbox)
	if err != nil {
		return nil, err
	}
	return list, mark(ctx, tx, list, 1)
}

// mark sets whether messages are taken, 0 or 1.
func mark(ctx context.Context, tx store.Tx, list []message, taken int64) error {
	for _, m := range list {
		if m.Taken == taken {
			continue
		}
		m.Taken = taken
		sum := m.Sum()
		_, err := tx.Exec(ctx, `UPDATE plait_inbox SET taken = $1, sum = $2 WHERE num = $3`, taken, sum[:], m.num)
		if err != nil {
			return err
		}
	}
	return nil
}

// release gives back the messages that the attempt has taken and its conversation has not. Until the next attempt takes
// them, they are listed and can be changed.
func (r *running) release(ctx context.Context, tx store.Tx) error {
	if r.inbox.steering.Len() == 0 {
		return nil
	}
	list, err := queryInbox(ctx, tx, r.args.Conversation, r.args.Head, ` AND call = '' AND taken = 1`)
	if err != nil {
		return err
	}
	return mark(ctx, tx, list, 0)
}

// hasMessages reports whether messages are waiting for a head.
func hasMessages(ctx context.Context, tx store.Tx, conversation, head string) (bool, error) {
	list, err := queryInbox(ctx, tx, conversation, head, ` AND call = ''`)
	return len(list) > 0, err
}

// inbox is what a run has taken from the inbox of its head.
type inbox struct {
	steering *executor.Queue
	taken    []int64   // the rows of the messages that were in steering when given looked at it last
	appended []int64   // the rows of messages that the conversation has, until a step is stored with it
	replied  []message // the replies to calls
	used     []usedReply
}

// usedReply is a reply that the run was resumed with, or one to a call that is not pending. Its row is removed with the
// step after which the call does not wait for it any more: the results of a message may come to the conversation in
// several steps.
type usedReply struct {
	row  int64
	call waiting
}

// arrived returns a run with all rows of the inbox of its head, in one query.
func (e *Engine) arrived(ctx context.Context, run string) (r Run, list []message, err error) {
	columns := `r.` + strings.ReplaceAll(runColumns, `, `, `, r.`)
	err = e.db.View(ctx, func(tx store.Tx) error {
		list, r = nil, Run{}
		return query(ctx, tx, `SELECT m.num, m.call, m.payload, m.sum, m.taken, m.arrived, `+columns+` FROM plait_index r
			LEFT JOIN plait_inbox m ON m.head = r.head AND m.conv = (SELECT num FROM plait_conversations WHERE name = r.conversation)
			WHERE r.id = $1 ORDER BY m.num`, []any{run}, func(rows store.Rows) (err error) {
			var num, taken, arrived *int64
			var call *string
			var payload, sum []byte
			if r, err = scanRun(rows, &num, &call, &payload, &sum, &taken, &arrived); err != nil || num == nil {
				return err
			}

			row := sqlstore.InboxRow{
				Conversation: r.Conversation, Head: r.Head, Call: *call, Payload: payload, Taken: *taken, Arrived: *arrived,
			}
			if want := row.Sum(); !bytes.Equal(want[:], sum) {
				return errDamaged
			}
			list = append(list, message{*num, row})
			return nil
		})
	})
	if err == nil && r.ID == "" {
		err = &RunError{Run: run, Err: ErrNoRun}
	}
	return r, list, err
}

// take takes the messages of the head at the beginning of an attempt, also those taken by a lost process.
func (r *running) take(ctx context.Context, arrived []message) error {
	r.inbox = inbox{steering: executor.NewQueue()}
	messages := false
	for _, m := range arrived {
		if m.Call != "" {
			r.inbox.replied = append(r.inbox.replied, m)
		} else {
			messages = true
		}
	}
	if !messages {
		return nil
	}

	// A lost process may have taken some of them.
	return r.takeMessages(ctx, true)
}

// more takes the messages that have arrived since, at the end of a step.
func (r *running) more(ctx context.Context) error {
	waiting := false
	err := r.db.View(ctx, func(tx store.Tx) error {
		list, err := queryInbox(ctx, tx, r.args.Conversation, r.args.Head, ` AND call = '' AND taken = 0`)
		waiting = len(list) > 0
		return err
	})
	if err != nil || !waiting {
		return err
	}
	return r.takeMessages(ctx, false)
}

// takeMessages takes the messages of the head, with again also those that were taken before.
func (r *running) takeMessages(ctx context.Context, again bool) error {
	var list []message
	err := r.db.Update(ctx, func(tx store.Tx) error {
		if err := r.check(ctx, tx, r.claim); err != nil {
			return err
		}
		var err error
		list, err = r.takeInbox(ctx, tx, r.args.target(), again)
		return err
	})
	if err != nil {
		return err
	}
	return r.inbox.add(list)
}

// add gives messages to the run.
func (i *inbox) add(list []message) error {
	for _, m := range list {
		s, err := m.sent()
		if err != nil {
			return err
		}
		blocks := make([]content.Block, 0, s.Blocks.Len())
		for _, b := range s.Blocks.All() {
			blocks = append(blocks, b)
		}
		if err := i.steering.AddMeta(s.Meta, "", blocks...); err != nil {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
		i.taken = append(i.taken, m.num)
	}
	return nil
}

// given returns the rows that the conversation d has: the replies to calls that no longer wait for them, and the messages
// of which the queue was empty since.
func (i *inbox) given(d dag.DAG) (rows []int64) {
	if len(i.used) > 0 {
		pending := waitingIn(d)
		for _, u := range i.used {
			if !pending[u.call] {
				rows = append(rows, u.row)
			}
		}
	}
	if i.steering.Len() == 0 {
		i.appended, i.taken = append(i.appended, i.taken...), nil
	}
	return append(rows, i.appended...)
}

// forget forgets rows that are removed.
func (i *inbox) forget(rows []int64) {
	i.used = slices.DeleteFunc(i.used, func(u usedReply) bool { return slices.Contains(rows, u.row) })
	i.appended = slices.DeleteFunc(i.appended, func(num int64) bool { return slices.Contains(rows, num) })
}
