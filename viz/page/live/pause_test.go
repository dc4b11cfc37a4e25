package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// remover is an agent with a tool "remove" that needs approval, and a deferred tool "ask". removed lists the calls that
// were executed.
func remover(turns ...apitest.Turn) (agent executor.Agent, removed *[]string) {
	removed = new([]string)
	remove := executor.Func("remove", "Removes a city.", func(_ context.Context, in place) (string, error) {
		*removed = append(*removed, in.City)
		return in.City + " is gone", nil
	})
	ask := executor.DeferredTool(content.Tool{Name: "ask", Description: "Asks a person.", Schema: `{"type":"object"}`})
	return executor.Agent{
		Provider: apitest.NewScript(turns...), Tools: []dag.Tool{remove, ask},
		Hooks: []executor.Hook{executor.RequireApproval("remove")},
	}, removed
}

func removes(cities ...string) apitest.Turn {
	var calls []content.ToolUse
	for _, c := range cities {
		calls = append(calls, apitest.Use("remove", place{c}))
	}
	return apitest.Call(calls...)
}

// pausing serves a conversation that the agent has begun and paused. The page resumes it.
func pausing(t testing.TB, agent executor.Agent) (*site, *ear, pausedRun) {
	t.Helper()
	s := serve(t, start(), &Options{Resume: agent.ResumeStream})
	e := s.listen(t)
	e.until(isIdle)
	for range s.Watch(agent.Stream(t.Context(), start().User("Remove it."))) {
	}
	return s, e, pausedIn(t, e.until(isIdle))
}

// pausedIn returns the only paused run of the last list in the activities.
func pausedIn(t testing.TB, all []activity) pausedRun {
	t.Helper()
	var last []pausedRun
	for _, a := range all {
		if a.Paused != nil {
			last = *a.Paused
		}
	}
	require.Len(t, last, 1)
	return last[0]
}

// answer answers a call, and returns the status and the body.
func (s *site) answer(t testing.TB, pause, call, reply string) (int, string) {
	t.Helper()
	return s.ask(t, http.MethodPost, "answer", fmt.Sprintf(`{"pause":%q,"call":%q,"reply":%s}`, pause, call, reply))
}

// accepts answers a call, which must be accepted.
func (s *site) accepts(t testing.TB, p pausedRun, call int, reply string) {
	t.Helper()
	status, text := s.answer(t, p.ID, p.Calls[call].ID, reply)
	require.Equal(t, http.StatusAccepted, status, text)
}

// results returns the texts of the tool results of a conversation.
func results(d dag.DAG) (texts []string) {
	for _, m := range d.Messages() {
		for _, r := range m.Blocks.ToolResults() {
			texts = append(texts, r.Content.Text())
		}
	}
	return texts
}

func TestApprovalOnThePageResumesTheRunInPlace(t *testing.T) {
	agent, removed := remover(removes("Rome"), apitest.Say("Done."))
	s, e, p := pausing(t, agent)
	require.Equal(t, []openCall{{ID: p.Calls[0].ID, Tool: "remove", Input: `{"city":"Rome"}`, Asks: asksApproval}}, p.Calls)
	require.Equal(t, s.DAG().Head().Parent(0).ID(), p.Node)
	require.Empty(t, *removed)

	s.accepts(t, p, 0, `{"approve":true}`)
	e.until(func(a activity) bool { return a.State == running })
	e.until(isIdle)
	require.Equal(t, []string{"Rome"}, *removed)
	require.Equal(t, "Done.", s.DAG().Text())
	require.Len(t, s.DAG().Heads(), 1)

	late := s.listen(t).until(isIdle)
	require.Empty(t, *late[0].Paused)
	require.Empty(t, *late[0].Error, "a pause is no error")
}

func TestDenialOnThePageReachesTheModel(t *testing.T) {
	agent, removed := remover(removes("Rome", "Oslo"), apitest.Say("Kept."))
	s, e, p := pausing(t, agent)

	s.accepts(t, p, 1, `{"approve":false,"reason":"too <b>far</b>"}`)
	half := pausedIn(t, e.until(func(a activity) bool { return a.Paused != nil }))
	require.Equal(t, []string{"", "denied: too <b>far</b>"}, []string{half.Calls[0].Answer, half.Calls[1].Answer})
	require.Empty(t, *removed, "the run waits for the other call")

	s.accepts(t, p, 0, `{"approve":true,"arguments":{"city":"Paris"}}`)
	e.until(func(a activity) bool { return a.State == running })
	e.until(isIdle)
	require.Equal(t, []string{"Paris is gone", "Tool call denied: too <b>far</b>"}, results(s.DAG()))
}

