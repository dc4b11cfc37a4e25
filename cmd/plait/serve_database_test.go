package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/durable"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/sqlite"
	"github.com/plait-dev/plait/viz/live"
)

// sessions is a database with an engine whose agent "cities" needs approval to remove a city. removed lists the calls
// that were executed.
type sessions struct {
	file    string
	db      *sqlite.DB
	engine  *durable.Engine
	removed []string
}

func newSessions(t *testing.T, turns ...apitest.Turn) *sessions {
	t.Helper()
	s := &sessions{file: filepath.Join(t.TempDir(), "sessions.db")}
	var err error
	s.db, err = sqlite.Open(t.Context(), s.file, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.db.Close()) })

	type city struct{ Name string }
	remove := executor.Func("remove", "Removes a city.", func(_ context.Context, in city) (string, error) {
		s.removed = append(s.removed, in.Name)
		return "gone", nil
	})
	ask := executor.DeferredTool(content.Tool{Name: "ask", Schema: `{"type":"object"}`})
	s.engine = &durable.Engine{Store: s.db, Agents: map[string]executor.Agent{"cities": {
		Provider: apitest.NewScript(turns...), Tools: []dag.Tool{remove, ask},
		Hooks: []executor.Hook{executor.RequireApproval("remove")},
	}}}
	return s
}

func (s *sessions) start(t *testing.T, run, conversation string) {
	t.Helper()
	_, err := s.engine.Start(t.Context(), durable.StartRequest{
		Run: run, Agent: "cities", Conversation: conversation, Text: "Remove Rome.",
	})
	require.NoError(t, err)
}

// work executes a run up to its next pause or its end.
func (s *sessions) work(t *testing.T, run string) {
	t.Helper()
	require.NoError(t, s.engine.Handle(t.Context(), store.Wake{Kind: store.WakeRun, Key: store.Key{Run: run}}))
}

// listedEntry is an entry of the list, as the page gets it.
type listedEntry struct {
	Key, Path, State, Detail string
	Waits                    bool
	Changed                  time.Time
}

func (v *visit) list() (entries []listedEntry) {
	v.t.Helper()
	res := v.ask("GET", "/list", "")
	require.Equal(v.t, http.StatusOK, res.StatusCode)
	require.NoError(v.t, json.NewDecoder(res.Body).Decode(&struct{ Entries *[]listedEntry }{&entries}))
	return entries
}

// in returns a visit of the page of an entry.
func (v *visit) in(e listedEntry) *visit {
	return &visit{t: v.t, url: v.url + "/" + strings.TrimSuffix(e.Path, "/"), token: v.token}
}

func removeRome() apitest.Turn {
	return apitest.Call(apitest.Use("remove", map[string]string{"Name": "Rome"}))
}

func TestServeOfADatabaseListsConversationsWithTheirRuns(t *testing.T) {
	s := newSessions(t, removeRome())
	s.start(t, "paused", "tickets/31 <b>")
	s.work(t, "paused")
	s.start(t, "queued", "tickets/32")
	s.start(t, "cancelled", "tickets/33")
	require.NoError(t, s.db.Cancel(t.Context(), "cancelled", "asked twice\nby <i>Bob</i>"))
	c, err := store.New(s.db, nil).Conversation(t.Context(), "without a run")
	require.NoError(t, err)
	require.NoError(t, c.Append(t.Context(), dag.New().User("Hi.")))
	fork, err := c.Fork(t.Context(), "try")
	require.NoError(t, err)
	require.NoError(t, fork.Append(t.Context(), fork.DAG().Assistant("Hello.")))

	v := serving(t, s.file)
	entries := v.list()
	var lines []string
	for _, e := range entries {
		lines = append(lines, fmt.Sprintf("%s|%s|%s|%v", e.Key, e.State, e.Detail, e.Waits))
		require.False(t, e.Changed.IsZero(), e.Key)
	}
	require.Equal(t, []string{"tickets/31 <b>|paused|calls: 1 of 1 waiting|true", "tickets/32|queued||false"}, lines[:2])
	require.ElementsMatch(t, []string{
		"tickets/33|cancelled|asked twice\nby <i>Bob</i>|false", "without a run|||false", "without a run#try|||false",
	}, lines[2:])

	for _, e := range entries {
		if e.Key == "without a run#try" {
			v.in(e).until("Hello.")
		}
	}
}

