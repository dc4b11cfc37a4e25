//go:build unix

package providers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/api/gemini"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/providertest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/internal/testkit/tooltest"
	"github.com/plait-dev/plait/node"
)

// eachLlamaAPI runs a test for each of the server's APIs, streamed and whole.
func eachLlamaAPI(t *testing.T, test func(t *testing.T, name string, noStream bool)) {
	for _, name := range llamaAPIs {
		for mode, noStream := range map[string]bool{"streamed": false, "whole": true} {
			t.Run(name+"/"+mode, func(t *testing.T) { test(t, name, noStream) })
		}
	}
}

// TestEachAPIOfACompatibleServer asks a real server for what a request can ask for.
func TestEachAPIOfACompatibleServer(t *testing.T) {
	files := unpackLlama(t, false)
	l := files.start(t, "run.sh", freePort(t), "-c", "8192", "-np", "2")

	t.Run("text arrives as it is written", func(t *testing.T) {
		eachLlamaAPI(t, func(t *testing.T, name string, noStream bool) {
			var written strings.Builder
			req := asks("Hello", api.Options{MaxTokens: 12, Body: `{"ignore_eos":true}`})
			client := api.NewClient(l.at(name, api.Options{}, noStream), nil)
			answer, err := client.SendFunc(t.Context(), req, func(e api.Event) error {
				if delta, ok := e.(api.Delta); ok {
					written.WriteString(delta.Text)
				}
				return nil
			})
			require.NoError(t, err)
			require.NotEmpty(t, answer.Blocks.Text())
			if !noStream {
				require.Equal(t, answer.Blocks.Text(), written.String())
			}

			require.Equal(t, content.StopMaxTokens, answer.Stop)
			require.Positive(t, answer.Usage.Input+answer.Usage.CacheRead)
			require.InDelta(t, 12, answer.Usage.Output, 1)
		})
	})

	t.Run("tools are called as the request allows", func(t *testing.T) {
		eachLlamaAPI(t, func(t *testing.T, name string, noStream bool) {
			l.requireToolChoice(t, name, noStream)
		})
	})

	t.Run("an answer has the form that was asked for, or the run fails", func(t *testing.T) {
		type weather struct {
			Snows bool `json:"snows"`
		}
		eachLlamaAPI(t, func(t *testing.T, name string, noStream bool) {
			a := executor.Agent{Provider: l.at(name, api.Options{}, noStream), Options: api.Options{MaxTokens: 30}}
			_, d, err := executor.RunFor[weather](t.Context(), a, dag.New().User("Does it snow?"))
			require.Empty(t, d.Validate())
			// The server ignores the form in its other APIs.
			if name == "chat" {
				require.NoError(t, err)
			} else if err != nil {
				require.ErrorAs(t, err, new(*api.OutputError))
			}
		})
	})

	t.Run("a stop sequence ends the answer, or is reported as left out", func(t *testing.T) {
		letters := strings.Fields("e a o i")
		eachLlamaAPI(t, func(t *testing.T, name string, noStream bool) {
			req := asks("Hello", api.Options{MaxTokens: 40, StopSequences: letters, Body: `{"ignore_eos":true}`})
			answer, err := send(t, l.at(name, api.Options{}, noStream), req)
			require.NoError(t, err)
			if name == "responses" {
				require.Len(t, answer.Repairs, 1)
				require.Equal(t, "option", answer.Repairs[0].Kind)
				return
			}
			require.Empty(t, answer.Repairs)
			require.False(t, strings.ContainsAny(answer.Blocks.Text(), strings.Join(letters, "")), answer.Blocks.Text())
		})
	})

	t.Run("an image that the model cannot see is refused once", func(t *testing.T) {
		eachLlamaAPI(t, func(t *testing.T, name string, noStream bool) {
			picture := content.Image{Source: content.Source{MediaType: "image/png", Data: providertest.OnePNG}}
			said := providertest.Said(content.User, content.Text{Text: "What is it?"}, picture)
			req := api.Request{Messages: []content.Message{said}}
			retries := 0
			client := api.NewClient(l.at(name, api.Options{}, noStream), nil)
			_, err := client.SendFunc(t.Context(), req, func(e api.Event) error {
				if _, ok := e.(api.Retry); ok {
					retries++
				}
				return nil
			})
			require.ErrorIs(t, err, api.ErrInvalidRequest)
			require.Zero(t, retries)
		})
	})

	t.Run("thinking comes as thinking, and the conversation goes on", func(t *testing.T) {
		l := files.start(t, "run-r1.sh", freePort(t), "-c", "8192", "-np", "2", "--reasoning-format", "deepseek")
		eachLlamaAPI(t, func(t *testing.T, name string, noStream bool) {
			a := executor.Agent{Provider: l.at(name, api.Options{}, noStream), Options: api.Options{MaxTokens: 40}}
			d := dag.New()
			for n := range 4 {
				var err error
				d, err = a.Run(t.Context(), d.User(fmt.Sprint("Hello ", n)))
				require.NoError(t, err)
			}
			require.Empty(t, d.Validate())
			require.Contains(t, kinds(d), "thinking")
		})
	})
}

