package durable

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// event is an operation of some process. It is written when it begins, and once more when it has returned. A process that
// dies in between leaves it unfinished.
type event struct {
	ID           string        `json:"id"`
	What         what          `json:"what"`
	Conversation string        `json:"conversation"` // also the ID of its only run
	Begin        time.Duration `json:"begin"`        // by the clock of the machine, which all processes share
	End          time.Duration `json:"end,omitempty"`
	Outcome      result        `json:"outcome,omitempty"`

	Text    string `json:"text,omitempty"`    // of a start or a message; what a reply or an accepted result says
	Call    string `json:"call,omitempty"`    // of a reply, an accepted reply or an execution
	Result  bool   `json:"result,omitempty"`  // of an accepted reply: it is a result, and no decision
	Expect  uint64 `json:"expect,omitempty"`  // of an append: the version of the head before
	Version uint64 `json:"version,omitempty"` // of an append that was made: the version of the head after
}

// what is the kind of an event.
type what string

// What a program does, and what a process does with its database.
const (
	starting   what = "start"
	sending    what = "send"
	replying   what = "reply"
	cancelling what = "cancel"
	deleting   what = "delete"
	redacting  what = "redact"
	appending  what = "append" // a head is moved
	rewriting  what = "rewrite"
	accepting  what = "accept"  // a reply comes into the inbox
	executing  what = "execute" // a tool of unknown effect is called
)

// result is what an operation has returned.
type result string

const (
	unknown      result = ""        // an error, or nothing: it may have happened
	acknowledged result = "ok"      // it has happened
	notDone      result = "refused" // it has not happened
)

// recorder writes the events of a process to a file. One write is one line, also of several processes.
type recorder struct {
	file io.Writer
}

func openRecorder(path string) (*recorder, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &recorder{file: f}, nil
}

// recorders counts the events of this process. A thousand kills reuse process IDs.
var (
	recorders atomic.Int64
	recording = fmt.Sprint(os.Getpid(), "-", rand.Uint32())
)

// begin writes the beginning of an operation. The function that it returns writes the end.
func (r *recorder) begin(e event) (end func(outcome result, version uint64)) {
	e.ID = fmt.Sprint(recording, ".", recorders.Add(1))
	e.Begin = bootTime()
	r.write(e)
	return func(outcome result, version uint64) {
		e.End, e.Outcome, e.Version = bootTime(), outcome, version
		r.write(e)
	}
}

func (r *recorder) write(e event) {
	line, err := json.Marshal(e)
	if err == nil {
		_, err = r.file.Write(append(line, '\n'))
	}
	if err != nil {
		panic(err)
	}
}

// do records an operation of a program.
func (r *recorder) do(e event, f func() error) error {
	end := r.begin(e)
	err := f()
	end(outcomeOf(err), 0)
	return err
}

// outcomeOf returns what the error of an operation of an Engine or a Driver says.
func outcomeOf(err error) result {
	var run *RunError
	var reply *executor.ResumeError
	switch {
	case err == nil:
		return acknowledged
	case errors.As(err, &run), errors.As(err, &reply), errors.Is(err, store.ErrMoved), errors.Is(err, store.ErrNotStored),
		errors.Is(err, errRaced), errors.Is(err, errLost):
		return notDone
	}
	return unknown
}

// recorded is a database whose changes are recorded.
type recorded struct {
	store.Transactor
	*recorder
}

// Append implements store.Driver.
func (r recorded) Append(ctx context.Context, a store.AppendRequest) (store.Head, error) {
	h, _, err := r.append(a, func() (store.Head, bool, error) {
		h, err := r.Transactor.Append(ctx, a)
		return h, true, err
	})
	return h, err
}

// AppendIf implements store.Transactor.
func (r recorded) AppendIf(ctx context.Context, a store.AppendRequest, query string, args ...any) (store.Head, bool, error) {
	return r.append(a, func() (store.Head, bool, error) { return r.Transactor.AppendIf(ctx, a, query, args...) })
}

func (r recorded) append(a store.AppendRequest, f func() (store.Head, bool, error)) (store.Head, bool, error) {
	end := r.begin(appendOf(a))
	h, held, err := f()
	outcome := outcomeOf(err)
	if outcome == acknowledged && !held {
		outcome = notDone
	}
	end(outcome, h.Version)
	return h, held, err
}