// inEachState makes a durable run in each state, each in a conversation of that name, as an engine and its workers come
// to it.
func inEachState(t *testing.T) *sessions {
	t.Helper()
	asks := apitest.Call(apitest.Use("ask", struct{}{}), apitest.Use("ask", struct{}{}))
	s := newSessions(t,
		removeRome(), asks, asks, apitest.Say("Done."), apitest.Fail(&api.Error{Kind: api.ErrAuth, Message: "no such key"}))
	for _, name := range []string{"waits for approval", "waits for workers", "in doubt", "done", "failed"} {
		s.start(t, name, name)
		s.work(t, name)
	}
	s.start(t, "queued", "queued")
	s.loseACall(t, "in doubt")

	// The process of a run is lost as often as it may be.
	s.start(t, "parked", "parked")
	_, err := s.db.ClaimRuns(t.Context(), store.ClaimRunsRequest{
		Worker: "lost", Agents: []string{"cities"}, Formats: []int{1}, Run: "parked", Lease: time.Microsecond,
	})
	require.NoError(t, err)
	s.engine.Attempts = 1
	s.work(t, "parked")

	s.run(t, "running")
	return s
}

// loseACall lets a worker claim one of the calls of a run, and lose its lease.
func (s *sessions) loseACall(t *testing.T, run string) {
	t.Helper()
	tasks, err := s.db.Tasks(t.Context(), run)
	require.NoError(t, err)
	lost := tasks[0].Task
	claimed, err := s.db.ClaimTasks(t.Context(), store.ClaimTasksRequest{
		Worker: "lost", Tools: []string{lost.Tool}, Key: lost.Key, Lease: time.Microsecond,
	})
	require.NoError(t, err)
	require.Len(t, claimed, 1)

	// Another worker, without tools, finds that nobody has the call any more.
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	worker := &durable.Worker{Store: s.db, Settings: durable.Settings{Poll: time.Millisecond}}
	go func() { ended <- worker.Serve(ctx) }()
	for !tasks[0].Done {
		tasks, err = s.db.Tasks(t.Context(), run)
		require.NoError(t, err)
	}
	stop()
	require.NoError(t, <-ended)
}

// run starts a run whose tool is at work until the end of the test.
func (s *sessions) run(t *testing.T, name string) {
	t.Helper()
	begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	dig := executor.Func("dig", "Digs.", func(context.Context, struct{}) (string, error) {
		close(begun)
		<-end
		return "a hole", nil
	})
	s.engine.Agents["diggers"] = executor.Agent{
		Provider: apitest.NewScript(apitest.Call(apitest.Use("dig", struct{}{})), apitest.Say("Dug.")),
		Tools:    []dag.Tool{executor.WithTimeout(dig, 0)},
	}
	_, err := s.engine.Start(t.Context(), durable.StartRequest{Run: name, Agent: "diggers", Conversation: name, Text: "Dig."})
	require.NoError(t, err)

	wake := store.Wake{Kind: store.WakeRun, Key: store.Key{Run: name}}
	go func() { ended <- s.engine.Handle(context.Background(), wake) }()
	t.Cleanup(func() {
		close(end)
		require.NoError(t, <-ended)
	})
	<-begun
}

func TestServeOfADatabaseShowsDurableRunsInEachState(t *testing.T) {
	s := inEachState(t)
	v := serving(t, s.file)

	states, pages := map[string]string{}, map[string]listedEntry{}
	for _, e := range v.list() {
		states[e.Key] = strings.TrimSuffix(fmt.Sprintf("%s|%v|%s", e.State, e.Waits, e.Detail), "|")
		pages[e.Key] = e
	}
	require.Equal(t, map[string]string{
		"waits for approval": "paused|true|calls: 1 of 1 waiting",
		"waits for workers":  "paused|false|calls: 2 of 2 waiting",
		"in doubt":           "in doubt|false|calls: 1 of 2 waiting, 1 in doubt",
		"queued":             "queued|false", "running": "running|false",
		"parked": "parked|false|it was claimed 1 time without a pause",
		"failed": "failed|false|not authorized: no such key", "done": "done|false|end_turn",
	}, states)

	// The page of a run that has not ended has its state. One that has ended says so in its conversation.
	for key, words := range map[string][]string{
		"waits for approval": {`"asks":"approval"`, `"run":"paused"`},
		"waits for workers":  {`"asks":"result"`, `"asks":"result"`, `"run":"paused"`},
		"in doubt":           {`"asks":"result"`, `"run":"in doubt","detail":"calls: 1 of 2 waiting, 1 in doubt"`},
		"queued":             {`"run":"queued"`},
		"running":            {"dig", `"run":"running"`},
		"parked":             {`"run":"parked","detail":"it was claimed 1 time without a pause"`},
		"failed":             {"no such key"},
		"done":               {"end_turn"},
	} {
		t.Run(key, func(t *testing.T) {
			page := v.in(pages[key])
			page.t = t
			page.until(words...)
		})
	}
}