func TestDeferredCallTakesItsResultFromThePage(t *testing.T) {
	agent, _ := remover(apitest.Call(apitest.Use("ask", none{}), apitest.Use("ask", none{})), apitest.Say("Thanks."))
	s, e, p := pausing(t, agent)
	require.Equal(t, asksResult, p.Calls[0].Asks)
	s.accepts(t, p, 0, `{"result":"blue"}`)
	s.accepts(t, p, 1, `{"result":"nobody is there","is_error":true}`)
	e.until(func(a activity) bool { return a.State == running })
	e.until(isIdle)
	require.Equal(t, []string{"blue", "nobody is there"}, results(s.DAG()))
}

type none struct{}

func TestCallsBesideAnApprovalWaitForIt(t *testing.T) {
	agent, removed := remover(apitest.Call(apitest.Use("remove", place{"Rome"}), apitest.Use("ask", none{})), apitest.Say("Done."))
	s, e, p := pausing(t, agent)
	require.Len(t, p.Calls, 1, "nobody has decided about the other call")
	s.accepts(t, p, 0, `{"approve":true}`)
	e.until(func(a activity) bool { return a.State == running })
	next := pausedIn(t, e.until(isIdle))
	require.Equal(t, []string{"Rome"}, *removed)
	require.NotEqual(t, p.ID, next.ID)
	require.Equal(t, "ask", next.Calls[0].Tool)
	s.accepts(t, next, 0, `{"result":"red"}`)
	e.until(func(a activity) bool { return a.State == running })
	e.until(isIdle)
	require.Equal(t, "Done.", s.DAG().Text())
}

func TestAnswerIsRefused(t *testing.T) {
	agent, removed := remover(removes("Rome", "Oslo"), apitest.Say("Done."))
	s, _, p := pausing(t, agent)
	call := p.Calls[0].ID
	s.accepts(t, p, 1, `{"approve":false}`)
	for name, c := range map[string]struct {
		pause, call, reply string
		status             int
		code               string
	}{
		"another pause":         {"other", call, `{"approve":true}`, 409, "answered"},
		"another call":          {p.ID, "other", `{"approve":true}`, 404, "unknown_call"},
		"answered before":       {p.ID, p.Calls[1].ID, `{"approve":true}`, 409, "this call was answered before: denied"},
		"a result":              {p.ID, call, `{"result":"x"}`, 400, "the call waits for approval"},
		"no reply":              {p.ID, call, `{}`, 400, "bad_reply"},
		"null":                  {p.ID, call, `null`, 400, "bad_reply"},
		"neither yes nor no":    {p.ID, call, `{"approve":"yes"}`, 400, "bad_reply"},
		"arguments of a denial": {p.ID, call, `{"approve":false,"arguments":{}}`, 400, "bad_reply"},
	} {
		status, text := s.answer(t, c.pause, c.call, c.reply)
		require.Equal(t, c.status, status, name)
		require.Contains(t, text, c.code, name)
	}

	req := s.with(t, http.MethodPost, "answer", fmt.Sprintf(`{"pause":%q,"call":%q,"reply":{"approve":true}}`, p.ID, call))
	req.Header.Set("Authorization", "Bearer wrong")
	res, _ := s.send(t, req)
	require.Equal(t, http.StatusUnauthorized, res.StatusCode)
	require.Empty(t, *removed)
}

func TestAnswerIsOffByDefault(t *testing.T) {
	agent, _ := remover(removes("Rome"))
	s := serve(t, start(), nil)
	e := s.listen(t)
	e.until(isIdle)
	for range s.Watch(agent.Stream(t.Context(), start().User("Remove it."))) {
	}
	p := pausedIn(t, e.until(isIdle))
	status, text := s.answer(t, p.ID, p.Calls[0].ID, `{"approve":true}`)
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, text, "cannot_answer")
}

func TestOneOfTwoAnswersAtOnceWins(t *testing.T) {
	agent, removed := remover(removes("Rome"), apitest.Say("Done."))
	s, e, p := pausing(t, agent)

	var both sync.WaitGroup
	var mu sync.Mutex
	got := map[int]string{}
	for _, reply := range []string{`{"approve":true}`, `{"approve":false}`} {
		req := s.with(t, http.MethodPost, "answer", fmt.Sprintf(`{"pause":%q,"call":%q,"reply":%s}`, p.ID, p.Calls[0].ID, reply))
		both.Go(func() {
			res, text := s.send(t, req)
			mu.Lock()
			defer mu.Unlock()
			got[res.StatusCode] = text
		})
	}
	both.Wait()
	require.Len(t, got, 2)
	require.Contains(t, got, http.StatusAccepted)
	var said refusal
	require.NoError(t, json.Unmarshal([]byte(got[http.StatusConflict]), &said))
	require.Contains(t, []string{"answered", "running"}, said.Code)

	e.until(func(a activity) bool { return a.State == running })
	e.until(isIdle)
	require.LessOrEqual(t, len(*removed), 1)
	require.Equal(t, "Done.", s.DAG().Text())
}

