package live

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
)

type place struct {
	City string `json:"city"`
}

// forecast is a tool that says how far it is, waits for gate, and fails for Atlantis.
func forecast(gate <-chan struct{}) executor.Tool {
	return executor.Func("get_weather", "The weather in a city.", func(ctx context.Context, in place) (string, error) {
		if err := executor.Progress(ctx, "asking "+in.City); err != nil {
			return "", err
		}
		select {
		case <-gate:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if in.City == "Atlantis" {
			return "", errors.New("it sank")
		}
		return "22°C", nil
	})
}

func opened() chan struct{} {
	gate := make(chan struct{})
	close(gate)
	return gate
}

// looks is a model that thinks, calls the tool once for each city and then answers.
func looks(answer string, cities ...string) *apitest.Script {
	calls := make([]content.ToolUse, len(cities))
	for i, c := range cities {
		calls[i] = apitest.Use("get_weather", place{c})
	}
	return apitest.NewScript(
		apitest.Say("Let me look.").Call(calls...).Think("Which city?", "sig").Usage(content.Usage{Input: 10, CacheRead: 5, Output: 3}),
		apitest.Say(answer).Usage(content.Usage{Input: 20, Output: 4}))
}

// after returns what a run of the agent after d comes to, watched by s.
func (s *site) watches(t testing.TB, events iter.Seq2[executor.Event, error]) dag.DAG {
	t.Helper()
	var d dag.DAG
	for e, err := range s.Watch(events) {
		if end, ok := e.(executor.End); ok {
			require.NoError(t, err)
			d = end.DAG
		}
	}
	return d
}

func TestNewListenerGetsTheWholeState(t *testing.T) {
	d := talk()
	s := serve(t, d, nil)
	e := s.listen(t)
	got, ok := e.next()
	require.True(t, ok)
	require.Equal(t, "patch", got.name)
	require.True(t, e.take(got.data).Reset)
	require.Len(t, e.nodes, 4)
	require.Equal(t, []string{d.Head().ID().String()}, e.ends())
	got, ok = e.next()
	require.True(t, ok)
	require.Equal(t, event{name: "activity", data: `{"state":"idle","begin":true,"error":"","paused":[],"origin":{},"canRun":false}`}, got)
}

// story is the activities in a line each, without times, and without those that only say that a message begins: when
// the page has to forget a message that landed depends on how fast it is drawn.
func story(all []activity) []string {
	var lines []string
	for _, a := range all {
		var parts []string
		say := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }

		if a.State != "" {
			say("%s", a.State)
		}
		if a.Turn > 0 {
			say("turn %d", a.Turn)
		}
		if a.Begin {
			say("begin")
		}
		if a.Text != "" {
			say("text %q", a.Text)
		}
		if a.Thinking != "" {
			say("thinking %q", a.Thinking)
		}

		for _, c := range a.Tools {
			say("tool %s %s%s %q ended=%v failed=%v", c.ID, c.Tool, c.Input, c.Note, c.Ended, c.Failed)
		}

		if a.Tokens != nil {
			say("tokens %d/%d", a.Tokens.Input, a.Tokens.Output)
		}
		if a.Stop != "" {
			say("stop %s", a.Stop)
		}
		if a.Error != nil && *a.Error != "" {
			say("error %s", *a.Error)
		}

		if line := strings.Join(parts, ", "); line != "begin" {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestRunIsPublishedAsItContinues(t *testing.T) {
	d := start().Tools(forecast(opened())).User("Weather in Atlantis?")
	s := serve(t, d, nil)
	e := s.listen(t)
	e.until(isIdle)

	after := s.watches(t, executor.Stream(t.Context(), looks("It sank.", "Atlantis"), d))
	got := story(e.until(isIdle))
	require.Equal(t, []string{
		"running, begin",
		"turn 1",
		`thinking "Which "`, `thinking "city?"`,
		`text "Let "`, `text "me "`, `text "look."`,
		`tool 1.2 get_weather{"city":"Atlantis"} "" ended=false failed=false`,
		`tool 1.2 get_weather{"city":"Atlantis"} "asking Atlantis" ended=false failed=false`,
		`tool 1.2 get_weather{"city":"Atlantis"} "asking Atlantis" ended=true failed=true`,
		"tokens 15/3",
		"turn 2",
		`text "It "`, `text "sank."`,
		"tokens 35/7",
		"begin, stop end_turn",
		"idle",
	}, got)

	e.knows(after)
	require.Equal(t, []string{after.Head().ID().String()}, e.ends())
	require.True(t, dag.Equal(after, s.DAG()))
}

func TestLateListenerGetsTheRunningTurn(t *testing.T) {
	gate := make(chan struct{})
	tool := forecast(gate)
	d := start().Tools(tool).User("Weather in Tokyo?")
	s := serve(t, d, nil)

	done := make(chan dag.DAG)
	at := make(chan struct{})
	go func() {
		var end dag.DAG
		for e := range s.Watch(executor.Stream(context.Background(), looks("Warm.", "Tokyo"), d)) {
			switch e := e.(type) {
			case executor.ToolUpdate:
				close(at)
			case executor.End:
				end = e.DAG
			}
		}
		done <- end
	}()

	// The listener comes while the tool runs.
	<-at
	e := s.listen(t)
	all := e.until(func(activity) bool { return true })
	require.Equal(t, []string{
		`running, turn 1, begin, tool 1.2 get_weather{"city":"Tokyo"} "asking Tokyo" ended=false failed=false`,
	}, story(all))
	require.NotEmpty(t, all[0].Tools[0].Started)

	close(gate)
	e.until(isIdle)
	e.knows(<-done)
}

func TestWatchYieldsWhatTheRunYields(t *testing.T) {
	d := start().User("Hi")
	s := serve(t, d, nil)

	failure := errors.New("down")
	seen := 0
	events := func(yield func(executor.Event, error) bool) {
		for i := range 3 {
			if !yield(executor.TurnStart{Turn: i + 1}, nil) {
				return
			}
		}
		yield(executor.End{DAG: d}, failure)
	}

	for e, err := range s.Watch(events) {
		seen++
		if seen < 4 {
			require.Equal(t, executor.TurnStart{Turn: seen}, e)
			require.NoError(t, err)
			continue
		}
		require.IsType(t, executor.End{}, e)
		require.Equal(t, failure, err)
	}
	require.Equal(t, 4, seen)

	for range s.Watch(events) {
		break
	}

	e := s.listen(t)
	require.Equal(t, []string{"idle, turn 1, begin, error down"}, story(e.until(func(activity) bool { return true })))
}

func TestOtherHeadsStayBesideARun(t *testing.T) {
	question := start().User("Name a tree.")
	oak, pine := question.Assistant("An oak."), question.Assistant("A pine.")
	s := serve(t, oak.Join(pine), nil)
	after := s.watches(t, executor.Stream(t.Context(), apitest.NewScript(apitest.Say("Quercus.")), oak.User("In Latin?")))
	require.True(t, dag.Equal(after.Join(pine), s.DAG()), "the run goes on from the first head, and takes its place")

	apart := s.watches(t, executor.Stream(t.Context(), apitest.NewScript(apitest.Say("A fir.")), question))
	require.True(t, dag.Equal(after.Join(pine, apart), s.DAG()))
}

func TestSetShowsAnotherConversation(t *testing.T) {
	s := serve(t, talk(), nil)
	e := s.listen(t)
	e.until(isIdle)
	other := dag.New().User("Another.")
	s.Set(other)
	e.knows(other)
	require.Len(t, e.nodes, 1)
}

func TestSetKeepsTheRunInProgress(t *testing.T) {
	d := talk()
	reread := func(d dag.DAG) dag.DAG { // as from a file: the nodes are others, and the same
		var b strings.Builder
		require.NoError(t, d.Write(&b))
		back, err := dag.Read(strings.NewReader(b.String()))
		require.NoError(t, err)
		return back
	}

	s := serve(t, d, nil)
	asked := d.User("Go on.")
	branch := d.Back(1).User("Meanwhile.")

	var after, further dag.DAG
	for e := range s.Watch(executor.Stream(t.Context(), apitest.NewScript(apitest.Say("Yes.")), asked)) {
		switch e := e.(type) {
		case executor.RunStart:
			s.Set(reread(d.Join(branch)))
			require.True(t, dag.Equal(e.DAG.Join(branch), s.DAG()))
			s.Set(reread(branch.Join(asked)))
			require.True(t, dag.Equal(branch.Join(e.DAG), s.DAG()))
		case executor.TurnEnd:
			s.Set(reread(branch.Join(asked)))
			require.True(t, dag.Equal(branch.Join(e.DAG), s.DAG()))
			further = e.DAG.User("A further word.")
			s.Set(reread(branch.Join(further)))
			require.True(t, dag.Equal(branch.Join(further), s.DAG()))
		case executor.End:
			after = e.DAG
		}
	}

	require.True(t, dag.Equal(branch.Join(further, after), s.DAG()))
}

func TestAConversationWithAnErrorIsNoEnd(t *testing.T) {
	s := serve(t, talk(), nil)
	e := s.listen(t)
	e.until(isIdle)
	s.Set(talk().User(""))
	require.Equal(t, []string{"error dag: User: the message is empty"}, story(e.until(func(a activity) bool { return a.Error != nil })))
}

func TestAReportStaysUntilItIsTakenAway(t *testing.T) {
	s := serve(t, talk(), nil)
	s.Report(errors.New("the file is broken"))
	e := s.listen(t)
	require.Equal(t, []string{"idle, begin, error the file is broken"}, story(e.until(isIdle)))
	s.Report(nil)
	all := e.until(func(activity) bool { return true })
	require.Empty(t, *all[0].Error)

	s.Report(errors.New("the file is gone"))
	s.watches(t, executor.Stream(t.Context(), apitest.NewScript(apitest.Say("Yes.")), s.DAG().User("Go on.")))
	for range s.Watch(executor.Agent{}.Stream(t.Context(), s.DAG())) {
	}
	late := s.listen(t)
	require.Equal(t, []string{"idle, turn 1, begin, stop end_turn, error executor: the agent has no provider\nthe file is gone"},
		story(late.until(isIdle)), "a run does not take it away")
}

// runs is what Options.Run takes, of a script.
func runs(turns ...apitest.Turn) func(context.Context, dag.DAG) iter.Seq2[executor.Event, error] {
	script := apitest.NewScript(turns...)
	return func(ctx context.Context, d dag.DAG) iter.Seq2[executor.Event, error] {
		return executor.Stream(ctx, script, d)
	}
}

func TestAForkIsANewHead(t *testing.T) {
	d := talk()
	var saved []dag.DAG
	s := serve(t, d, &Options{
		Run:  runs(apitest.Say("A pine.")),
		Save: func(d dag.DAG) error { saved = append(saved, d); return nil },
	})
	e := s.listen(t)
	e.until(isIdle)
	oak := d.Nodes()[2]
	s.forks(t, oak, "Another one.")
	e.until(isIdle)
	fork := d.At(oak.ID()).User("Another one.").Append(node.RunStart{}).Assistant("A pine.").Stop(content.StopEndTurn)
	want := d.Join(fork)
	require.True(t, dag.Equal(want, s.DAG()))
	require.Same(t, d.Head(), s.DAG().Heads()[0], "the old head is untouched")
	require.Len(t, saved, 2)
	require.True(t, dag.Equal(want, saved[1]))
	e.knows(s.DAG())
	require.Equal(t, []string{d.Head().ID().String(), s.DAG().Heads()[1].ID().String()}, e.ends())
}

func TestContinuingAHeadMovesIt(t *testing.T) {
	d := talk()
	s := serve(t, d, &Options{Run: runs(apitest.Say("A pine."))})
	e := s.listen(t)
	e.until(isIdle)
	s.forks(t, d.Head(), "Another one.")
	e.until(isIdle)
	require.True(t, dag.Equal(d.User("Another one.").Append(node.RunStart{}).Assistant("A pine.").Stop(content.StopEndTurn), s.DAG()))
}

func TestForkIsRefused(t *testing.T) {
	d := talk()
	body := func(at, text string) string { return fmt.Sprintf(`{"at":%q,"text":%q}`, at, text) }
	id := d.Head().ID().String()

	s := serve(t, d, nil)
	status, text := s.ask(t, http.MethodPost, "fork", body(id, "Hi"))
	require.Equal(t, http.StatusForbidden, status)
	require.JSONEq(t, `{"error":"cannot_run","message":"running is off: the program that serves this page does not allow it"}`, text)

	s = serve(t, d, &Options{Run: runs(apitest.Hang())})
	for name, c := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"no body":      {"", 400, "bad_body"},
		"no object":    {"[]", 400, "bad_body"},
		"cut":          {`{"at":"`, 400, "bad_body"},
		"more":         {body(id, "Hi") + "{}", 400, "bad_body"},
		"no text":      {body(id, " \n"), 400, "no_text"},
		"no id":        {`{"at":"../../etc/passwd\u0000","text":"Hi"}`, 404, "unknown_node"},
		"unknown":      {body("01890000-0000-7000-8000-000000000000", "Hi"), 404, "unknown_node"},
		"too large":    {body(id, strings.Repeat("a", maxBody)), 413, "too_large"},
		"no text, big": {body(id, strings.Repeat(" ", 1000)), 400, "no_text"},
	} {
		status, text := s.ask(t, http.MethodPost, "fork", c.body)
		require.Equal(t, c.status, status, name)
		require.Contains(t, text, `"error":"`+c.code+`"`, name)
	}

	require.True(t, dag.Equal(d, s.DAG()), "nothing was changed")
}

func TestOneRunAtATimeAndStopEndsIt(t *testing.T) {
	d := talk()
	s := serve(t, d, &Options{Run: runs(apitest.Say("Well, ").Hang())})
	e := s.listen(t)
	e.until(isIdle)
	s.forks(t, d.Head(), "Go on.")
	e.until(func(a activity) bool { return strings.HasPrefix(a.Text, "Well") })

	status, text := s.ask(t, http.MethodPost, "fork", fmt.Sprintf(`{"at":%q,"text":"Me too"}`, d.Head().ID()))
	require.Equal(t, http.StatusConflict, status)
	require.JSONEq(t, `{"error":"running","message":"another run is in progress"}`, text)

	status, _ = s.ask(t, http.MethodPost, "stop", "{}")
	require.Equal(t, http.StatusAccepted, status)
	got := story(e.until(isIdle))
	require.Equal(t, []string{"begin, stop cancelled, error context canceled", "idle"}, got[len(got)-2:])

	status, _ = s.ask(t, http.MethodPost, "stop", "{}")
	require.Equal(t, http.StatusAccepted, status, "what is over stays over")
}

func TestARunOfTheProgramCannotBeStopped(t *testing.T) {
	d := talk()
	s := serve(t, d, &Options{Run: runs()})
	for range s.Watch(executor.Stream(t.Context(), apitest.NewScript(apitest.Say("Hm.")), d.User("Go on."))) {
		status, text := s.ask(t, http.MethodPost, "stop", "{}")
		require.Equal(t, http.StatusConflict, status)
		require.Contains(t, text, "not_ours")
		status, _ = s.ask(t, http.MethodPost, "fork", fmt.Sprintf(`{"at":%q,"text":"Me too"}`, d.Head().ID()))
		require.Equal(t, http.StatusConflict, status)
		break
	}
}

func TestErrorOfARunIsShown(t *testing.T) {
	type seq = iter.Seq2[executor.Event, error]

	for name, c := range map[string]struct {
		run  func(context.Context, dag.DAG) seq
		save func(dag.DAG) error
		want string
	}{
		"a panic": {
			run:  func(context.Context, dag.DAG) seq { panic("out of paper") },
			want: "the run panicked: out of paper",
		},
		"a panic in between": {
			run:  func(context.Context, dag.DAG) seq { return func(func(executor.Event, error) bool) { panic("late") } },
			want: "the run panicked: late",
		},
		"an ended goroutine": {
			run: func(context.Context, dag.DAG) seq {
				runtime.Goexit()
				return nil
			},
			want: "the run ended its goroutine",
		},
		"no sequence": {
			run:  func(context.Context, dag.DAG) seq { return nil },
			want: "the run panicked: runtime error: invalid memory address or nil pointer dereference",
		},

		"a model that failed": {run: runs(apitest.Fail(errors.New("down"))), want: "down"},
		"a refusal": {
			run:  func(ctx context.Context, d dag.DAG) seq { return executor.Agent{}.Stream(ctx, d) },
			want: "executor: the agent has no provider",
		},

		"a full disk": {
			run: runs(apitest.Say("Yes.")), save: func(dag.DAG) error { return errors.New("no space left") },
			want: "not saved: no space left",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, talk(), &Options{Run: c.run, Save: c.save})
			e := s.listen(t)
			e.until(isIdle)

			s.forks(t, s.DAG().Head(), "Go on.")
			got := story(e.until(isIdle))
			require.Contains(t, strings.Join(got, "\n"), "error "+c.want)

			s.forks(t, s.DAG().Heads()[0], "And again.") // it can go on
			all := e.until(isIdle)
			if all[0].State == running {
				require.Empty(t, *all[0].Error, "what went wrong before is over")
			}
		})
	}
}

