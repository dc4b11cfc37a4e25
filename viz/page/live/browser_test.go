package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz/internal/viztest"
)

// The test in this file opens the page in a browser and watches a run there. It runs where PLAIT_BROWSER is set, to 1
// for Chromium or to firefox, and then fails where node, its packages or the browser are missing
// (.ci/browser/install.sh installs them).

// browser is a page in a browser, which is used step by step.
type browser struct {
	t    *testing.T
	in   *json.Encoder
	out  *bufio.Scanner
	stop func()
	quit func(failed string) // stop, where requests have failed with that status
}

func open(t *testing.T, s *Server) *browser {
	t.Helper()
	viztest.BrowserCheck(t, "page", "PLAIT_BROWSER")
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return openAt(t, s.URL(server.Listener.Addr()))
}

// openAt opens an address in a browser of its own.
func openAt(t *testing.T, url string) *browser {
	t.Helper()
	cmd := exec.Command("node", "live.mjs", url)
	cmd.Dir = viztest.BrowserCheck(t, "page", "PLAIT_BROWSER")
	cmd.Stderr = os.Stderr

	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start(), "PLAIT_BROWSER=1 is set, but node is missing")

	b := &browser{t: t, in: json.NewEncoder(in), out: bufio.NewScanner(out)}
	b.out.Buffer(nil, 1<<20)

	b.quit = func(failed string) {
		require.NoError(t, in.Close())
		require.True(t, b.out.Scan())
		var did struct{ Sins []string }
		require.NoError(t, json.Unmarshal(b.out.Bytes(), &did))
		for _, sin := range did.Sins {
			require.True(t, failed != "" && strings.Contains(sin, "status of "+failed), "the page did what it must not do: %s", sin)
		}
		require.NoError(t, cmd.Wait())
	}

	b.stop = func() { b.quit("") }
	b.heard()
	return b
}

func (b *browser) heard() {
	b.t.Helper()
	require.True(b.t, b.out.Scan(), "the browser is gone (.ci/browser/install.sh installs what is missing)")
	var said struct {
		OK  bool
		Why string
	}
	require.NoError(b.t, json.Unmarshal(b.out.Bytes(), &said))
	require.True(b.t, said.OK, said.Why)
}

// does lets the page do a step, which has a name and a value in turn.
func (b *browser) does(step ...string) {
	b.t.Helper()
	what := map[string]string{}
	for i := 0; i < len(step); i += 2 {
		what[step[i]] = step[i+1]
	}
	require.NoError(b.t, b.in.Encode(what))
	b.heard()
}

// gated is a model whose answers come piece by piece, as gate lets them.
type gated struct {
	*apitest.Script
	gate chan struct{}
}