// kinds returns the types of the blocks that the models wrote.
func kinds(d dag.DAG) (all []string) {
	for _, m := range d.Messages() {
		if m.Role != content.Assistant {
			continue
		}
		for _, b := range m.Blocks.All() {
			switch b.(type) {
			case content.Text:
				all = append(all, "text")
			case content.Thinking:
				all = append(all, "thinking")
			case content.ToolUse, content.CutToolUse:
				all = append(all, "call")
			}
		}
	}
	return all
}

// requireToolChoice runs turns with each choice of tools, and requires that no other calls are executed.
func (l llama) requireToolChoice(t *testing.T, name string, noStream bool) {
	schema := content.JSON(`{"type":"object","properties":{"at":{"enum":["x"]}},"required":["at"]}`)
	const turns = 2
	for what, test := range map[string]struct {
		options api.Options
		most    int    // executed calls in all turns; -1 is any number
		only    string // the tool that may be executed; "" is any
	}{
		"auto":             {api.Options{}, -1, ""},
		"none":             {api.Options{ToolChoice: api.ToolsNone}, 0, ""},
		"any":              {api.Options{ToolChoice: api.ToolsAny}, -1, ""},
		"named":            {api.Options{ToolChoice: api.OneTool("look")}, -1, "look"},
		"one call":         {api.Options{OneCall: true}, turns, ""},
		"any and one call": {api.Options{ToolChoice: api.ToolsAny, OneCall: true}, turns, ""},
	} {
		var executed []string
		var tools []dag.Tool
		execute := func(_ context.Context, call executor.Call) (executor.Result, error) {
			executed = append(executed, call.Name)
			return executor.ResultOf("Nothing.")
		}
		for _, tool := range []string{"list", "look"} {
			tools = append(tools, executor.NewTool(content.Tool{Name: tool, Schema: schema}, execute))
		}

		test.options.MaxTokens = 40
		a := executor.Agent{
			Provider: l.at(name, api.Options{}, noStream), Options: test.options, Tools: tools,
			Limits: executor.Limits{Turns: 1}, Strategy: executor.Sequential(),
		}
		for n := range turns {
			d, err := a.Run(t.Context(), dag.New().User(fmt.Sprint("Hello ", n)))
			require.NoError(t, err, what)
			require.Empty(t, d.Validate(), what)
			if test.options.ToolChoice == api.ToolsAny {
				require.Contains(t, kinds(d), "call", what)
			}
		}

		if test.most >= 0 {
			require.LessOrEqual(t, len(executed), test.most, what)
		}
		if test.only != "" {
			other := slices.ContainsFunc(executed, func(s string) bool { return s != test.only })
			require.False(t, other, "%s: %v", what, executed)
		}
	}
}

