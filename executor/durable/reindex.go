package durable

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// agentMeta is the metadata of a node.RunStart with the name of the run's agent in [Options.Agents]. Only durable runs
// have it.
const agentMeta = "plait.agent"

// CheckIndex compares the index of runs with the conversations and the jobs. It changes nothing, and returns a line for
// each difference. Other processes may work meanwhile. A run that has ended may be missing: [Engine.Prune] removes them.
//
// An unfinished run is what its job says, and one that is done or has failed what its conversation says.
func (e *Engine) CheckIndex(ctx context.Context) (differences []string, err error) {
	list, err := e.differences(ctx)
	for _, d := range list {
		if d.stored.ID != "" || !d.derived.State.Ended() {
			differences = append(differences, d.String())
		}
	}
	return differences, err
}

// Reindex makes the rows of the index again that are missing or differ from the conversations and the jobs, and returns
// a line for each. Runs that Prune has removed are listed again too. Other processes may work meanwhile.
//
// Three things are in the index alone, and a row that is made again is without them: the reason of a cancelled run, a run
// that was cancelled before its first step, and the exact times. The times of nodes take their place.
func (e *Engine) Reindex(ctx context.Context) (mended []string, err error) {
	if err := e.ready(ctx); err != nil {
		return nil, err
	}
	list, err := e.differences(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range list {
		if err := e.mend(ctx, d); err != nil {
			return mended, err
		}
		mended = append(mended, d.String())
	}
	return mended, nil
}

// differences returns the rows that differ at two looks. A row that differs because a process works on it differs in
// another way at the second one.
func (e *Engine) differences(ctx context.Context) (list []difference, err error) {
	before, err := e.compareIndex(ctx)
	if err != nil || len(before) == 0 {
		return nil, err
	}
	now, err := e.compareIndex(ctx)
	return slices.DeleteFunc(now, func(d difference) bool { return !slices.Contains(before, d) }), err
}

// difference is a row of the index, and what it should be. Each has no ID if there is no row, or should be none.
type difference struct{ stored, derived Run }

// String describes the difference. Reasons may quote conversations, and are left out.
func (d difference) String() string {
	name := func(r Run) string { return fmt.Sprintf("%s at head %s of %s", r.Agent, r.Head, r.Conversation) }
	text := ""
	switch s, o := d.stored, d.derived; {
	case s.ID == "":
		return fmt.Sprintf("run %q is not in the index: it is %s", safetext.Escape(o.ID, 100), o.State)
	case o.ID == "":
		return fmt.Sprintf("run %q of the index is %s, and its conversation does not have it", safetext.Escape(s.ID, 100), s.State)
	case name(s) != name(o):
		text = fmt.Sprintf("is one of %s, not of %s", name(o), name(s))
	case s.State != o.State:
		text = fmt.Sprintf("is %s, not %s", o.State, s.State)
	default:
		text = "has another job, message or reason"
	}
	return fmt.Sprintf("run %q of the index %s", safetext.Escape(d.stored.ID, 100), safetext.Escape(text, 500))
}

// derivation is a run as the conversations and the jobs have it.
type derivation struct {
	Run
	heads []target // that have an ended run: several if it was copied
}

// compareIndex returns the rows of the index that are not what the conversations and the jobs say.
func (e *Engine) compareIndex(ctx context.Context) (list []difference, err error) {
	var stored []Run
	var jobs []derivation
	err = e.db.View(ctx, func(tx store.Tx) (err error) {
		if stored, err = queryRuns(ctx, tx, `1 = 1 ORDER BY num`); err != nil {
			return err
		}
		jobs, err = e.unfinished(ctx, tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	derived, heads, err := e.ran(ctx)
	if err != nil {
		return nil, err
	}

	// A job of a removed head continues nothing.
	for _, j := range jobs {
		waits, known := heads[j.target()]
		if !known {
			continue
		}
		if j.State == Waiting {
			j.Reason = waits
		}
		at := runIn{j.ID, j.Conversation}
		if in := derived[at]; in != nil {
			j.Began = in.Began
		}
		derived[at] = &j
	}

	byID := map[string]*derivation{}
	for at, d := range derived {
		if o := byID[at.run]; o == nil || o.State.Ended() && (!d.State.Ended() || d.Began.After(o.Began)) {
			byID[at.run] = d
		}
	}
	for _, s := range stored {
		d := cmp.Or(derived[runIn{s.ID, s.Conversation}], byID[s.ID])
		delete(byID, s.ID)
		if right := expected(s, d, heads); right != s {
			list = append(list, difference{s, right})
		}
	}

	missing := slices.Collect(maps.Values(byID))
	slices.SortFunc(missing, func(a, b *derivation) int {
		return cmp.Or(a.Began.Compare(b.Began), strings.Compare(a.ID, b.ID))
	})
	for _, d := range missing {
		list = append(list, difference{derived: d.Run})
	}
	return list, nil
}

// expected returns what a row of the index should be. d is what the conversations and the jobs say; nil is nothing.
func expected(s Run, d *derivation, heads map[target]string) Run {
	_, known := heads[s.target()]
	switch {
	case d == nil && s.State.Ended() && (s.State != Done || !known):
		d = &derivation{Run: s} // it was ended before its first step, or its head was removed
	case d == nil && s.State.Ended():
		return Run{}
	case d == nil || d.State == Cancelled && !s.State.Ended():
		return orphan(s)
	}

	right := s
	right.Agent, right.State, right.Reason, right.job = d.Agent, d.State, d.Reason, d.job
	if !slices.Contains(d.heads, s.target()) {
		right.Conversation, right.Head = d.Conversation, d.Head
	}
	if d.State == Cancelled && s.State.Ended() && s.State != Done {
		right.State, right.Reason = s.State, s.Reason // what ended it is in no conversation
	}
	if d.job != 0 || s.start != (node.ID{}) && d.start != (node.ID{}) {
		right.start = d.start
	}
	return right
}

// orphan returns the row of an unfinished run without a job. Nobody would ever continue it.
func orphan(s Run) Run {
	s.State, s.Reason, s.job = Cancelled, "it had no job", 0
	return s
}

// unfinished returns the runs with an unfinished job.
func (e *Engine) unfinished(ctx context.Context, tx store.Tx) (list []derivation, err error) {
	d := e.queue.dialect()
	there := false
	err = query(ctx, tx, d.exists, []any{d.jobs}, func(rows store.Rows) error {
		there = true
		return rows.Scan(new(int64))
	})
	if err != nil || !there {
		return nil, err
	}
	return list, query(ctx, tx, `SELECT id, CAST(state AS TEXT), `+d.args+`, `+d.metadata+` FROM `+d.jobs+`
		WHERE kind = '`+kindRun+`' AND state IN (`+working+`, 'pending') ORDER BY id`, nil, func(rows store.Rows) error {
		var id int64
		var state, args, metadata string
		if err := rows.Scan(&id, &state, &args, &metadata); err != nil {
			return err
		}
		var job runJob
		var n noted
		if err := errors.Join(json.Unmarshal([]byte(args), &job), json.Unmarshal([]byte(metadata), &n)); err != nil {
			return fmt.Errorf("durable: job %d: %w", id, err)
		}

		r := Run{ID: job.Run, Conversation: job.Conversation, Head: job.Head, Agent: job.Agent, State: Active, job: id, start: job.Message}
		switch {
		case state == "pending" && n.Parked != "":
			r.State, r.Reason = Parked, n.Parked
		case state == "pending":
			r.State = Waiting
		}
		list = append(list, derivation{Run: r, heads: []target{r.target()}})
		return nil
	})
}

// runIn is a run in a conversation. A removed run's ID may be used again in another one.
type runIn struct{ run, conversation string }

// ran returns the runs that the conversations have, and why each head waits; "" if it does not. A run without an
// end is cancelled, unless it has a job.
func (e *Engine) ran(ctx context.Context) (map[runIn]*derivation, map[target]string, error) {
	runs, heads := map[runIn]*derivation{}, map[target]string{}
	for key, err := range e.store.Conversations(ctx, "") {
		if err != nil {
			return nil, nil, err
		}
		for head, err := range e.store.Heads(ctx, key, "") {
			if err != nil {
				return nil, nil, err
			}
			c, err := e.store.Head(ctx, key, head.Name)
			if deleted(err) {
				continue // meanwhile
			}
			if err != nil {
				return nil, nil, err
			}

			at, d := target{key, head.Name}, c.DAG()
			heads[at] = string(executor.ContinuationOf(d).Reason)
			for _, r := range runsIn(d) {
				r.Conversation, r.Head = key, head.Name
				in := runIn{r.ID, key}
				runs[in] = runs[in].with(r, at)
			}
		}
	}
	return runs, heads, nil
}

// with returns the derivation of a run that another head has too. It belongs to the one with its end, or to "main".
func (d *derivation) with(r Run, at target) *derivation {
	if d == nil {
		return &derivation{r, []target{at}}
	}
	if ends := r.State != Cancelled; ends && (d.State == Cancelled || at.head == store.Main) {
		d.Run = r
	}
	d.heads = append(d.heads, at)
	return d
}

// runsIn returns the durable runs of a conversation, in their order.
func runsIn(d dag.DAG) (list []Run) {
	byID := map[string]int{}
	var message node.ID // of the user, and without a response
	last := -1          // the run that the next end belongs to; -1 is one of another kind
	for _, n := range d.Nodes() {
		if m, is := n.Message(); is {
			message = node.ID{}
			if m.Role == content.User && len(m.Blocks.ToolResults()) == 0 {
				message = n.ID()
			}
		}

		if start, is := n.Payload().(node.RunStart); is {
			var agent string
			if last = -1; json.Unmarshal([]byte(n.Meta().Get(agentMeta)), &agent) != nil {
				continue
			}
			at, known := byID[start.Run]
			if !known {
				at = len(list)
				byID[start.Run] = at
				list = append(list, Run{
					ID: start.Run, Agent: agent, State: Cancelled, start: message, Began: n.Time(), Changed: n.Time(),
				})
			}
			last = at
		}

		if stop, is := n.Payload().(node.StopReason); is && last >= 0 {
			r := &list[last]
			r.State, r.Reason, r.Changed, last = Done, string(stop.Reason), n.Time(), -1
			if stop.Reason == content.StopError {
				r.State, r.Reason = Failed, stop.Detail
			}
		}
	}
	return list
}

// mend writes a row of the index, if it is still as it was.
func (e *Engine) mend(ctx context.Context, d difference) error {
	return e.db.Update(ctx, func(tx store.Tx) error {
		r := d.derived
		busy := int64(1)
		if r.State.Ended() {
			busy = 0
		}

		if d.stored.ID == "" {
			began, changed := cmp.Or(timeOf(r.Began), tx.Now()), cmp.Or(timeOf(r.Changed), timeOf(r.Began), tx.Now())
			_, err := tx.Exec(ctx, `INSERT INTO plait_index
				(id, conversation, head, agent, state, reason, busy, job, start, began, changed)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, `+began+`, `+changed+`) ON CONFLICT DO NOTHING`,
				r.ID, r.Conversation, r.Head, r.Agent, string(r.State), r.Reason, busy, r.job, r.start[:])
			return err
		}

		now, err := queryRuns(ctx, tx, `num = $1`+e.queue.dialect().lock, d.stored.num)
		if err != nil || len(now) != 1 || now[0] != d.stored {
			return err // somebody has changed it: look again
		}
		if r.ID == "" {
			_, err = tx.Exec(ctx, `DELETE FROM plait_index WHERE num = $1`, d.stored.num)
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE plait_index SET conversation = $1, head = $2, agent = $3, state = $4, reason = $5,
			busy = $6, job = $7, start = $8 WHERE num = $9`,
			r.Conversation, r.Head, r.Agent, string(r.State), r.Reason, busy, r.job, r.start[:], d.stored.num)
		return err
	})
}

// timeOf returns a time as a number in a statement; "" for the zero time.
func timeOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprint(t.UnixMicro())
}