func TestAnswersToAllCallsAtOnceReachTheRun(t *testing.T) {
	agent, _ := remover(removes("Rome", "Oslo", "Bern", "Kyiv"))
	d, c := pauseOf(t, agent)

	for range 200 {
		got := make(chan int, 1)
		s := New(d, &Options{Resume: func(_ context.Context, d dag.DAG, replies ...executor.Reply) iter.Seq2[executor.Event, error] {
			got <- len(replies)
			return func(yield func(executor.Event, error) bool) { yield(executor.End{DAG: d}, nil) }
		}})
		s.SetPaused(Paused{Continuation: c})

		var all sync.WaitGroup
		refused := make([]*refusal, len(c.Calls))
		for i, call := range d.Pending() {
			all.Go(func() {
				refused[i] = s.reply(t.Context(), c.ID, executor.Approved(call), asksApproval, "approved")
			})
		}
		all.Wait()
		require.Equal(t, make([]*refusal, len(c.Calls)), refused)
		require.Equal(t, len(c.Calls), <-got)
		require.NoError(t, s.Close())
	}
}

type resumes = func(context.Context, dag.DAG, ...executor.Reply) runEvents

func TestRunThatCannotBeResumedAsksAgain(t *testing.T) {
	for name, first := range map[string]struct {
		resume resumes
		want   string
	}{
		"an error": {func(_ context.Context, d dag.DAG, _ ...executor.Reply) runEvents {
			return func(yield func(executor.Event, error) bool) {
				yield(executor.End{DAG: d}, errors.New("no key\nfor it"))
			}
		}, "no key\nfor it"},
		"a panic": {func(context.Context, dag.DAG, ...executor.Reply) runEvents {
			panic("no key\nfor it")
		}, "the run panicked: no key\nfor it"},
		"a panic in between": {func(context.Context, dag.DAG, ...executor.Reply) runEvents {
			return func(func(executor.Event, error) bool) { panic("late") }
		}, "the run panicked: late"},
	} {
		t.Run(name, func(t *testing.T) {
			agent, removed := remover(removes("Rome"), apitest.Say("Done."))
			s, e, p := pausing(t, agent)
			s.options.Resume = first.resume
			s.accepts(t, p, 0, `{"approve":true}`)
			all := e.until(isIdle)
			require.Contains(t, strings.Join(story(all), "\n"), "error "+first.want)
			again := pausedIn(t, all)
			require.Equal(t, p, again)

			s.options.Resume = agent.ResumeStream
			s.accepts(t, again, 0, `{"approve":true}`)
			e.until(func(a activity) bool { return a.State == running })
			e.until(isIdle)
			require.Equal(t, []string{"Rome"}, *removed)
		})
	}
}

// A nil pointer in an error has methods that panic. They are called after the run, too.
func TestPanicAfterARunIsShown(t *testing.T) {
	agent, _ := remover(removes("Rome"))
	s, e, p := pausing(t, agent)
	s.options.Resume = func(_ context.Context, d dag.DAG, _ ...executor.Reply) runEvents {
		return func(yield func(executor.Event, error) bool) { yield(executor.End{DAG: d}, (*fs.PathError)(nil)) }
	}
	s.options.Run = runs(apitest.Say("Yes."))

	s.accepts(t, p, 0, `{"approve":true}`)
	require.Contains(t, story(e.until(isIdle)), "error the run panicked: runtime error: invalid memory address or nil pointer dereference")
	s.forks(t, s.DAG().Nodes()[0], "Hi.")
	e.until(func(a activity) bool { return a.State == running })
	e.until(isIdle)
}

func TestStartedCallIsNotOfferedAgainAfterAPanic(t *testing.T) {
	agent, removed := remover(removes("Rome"), apitest.Say("Done."))
	s, e, p := pausing(t, agent)
	s.options.Resume = func(ctx context.Context, d dag.DAG, replies ...executor.Reply) runEvents {
		return func(yield func(executor.Event, error) bool) {
			for event, err := range agent.ResumeStream(ctx, d, replies...) {
				if _, ended := event.(executor.ToolEnd); ended {
					panic("late")
				}
				if !yield(event, err) {
					return
				}
			}
		}
	}

	s.accepts(t, p, 0, `{"approve":true}`)
	e.until(func(a activity) bool { return a.State == running })
	require.Contains(t, strings.Join(story(e.until(isIdle)), "\n"), "error the run panicked: late")
	require.Equal(t, []string{"Rome"}, *removed)
	require.Empty(t, *s.paused(), "approved again, it would be executed twice")
}

