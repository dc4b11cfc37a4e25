package durable

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/agui"
)

var _ agui.Runs = (*Front)(nil)

// site is a process with the handler of AG-UI, over the runs of agent "a".
type site struct {
	*world
	*httptest.Server
	engine *Engine
}

// site opens a process that serves clients. With change it also executes runs.
func (w *world) site(change func(o *Options)) *site {
	e := w.engine(change)
	s := httptest.NewServer(agui.Durable(e.Front("a"), &agui.Options{ClientTools: []string{"color"}}))
	w.Cleanup(s.Close)
	return &site{w, s, e}
}

// received is what a client has received in one response.
type received struct {
	events []map[string]any
}

// post sends a request to thread "c", and reads the response until it ends, or until it has an event of a type: then the
// client hangs up.
func (s *site) post(body string, until string) (got received) {
	s.Helper()
	return s.read(body, func(kind string) bool { return kind == until })
}

// read is post with a function that gets the type of each event, and reports whether the client hangs up.
func (s *site) read(body string, until func(kind string) bool) (got received) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(`{"threadId":"c","runId":"r",`+body+`}`))
	require.NoError(s, err)
	r.Header.Set("Content-Type", "application/json")
	response, err := s.Client().Do(r)
	require.NoError(s, err)
	defer response.Body.Close()
	require.Equal(s, http.StatusOK, response.StatusCode)

	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e map[string]any
		require.NoError(s, json.Unmarshal([]byte(data), &e))
		got.events = append(got.events, e)
		if until(e["type"].(string)) {
			return got
		}
	}
	require.NoError(s, lines.Err(), "%v", got.events)
	return got
}

// followed waits until somebody follows a run at this process.
func (s *site) followed() {
	s.Helper()
	require.Eventually(s, s.engine.followed, time.Minute, time.Millisecond)
}

// followed reports whether somebody follows a run.
func (e *Engine) followed() bool {
	e.feeds.mu.Lock()
	defer e.feeds.mu.Unlock()
	for _, x := range e.feeds.list {
		if len(x.followers) > 0 {
			return true
		}
	}
	return false
}

// last returns the last event.
func (c received) last() map[string]any { return c.events[len(c.events)-1] }

// types returns the types of the events, the same ones in a row once.
func (c received) types() string {
	var all []string
	for _, e := range c.events {
		if kind := e["type"].(string); len(all) == 0 || all[len(all)-1] != kind {
			all = append(all, kind)
		}
	}
	return strings.Join(all, " ")
}

// text returns the pieces of texts that were sent.
func (c received) text() (text string) {
	for _, e := range c.events {
		if e["type"] == "TEXT_MESSAGE_CONTENT" {
			text += e["delta"].(string)
		}
	}
	return text
}

// messages returns the messages of the last snapshot, as role and text.
func (c received) messages() (list []string) {
	for _, e := range c.events {
		if e["type"] != "MESSAGES_SNAPSHOT" {
			continue
		}
		list = nil
		for _, m := range e["messages"].([]any) {
			m := m.(map[string]any)
			text, _ := m["content"].(string)
			list = append(list, m["role"].(string)+": "+text)
		}
	}
	return list
}

// asked returns the IDs of the questions at the end.
func (c received) asked() (ids []string) {
	o, _ := c.last()["outcome"].(map[string]any)
	list, _ := o["interrupts"].([]any)
	for _, q := range list {
		ids = append(ids, q.(map[string]any)["id"].(string))
	}
	return ids
}

// say is a request with a message of the user.
const say = `"messages":[{"id":"u1","role":"user","content":"Count."}]`

// success is the outcome of a run that is done.
var success = map[string]any{"type": "success"}

// answers is a request with answers to questions.
func answers(payload string, ids ...string) string {
	var list []string
	for _, id := range ids {
		list = append(list, fmt.Sprintf(`{"interruptId":%q,"status":"resolved","payload":%s}`, id, payload))
	}
	return say + `,"resume":[` + strings.Join(list, ",") + `]`
}

const approved = `{"approved":true}`