// TestConversationSwitchesAPIsOfOneServer continues one conversation for 24 turns, or 50 with PLAIT_LONG, each with the
// next of the server's APIs, streamed and whole. Some calls are the model's, and some are made up, because this model calls what it likes.
func TestConversationSwitchesAPIsOfOneServer(t *testing.T) {
	l := startLlama(t, "-c", "32768", "-np", "1")
	tool := tooltest.Returning("ls", "a.go b.go")
	d := dag.New().System("Be brief.").Tools(tool)
	for turn := range seedtest.Rounds(24, 50) {
		name, noStream := llamaAPIs[turn%3], turn/3%2 == 1
		a := executor.Agent{
			Provider: l.at(name, api.Options{}, noStream), Tools: []dag.Tool{tool},
			Options: api.Options{MaxTokens: 16}, Limits: executor.Limits{Turns: 2},
		}

		switch {
		case turn%8 == 1:
			a.Options.ToolChoice = api.ToolsAny
		case turn%4 == 2:
			call := content.ToolUse{ID: "call_again", Name: "ls", Input: `{"at":"."}`}
			d = d.User("List it.").Assistant("I look.", call).CloseTools(node.ToolExecution{Index: 1, Result: content.Words("a.go")})
		}

		var err error
		d, err = a.Run(t.Context(), d.User(fmt.Sprint("Question ", turn)))
		require.NoError(t, err, "turn %d, %s", turn, name)
		require.Empty(t, d.Validate(), "turn %d, %s", turn, name)
		require.Empty(t, d.OpenCalls(), "turn %d, %s", turn, name)
	}

	calls, responses := 0, 0
	for _, n := range d.Nodes() {
		if m, ok := n.Message(); ok && m.Answer.Model != "" {
			responses++
			calls += len(m.Blocks.ToolUses())
		}
	}
	t.Logf("%d messages, %d of the model, with %d calls", len(d.Messages()), responses, calls)
	require.Positive(t, calls)
}