func TestPanicOfReplyLeavesItsCallOpen(t *testing.T) {
	agent, _ := remover(removes("Rome"))
	d, c := pauseOf(t, agent)
	tries := 0
	s := serve(t, d, nil)
	s.SetPaused(Paused{c, func(context.Context, executor.Reply) error {
		if tries++; tries == 1 {
			panic("no connection\nto <b>anything</b>")
		}
		return nil
	}})
	p := pausedIn(t, s.listen(t).until(isIdle))

	status, text := s.answer(t, p.ID, p.Calls[0].ID, `{"approve":true}`)
	require.Equal(t, http.StatusConflict, status)
	require.JSONEq(t, `{"error":"not_accepted","message":"the answer panicked: no connection\nto <b>anything</b>"}`, text)
	require.Empty(t, (*s.paused())[0].Calls[0].Answer)
	s.accepts(t, p, 0, `{"approve":true}`)
	require.Equal(t, 2, tries)
}

// pauseOf returns a conversation that has paused, with its continuation.
func pauseOf(t testing.TB, agent executor.Agent) (dag.DAG, executor.Continuation) {
	t.Helper()
	d, err := agent.Run(t.Context(), start().User("Remove it."))
	var paused *executor.PausedError
	require.ErrorAs(t, err, &paused)
	return d, paused.Continuation()
}

func TestPausedRunOfAFileIsShownUntilItIsContinued(t *testing.T) {
	agent, _ := remover(removes("Rome"))
	d, c := pauseOf(t, agent)
	s := serve(t, d, &Options{Resume: agent.ResumeStream})
	s.SetPaused(Paused{Continuation: c})
	e := s.listen(t)
	require.Equal(t, c.ID, pausedIn(t, e.until(isIdle)).ID)

	s.Set(d.Join(dag.New().User("Elsewhere."))) // another branch
	require.Len(t, *s.paused(), 1)
	s.Set(d.CloseTools())
	e.until(func(a activity) bool { return a.Paused != nil && len(*a.Paused) == 0 })
	s.SetPaused(Paused{Continuation: c})
	require.Empty(t, *s.paused(), "its calls are closed")
}

func TestResumedBranchLeavesTheOthers(t *testing.T) {
	agent, _ := remover(removes("Rome"), apitest.Say("Done."))
	d, c := pauseOf(t, agent)
	other := dag.New().User("Elsewhere.")
	s := serve(t, d.Join(other), &Options{Resume: agent.ResumeStream})
	s.SetPaused(Paused{Continuation: c})
	e := s.listen(t)
	p := pausedIn(t, e.until(isIdle))
	s.accepts(t, p, 0, `{"approve":true}`)
	e.until(func(a activity) bool { return a.State == running })
	e.until(isIdle)
	heads := s.DAG().Heads()
	require.Len(t, heads, 2)
	require.Equal(t, other.Head().ID(), heads[1].ID())
	require.Equal(t, "Done.", s.DAG().WithHeads(heads[0]).Text())
}

func TestReplyReceivesEachAnswer(t *testing.T) {
	agent, _ := remover(removes("Rome", "Oslo"))
	d, c := pauseOf(t, agent)
	var got []string
	paused := Paused{c, func(_ context.Context, reply executor.Reply) error {
		if len(got) == 1 {
			return errors.New("another result was accepted before")
		}
		text, err := reply.MarshalJSON()
		got = append(got, string(text))
		return err
	}}
	s := serve(t, d, nil)
	s.SetPaused(paused)
	e := s.listen(t)
	p := pausedIn(t, e.until(isIdle))

	s.accepts(t, p, 0, `{"approve":true}`)
	want, err := executor.Approved(d.Pending()[0]).MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, []string{string(want)}, got)
	require.Equal(t, p.Calls[0].ID, d.Pending()[0].Key.String())
	status, text := s.answer(t, p.ID, p.Calls[1].ID, `{"approve":true}`)
	require.Equal(t, http.StatusConflict, status)
	require.JSONEq(t, `{"error":"not_accepted","message":"another result was accepted before"}`, text)

	s.SetPaused(paused)
	now := (*s.paused())[0]
	require.Equal(t, []string{"approved", ""}, []string{now.Calls[0].Answer, now.Calls[1].Answer})
}

func TestCallsOfASubAgentNameIt(t *testing.T) {
	inner, removed := remover(removes("Rome"), apitest.Say("It is gone."))
	outer := executor.Agent{
		Provider: apitest.NewScript(apitest.Call(apitest.Use("helper", executor.Task{Task: "Go."})), apitest.Say("Done.")),
		Tools:    []dag.Tool{executor.SubAgent("helper", "Helps.", inner)},
	}
	s, e, p := pausing(t, outer)
	require.Equal(t, "helper", p.Calls[0].Path)
	s.accepts(t, p, 0, `{"approve":true}`)
	e.until(func(a activity) bool { return a.State == running })
	e.until(isIdle)
	require.Equal(t, []string{"Rome"}, *removed)
	require.Equal(t, "Done.", s.DAG().Text())
}