func TestRunContinuesAfterAPanicOfSave(t *testing.T) {
	s := serve(t, talk(), &Options{Run: runs(apitest.Say("Yes.")), Save: func(dag.DAG) error { panic("no space left") }})
	e := s.listen(t)
	e.until(isIdle)
	s.forks(t, s.DAG().Head(), "Go on.")
	require.Contains(t, story(e.until(isIdle)), "error not saved: the store panicked: no space left")

	heads := s.DAG().Heads()
	require.Equal(t, content.StopEndTurn, heads[len(heads)-1].Payload().(node.StopReason).Reason, "the run came to its end")
}

func TestPanicOfTheProgramIsARefusal(t *testing.T) {
	d := talk()
	at := d.Nodes()[2].ID().String()
	s := serve(t, d.WithSource(node.Source{NewID: func() node.ID { panic("no more IDs") }}), &Options{
		Run: runs(), Request: func(dag.DAG, *node.Node) ([]byte, error) { panic("no such key") },
	})
	status, text := s.ask(t, http.MethodGet, "request?node="+at, "")
	require.Equal(t, http.StatusNotFound, status)
	require.JSONEq(t, `{"error":"no_request","message":"the request panicked: no such key"}`, text)

	status, text = s.ask(t, http.MethodPost, "fork", `{"at":"`+at+`","text":"Go on."}`)
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.JSONEq(t, `{"error":"cannot_fork","message":"the change panicked: no more IDs"}`, text)
	require.Len(t, s.DAG().Heads(), 1)
}