func appendOf(a store.AppendRequest) event {
	e := event{What: appending, Conversation: a.Conversation, Text: a.Head, Expect: a.Expect}
	if a.Replace {
		e.What = rewriting
	}
	return e
}

// Update implements store.Transactor.
func (r recorded) Update(ctx context.Context, f func(store.Tx) error) error {
	var tx *recordedTx
	var failed error
	err := r.Transactor.Update(ctx, func(inner store.Tx) error {
		if tx != nil {
			tx.end(notDone) // the transaction was undone, and is tried again
		}
		tx = &recordedTx{Tx: inner, recorder: r.recorder}
		failed = f(tx)
		return failed
	})
	switch {
	case tx == nil:
	case err == nil:
		tx.end(acknowledged)
	case failed != nil:
		tx.end(notDone)
	default:
		tx.end(unknown)
	}
	return err
}

// recordedTx is a transaction of a recorded database.
type recordedTx struct {
	store.Tx
	*recorder
	ends []func(result)
}

func (t *recordedTx) end(outcome result) {
	for _, end := range t.ends {
		end(outcome)
	}
}

// Append implements store.Tx.
func (t *recordedTx) Append(ctx context.Context, a store.AppendRequest) (store.Head, error) {
	end := t.begin(appendOf(a))
	h, err := t.Tx.Append(ctx, a)
	t.ends = append(t.ends, func(outcome result) { end(outcome, h.Version) })
	return h, err
}

// Query implements store.Tx.
func (t *recordedTx) Query(ctx context.Context, query string, args ...any) (store.Rows, error) {
	if !accepts(query) {
		return t.Tx.Query(ctx, query, args...)
	}
	// The replies of several calls are stored by one statement.
	var ends []func(result, uint64)
	for row := range slices.Chunk(args, 6) {
		if row[2] == nil {
			continue
		}
		var reply executor.Reply
		if err := reply.UnmarshalJSON(row[2].([]byte)); err != nil {
			return nil, err
		}
		ends = append(ends, t.begin(event{
			What: accepting, Call: reply.Call.String(), Result: reply.IsResult(), Text: reply.Result().Content.Text(),
			Conversation: row[5].(string),
		}))
	}

	rows, err := t.Tx.Query(ctx, query, args...)
	counted := &countedRows{Rows: rows}
	t.ends = append(t.ends, func(outcome result) {
		if err == nil && counted.n < len(ends) {
			outcome = notDone // of several replies all are accepted, or none
		}
		for _, end := range ends {
			end(outcome, 0)
		}
	})
	if err != nil {
		return nil, err
	}
	return counted, nil
}

// accepts reports whether a statement stores a reply.
func accepts(query string) bool {
	return strings.HasPrefix(query, `INSERT INTO plait_inbox`) && strings.Contains(query, `ON CONFLICT`)
}

// countedRows counts rows.
type countedRows struct {
	store.Rows
	n int
}

// Next implements store.Rows.
func (r *countedRows) Next() bool {
	next := r.Rows.Next()
	if next {
		r.n++
	}
	return next
}

// history is what all processes did, in the order of its beginning.
type history []event

// readHistory reads what the recorders of all processes have written.
func (w *world) readHistory(path string) (h history) {
	w.Helper()
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	require.NoError(w, err)
	defer f.Close()

	events := map[string]event{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if !strings.HasPrefix(lines.Text(), "{") || json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // a line of another kind, or that of a process which died while it wrote
		}
		events[e.ID] = e
	}
	require.NoError(w, lines.Err())
	h = slices.Collect(maps.Values(events))
	slices.SortFunc(h, func(a, b event) int { return int(a.Begin - b.Begin) })
	return h
}

// until returns what had happened at a time. What was under way then has an unknown outcome.
func (h history) until(now time.Duration) (list history) {
	for _, e := range h {
		if e.End > now {
			e.End, e.Outcome = 0, unknown
		}
		if e.Begin < now {
			list = append(list, e)
		}
	}
	return list
}

// last is what is stored of a conversation at the end.
type last struct {
	run     Run
	found   bool // the run
	there   bool // the conversation
	version uint64
	texts   []string          // the messages of users, in the conversation and in the inbox
	inbox   int               // how many of them are in the inbox
	results map[string]string // by call, also those of errors
	broken  string            // what is wrong with the conversation
}

