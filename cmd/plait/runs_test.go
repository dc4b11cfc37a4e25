package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/durable"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/sqlite"
)

// refund is the tool of the runs of begun.
type refund struct {
	Order string `json:"order"`
}

// supporter is an agent whose run goes the way of the message's text.
func supporter() executor.Agent {
	model := apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		last := req.Messages[len(req.Messages)-1].Blocks
		switch {
		case len(last.ToolResults()) > 0:
			return apitest.Say(last.ToolResults()[0].Content.Text())
		case last.Text() == "refund":
			return apitest.Call(apitest.Use("refund", refund{"A-7"}))
		case last.Text() == "fail":
			return apitest.Fail(&api.Error{Kind: api.ErrAuth, Message: "the model said \x1b]0;owned\a\r\n\u202eme"})
		case last.Text() == "panic":
			panic("no such model")
		}
		return apitest.Say("Hello.")
	}).Always())
	tool := executor.Func("refund", "Refunds an order.", func(_ context.Context, in refund) (string, error) {
		return "refunded " + in.Order, nil
	})
	return executor.Agent{
		Provider: model, Tools: []dag.Tool{tool}, Hooks: []executor.Hook{executor.RequireApproval("refund")},
	}
}

// openEngine opens an engine with the agents on a database.
func openEngine(ctx context.Context, db store.Transactor, agents map[string]executor.Agent) (*durable.Engine, error) {
	return durable.Open(ctx, db, &durable.Options{Agents: agents, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
}

// workUntil serves until all runs are in their state.
func workUntil(ctx context.Context, e *durable.Engine, want map[string]durable.State) error {
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- e.Serve(serving) }()
	var err error
	for run, state := range want {
		for err == nil {
			r, failed := e.Run(ctx, run)
			if err = failed; err != nil || r.State == state {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	stop()
	return errors.Join(err, <-served)
}

// scriptDatabase opens a database of a script.
func scriptDatabase(ctx context.Context, ts *testscript.TestScript, name string) database {
	if isURL(name) {
		db, err := openURL(ctx, name, true)
		ts.Check(err)
		return db
	}
	db, err := openFile(ctx, ts.MkAbs(name), true)
	ts.Check(err)
	return db
}

// begun makes durable runs in a database: one in each state.
func begun(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: begun DATABASE")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db := scriptDatabase(ctx, ts, args[0])
	defer db.Close()
	e, err := openEngine(ctx, db, map[string]executor.Agent{"support": supporter()})
	ts.Check(err)
	defer e.Close()

	start := func(run, agent, text string) {
		_, err := e.Start(ctx, durable.StartRequest{Run: run, Agent: agent, Conversation: "of " + run, Text: text})
		ts.Check(err)
	}
	start("done", "support", "hello")
	start("failed", "support", "fail")
	start("parked", "support", "panic")
	start("waiting", "support", "refund")
	ts.Check(workUntil(ctx, e, map[string]durable.State{
		"done": durable.Done, "failed": durable.Failed, "parked": durable.Parked, "waiting": durable.Waiting,
	}))
	start("active", "support", "hello")
}

// worked executes the runs of a database until the named ones are done.
func worked(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: worked DATABASE RUN…")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db := scriptDatabase(ctx, ts, args[0])
	defer db.Close()
	e, err := openEngine(ctx, db, map[string]executor.Agent{"support": supporter()})
	ts.Check(err)
	defer e.Close()
	want := map[string]durable.State{}
	for _, run := range args[1:] {
		want[run] = durable.Done
	}
	ts.Check(workUntil(ctx, e, want))
}

// damaged changes the row of a run in the index, and removes that of another.
func damaged(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: damaged DATABASE RUN RUN")
	}
	db := scriptDatabase(context.Background(), ts, args[0])
	defer db.Close()
	ts.Check(db.Update(context.Background(), func(tx store.Tx) error {
		_, changed := tx.Exec(context.Background(), `UPDATE plait_index SET state = 'failed' WHERE id = $1`, args[1])
		_, removed := tx.Exec(context.Background(), `DELETE FROM plait_index WHERE id = $1`, args[2])
		return errors.Join(changed, removed)
	}))
}

func TestListOfRunsHasALimit(t *testing.T) {
	file := t.TempDir() + "/sessions.db"
	db, err := sqlite.Open(t.Context(), file, nil)
	require.NoError(t, err)
	require.NoError(t, db.Close())

	for _, limit := range []string{"0", "-1", "10001", "9223372036854775807"} {
		_, errs, code := command("", "runs", file, "--limit", limit)
		require.Equal(t, exitBad, code)
		require.Contains(t, errs, "--limit must be between 1 and 10000")
	}
	_, errs, code := command("", "runs", file, "--limit", "10000")
	require.Equal(t, exitDone, code, errs)
	require.Equal(t, "no run matches that has not ended (--all lists those that have)\n", errs)
}

func TestListOfRunsIsReadInPages(t *testing.T) {
	file := t.TempDir() + "/sessions.db"
	db, err := sqlite.Open(t.Context(), file, nil)
	require.NoError(t, err)
	e, err := openEngine(t.Context(), db, nil)
	require.NoError(t, err)
	for _, id := range []string{"a", "b", "c"} {
		_, err := e.Start(t.Context(), durable.StartRequest{Run: id, Agent: "x", Conversation: id})
		require.NoError(t, err)
	}
	require.NoError(t, errors.Join(e.Close(), db.Close()))

	out, errs, code := command("", "runs", file, "--limit", "2")
	require.Equal(t, exitDone, code, errs)
	require.Contains(t, out, "\nb ")
	require.NotContains(t, out, "\na ")
	require.Equal(t, "there are more: --after \"b\"\n", errs)

	out, errs, code = command("", "runs", file, "--limit", "2", "--after", "b")
	require.Equal(t, exitDone, code, errs)
	require.NotContains(t, out, "\nb ")
	require.Contains(t, out, "\na ")
	require.Empty(t, errs)

	out, _, _ = command("", "runs", file, "--limit", "2", "--json")
	require.Contains(t, out, `"more": "b"`)
	require.NotContains(t, out, `"id": "a"`)
}

func TestRunOfTwoCallsIsRepliedToOneByOne(t *testing.T) {
	file := t.TempDir() + "/sessions.db"
	db, err := sqlite.Open(t.Context(), file, nil)
	require.NoError(t, err)
	agent := supporter()
	agent.Provider = apitest.NewScript(apitest.Call(
		apitest.Use("refund", refund{"A-7"}), apitest.Use("refund", refund{strings.Repeat("very ", 2000) + "\x1b[2Jlong"})))
	e, err := openEngine(t.Context(), db, map[string]executor.Agent{"support": agent})
	require.NoError(t, err)
	_, err = e.Start(t.Context(), durable.StartRequest{Run: "two", Agent: "support", Conversation: "c", Text: "refund"})
	require.NoError(t, err)
	require.NoError(t, workUntil(t.Context(), e, map[string]durable.State{"two": durable.Waiting}))
	pending, err := e.Pending(t.Context(), "two")
	require.NoError(t, err)
	require.NoError(t, errors.Join(e.Close(), db.Close()))

	// What is cut says so: nobody approves a part unknowingly.
	out, errs, code := command("", "runs", "show", file, "two")
	require.Zero(t, code, errs)
	require.Contains(t, out, "… (cut: ")
	require.NotContains(t, out, "\x1b")

	_, errs, code = command("", "runs", "reply", file, "two", pending[0].Key.String(), "--arguments", "[]")
	require.NotZero(t, code)
	require.Contains(t, errs, "--arguments must be a JSON object")

	// A call with a reply is no longer asked for.
	_, errs, code = command("", "runs", "reply", file, "two", pending[0].Key.String(), "--approve")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "the run waits for 1 more call")
	out, _, _ = command("", "runs", "show", file, "two")
	require.NotContains(t, out, pending[0].Key.String())
	require.Contains(t, out, pending[1].Key.String())
	out, _, _ = command("", "runs", file)
	require.Contains(t, out, "1 for approval")

	_, errs, code = command("", "runs", "reply", file, "two", "--decline", "no")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "the run continues")
	_, errs, code = command("", "runs", "cancel", file, "two")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "cancelled")
	_, errs, _ = command("", "runs")
	require.Contains(t, errs, "runs takes DATABASE")
}