func TestApprovalOfADurableRunOnThePageContinuesIt(t *testing.T) {
	s := newSessions(t, removeRome(), apitest.Call(apitest.Use("ask", struct{}{})), apitest.Say("All done."))
	s.start(t, "r", "tickets/31")
	s.work(t, "r")
	v := serving(t, s.file)
	page := v.in(v.list()[0])
	page.until(`"asks":"approval"`, `"origin":{"changed"`, `"run":"paused"`)
	tasks, err := s.db.Tasks(t.Context(), "r")
	require.NoError(t, err)
	answer := func(reply string) *http.Response {
		key := tasks[0].Task.Key
		return page.ask("POST", "/answer", fmt.Sprintf(`{"pause":%q,"call":%q,"reply":%s}`, key.Continuation, key.Call, reply))
	}

	require.Equal(t, http.StatusAccepted, answer(`{"approve":true}`).StatusCode)
	s.work(t, "r")
	require.Equal(t, []string{"Rome"}, s.removed)

	page.until(`"asks":"result"`)
	tasks, err = s.db.Tasks(t.Context(), "r")
	require.NoError(t, err)
	require.NoError(t, s.engine.Reply(t.Context(), tasks[0].Task.Key, executor.FailedFor(callOf(t, tasks[0]), "nobody"))) // another program
	res := answer(`{"result":"blue"}`)
	require.Equal(t, http.StatusConflict, res.StatusCode)
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Regexp(t, "answered elsewhere", string(text))

	s.work(t, "r")
	page.until("All done.")
}

func TestConversationWithADurableRunIsNotContinuedOnThePage(t *testing.T) {
	s := newSessions(t, removeRome())
	s.start(t, "r", "tickets/31")
	s.work(t, "r")
	v := serving(t, s.file, "--provider", "anthropic", "--model", "m")
	page := v.in(v.list()[0])
	page.until(`"run":"paused"`, `"canRun":true`)
	c, err := store.New(s.db, nil).Conversation(t.Context(), "tickets/31")
	require.NoError(t, err)
	res := page.ask("POST", "/fork", fmt.Sprintf(`{"at":%q,"text":"Hi"}`, c.DAG().Nodes()[0].ID()))
	require.Equal(t, http.StatusConflict, res.StatusCode)
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), "another process runs this conversation, and its run is paused")
}

func TestStateOfARunWithACallInDoubtIsInDoubt(t *testing.T) {
	doubt := []store.TaskState{{Done: true, Result: store.Result{Outcome: store.OutcomeInDoubt}}}
	require.Equal(t, "in doubt", stateOf(store.Run{State: store.RunReady}, doubt))
	require.Equal(t, "done", stateOf(store.Run{State: store.RunDone}, doubt))
	require.Equal(t, "parked", stateOf(store.Run{State: store.RunParked}, nil))
	require.Less(t, urgency(live.Entry{Waits: true}), urgency(live.Entry{State: "in doubt"}))
	require.Less(t, urgency(live.Entry{State: "failed"}), urgency(live.Entry{State: "running"}))
	require.Less(t, urgency(live.Entry{State: "running"}), urgency(live.Entry{State: "done"}))
}

// callOf returns the key of the call of a task.
func callOf(t *testing.T, task store.TaskState) node.CallKey {
	t.Helper()
	key, err := node.ParseCallKey(task.Task.Key.Call)
	require.NoError(t, err)
	return key
}