func TestCloseEndsTheRunAndAllListeners(t *testing.T) {
	d := talk()
	s := serve(t, d, &Options{Run: runs(apitest.Say("Well, ").Hang())})
	e := s.listen(t)
	e.until(isIdle)
	s.forks(t, d.Head(), "Go on.")
	e.until(func(a activity) bool { return a.Text != "" })
	require.NoError(t, s.Close())
	for ok := true; ok; {
		_, ok = e.next()
	}
	require.Equal(t, content.StopCancelled, s.DAG().Head().Payload().(node.StopReason).Reason)
	require.NoError(t, s.Close(), "twice is once")
	for _, at := range []struct{ method, path, body string }{
		{http.MethodGet, "events", ""}, {http.MethodPost, "fork", fmt.Sprintf(`{"at":%q,"text":"Hi"}`, d.Head().ID())},
	} {
		status, text := s.ask(t, at.method, at.path, at.body)
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Contains(t, text, `"error":"closed"`)
	}
}

func TestCopies(t *testing.T) {
	d := talk().SubGraph("aside", dag.New().User("Psst."))
	d = d.Join(d.Back(1).User("Another question."))
	s := serve(t, d, nil)
	var diagram strings.Builder
	require.NoError(t, viz.Mermaid(&diagram, d, nil))
	status, text := s.ask(t, http.MethodGet, "copy?as=mermaid", "")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, diagram.String(), text)

	status, text = s.ask(t, http.MethodGet, "copy?as=json", "")
	require.Equal(t, http.StatusOK, status)
	back, err := dag.Read(strings.NewReader(text))
	require.NoError(t, err)
	require.True(t, dag.Equal(d, back))

	status, text = s.ask(t, http.MethodGet, "copy?as=exe", "")
	require.Equal(t, http.StatusBadRequest, status)
	require.JSONEq(t, `{"error":"unknown_form","message":"\"exe\" is not one of mermaid, json"}`, text)
}

