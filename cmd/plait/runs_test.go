package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/sqlite"
)

// hostileRun is the ID of a run that tries to control the terminal.
const hostileRun = "hostile\x1b[2J\nrow"

// begun makes durable runs in a database: one in each state, and one whose texts are hostile. What is left of a lease
// is shown in whole hours, of which half a one may pass until then.
func begun(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: begun DATABASE")
	}
	ctx := context.Background()
	db, err := sqlite.Open(ctx, ts.MkAbs(args[0]), nil)
	ts.Check(err)
	defer db.Close()

	begin := func(run string) {
		key, _, _ := strings.Cut("of "+run, "\x1b") // a key holds no control characters
		_, err := db.Begin(ctx, store.BeginRequest{Run: run, Agent: "support", Append: store.AppendRequest{Conversation: key, Head: "main"}})
		ts.Check(err)
	}
	claim := func(run string) store.ClaimedRun {
		claimed, err := db.ClaimRuns(ctx, store.ClaimRunsRequest{
			Worker: "engine-1", Agents: []string{"support"}, Formats: []int{1}, Run: run, Lease: 90 * time.Minute,
		})
		ts.Check(err)
		return claimed[0]
	}
	step := func(run string, s store.Step) {
		begin(run)
		s.Lease = claim(run).Lease
		_, err := db.Commit(ctx, s)
		ts.Check(err)
	}

	begin("ready")
	begin("returned")
	ts.Check(db.Release(ctx, claim("returned").Lease, 150*time.Minute, false))
	begin("running")
	claim("running")
	step("parked", store.Step{End: store.RunParked, Reason: "it was claimed 10 times without a pause"})
	step("done", store.Step{End: store.RunDone, Reason: "end_turn"})
	step(hostileRun, store.Step{End: store.RunFailed, Reason: "the model said \x1b]0;owned\a\r\n\u202eme"})

	step("waiting", store.Step{Pause: &store.Pause{Continuation: "first", Format: 1, Tasks: []store.Task{
		{Key: store.Key{Call: "pay"}, Tool: "refund", Attempts: 1},
		{Key: store.Key{Call: "find"}, Tool: "find_order", Attempts: 5, ResultTimeout: 25 * time.Hour},
		{Key: store.Key{Call: "ask"}, Tool: "approve", External: true},
		{Key: store.Key{Call: "mail"}, Tool: "send_mail", Attempts: 5},
	}}})
	_, err = db.Accept(ctx, store.Result{
		Key: store.Key{Run: "waiting", Continuation: "first", Call: "pay"}, Outcome: store.OutcomeInDoubt,
	})
	ts.Check(err)
	claimCall := func(tool string) store.Lease {
		claimed, err := db.ClaimTasks(ctx, store.ClaimTasksRequest{Worker: "worker-7", Tools: []string{tool}, Lease: 330 * time.Minute})
		ts.Check(err)
		return claimed[0].Lease
	}
	claimCall("find_order")
	ts.Check(db.Release(ctx, claimCall("send_mail"), 630*time.Minute, false))
}

func TestRunShowsWhoHoldsItsCalls(t *testing.T) {
	now := time.Now()
	at := func(d time.Duration) time.Time { return now.Add(d) }
	leased := func(worker string, left time.Duration) store.TaskState {
		return store.TaskState{Claims: 1, Worker: worker, LeaseUntil: at(left)}
	}
	r := listed(store.Run{ID: "r", State: store.RunWaiting, Began: at(-49 * time.Hour)}, []store.TaskState{
		leased("w1", 5*time.Second), leased("w2", 10*time.Minute), {Deadline: at(3 * time.Second)}, leased("w3", -time.Second),
		{Done: true, Deadline: at(-time.Hour)},
	})

	var out bytes.Buffer
	require.NoError(t, (&streams{out: &out}).printRuns([]listedRun{r}, now))
	require.Equal(t, "run  state    age  calls           lease                  next  reason\n"+
		"r    waiting  2d   4 of 5 waiting  w2 for 10m and 2 more  now   -\n", out.String())
}

func TestFinishedCallHasNoDeadline(t *testing.T) {
	now := time.Now()
	done := store.Result{Outcome: store.OutcomeOK}
	r := listed(store.Run{ID: "r", State: store.RunWaiting}, []store.TaskState{
		{Task: store.Task{Key: store.Key{Call: "pay"}, Tool: "refund"}, Deadline: now.Add(-time.Hour), Done: true, Result: done},
	})

	var out bytes.Buffer
	require.NoError(t, (&streams{out: &out}).printRun("sessions.db", r, now))
	require.Contains(t, out.String(), "pay   refund  0       -         ok\n")
}

func TestCallIsShownWithTheWorkerThatClaimedItLast(t *testing.T) {
	now := time.Now()
	call := listedCall{Claims: 1, Worker: "ann", LeaseUntil: new(now.Add(time.Minute))}
	require.Equal(t, "last claimed by ann, free in 1m", call.resultText(now))
	require.Equal(t, "last claimed by ann, free now", call.resultText(now.Add(time.Hour)))
	call.Worker, call.Released = "", true
	require.Equal(t, "given back, free in 1m", call.resultText(now))
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
	for _, id := range []string{"a", "b", "c"} {
		_, err := db.Begin(t.Context(), store.BeginRequest{Run: id, Agent: "x", Append: store.AppendRequest{Conversation: id, Head: "main"}})
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())

	out, errs, code := command("", "runs", file, "--limit", "2")
	require.Equal(t, exitDone, code, errs)
	require.Contains(t, out, "\nb ")
	require.NotContains(t, out, "\nc ")
	require.Equal(t, "there are more: --after \"b\"\n", errs)

	out, errs, code = command("", "runs", file, "--limit", "2", "--after", "b")
	require.Equal(t, exitDone, code, errs)
	require.NotContains(t, out, "\nb ")
	require.Contains(t, out, "\nc ")
	require.Empty(t, errs)

	out, _, _ = command("", "runs", file, "--limit", "2", "--json")
	require.Contains(t, out, `"more": "b"`)
	require.NotContains(t, out, `"id": "c"`)
}