// TestCompatibleServerFails kills, stops and restarts a real server under requests to each of its APIs, and sends what
// it refuses.
func TestCompatibleServerFails(t *testing.T) {
	files := unpackLlama(t, false)
	long := asks("Tell me a long story.", api.Options{MaxTokens: 600, Body: `{"ignore_eos":true}`})
	short := asks("Hello", api.Options{MaxTokens: 4})

	t.Run("a wrong key", func(t *testing.T) {
		l := files.start(t, "run.sh", freePort(t), "-c", "2048", "-np", "1", "--api-key", "secret")
		eachLlamaAPI(t, func(t *testing.T, name string, noStream bool) {
			_, err := send(t, l.at(name, api.Options{}, noStream), short)
			require.ErrorIs(t, err, api.ErrAuth)

			right := l
			right.key = "secret"
			_, err = send(t, right.at(name, api.Options{}, noStream), short)
			require.NoError(t, err)
		})
	})

	t.Run("a context that is too long", func(t *testing.T) {
		l := files.start(t, "run.sh", freePort(t), "-c", "512", "-np", "1")
		eachLlamaAPI(t, func(t *testing.T, name string, noStream bool) {
			story := asks(strings.Repeat("a long story ", 400), api.Options{MaxTokens: 4})
			_, err := send(t, l.at(name, api.Options{}, noStream), story)
			require.ErrorIs(t, err, api.ErrContextTooLong)
			_, err = send(t, l.at(name, api.Options{}, noStream), short)
			require.NoError(t, err)
		})
	})

	t.Run("a request while the model is loaded is sent again", func(t *testing.T) {
		for _, name := range llamaAPIs {
			loading := false
			for try := 0; try < 5 && !loading; try++ { // it takes a tenth of a second
				l := files.launch(t, "run.sh", freePort(t), "-c", "32768", "-np", "16", "--warmup")
				often := &api.ClientOptions{Attempts: 100_000, MinWait: time.Millisecond, MaxWait: time.Millisecond}
				client := api.NewClient(l.at(name, api.Options{}, false), often)
				_, err := client.SendFunc(t.Context(), short, func(e api.Event) error {
					if retry, ok := e.(api.Retry); ok {
						loading = loading || errors.Is(retry.Err, api.ErrOverloaded)
					}
					return nil
				})
				require.NoError(t, err, name)
			}
			require.True(t, loading, "%s: the server was never found loading", name)
		}
	})

	t.Run("killed in an answer, and restarted before the retry", func(t *testing.T) {
		for _, name := range llamaAPIs {
			port := freePort(t)
			l := files.start(t, "run.sh", port, "-c", "8192", "-np", "1")
			var failed error
			var part api.Cut
			client := api.NewClient(l.at(name, api.Options{}, false), &api.ClientOptions{MinWait: time.Millisecond})
			answer, err := client.SendFunc(t.Context(), long, func(e api.Event) error {
				switch e := e.(type) {
				case api.Delta:
					if failed == nil {
						require.NoError(t, l.process.Kill())
					}
				case api.Retry:
					failed, part = e.Err, e.Cut
					files.start(t, "run.sh", port, "-c", "8192", "-np", "1")
				}
				return nil
			})
			require.NoError(t, err, name)
			require.Equal(t, content.StopMaxTokens, answer.Stop, name)
			require.True(t, errors.Is(failed, api.ErrCut) || errors.Is(failed, api.ErrTransport), "%s: %v", name, failed)
			require.Equal(t, content.StopCut, part.Stop, name)
		}
	})

	t.Run("killed in an answer for good", func(t *testing.T) {
		for _, name := range llamaAPIs {
			l := files.start(t, "run.sh", freePort(t), "-c", "8192", "-np", "1")
			client := api.NewClient(l.at(name, api.Options{}, false), &api.ClientOptions{Attempts: 1})
			answer, err := client.SendFunc(t.Context(), long, func(e api.Event) error {
				if _, ok := e.(api.Delta); ok {
					require.NoError(t, l.process.Kill())
				}
				return nil
			})
			require.True(t, errors.Is(err, api.ErrCut) || errors.Is(err, api.ErrTransport), "%s: %v", name, err)
			require.NotEmpty(t, answer.Blocks.Text(), name)
			require.True(t, answer.Usage.Incomplete, name)

			_, err = client.Send(t.Context(), short)
			require.ErrorIs(t, err, api.ErrTransport, name)
		}
	})

	t.Run("stopped, and continued", func(t *testing.T) {
		l := files.start(t, "run.sh", freePort(t), "-c", "8192", "-np", "1")
		eachLlamaAPI(t, func(t *testing.T, name string, noStream bool) {
			require.NoError(t, l.process.Signal(syscall.SIGSTOP))
			defer l.process.Signal(syscall.SIGCONT)
			model := l.at(name, api.Options{Idle: 200 * time.Millisecond}, noStream)
			_, err := api.NewClient(model, &api.ClientOptions{Attempts: 1}).Send(t.Context(), short)
			require.ErrorIs(t, err, api.ErrStalled)

			require.NoError(t, l.process.Signal(syscall.SIGCONT))
			_, err = send(t, l.at(name, api.Options{}, noStream), short)
			require.NoError(t, err)
		})
	})

	t.Run("cancelled", func(t *testing.T) {
		l := files.start(t, "run.sh", freePort(t), "-c", "8192", "-np", "1")
		for _, name := range llamaAPIs {
			ctx, cancel := context.WithCancel(t.Context())
			model := l.at(name, api.Options{}, false)
			answer, err := api.NewClient(model, nil).SendFunc(ctx, long, func(e api.Event) error {
				if _, ok := e.(api.Delta); ok {
					cancel()
				}
				return nil
			})
			require.ErrorIs(t, err, context.Canceled, name)
			require.Equal(t, content.StopCut, answer.Stop, name)
			_, err = send(t, model, short)
			require.NoError(t, err, name)
		}
	})
}

