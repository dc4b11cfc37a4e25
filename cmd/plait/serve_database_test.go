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
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/durable"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/sqlite"
	"github.com/plait-dev/plait/viz/page/live"
)

// sessionsDB is a database with an engine whose agent "cities" needs approval to remove a city. removed lists the calls
// that were executed.
type sessionsDB struct {
	file    string
	db      *sqlite.DB
	engine  *durable.Engine
	removed []string
}

func newSessions(t *testing.T, turns ...apitest.Turn) *sessionsDB {
	t.Helper()
	s := &sessionsDB{file: filepath.Join(t.TempDir(), "sessions.db")}
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
	s.engine, err = openEngine(t.Context(), s.db, map[string]executor.Agent{"cities": {
		Provider: apitest.NewScript(turns...), Tools: []dag.Tool{remove, ask},
		Hooks: []executor.Hook{executor.RequireApproval("remove")},
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.engine.Close()) })
	return s
}

func (s *sessionsDB) start(t *testing.T, run, conversation string) {
	t.Helper()
	_, err := s.engine.Start(t.Context(), durable.StartRequest{
		Run: run, Agent: "cities", Conversation: conversation, Text: "Remove Rome.",
	})
	require.NoError(t, err)
}

// work executes a run until it is in a state.
func (s *sessionsDB) work(t *testing.T, run string, state durable.State) {
	t.Helper()
	require.NoError(t, workUntil(t.Context(), s.engine, map[string]durable.State{run: state}))
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
	s.work(t, "paused", durable.Waiting)
	s.start(t, "queued", "tickets/32")
	s.start(t, "cancelled", "tickets/33")
	require.NoError(t, s.engine.Cancel(t.Context(), "cancelled", "asked twice\nby <i>Bob</i>"))
	c, err := store.New(s.db).Conversation(t.Context(), "without a run")
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
	require.Equal(t, []string{"tickets/31 <b>|paused|calls: 1 for approval|true", "tickets/32|active||false"}, lines[:2])
	require.ElementsMatch(t, []string{
		"tickets/33|cancelled|asked twice\nby <i>Bob</i>|false", "without a run|||false", "without a run#try|||false",
	}, lines[2:])

	for _, e := range entries {
		if e.Key == "without a run#try" {
			v.in(e).until("Hello.")
		}
	}
}

func TestServeOfADatabaseShowsDurableRunsInEachState(t *testing.T) {
	asks := apitest.Call(apitest.Use("ask", struct{}{}), apitest.Use("ask", struct{}{}))
	s := newSessions(t, removeRome(), asks, apitest.Say("Done."),
		apitest.Fail(&api.Error{Kind: api.ErrAuth, Message: "no such key"}))
	for _, run := range []struct {
		name  string
		state durable.State
	}{
		{"waits for approval", durable.Waiting}, {"waits for workers", durable.Waiting}, {"done", durable.Done},
		{"failed", durable.Failed},
	} {
		s.start(t, run.name, run.name)
		s.work(t, run.name, run.state)
	}
	s.start(t, "active", "active")
	v := serving(t, s.file)

	states, pages := map[string]string{}, map[string]listedEntry{}
	for _, e := range v.list() {
		states[e.Key] = strings.TrimSuffix(fmt.Sprintf("%s|%v|%s", e.State, e.Waits, e.Detail), "|")
		pages[e.Key] = e
	}
	require.Equal(t, map[string]string{
		"waits for approval": "paused|true|calls: 1 for approval",
		"waits for workers":  "paused|false|calls: 2 for a result",
		"active":             "active|false",
		"failed":             "failed|false|not authorized: no such key", "done": "done|false|end_turn",
	}, states)

	// The page of a run that has not ended has its state. One that has ended says so in its conversation.
	for key, words := range map[string][]string{
		"waits for approval": {`"asks":"approval"`, `"run":"paused"`},
		"waits for workers":  {`"asks":"result"`, `"asks":"result"`, `"run":"paused"`},
		"active":             {`"run":"active"`},
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
	t.Parallel()
	s := newSessions(t, removeRome(), apitest.Call(apitest.Use("ask", struct{}{})), apitest.Say("All done."))
	s.start(t, "r", "tickets/31")
	s.work(t, "r", durable.Waiting)
	v := serving(t, s.file)
	page := v.in(v.list()[0])
	page.until(`"asks":"approval"`, `"origin":{"changed"`, `"run":"paused"`)
	pending := func() (dag.Pending, string) {
		c, err := store.New(s.db).Conversation(t.Context(), "tickets/31")
		require.NoError(t, err)
		return c.DAG().Pending()[0], executor.ContinuationOf(c.DAG()).ID
	}
	answer := func(reply string) *http.Response {
		p, pause := pending()
		return page.ask("POST", "/answer", fmt.Sprintf(`{"pause":%q,"call":%q,"reply":%s}`, pause, p.Key, reply))
	}

	require.Equal(t, http.StatusAccepted, answer(`{"approve":true}`).StatusCode)
	require.NoError(t, workUntilAsks(t, s, "r", "ask"))
	require.Equal(t, []string{"Rome"}, s.removed)

	page.until(`"asks":"result"`)
	p, _ := pending()
	require.NoError(t, s.engine.Reply(t.Context(), "tickets/31", "", executor.Failed(p, "nobody"))) // another program
	res := answer(`{"result":"blue"}`)
	require.Equal(t, http.StatusConflict, res.StatusCode)
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Regexp(t, "answered elsewhere", string(text))

	s.work(t, "r", durable.Done)
	page.until("All done.")
}

// workUntilAsks executes a run until a call of a tool is pending.
func workUntilAsks(t *testing.T, s *sessionsDB, run, tool string) error {
	for {
		if err := workUntil(t.Context(), s.engine, map[string]durable.State{run: durable.Waiting}); err != nil {
			return err
		}
		c, err := store.New(s.db).Conversation(t.Context(), "tickets/31")
		if err != nil {
			return err
		}
		if p := c.DAG().Pending(); len(p) > 0 && p[0].Call.Name == tool {
			return nil
		}
	}
}

func TestConversationWithADurableRunIsNotContinuedOnThePage(t *testing.T) {
	s := newSessions(t, removeRome())
	s.start(t, "r", "tickets/31")
	s.work(t, "r", durable.Waiting)
	v := serving(t, s.file, "--provider", "anthropic", "--model", "m")
	page := v.in(v.list()[0])
	page.until(`"run":"paused"`, `"canRun":true`)
	c, err := store.New(s.db).Conversation(t.Context(), "tickets/31")
	require.NoError(t, err)
	res := page.ask("POST", "/fork", fmt.Sprintf(`{"at":%q,"text":"Hi"}`, c.DAG().Nodes()[0].ID()))
	require.Equal(t, http.StatusConflict, res.StatusCode)
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), "another process runs this conversation, and its run is paused")
}

func TestEntriesThatNeedAPersonComeFirst(t *testing.T) {
	require.Equal(t, "paused", stateOf(durable.Run{State: durable.Waiting}))
	require.Equal(t, "parked", stateOf(durable.Run{State: durable.Parked}))
	require.Less(t, urgency(live.Entry{Waits: true}), urgency(live.Entry{State: "parked"}))
	require.Less(t, urgency(live.Entry{State: "failed"}), urgency(live.Entry{State: "active"}))
	require.Less(t, urgency(live.Entry{State: "active"}), urgency(live.Entry{State: "done"}))
}