func TestRequestIsWhatANodeAnswered(t *testing.T) {
	d := talk()
	s := serve(t, d, &Options{Request: func(before dag.DAG, answer *node.Node) ([]byte, error) {
		if answer.ID() != d.Nodes()[2].ID() {
			return nil, errors.New("it was deleted")
		}
		return fmt.Appendf(nil, `{"asked":%q}`, before.Head().Payload().(node.Message).Blocks.Text()), nil
	}})
	status, text := s.ask(t, http.MethodGet, "request?node="+d.Nodes()[2].ID().String(), "")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, `{"asked":"Name a tree."}`, text)
	status, text = s.ask(t, http.MethodGet, "request?node="+d.Nodes()[1].ID().String(), "")
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, text, "the node is not a response of a model")
	s.Set(d.User("And?").Assistant("And."))
	status, text = s.ask(t, http.MethodGet, "request?node="+s.DAG().Head().ID().String(), "")
	require.Equal(t, http.StatusNotFound, status)
	require.JSONEq(t, `{"error":"no_request","message":"it was deleted"}`, text)

	s = serve(t, d, nil)
	status, text = s.ask(t, http.MethodGet, "request?node="+d.Nodes()[2].ID().String(), "")
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, text, "no_request")
}

func TestPolicyDecidesWhatTheCacheCouldHold(t *testing.T) {
	answered := func(text string, read int64) node.Message {
		return node.Message{Role: content.Assistant, Blocks: content.Words(text), Answer: node.Answer{
			API: "openai-responses", Model: "gpt-5.6", Usage: content.Usage{Input: 5000, CacheRead: read},
		}}
	}
	d := start().User("Hi.").Append(answered("Hello.", 0)).User("And now?").Append(answered("Now.", 0))
	predicted := func(o *Options) string {
		got, ok := serve(t, d, o).listen(t).next()
		require.True(t, ok)
		return got.data
	}
	require.Contains(t, predicted(nil), `"predicted":5000`)
	off := &Options{Cache: func(dag.DAG) api.Cache { return api.CacheOff }}
	require.NotContains(t, predicted(off), `"predicted":5000`)
}