// gated is an agent whose tool waits for the gate, or for the end of its process.
func gated(gate <-chan struct{}) func(o *Options) {
	return func(o *Options) {
		t := tool("count", func(ctx context.Context, item string) (string, error) {
			select {
			case <-gate:
				return "many " + item, nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})
		o.ShutdownTimeout = -1
		o.Agents = map[string]executor.Agent{"a": {
			Provider: calls("count", 1), Tools: []dag.Tool{executor.WithEffect(t, executor.EffectIdempotent)},
		}}
	}
}

func TestFrontEndFollowsARunThatOutlivesItsConnection(t *testing.T) {
	onEach(t, func(w *world) {
		gate := make(chan struct{})
		s := w.site(gated(gate))
		stop := w.serve(s.engine)

		// The client hangs up while the tool is executed.
		first := s.post(say, "TOOL_CALL_END")
		require.NotContains(w, first.types(), "RUN_FINISHED")

		// The process is replaced, and another one has the client.
		stop()
		s.Close()
		other := w.site(gated(gate))
		w.serve(other.engine)
		close(gate)
		again := other.post(`"messages":[]`, "")
		require.Equal(w, success, again.last()["outcome"], again.types())

		// It gets what it lacks, once.
		all := w.site(nil).post(`"messages":[]`, "")
		require.Equal(w, []string{
			"user: Count.", "assistant: ", "tool: many bolts 0", "assistant: many bolts 0. ",
		}, all.messages())
		require.Contains(w, strings.Join(again.messages(), "\n")+again.text(), "many bolts 0")
		require.Equal(w, "RUN_STARTED MESSAGES_SNAPSHOT RUN_FINISHED", all.types())

		// The request of the first client, sent again, appends nothing.
		require.Equal(w, all.messages(), other.post(say, "").messages())
		require.Len(w, w.load("c").Messages(), 4)
	})
}

func TestFrontEndHasPiecesOfItsOwnProcessAndWholeMessagesOfOthers(t *testing.T) {
	onOne(t, func(w *world) {
		elsewhere, here := w.site(nil), w.site(func(o *Options) {
			o.Agents = map[string]executor.Agent{"a": {Provider: apitest.NewScript(apitest.Say("One two three.").Always())}}
		})

		// Nobody executes the run yet: both follow it from its beginning.
		got := make(chan received)
		go func() { got <- elsewhere.post(say, "") }()
		require.Eventually(w, func() bool {
			r, err := here.engine.Front("a").last(w.Context(), "c")
			return err == nil && r.ID != ""
		}, time.Minute, time.Millisecond)
		followed := make(chan received)
		go func() { followed <- here.post(say, "") }()
		here.followed()
		w.serve(here.engine)

		whole, pieces := <-got, <-followed
		const types = "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_FINISHED"
		require.Equal(w, types, whole.types())
		require.Len(w, whole.events, 5)
		require.Equal(w, types, pieces.types())
		require.Greater(w, len(pieces.events), 5)
		require.Equal(w, "One two three.", whole.text())
		require.Equal(w, whole.text(), pieces.text())
	})
}

func TestFrontEndAnswersFromAnotherProcess(t *testing.T) {
	onOne(t, func(w *world) {
		var c counting
		s := w.site(asks(&c, 2))
		stop := w.serve(s.engine)
		asked := s.post(say, "").asked()
		require.Len(w, asked, 2)

		// One answer alone: the other question stays.
		front := w.site(nil)
		part := front.post(answers(approved, asked[0]), "")
		require.Equal(w, asked[1:], part.asked(), part.types())

		// Nobody executes the run. The same answer again changes nothing, and another one is refused.
		stop()
		front.post(answers(approved, asked[1]), "RUN_STARTED")
		require.Eventually(w, func() bool {
			r, err := front.engine.Front("a").last(w.Context(), "c")
			return err == nil && r.State == Active
		}, time.Minute, time.Millisecond)
		var replies []executor.Reply
		for _, p := range w.load("c").Pending() {
			replies = append(replies, executor.Declined(p, "no"))
		}
		require.ErrorIs(w, front.engine.Reply(w.Context(), "c", "", replies...), executor.ErrConflict)

		again := w.site(asks(&c, 2))
		w.serve(again.engine)
		end := front.post(say, "")
		require.Equal(w, success, end.last()["outcome"], end.types())
		require.EqualValues(w, 2, c.total.Load())
		require.Equal(w, "many bolts 0. many bolts 1. ", w.text("c"))

		// Late answers find the run done.
		late := front.post(answers(`{"approved":false}`, asked...), "")
		require.Equal(w, "RUN_STARTED MESSAGES_SNAPSHOT RUN_FINISHED", late.types())
	})
}

func TestFrontEndWithTwoDifferentAnswersIsTold(t *testing.T) {
	onOne(t, func(w *world) {
		var c counting
		s := w.site(asks(&c, 2))
		w.serve(s.engine)
		asked := s.post(say, "").asked()
		s.post(answers(approved, asked[0]), "")

		// The first answer counts, also if it comes twice.
		again := s.post(answers(`{"approved":false}`, asked[0]), "")
		require.Equal(w, executor.ErrConflict.Error(), again.last()["code"], again.types())
		again = s.post(answers(approved, asked[0]), "")
		require.Equal(w, asked[1:], again.asked())
		end := s.post(answers(approved, asked[1]), "")
		require.Equal(w, success, end.last()["outcome"])
		require.EqualValues(w, 2, c.total.Load())
	})
}

func TestFrontEndExecutesItsOwnTools(t *testing.T) {
	onOne(t, func(w *world) {
		color := executor.DeferredTool(content.Tool{Name: "color", Description: "Asks.", Schema: `{"type":"object"}`})
		s := w.site(func(o *Options) {
			o.Call = func(string, dag.Pending) CallOptions { return CallOptions{External: true} }
			o.Agents = map[string]executor.Agent{"a": {Provider: calls("color", 1), Tools: []dag.Tool{color}}}
		})
		w.serve(s.engine)
		const tools = `,"tools":[{"name":"color","description":"Asks.","parameters":{"type":"object"}}]`
		asked := s.post(say+tools, "")
		open := asked.last()["outcome"].(map[string]any)["pendingToolCallIds"]
		require.Equal(w, []any{"plait-1/0"}, open, asked.types())

		const result = `"messages":[{"id":"u1","role":"user","content":"Count."},{"id":"x","role":"tool","toolCallId":"plait-1/0","content":"blue"}]`
		end := w.site(nil).post(result+tools, "")
		require.Equal(w, success, end.last()["outcome"], end.types())
		require.Equal(w, "blue. ", w.text("c"))
	})
}

func TestFrontEndCancelsByRequestOnly(t *testing.T) {
	onOne(t, func(w *world) {
		s := w.site(gated(nil))
		w.serve(s.engine)
		s.post(say, "TOOL_CALL_END")

		front := w.site(nil)
		watching := make(chan received)
		go func() { watching <- front.post(say, "") }()
		r, err := s.engine.Front("a").last(w.Context(), "c")
		require.NoError(w, err)
		front.followed()

		end := s.post(say+`,"forwardedProps":{"cancel":true}`, "")
		require.Equal(w, success, end.last()["outcome"], end.types())
		require.Equal(w, "cancelled", (<-watching).last()["code"])
		r, err = s.engine.Run(w.Context(), r.ID)
		require.NoError(w, err)
		require.Equal(w, Cancelled, r.State)

		// A thread with a cancelled run can be opened.
		require.Equal(w, success, front.post(say, "").last()["outcome"])
	})
}

func TestFrontEndSendsAMessageInPlaceOfAnAnswer(t *testing.T) {
	onOne(t, func(w *world) {
		var c counting
		s := w.site(func(o *Options) {
			asks(&c, 1)(o)
			a := o.Agents["a"]
			a.Provider = apitest.NewScript(apitest.Call(apitest.Use("count", item{"bolts"})), apitest.Say("Fine."))
			o.Agents["a"] = a
		})
		w.serve(s.engine)
		require.Len(w, s.post(say, "").asked(), 1)
		end := s.post(`"messages":[{"id":"u1","role":"user","content":"Count."},{"id":"u2","role":"user","content":"Never mind."}]`, "")
		require.Equal(w, success, end.last()["outcome"], end.types())
		require.Zero(w, c.total.Load())
		require.Equal(w, "Fine.", w.text("c"))
	})
}

// A message to a busy thread is read once by the run under way, whoever sends it again, and whether the client stays.
func TestFrontEndSendsAMessageToABusyThread(t *testing.T) {
	const again = `"messages":[{"id":"u1","role":"user","content":"Count."},{"id":"u2","role":"user","content":"Again."}]`
	for _, stays := range []bool{true, false} {
		t.Run(fmt.Sprint("stays ", stays), func(t *testing.T) {
			onOne(t, func(w *world) {
				gate := make(chan struct{})
				s := w.site(gated(gate))
				w.serve(s.engine)
				s.post(say, "TOOL_CALL_END")
				runs, err := s.engine.Runs(w.Context(), RunsRequest{})
				require.NoError(w, err)

				other := w.site(nil)
				got := make(chan received, 1)
				if stays {
					go func() { got <- other.post(again, "") }()
				} else {
					other.post(again, "RUN_STARTED")
					other.post(again, "RUN_STARTED")
				}
				require.Eventually(w, func() bool {
					list, err := other.engine.Messages(w.Context(), "c", "")
					return err == nil && len(list) == 1 && list[0].Text == "Again."
				}, time.Minute, time.Millisecond)
				close(gate)
				if stays {
					end := <-got
					require.Equal(w, success, end.last()["outcome"], end.types())
				}
				require.Equal(w, Done, w.wait(s.engine, runs[0].ID).State)

				// It has the client's ID, and is not sent back to it or read again.
				end := other.post(again, "")
				require.Equal(w, success, end.last()["outcome"], end.types())
				var texts []string
				for _, m := range w.load("c").Messages() {
					texts = append(texts, string(m.Role)+": "+m.Blocks.Text())
				}
				require.Equal(w, []string{
					"user: Count.", "assistant: ", "user: ", "user: Again.", "assistant: ", "user: ", "assistant: many bolts 0. ",
				}, texts)
				runs, err = s.engine.Runs(w.Context(), RunsRequest{})
				require.NoError(w, err)
				require.Len(w, runs, 1)
				require.Empty(w, w.inbox())
			})
		})
	}
}

// A message that a cancelled run has not read is read by the next run, once.
func TestFrontEndSendsAnUnreadMessageAgain(t *testing.T) {
	onEach(t, func(w *world) {
		const again = `"messages":[{"id":"u1","role":"user","content":"Count."},{"id":"u2","role":"user","content":"Again."}]`
		e := w.engine(nil)
		s := w.site(nil)
		s.post(say, "RUN_STARTED")
		require.Eventually(w, func() bool {
			runs, err := e.Runs(w.Context(), RunsRequest{})
			return err == nil && len(runs) == 1
		}, time.Minute, time.Millisecond)
		s.post(again, "RUN_STARTED")
		require.Eventually(w, func() bool { return len(w.inbox()) == 1 }, time.Minute, time.Millisecond)
		require.NoError(w, e.Front("a").Cancel(w.Context(), "c", "not wanted"))

		change, _ := speaks("a")
		next := w.site(change)
		w.serve(next.engine)
		end := next.post(again, "")
		require.Equal(w, success, end.last()["outcome"], end.types())
		require.Empty(w, w.inbox())
		text := fmt.Sprint(w.load("c").Messages())
		require.Equal(w, 1, strings.Count(text, "Again."), text)
	})
}

func TestFrontEndDropsThePiecesOfALostResponse(t *testing.T) {
	onOne(t, func(w *world) {
		for _, elsewhere := range []bool{false, true} {
			w.again(fmt.Sprint("elsewhere ", elsewhere), func(w *world) { dropsPieces(w, elsewhere) })
		}
	})
}

// dropsPieces ends the execution of a run in the middle of a response. It is continued by the same engine or elsewhere.
func dropsPieces(w *world, elsewhere bool) {
	var hung atomic.Bool
	options := func(o *Options) {
		o.ShutdownTimeout = -1
		o.Agents = map[string]executor.Agent{"a": {Provider: apitest.NewScript(apitest.Func(func(api.Request) apitest.Turn {
			if hung.CompareAndSwap(false, true) {
				return apitest.Say("Half").Hang()
			}
			return apitest.Say("Whole.")
		}).Always())}}
	}
	s := w.site(options)
	stop := w.serve(s.engine)

	got, pieces := make(chan received), make(chan struct{})
	go func() {
		var once sync.Once
		got <- s.read(say, func(kind string) bool {
			if kind == "TEXT_MESSAGE_CONTENT" {
				once.Do(func() { close(pieces) })
			}
			return false
		})
	}()
	<-pieces

	// Who comes in the middle of the response has its pieces too.
	require.Equal(w, "Half", s.post(`"messages":[]`, "TEXT_MESSAGE_CONTENT").text())

	stop()
	next := s.engine
	if elsewhere {
		next = w.engine(options)
	}
	w.serve(next)
	end := <-got
	require.Equal(w, success, end.last()["outcome"], end.types())
	require.Equal(w, "Whole.", w.text("c"))
	shown := strings.Join(end.messages(), "")
	require.NotContains(w, shown, "Half")
	require.Contains(w, end.text()+shown, "Whole.")
	require.Contains(w, end.types(), "MESSAGES_SNAPSHOT")
}

func TestFrontEndStartsNoRunWithoutANewMessage(t *testing.T) {
	onOne(t, func(w *world) {
		change, asked := speaks("a")
		s := w.site(change)
		w.serve(s.engine)
		s.post(say, "")

		// Another request with the same message was under way at the same time.
		started, err := s.engine.Front("a").Start(w.Context(), "c", func(d dag.DAG) dag.DAG { return d })
		require.NoError(w, err)
		require.False(w, started)
		runs, err := s.engine.Runs(w.Context(), RunsRequest{})
		require.NoError(w, err)
		require.Len(w, runs, 1)
		require.Len(w, asked(), 1)
	})
}