// finding is something that was found wrong.
type finding struct {
	id, what string
	tests    []string // a test, or "test/subtest"
}

// findings are what was found wrong with compatible servers, each with the tests that hold it now.
var findings = []finding{
	{"H1", "a Responses stream of two items fails", []string{
		"TestResponsesStreamWithoutIndexes", "TestCompatibleServer/a Responses stream of several items is heard (H1)",
	}},
	{"H2", "Responses refuses the assistant's messages of other APIs", []string{
		"TestEveryMessageItemHasItsType", "TestConversationSwitchesAPIsOfOneServer",
		"TestCompatibleServer/an assistant's message of another API is taken by Responses (H2)",
	}},
	{"H3", "the schema of an argument of any type is refused", []string{
		"TestSchemaThatAllowsAnythingIsAnObject", "TestObjectsReplacesTrueWhereASchemaStands",
		"TestCompatibleServer/an argument that may be anything is declared to each API (H3)",
	}},
	{"H4", "a context that is too long is an invalid request over Messages", []string{
		"TestContextTooLongOfACompatibleServerIsRecognized", "TestCompatibleServerFails/a context that is too long",
	}},
	{"H5", "a Messages stream without message_start is lost", []string{"TestStreamWithoutMessageStartIsAnAnswer"}},
	{"H6", "a stop sequence beside end_turn is not reported", []string{
		"TestStopSequenceBesideEndTurnIsTheReason",
		"TestCompatibleServer/a stop sequence is the reason, also where it comes first (H5, H6)",
	}},
	{"H7", "the server ignores tool choices, one call only and forms", []string{
		"TestCallsThatTheRequestForbadeAreNotExecuted", "TestRunForRefusesAResponseInAnotherForm",
		"TestEachAPIOfACompatibleServer/tools are called as the request allows",
		"TestEachAPIOfACompatibleServer/an answer has the form that was asked for, or the run fails",
	}},
	{"H8", "Responses reports an answer that was cut off as completed", []string{
		"TestAnswerThatReachesTheLimitOfACompatibleServerIsCut", "TestCallsOfAnAnswerThatWasCutOffAreNotExecuted",
	}},
	{"H9", "a MaxTokens below 16 is raised for servers that accept it", []string{
		"TestSmallMaxTokensAreRaisedForOpenAIAlone",
		"TestCompatibleServer/an answer of Responses that reached MaxTokens is cut, and a small MaxTokens is sent (H8, H9)",
	}},
	{"H10", "a call that was cut off is a finding of Validate for good", []string{
		"TestCallThatReachedTheLimitOfTokensIsNoFinding", "TestConversationSwitchesAPIsOfOneServer",
	}},
	{"H11", "the type of an error is its status", []string{"TestCompatibleServer/an error has its type (H11)"}},
	{"H12", "a kept-alive connection that the server closed fails a request", []string{
		"TestClosedKeptAliveConnectionIsReplaced",
	}},
	{"H13", "what the server reports beside an answer is dropped", []string{
		"TestTimingsOfAServerAreSavedWithTheResponse", "TestChatKeepsWhatTheServerReportsBesideItsMessage",
		"TestResponsesKeepWhatTheServerReportsBesideItsItems", "TestMessagesKeepWhatTheServerReportsBesideItsBlocks",
	}},
	{"H14", "thinking does not go back to its own server", []string{
		"TestReasoningGoesBackToItsServer", "TestReasoningOfATurnIsAcceptedInTheNext",
	}},
	{"H15", "a server cannot be named", []string{
		"TestWhatTheServerIgnoresIsEnforced", "TestServerIsRecognizedByItsHost", "TestServerMustBeKnownAndAddressed",
	}},
}