func (g gated) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		for e, err := range g.Script.Stream(ctx, req) {
			if _, piece := e.(api.Delta); piece {
				select {
				case <-g.gate:
				case <-ctx.Done():
				}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func TestARunInARealBrowser(t *testing.T) {
	tools, gate := make(chan struct{}), make(chan struct{})
	model := gated{apitest.NewScript(
		apitest.Answer(content.Text{Text: "Let me <b>look</b>."}).Call(apitest.Use("get_weather", place{"Tokyo"})),
		apitest.Say("Tokyo has 22°C."),
		apitest.Say("Paris rains."),
		apitest.Say("Endless words").Hang(),
		apitest.Fail(&api.Error{Kind: api.ErrAuth, Message: "no such key"}),
	), gate}

	d := start().Tools(forecast(tools)).User("Weather in Tokyo?")
	s := New(d, &Options{Title: "The weather", Run: func(ctx context.Context, d dag.DAG) iter.Seq2[executor.Event, error] {
		return executor.Stream(ctx, model, d)
	}})

	b := open(t, s)
	b.does("wait", "h1", "text", "The weather")
	b.does("wait", ".row", "text", "Weather in Tokyo?")
	b.does("wait", "#state", "text", "idle")

	done := make(chan struct{})
	go func() {
		defer close(done)
		for range s.Watch(executor.Stream(context.Background(), model, d)) {
		}
	}()

	b.does("wait", "#state", "text", "running, turn 1") // text as it is streamed
	gate <- struct{}{}
	b.does("wait", "#now .said", "text", "Let")
	gate <- struct{}{}
	gate <- struct{}{}
	b.does("wait", "#now .said", "text", "Let me <b>look</b>.")
	gate <- struct{}{}

	b.does("wait", "#now .tool", "text", "get_weather") // a tool that runs, and for how long
	b.does("wait", "#now .tool", "text", "asking Tokyo")
	b.does("wait", "#now .elapsed", "text", "1 s")

	b.does("wait", ".row", "text", "Let me <b>look</b>.") // a node that landed
	b.does("wait", "#problems", "text", "no problems")    // its call waits, as it should
	b.does("gone", "#now .said")

	close(tools)
	for range 2 { // words of the answer
		gate <- struct{}{}
	}
	b.does("wait", "#now .said", "text", "Tokyo has")
	gate <- struct{}{}
	<-done

	b.does("wait", "#state", "text", "idle") // the end
	b.does("gone", "#now")
	b.does("wait", ".row", "text", "Tokyo has 22°C.")
	b.does("wait", ".row", "text", "stop end_turn")
	b.does("gone", "#heads") // there is one

	if path := os.Getenv("PLAIT_SHOTS"); path != "" {
		b.does("picture", filepath.Join(path, "live.png"))
	}

	b.does("click", ".row", "text", "Tokyo has 22°C.") // a fork
	b.does("fill", ".fork textarea", "value", "And in Paris?")
	b.does("click", ".fork button")
	gate <- struct{}{}
	b.does("wait", "#now .said", "text", "Paris")
	gate <- struct{}{}
	b.does("wait", ".row", "text", "Paris rains.")
	b.does("wait", "#state", "text", "idle")
	require.Len(t, s.DAG().Heads(), 2)
	b.does("wait", "#heads")

	b.does("click", ".row", "text", "Paris rains.") // a stop
	b.does("fill", ".fork textarea", "value", "Talk on.")
	b.does("click", ".fork button")
	gate <- struct{}{}
	b.does("wait", "#now .said", "text", "Endless")
	gate <- struct{}{}
	b.does("click", "#stop")
	b.does("wait", "#state", "text", "idle")
	b.does("gone", "#stop")
	b.does("wait", "#now", "text", "context canceled")

	b.does("click", ".row", "text", "Paris rains.") // an error
	b.does("fill", ".fork textarea", "value", "Once more.")
	b.does("click", ".fork button")
	b.does("wait", "#now", "text", "no such key")
	require.Len(t, s.DAG().Heads(), 4)
	b.stop()
}

// hostile is text that must stay text on the page.
const hostile = `<img src=x onerror="document.title='pwned'"><script>alert(1)</script>`

func TestAPauseInARealBrowser(t *testing.T) {
	long := hostile + strings.Repeat("word ", 6000) + "the last word"
	agent, removed := remover(
		removes(long, "Oslo"),
		apitest.Call(apitest.Use("ask", none{}), apitest.Use("remove", place{"Rome"})),
		apitest.Say("All done."))
	agent.Hooks = []executor.Hook{{Before: func(_ context.Context, c executor.Call) (executor.Decision, error) {
		if c.Name != "remove" {
			return executor.Decision{}, nil
		}
		return executor.AskApproval("It cannot be undone. " + hostile), nil
	}}}

	s := New(start(), &Options{Title: "Cities", Resume: agent.ResumeStream})
	viztest.BrowserCheck(t, "page", "PLAIT_BROWSER")
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(func() { require.NoError(t, s.Close()) })

	b := openAt(t, s.URL(server.Listener.Addr()))
	other := openAt(t, s.URL(server.Listener.Addr()))
	for range s.Watch(agent.Stream(context.Background(), start().User("Remove some cities."))) {
	}

	b.does("wait", "#state", "text", "paused")
	b.does("wait", "#waiting h2", "text", "2 calls wait")
	b.does("wait", "#waiting .all", "text", "Approve all 2")
	b.does("wait", ".ask", "text", hostile) // as text
	b.does("readable", ".ask")
	for _, size := range []string{"390x844", "1400x900"} {
		b.does("size", size)
		b.does("inside", ".ask, .ask pre, .ask form")
	}

	b.does("size", "390x844") // in another view, a button says that calls wait
	b.does("click", "#views button", "text", "Calls")
	b.does("gone", "#waiting")
	b.does("click", "#to-waiting", "text", "2 calls wait")
	b.does("wait", "#waiting h2", "text", "2 calls wait")
	b.does("inside", "#top, #top button")
	b.does("size", "1400x900")

	b.does("click", ".ask .more") // all of a long text
	b.does("wait", ".ask pre", "text", "the last word")
	shots(b, "paused")

	b.does("click", "#outline")
	b.does("press", "a") // by keyboard alone: approve, and deny with a reason
	b.does("press", "Enter")
	b.does("wait", ".ask .answered", "text", "approved")
	b.does("wait", "#waiting h2", "text", "A call waits")
	b.does("gone", "#waiting .all")

	other.does("wait", ".ask .answered", "text", "approved")
	other.does("click", "#outline")
	other.does("press", "a")
	other.does("press", "Tab")
	other.does("press", "Tab")
	other.does("type", "too far")
	other.does("press", "Enter")

	b.does("wait", ".ask", "text", "Rome") // the next pause
	require.Equal(t, []string{long}, *removed)
	b.does("click", ".ask .edit")
	b.does("wait", ".ask form textarea")
	b.does("click", ".ask .answer", "text", "Approve")
	b.does("wait", ".ask", "text", "waits for its result")
	other.does("wait", ".ask", "text", "waits for its result")

	b.does("fill", ".ask textarea", "value", "blue")
	b.does("click", ".ask .answer")
	b.does("wait", ".row", "text", "All done.")
	b.does("gone", "#waiting")
	b.does("wait", "#state", "text", "idle")
	other.does("wait", "#status", "text", "answered elsewhere")
	require.Equal(t, "All done.", s.DAG().Text())

	b.stop()
	other.stop()
}

func TestAnotherResultInARealBrowser(t *testing.T) {
	d := start().Tools(forecast(opened())).User("Weather in Oslo?")
	d, err := executor.Run(t.Context(), looks("Oslo is warm.", "Oslo"), d)
	require.NoError(t, err)
	b := open(t, New(d, &Options{Run: runs(apitest.Say("Oslo is cold."))}))
	b.does("click", ".row", "text", "→ 22°C")
	b.does("wait", ".fork", "text", "try another result, and run")
	b.does("fill", ".fork textarea", "value", "3°C "+hostile)
	b.does("click", ".fork button")
	b.does("wait", "#status", "text", "= compares them")
	b.does("wait", ".row", "text", "Oslo is cold.")
	b.does("wait", "#problems", "text", "no problems")
	b.does("press", "=")
	b.does("wait", "#compare", "text", "Oslo is cold.")
	b.does("wait", "#compare", "text", hostile)
	shots(b, "another-result")
	b.stop()
}

func TestAnEditedResponseInARealBrowser(t *testing.T) {
	d := start().Tools(forecast(opened())).User("Weather in Oslo?")
	d, err := executor.Run(t.Context(), looks("Oslo is warm.", "Oslo"), d)
	require.NoError(t, err)
	d = d.User("And tomorrow?").Assistant("Warm, too.")
	b := open(t, New(d, &Options{Run: runs(apitest.Say("Then ski."), apitest.Say("It is cold."))}))

	b.does("click", ".row", "text", "Oslo is warm.") // a response that the user answered
	b.does("click", ".edit summary")
	b.does("fill", ".edit textarea", "value", "Oslo is cold. "+hostile)
	b.does("click", ".edit button")
	b.does("wait", "#status", "text", "= compares them")
	b.does("wait", ".row", "text", "Then ski.")
	b.does("wait", ".row", "text", "And tomorrow?")
	b.does("wait", "#problems", "text", "no problems")
	b.does("press", "=")
	b.does("wait", "#compare", "text", hostile)
	b.does("wait", "#compare", "text", "Warm, too.")
	b.does("wait", "#compare", "text", "Then ski.")
	shots(b, "edited-response")
	b.does("press", "Escape")

	b.does("click", ".row", "text", "Let me look.") // a response with calls
	b.does("click", ".edit summary")
	b.does("wait", ".edit", "text", "they are not executed again")
	b.does("inside", ".edit, .edit textarea")
	b.does("size", "390x844")
	b.does("inside", ".edit, .edit textarea")
	b.does("size", "1400x900")
	b.does("fill", ".edit textarea", "value", "I look.")
	b.does("click", ".edit button")
	b.does("wait", ".row", "text", "It is cold.")
	b.does("wait", ".row", "text", "→ 22°C")

	b.does("click", ".row", "text", "Weather in Oslo?") // nothing comes before it but tools
	b.does("wait", ".fork", "text", "say something else in its place")
	b.stop()
}

func TestAnEditedResponseWithAPausedSubAgentInARealBrowser(t *testing.T) {
	inner, _ := remover(removes("Rome"))
	agent := executor.Agent{
		Provider: apitest.NewScript(apitest.Say("I ask.").Call(apitest.Use("helper", executor.Task{Task: "Go."}))),
		Tools:    []dag.Tool{executor.SubAgent("helper", "Helps.", inner)},
	}
	d, c := pauseOf(t, agent)
	s := New(d, &Options{Run: agent.Stream, Resume: agent.ResumeStream})
	s.SetPaused(Paused{Continuation: c})
	b := open(t, s)
	b.does("wait", "#waiting h2", "text", "A call waits")

	b.does("click", ".row", "text", "I ask.")
	b.does("click", ".edit summary")
	b.does("wait", ".edit", "text", "a paused sub-agent continues where it is, and asks again")
	b.does("fill", ".edit textarea", "value", "I ask politely.")
	b.does("click", ".edit button")
	b.does("wait", "#waiting h2", "text", "2 calls wait")
	b.does("wait", ".row", "text", "I ask politely.")
	b.stop()
}

func TestAClickArrivesWhileTheConversationGrowsInARealBrowser(t *testing.T) {
	d := start().User("Name a tree.").Assistant("An oak.").User("Thanks.")
	s := New(d, &Options{Run: runs(apitest.Say("A yew."))})
	b := open(t, s)
	b.does("click", ".row", "text", "An oak.")

	b.does("press down", ".edit summary")
	s.Set(d.Assistant("Welcome."))
	b.does("holds", "")
	b.does("let go", "")
	b.does("wait", ".edit textarea")
	b.does("wait", ".row", "text", "Welcome.")
	b.stop()
}

func TestAClickArrivesRightAfterASelectionInARealBrowser(t *testing.T) {
	d := start().Tools(forecast(opened())).User("Weather in Oslo?")
	d, err := executor.Run(t.Context(), looks("Oslo is warm.", "Oslo"), d)
	require.NoError(t, err)
	b := open(t, New(d, &Options{Run: runs(apitest.Say("It is cold."))}))
	b.does("wait", ".row", "text", "Let me look.")

	// The sum of the rest comes a moment after the selection: what is below it must not move.
	b.does("stop time", "")
	b.does("click", ".row", "text", "Let me look.")
	b.does("press down", ".edit summary")
	b.does("pass time", "1000")
	b.does("holds", "")
	b.does("let go", "")
	b.does("wait", ".edit textarea")
	b.stop()
}

func TestWhatIsTypedStaysWhileTheConversationGrowsInARealBrowser(t *testing.T) {
	d := start().User("Name a tree.").Assistant("An oak.").User("Thanks.").Assistant("Welcome.")
	s := New(d, &Options{Run: runs(apitest.Say("A yew."))})
	b := open(t, s)
	b.does("click", ".row", "text", "An oak.")
	b.does("click", ".edit summary")
	b.does("click", "h1") // the focus is elsewhere
	s.Set(d.User("More?"))
	b.does("wait", ".row", "text", "More?")
	b.does("wait", ".edit textarea")

	b.does("click", ".row", "text", "Name a tree.")
	b.does("fill", ".fork textarea", "value", "Name ")

	s.Set(d.User("Another?"))
	b.does("wait", ".row", "text", "Another?")
	b.does("type", "a bush.") // where the focus was
	b.does("click", ".fork button")
	b.does("wait", ".row", "text", "Name a bush.")
	b.does("wait", ".row", "text", "A yew.")
	b.stop()
}

func TestAListOfConversationsInARealBrowser(t *testing.T) {
	viztest.BrowserCheck(t, "page", "PLAIT_BROWSER")
	agent, removed := remover(removes("Rome"), apitest.Say("All done."))
	d, c := pauseOf(t, agent)

	now := time.Now()
	entries := []Entry{
		{Key: "tickets/31 " + hostile, State: "paused", Detail: "calls: 1 of 1 waiting", Waits: true, Changed: now.Add(-3 * time.Minute)},
		{Key: "tickets/28", State: "in doubt", Detail: "calls: 1 in doubt", Changed: now.Add(-time.Hour)},
		{Key: "tickets/27", State: "failed", Detail: strings.Repeat("the provider refused it: no such key; ", 12) + hostile, Changed: now.Add(-26 * time.Hour)},
		{Key: "tickets/33", State: "running", Changed: now},
		{Key: "tickets/32", State: "queued", Changed: now},
		{Key: "tickets/12", State: "done", Changed: now.Add(-100 * time.Hour)},
		{Key: "notes"},
	}

	x := NewIndex(&IndexOptions{
		Title: "sessions.db",
		List:  func(context.Context) ([]Entry, error) { return entries, nil },
		Open: func(_ context.Context, key string) (*Server, error) {
			if key != entries[0].Key {
				return nil, errors.New("it was deleted")
			}
			s := New(d, &Options{Resume: agent.ResumeStream})
			s.SetPaused(Paused{Continuation: c})
			s.SetOrigin(Origin{Changed: entries[0].Changed})
			return s, nil
		},
	})

	server := httptest.NewServer(x)
	t.Cleanup(server.Close)
	t.Cleanup(func() { require.NoError(t, x.Close()) })

	b := openAt(t, x.URL(server.Listener.Addr()))
	b.does("wait", "#entries a", "text", hostile)
	b.does("wait", "#totals", "text", "7 conversations, 1 waiting for a person")
	b.does("readable", "#entries")
	for _, size := range []string{"390x844", "1400x900"} {
		b.does("size", size)
		b.does("inside", "#index, #index td")
	}
	shots(b, "list")

	b.does("press", "/") // by keyboard alone
	b.does("type", "deleted? no: notes")
	b.does("wait", "#no-entries")
	b.does("fill", "#index-find", "value", "tickets")
	b.does("wait", "#totals", "text", "6 shown")

	b.does("press", "Enter")
	b.does("press", "Enter")
	b.does("wait", "h1", "text", hostile)
	b.does("wait", "#origin", "text", "changed 3 min ago")
	b.does("wait", ".ask", "text", "Rome")

	b.does("press", "a")
	b.does("press", "Enter")
	b.does("wait", ".row", "text", "All done.")
	require.Equal(t, []string{"Rome"}, *removed)

	b.does("click", "#up")
	b.does("click", "#entries a", "text", "notes")
	b.does("wait", "#now", "text", "it was deleted")
	b.quit(`404`)

	stranger := openAt(t, strings.Split(x.URL(server.Listener.Addr()), "#")[0])
	stranger.does("wait", "#refused", "text", "A live page opens with a token in its address")
	stranger.does("gone", "#index")
	stranger.quit(`401`)
}

func TestARequestThatIsNotKnownInARealBrowser(t *testing.T) {
	const first, second = "An oak.", "A fir."
	var mu sync.Mutex
	why := map[string]string{first: "no such key " + hostile} // by response; guarded by mu
	var asked []string                                        // guarded by mu
	d := start().User("Name a tree.").Assistant(first).User("Another?").Assistant(second)
	s := New(d, &Options{Request: func(_ dag.DAG, answer *node.Node) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		m, _ := answer.Message()
		text := m.Blocks.Text()
		asked = append(asked, text)
		if why[text] != "" {
			return nil, errors.New(why[text])
		}
		return []byte(`{"model":"a model"}`), nil
	}})
	fails := func(answer, text string) {
		mu.Lock()
		defer mu.Unlock()
		why[answer] = text
	}

	b := open(t, s)
	b.does("click", ".row", "text", second)
	b.does("click", "#tab-Request")
	b.does("wait", "#detail", "text", "not compared with the call before, n1. The request is not known: no such key "+hostile)
	b.does("click", ".row", "text", first)
	b.does("wait", "#detail", "text", "The request is not known: no such key "+hostile)
	s.Set(d.User("More?"))
	b.does("wait", ".row", "text", "More?") // the same view is drawn again, and asks for nothing

	fails(first, "no such model")
	b.does("click", "#tab-Says")
	b.does("click", "#tab-Request")
	b.does("wait", "#detail", "text", "The request is not known: no such model")

	fails(first, "")
	b.does("click", "#detail button", "text", "Try again")
	b.does("wait", "#detail", "text", "a model")
	b.does("click", ".row", "text", second)
	b.does("wait", "#detail", "text", "are as in the call before")
	b.quit("404")
	require.Equal(t, []string{second, first, first, first, first}, asked)
}

func TestTheStateOfARunElsewhereInARealBrowser(t *testing.T) {
	agent, _ := remover(apitest.Call(apitest.Use("ask", none{})))
	d, c := pauseOf(t, agent)
	s := New(d, nil)
	s.SetPaused(Paused{Continuation: c, Reply: func(context.Context, executor.Reply) error { return nil }})
	s.SetOrigin(Origin{Changed: time.Now(), Run: "in doubt", Detail: "calls: 1 of 2 waiting, 1 in doubt"})
	b := open(t, s)
	b.does("wait", "#state.odd", "text", "in doubt") // although a call waits
	b.does("wait", "#origin", "text", "calls: 1 of 2 waiting, 1 in doubt · changed just now")

	s.SetOrigin(Origin{Run: "parked", Detail: strings.Repeat("x", 100) + hostile})
	b.does("wait", "#state.odd", "text", "parked")
	b.does("wait", "#origin", "text", "xxx<img")
	for _, size := range []string{"390x844", "1400x900"} {
		b.does("size", size)
		b.does("inside", "#top, #top button, #origin, #state")
	}

	s.SetOrigin(Origin{})
	b.does("wait", "#state.odd", "text", "paused")
	b.stop()
}

// shots takes pictures in both themes, on a large and a small screen, if PLAIT_SHOTS names a folder.
func shots(b *browser, name string) {
	folder := os.Getenv("PLAIT_SHOTS")
	if folder == "" {
		return
	}
	for _, size := range []string{"1440x900", "390x844"} {
		for _, theme := range []string{"dark", "light"} {
			b.does("size", size, "theme", theme, "picture", filepath.Join(folder, name+"-"+size+"-"+theme+".png"))
		}
	}
	b.does("size", "1400x900")
}

func TestAGrowingGraphKeepsWhatIsOpenInARealBrowser(t *testing.T) {
	turns := func(d dag.DAG, n int) dag.DAG {
		for range n {
			d = d.User("Weather?").Assistant("It rains.")
		}
		return d
	}

	uses, results := make([]content.Block, 10), make([]node.ToolExecution, 10)
	for i := range uses {
		uses[i] = content.ToolUse{ID: fmt.Sprint(i), Name: hostile, Input: `{}`}
		results[i] = node.ToolExecution{Index: i, Result: content.Words("It is warm.")}
	}

	d := turns(start(), 5).User("Everywhere?").Assistant("", uses...).CloseTools(results...)
	s := New(d, nil)
	b := open(t, s)

	b.does("wait", ".row", "text", "n22")
	b.does("press", "f") // by keyboard alone
	b.does("wait", ".box.fold", "text", "<img")
	b.does("press", "Enter")
	b.does("wait", ".open-fold", "text", "<img")
	b.does("wait", ".box", "text", "It is warm.")
	shots(b, "unfolded")

	d = turns(d, 1)
	s.Set(d)
	b.does("wait", ".row", "text", "n24")
	b.does("wait", ".open-fold", "text", "<img")
	b.does("press", "Enter") // the box still has the focus
	b.does("gone", ".open-fold")
	b.does("press", "Enter")
	b.does("wait", ".open-fold", "text", "<img")

	// What was open is now inside a folded run, which was not there before.
	s.Set(turns(d, 60))
	b.does("wait", ".row", "text", "n144")
	b.does("wait", ".open-fold", "text", "nodes (n")
	b.does("wait", ".open-fold", "text", "<img")
	b.stop()
}