func TestAnotherResultHasNoWholeOutput(t *testing.T) {
	d := start().User("Weather in Oslo?").Assistant("", content.ToolUse{ID: "a", Name: "get_weather"})
	d = d.CloseTools(node.ToolExecution{Result: content.Words("22…"), Full: content.Words("22°C and dry")})
	require.NoError(t, d.Err())
	execution := d.Head().Parents()[0]

	changed, _, err := withResult("3°C", false)(d, execution)
	require.NoError(t, err)
	again := changed.Heads()[1].Parents()[0].Payload().(node.ToolExecution)
	require.Equal(t, "3°C", again.Result.Text())
	require.Zero(t, again.Full.Len(), "it belongs to the old result")
}

func TestAnotherResultOfACallIsANewBranch(t *testing.T) {
	d := start().Tools(forecast(opened())).User("Weather in Oslo and Rome?")
	d, err := executor.Run(t.Context(), looks("Both are warm.", "Oslo", "Rome"), d)
	require.NoError(t, err)
	var rome *node.Node
	for _, n := range d.Nodes() {
		if e, ok := n.Payload().(node.ToolExecution); ok && e.Index == 3 {
			rome = n
		}
	}

	var asked dag.DAG
	s := serve(t, d, &Options{Run: func(ctx context.Context, d dag.DAG) iter.Seq2[executor.Event, error] {
		asked = d
		return runs(apitest.Say("Rome is cold."))(ctx, d)
	}})
	e := s.listen(t)
	e.until(isIdle)
	status, text := s.ask(t, http.MethodPost, "fork", fmt.Sprintf(`{"at":%q,"result":"3°C <b>","failed":true}`, rome.ID()))
	require.Equal(t, http.StatusAccepted, status, text)
	e.until(isIdle)

	require.Equal(t, []string{"22°C", "3°C <b>"}, results(asked))
	last := asked.Messages()[len(asked.Messages())-1].Blocks.ToolResults()
	require.Equal(t, []bool{false, true}, []bool{last[0].IsError, last[1].IsError})
	require.Empty(t, s.DAG().WithHeads(s.DAG().Heads()[1]).Validate())
	heads := s.DAG().Heads()
	require.Len(t, heads, 2)
	require.Equal(t, d.Head().ID(), heads[0].ID(), "the branch before is untouched")
	require.Equal(t, "Rome is cold.", s.DAG().WithHeads(heads[1]).Text())

	for _, n := range []*node.Node{d.Head(), d.Nodes()[0]} {
		status, text = s.ask(t, http.MethodPost, "fork", fmt.Sprintf(`{"at":%q,"result":"x"}`, n.ID()))
		require.Equal(t, http.StatusUnprocessableEntity, status)
		require.Contains(t, text, "no executed call")
	}
}