// readLast reads what is stored of a conversation and its run.
func (w *world) readLast(conversation string) (l last) {
	w.Helper()
	s := store.New(w.db)
	c, err := s.Head(w.Context(), conversation, store.Main)
	if l.there = err == nil; !l.there {
		require.ErrorIs(w, err, store.ErrNotStored)
	}
	require.NoError(w, w.db.View(w.Context(), func(tx store.Tx) error {
		runs, err := queryRuns(w.Context(), tx, `id = $1`, conversation)
		if l.found = len(runs) > 0; l.found {
			l.run = runs[0]
		}
		if err != nil || !l.there {
			return err
		}
		rows, err := queryInbox(w.Context(), tx, conversation, store.Main, ` AND call = ''`)
		l.texts, l.inbox = nil, len(rows)
		for _, m := range rows {
			s, err := m.sent()
			require.NoError(w, err)
			l.texts = append(l.texts, s.Blocks.Text())
		}
		return err
	}))
	if !l.there {
		return l
	}

	d := c.DAG()
	l.version, l.results = c.Version(), map[string]string{}
	if findings := d.Validate(); len(findings) > 0 {
		l.broken = fmt.Sprint("the conversation is not valid: ", findings)
	}
	for _, n := range d.Nodes() {
		key, is := n.Call()
		x, _ := n.Payload().(node.ToolExecution)
		if is && !x.State.Unfinished() {
			l.results[key.String()] = x.Result.Text()
		}
	}
	for _, m := range d.Messages() {
		if text := m.Blocks.Text(); m.Role == content.User && text != "" {
			l.texts = append(l.texts, text)
		}
	}
	return l
}

// faults returns the broken promises of all operations. final has what is stored at the end, by conversation.
func (h history) faults(final map[string]last) (found []string) {
	by := map[string]history{}
	for _, e := range h {
		by[e.Conversation] = append(by[e.Conversation], e)
	}
	for _, conversation := range slices.Sorted(maps.Keys(by)) {
		own, l := by[conversation], final[conversation]
		for _, list := range [][]string{
			own.lostInputs(l), own.lostReplies(l), own.afterCancel(l), own.crookedLine(l), own.repeated(),
		} {
			for _, fault := range list {
				found = append(found, conversation+": "+fault)
			}
		}
	}
	return found
}

// of returns the events of a kind that have an outcome.
func (h history) of(kind what, outcomes ...result) (list history) {
	for _, e := range h {
		if e.What == kind && slices.Contains(outcomes, e.Outcome) {
			list = append(list, e)
		}
	}
	return list
}

// may returns the events of a kind that have happened, or may have.
func (h history) may(kind what) history { return h.of(kind, acknowledged, unknown) }

// lostInputs: each acknowledged start and message is there exactly once, and any other at most once.
func (h history) lostInputs(l last) (found []string) {
	if len(h.of(starting, acknowledged)) > 0 && !l.found {
		found = append(found, "an acknowledged start is lost")
	}
	if l.broken != "" {
		found = append(found, l.broken)
	}
	if l.run.State == Failed || l.run.State == Parked {
		found = append(found, fmt.Sprintf("the run is %s: %s", l.run.State, l.run.Reason))
	}
	if len(h.may(deleting)) > 0 {
		return found
	}
	for _, e := range slices.Concat(h.of(starting, acknowledged, unknown, notDone), h.of(sending, acknowledged, unknown, notDone)) {
		n := 0
		for _, text := range l.texts {
			if text == e.Text {
				n++
			}
		}
		acked := len(slices.DeleteFunc(slices.Clone(h), func(o event) bool {
			return o.What != e.What || o.Text != e.Text || o.Outcome != acknowledged
		})) > 0
		switch {
		case n > 1:
			found = append(found, fmt.Sprintf("%s %q is there %d times", e.What, e.Text, n))
		case n == 0 && acked && (e.What == sending || len(h.may(redacting)) == 0):
			found = append(found, fmt.Sprintf("acknowledged %s %q is lost", e.What, e.Text))
		case n == 1 && e.What == starting && len(h.of(redacting, acknowledged)) > 0:
			found = append(found, fmt.Sprintf("redacted text %q is there", e.Text))
		}
	}
	if l.run.State == Done && l.inbox > 0 {
		found = append(found, fmt.Sprintf("the run has ended, and %d messages are in its inbox", l.inbox))
	}
	return found
}