// looking are what was found wrong with drawings, logs and pages, each with the tests that hold it now. A test of
// check.mjs is a check in a browser.
var looking = []finding{
	{"F1", "a body that never ends is never answered", []string{"TestUnfinishedBodyIsAnswered"}},
	{"F2", "every call of an imported session is a problem", []string{"TestUndeclaredToolsAreOneProblem"}},
	{"F3", "a live page without its token looks empty", []string{"check.mjs/live refused", "check.mjs/live link"}},
	{"F4", "links by number drift", []string{"check.mjs/deep links", "check.mjs/live link"}},
	{"F5", "a live run's error is cut off, and runs are offered that cannot begin", []string{"check.mjs/live errors"}},
	{"F6", "a comparison is wider than a phone, ends early, and marks unrelated words", []string{"check.mjs/long compare"}},
	{"F7", "the log does not say what failed", []string{"TestLogRowsNameFailures"}},
	{"F8", "large drawings are illegible or empty", []string{
		"TestDrawingsOfAnySizeAreLegible", "TestRealMermaidDrawingsAreLegible", "TestGraphvizDrawingsAreLegible",
		"TestManyHeadsAreCountedBeyondTheFirst",
	}},
	{"F9", "long numbers do not fit their column", []string{"check.mjs/long numbers"}},
	{"F10", "log and drawings word the same node differently", []string{"TestLogAndDrawingsUseTheSameWords"}},
	{"F11", "events of one call name two calls", []string{"TestEventsNameTheCallAsTheModelMadeIt"}},
	{"F12", "errors repeat themselves, or name another one", []string{
		"TestFindingNamesNodeAndKindOnce", "TestScriptThatIsOverIsNotRetried",
	}},
}

func TestEachFindingHasTests(t *testing.T) {
	var tests strings.Builder
	require.NoError(t, filepath.WalkDir(filepath.Join("..", "..", ".."), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		tests.Write(source)
		return err
	}))
	exist := tests.String()
	browser, err := os.ReadFile(filepath.Join("..", "..", "..", ".ci", "browser", "page", "check.mjs"))
	require.NoError(t, err)

	for letter, list := range map[string][]finding{"F": looking, "H": findings} {
		require.Len(t, list, map[string]int{"F": 12, "H": 15}[letter])
		for i, f := range list {
			require.Equal(t, fmt.Sprintf("%s%d", letter, i+1), f.id)
			require.NotEmpty(t, f.tests, "%s: %s", f.id, f.what)
			for _, test := range f.tests {
				name, sub, part := strings.Cut(test, "/")
				if name == "check.mjs" {
					require.Contains(t, string(browser), "async '"+sub+"'() {", "%s: %s", f.id, f.what)
					continue
				}
				require.Contains(t, exist, "func "+name+"(", "%s: %s", f.id, f.what)
				if part {
					require.Contains(t, exist, `t.Run("`+sub+`", func(`, "%s: %s", f.id, f.what)
				}
			}
		}
	}
}

// llamas are the APIs of a real server as the models of random conversations. A server that was killed is started again.
type llamas struct {
	t       *testing.T
	files   llamaFiles
	now     llama
	kills   int               // of servers
	kept    map[way]int       // see fakes
	network http.RoundTripper // reaches the server
	dead    bool
}

func newLlamas(t *testing.T) *llamas {
	l := &llamas{t: t, files: unpackLlama(t, false), kept: map[way]int{}}
	l.start()
	return l
}

func (l *llamas) start() {
	l.now, l.dead = l.files.start(l.t, "run.sh", freePort(l.t), "-c", "32768", "-np", "1"), false
	l.now.textOnly, l.network = true, l.now.client.Transport
}

// llamaOf returns the name that llama has for an API.
func llamaOf(name string) string {
	for short, long := range recorded {
		if long == name {
			return short
		}
	}
	return ""
}

