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

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/durable"
	"github.com/plait-dev/plait/executor"
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
	require.NoError(t, s.engine.Reply(t.Context(), tasks[0].Task.Key, executor.Failed("nobody"))) // another program
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