// lostReplies: of the replies to a call one is accepted, and that is the one which the conversation has.
func (h history) lostReplies(l last) (found []string) {
	decided := map[string]string{}
	for _, e := range h.of(replying, acknowledged) {
		if other, is := decided[e.Call]; is && other != e.Text {
			found = append(found, fmt.Sprintf("call %s has two acknowledged replies, %q and %q", e.Call, other, e.Text))
		}
		decided[e.Call] = e.Text
	}
	if !l.there {
		return found
	}
	for call, text := range decided {
		got, has := l.results[call]
		switch {
		case !has && l.run.State == Done:
			found = append(found, fmt.Sprintf("call %s has a reply and no result", call))
		case has && strings.Contains(got, declinedText) != (text == declinedText):
			found = append(found, fmt.Sprintf("the reply to call %s was %q, and its result is %q", call, text, got))
		}
	}

	for call, results := range h.acceptedResults() {
		got, has := l.results[call]
		switch first := results[0]; {
		case !has && l.run.State == Done:
			found = append(found, fmt.Sprintf("the accepted result of call %s is lost", call))
		case has && results.overlap():
			// The order is not known.
		case has && got != first.Text:
			found = append(found, fmt.Sprintf("the first accepted result of call %s was %q, and it has %q", call, first.Text, got))
		}
	}
	return found
}

// acceptedResults returns the acceptances of results by call, in their order. Of those whose outcome is unknown, others may
// have been first.
func (h history) acceptedResults() map[string]history {
	by, doubtful := map[string]history{}, map[string]bool{}
	for _, e := range h.may(accepting) {
		if e.Result {
			by[e.Call] = append(by[e.Call], e)
			doubtful[e.Call] = doubtful[e.Call] || e.Outcome == unknown
		}
	}
	for call := range doubtful {
		if doubtful[call] {
			delete(by, call)
		}
	}
	return by
}

// overlap reports whether the first operation had not ended when another one began.
func (h history) overlap() bool { return len(h) > 1 && h[1].Begin < h[0].End }

// declinedText is the reason of declined calls.
const declinedText = "not today"

// afterCancel: after an acknowledged cancel no result is accepted, and no node appended.
func (h history) afterCancel(l last) (found []string) {
	for _, c := range h.of(cancelling, acknowledged) {
		for _, e := range slices.Concat(h.of(appending, acknowledged), h.of(accepting, acknowledged)) {
			if e.Begin > c.End && !strings.Contains(e.Text, "~") {
				found = append(found, fmt.Sprintf("%s %s%d after an acknowledged cancel", e.What, e.Call, e.Version))
			}
		}
		if l.found && l.run.State != Cancelled {
			found = append(found, "an acknowledged cancel is lost")
		}
	}
	return found
}

// crookedLine: the appends to a head are one line. Each moves it from the version that its writer expects to the next
// one, once, and an append that begins after another has ended has a higher version.
func (h history) crookedLine(l last) (found []string) {
	deleted := len(h.may(deleting)) > 0
	moved, maybe := map[uint64]event{}, map[uint64]bool{}
	for _, e := range slices.Concat(h.may(appending), h.may(rewriting)) {
		if e.What == appending && e.Text != store.Main {
			continue // a head for refused nodes
		}
		if e.Outcome == unknown {
			maybe[e.Expect+1] = true
			continue
		}
		if e.Version != e.Expect+1 {
			found = append(found, fmt.Sprintf("an append at version %d has led to version %d", e.Expect, e.Version))
		}
		if _, twice := moved[e.Version]; twice {
			found = append(found, fmt.Sprintf("version %d was appended twice", e.Version))
		}
		moved[e.Version] = e
	}
	for a, first := range moved {
		for b, second := range moved {
			if first.End < second.Begin && a > b {
				found = append(found, fmt.Sprintf("version %d was appended before version %d", a, b))
			}
		}
	}
	if deleted || !l.there {
		return found
	}
	for version := uint64(1); version <= l.version; version++ {
		if _, is := moved[version]; !is && !maybe[version] {
			found = append(found, fmt.Sprintf("nobody has appended version %d", version))
		}
	}
	for version := range moved {
		if version > l.version {
			found = append(found, fmt.Sprintf("acknowledged version %d is lost: the head has version %d", version, l.version))
		}
	}
	return found
}

// repeated: a call of unknown effect is executed once.
func (h history) repeated() (found []string) {
	times := map[string]int{}
	for _, e := range h {
		if e.What == executing {
			if times[e.Call]++; times[e.Call] == 2 {
				found = append(found, fmt.Sprintf("call %s was executed twice", e.Call))
			}
		}
	}
	return found
}