func (l *llamas) model(name string, noStream bool, network http.RoundTripper) api.Provider {
	l.now.client = &http.Client{Transport: network}
	return l.now.at(llamaOf(name), api.Options{}, noStream)
}

func (l *llamas) options(w *providertest.World, breaks bool) api.Options {
	o := randomOptions(w)
	if o.MaxTokens = 1 + w.IntN(8); breaks {
		// A form would end the response early.
		o.Output, o.ToolChoice, o.MaxTokens, o.Body = api.Schema{}, api.ToolsAuto, 400, `{"ignore_eos":true}`
	}
	return o
}

func (l *llamas) reach(string) http.RoundTripper {
	if l.dead {
		l.now.stop()
		l.start()
	}
	return l.network
}

func (l *llamas) breaking(w *providertest.World, name string, noStream bool) *breaking {
	b := &breaking{way: providertest.Pick(w, ways...), keep: w.IntN(20_000), reach: l.reach(name), fails: llamaFails, abrupt: true}
	if noStream {
		b.keep = w.IntN(1000)
	}
	b.kept = func() { l.kept[b.way]++ }
	b.kill = func() error {
		l.kills++
		l.dead = true
		return l.now.process.Kill()
	}
	return b
}

// llamaFails returns the server's error while it loads its model, and without its key. It is the same in every API.
func llamaFails(status int) fake.Reply {
	said := map[int]string{
		http.StatusServiceUnavailable: `"message":"Loading model","type":"unavailable_error"`,
		http.StatusUnauthorized:       `"message":"Invalid API Key","type":"authentication_error"`,
	}[status]
	return fake.Reply{Status: status, Body: fmt.Sprintf(`{"error":{%s,"code":%d}}`, said, status)}
}

func (l *llamas) other(*providertest.World, string) api.Provider { return nil } // all are APIs of one server

func (l *llamas) tokens() int64  { return 0 }
func (l *llamas) refused() error { return nil } // it is the error of the run

// play makes conversations at random for each of the server's APIs. Its models take part.
func (l *llamas) play(count uint64, breaks bool) {
	first := seedtest.First(l.t)
	var apis []string
	for _, name := range llamaAPIs {
		apis = append(apis, recorded[name])
	}

	all := dialects(l.t)
	for _, name := range apis {
		d := all[name]
		d.Others = slices.DeleteFunc(d.Others, func(other *providertest.Dialect) bool { return other.API == gemini.API })
		d.Model = func() providertest.Turn { return turn(l, apis, name, breaks) }
		l.t.Run(llamaOf(name), func(t *testing.T) {
			began, failed := time.Now(), 0
			for seed := first; seed < first+count; seed++ {
				if err := d.Try(seed); err != nil {
					failed++
					t.Errorf("seed %d: %v", seed, err)
				}
			}
			t.Logf("%d conversations from seed %d, %d failed, in %.0f s", count, first, failed, time.Since(began).Seconds())
		})
	}
}

// TestCompatibleServerRefusesNoConversation makes conversations at random, with turns of each API of a real server in
// them. The server refuses none. PLAIT_LONG=1 makes 500 for each API.
func TestCompatibleServerRefusesNoConversation(t *testing.T) {
	newLlamas(t).play(uint64(seedtest.Rounds(8, 500)), false)
}

// TestCompatibleServerIsKilledInRandomConversations kills a real server in half of the turns, and has the request end in
// each of the ways. PLAIT_LONG=1 makes more conversations.
func TestCompatibleServerIsKilledInRandomConversations(t *testing.T) {
	l := newLlamas(t)
	l.play(uint64(seedtest.Rounds(4, 60)), true)
	t.Logf("%d servers were killed; parts were kept where %v", l.kills, l.kept)
	if seedtest.Long() {
		require.Len(t, l.kept, len(ways), "each of the ways")
	}
}
