package durable

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// moody is an agent whose runs go the way of their messages.
func moody(o *Options) {
	model := apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		last := req.Messages[len(req.Messages)-1].Blocks
		switch {
		case len(last.ToolResults()) > 0:
			return apitest.Say("Thank you.")
		case last.Text() == "ask":
			return apitest.Call(apitest.Use("count", item{"bolts"}))
		case last.Text() == "fail":
			return apitest.Fail(&api.Error{Kind: api.ErrAuth, Message: "no such key"})
		case last.Text() == "panic":
			panic("no such model")
		}
		return apitest.Say("Hello.")
	}).Always())
	count := tool("count", func(context.Context, string) (string, error) { return "many", nil })
	o.Agents = map[string]executor.Agent{"a": {
		Provider: model, Tools: []dag.Tool{count}, Hooks: []executor.Hook{executor.RequireApproval("count")},
	}}
}

// index returns the rows of the index by their IDs, without what a row that is made again cannot have.
func (w *world) index(e *Engine) map[string]Run {
	w.Helper()
	rows := map[string]Run{}
	list, err := e.Runs(w.Context(), RunsRequest{Limit: 1000})
	require.NoError(w, err)
	for _, r := range list {
		r.num, r.Began, r.Changed = 0, time.Time{}, time.Time{}
		if r.State == Cancelled {
			r.Reason = ""
		}
		rows[r.ID] = r
	}
	return rows
}

// settle waits until no run is active.
func (w *world) settle(e *Engine) {
	w.Helper()
	require.Eventually(w, func() bool {
		list, err := e.Runs(w.Context(), RunsRequest{States: []State{Active}})
		return err == nil && len(list) == 0
	}, time.Minute, 10*time.Millisecond)
}

// history makes runs at random.
func (w *world) history(e *Engine, random *rand.Rand) {
	w.Helper()
	for i := range 12 {
		w.start(e, StartRequest{
			Run: fmt.Sprint("r", i), Conversation: fmt.Sprint("c", i),
			Text: []string{"hello", "ask", "fail", "panic"}[random.IntN(4)],
		})
	}
	w.settle(e)
	list, err := e.Runs(w.Context(), RunsRequest{})
	require.NoError(w, err)
	for _, r := range list {
		switch act := random.IntN(4); {
		case act == 0 && !r.State.Ended():
			require.NoError(w, e.Cancel(w.Context(), r.ID, "not wanted"))
		case act == 1 && r.State == Waiting:
			pending, err := e.Pending(w.Context(), r.ID)
			require.NoError(w, err)
			require.NoError(w, e.Reply(w.Context(), r.Conversation, "", executor.Approved(pending[0])))
		case act == 2 && r.State == Parked:
			require.NoError(w, e.Requeue(w.Context(), r.ID))
		case act == 3 && r.State.Ended():
			w.start(e, StartRequest{Run: r.ID + " again", Conversation: r.Conversation, Text: "ask"})
		}
	}
	w.settle(e)

	// A branch has the runs before it too.
	c, err := e.Store().Conversation(w.Context(), "c1")
	require.NoError(w, err)
	_, err = c.Fork(w.Context(), "a branch")
	require.NoError(w, err)
}

// damage changes rows of the index at random, and returns how many of them differ, and how many of
// these are ended runs that are missing.
func (w *world) damage(rows map[string]Run, random *rand.Rand) (noticed, removed int) {
	w.Helper()
	for id, r := range rows {
		damages := []string{
			`UPDATE plait_index SET agent = 'another' WHERE id = $1`,
			`UPDATE plait_index SET head = 'another' WHERE id = $1`,
			`UPDATE plait_index SET state = 'done', busy = 0, reason = 'all is well' WHERE id = $1`,
			`UPDATE plait_index SET state = 'active', busy = 1, job = 7 WHERE id = $1`,
			`DELETE FROM plait_index WHERE id = $1`,
		}
		kind := random.IntN(len(damages) + 1)
		if kind == len(damages) || r.State == Cancelled && !w.began(r) {
			continue
		}
		err := w.db.Update(w.Context(), func(tx store.Tx) error {
			_, err := tx.Exec(w.Context(), damages[kind], id)
			return err
		})
		if err == nil { // the database itself refuses two unfinished runs of a head
			noticed++
			if r.State.Ended() && strings.HasPrefix(damages[kind], "DELETE") {
				removed++
			}
		}
	}
	return noticed, removed
}

// began reports whether the conversation of a run has its start.
func (w *world) began(r Run) bool {
	return slices.ContainsFunc(w.load(r.Conversation).Nodes(), func(n *node.Node) bool {
		start, is := n.Payload().(node.RunStart)
		return is && start.Run == r.ID
	})
}

func TestIndexIsMadeAgain(t *testing.T) {
	onEach(t, func(w *world) {
		random := rand.New(rand.NewPCG(seedtest.First(w.T), 0))
		for round := range seedtest.Rounds(2, 50) {
			w.again(fmt.Sprint("round ", round), func(w *world) {
				e := w.engine(moody)
				stop := w.serve(e)
				w.history(e, random)
				stop()
				before := w.index(e)

				found, err := e.CheckIndex(w.Context())
				require.NoError(w, err)
				require.Empty(w, found)

				noticed, removed := w.damage(before, random)
				damaged := w.index(e)
				found, err = e.CheckIndex(w.Context())
				require.NoError(w, err)
				require.Len(w, found, noticed-removed, "%q", found)
				require.Equal(w, damaged, w.index(e), "a check changes nothing")
				found, err = e.Reindex(w.Context())
				require.NoError(w, err)
				require.Len(w, found, noticed)
				require.Equal(w, before, w.index(e))

				// What waits and what is parked continues.
				w.serve(e)
				for id, r := range before {
					switch r.State {
					case Waiting:
						pending, err := e.Pending(w.Context(), id)
						require.NoError(w, err)
						require.NoError(w, e.Reply(w.Context(), r.Conversation, r.Head, executor.Declined(pending[0], "no")))
						require.Equal(w, Done, w.wait(e, id).State)
					case Parked:
						require.NoError(w, e.Requeue(w.Context(), id))
						require.Equal(w, Parked, w.wait(e, id).State)
					}
				}
				w.settle(e)
				found, err = e.CheckIndex(w.Context())
				require.NoError(w, err)
				require.Empty(w, found)
			})
		}
	})
}

// A run that was paused has a start for each part of it.
func TestRunWithTwoStartsIsIndexedOnce(t *testing.T) {
	meta, err := node.Meta{}.With(agentMeta, "a")
	require.NoError(t, err)
	d := dag.New().User("Hi.")
	for range 2 {
		d = d.AppendMeta(node.RunStart{Agent: "a", Run: "r"}, meta).Append(node.StopReason{Reason: content.StopEndTurn})
	}
	require.NoError(t, d.Err())
	require.Len(t, runsIn(d), 1)
}
