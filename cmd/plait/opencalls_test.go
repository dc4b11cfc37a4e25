package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// forgery is a FILE that somebody else wrote, a model, and an MCP server that keeps what it is asked for.
type forgery struct {
	t     *testing.T
	file  string
	model *fake.API
	url   string
	log   string
}

func forge(t *testing.T, d dag.DAG, replies ...fake.Reply) *forgery {
	t.Helper()
	model := fake.Anthropic(replies...)
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)

	dir := t.TempDir()
	f := &forgery{t, filepath.Join(dir, "talk.json"), model, server.URL, filepath.Join(dir, "asked")}
	require.NoError(t, d.Save(f.file))
	return f
}

// args returns a command line about FILE, with the model and the MCP server.
func (f *forgery) args(more ...string) []string {
	server := fmt.Sprintf(`sh -c 'tee -a "%s" | weather-mcp'`, f.log)
	return append(more, "--provider", "anthropic", "--model", "claude-test", "--base-url", f.url, "--mcp", server)
}

// executed returns the number of calls that the MCP server was asked for.
func (f *forgery) executed() int {
	f.t.Helper()
	data, err := os.ReadFile(f.log)
	require.NoError(f.t, err)
	return strings.Count(string(data), `"tools/call"`)
}

// requireUntouched requires that no call was executed, no request sent, and FILE not written.
func (f *forgery) requireUntouched(before []byte) {
	f.t.Helper()
	require.Zero(f.t, f.executed())
	require.Empty(f.t, f.model.Bodies())
	after, err := os.ReadFile(f.file)
	require.NoError(f.t, err)
	require.Equal(f.t, string(before), string(after))
}

// openIn returns conversations with calls that are open in different ways.
func openIn(t *testing.T) map[string]dag.DAG {
	t.Helper()
	asked := dag.New().User("Weather?")
	open := asked.Assistant("", use("call_1", "Paris"), use("call_2", "Tokyo"))
	half := open.AppendExecutions(node.ToolExecution{Index: 0, Result: content.Words("18 °C")})
	require.NoError(t, half.Err())
	agent := open.AppendExecutions(node.ToolExecution{
		Index: 1, State: node.ExecutionAwaitingApproval, Child: node.ListOf(asked.Assistant("", use("call_3", "Oslo")).Head()),
	})
	require.NoError(t, agent.Err())
	elsewhere := open.Join(asked.Assistant("It is warm."))
	require.Len(t, elsewhere.Heads(), 2)
	waiting := pauseAt(open, false, true)
	require.NoError(t, waiting.Err())
	return map[string]dag.DAG{"open": open, "half": half, "at another head": elsewhere, "paused": waiting, "in a sub-agent": agent}
}

// pauseAt returns the conversation of a run that paused at the head of d: calls for which approval is set wait for it.
func pauseAt(d dag.DAG, approval ...bool) dag.DAG {
	var waits []node.ToolExecution
	for i, call := range d.OpenCalls() {
		if approval[i] {
			waits = append(waits, node.ToolExecution{Index: call.Index, State: node.ExecutionAwaitingApproval})
		}
	}
	return d.AppendExecutions(waits...)
}

func TestRunRefusesOpenCallsOfAFileWithoutATerminal(t *testing.T) {
	for name, d := range openIn(t) {
		t.Run(name, func(t *testing.T) {
			f := forge(t, d, fake.AnthropicMessage(content.Text{Text: "Done."}))
			before, err := os.ReadFile(f.file)
			require.NoError(t, err)

			out, errs, code := command("y\ny\n", f.args("run", f.file)...)
			require.Equal(t, exitUnapproved, code, errs)
			require.Empty(t, out)
			require.Contains(t, errs, `get_weather {"city":"Tokyo"}`)
			f.requireUntouched(before)
		})
	}
}

func TestRunOfADatabaseSavesNothingBeforeItsOpenCallsAreApproved(t *testing.T) {
	f := forge(t, openIn(t)["open"])
	stored := filepath.Join(t.TempDir(), "sessions.db") + "#a"
	writer := &streams{ctx: t.Context()}
	require.NoError(t, writer.save(stored, openIn(t)["open"]))
	require.NoError(t, writer.databases.close())
	before, errs, code := command("", "fork", stored, "--name", "x")
	require.Equal(t, exitDone, code, errs)

	_, errs, code = command("", f.args("run", stored)...)
	require.Equal(t, exitUnapproved, code, errs)
	after, errs, code := command("", "fork", stored, "--name", "x")
	require.Equal(t, exitDone, code, errs)
	require.Equal(t, before, after)
	require.Zero(t, f.executed())
}

// TestOpenCallOfARequestMayHaveBeenExecuted: a request does not say which of its calls were started.
func TestOpenCallOfARequestMayHaveBeenExecuted(t *testing.T) {
	f := forge(t, dag.New(), fake.AnthropicMessage(content.Text{Text: "Done."}))
	body := `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"Weather?"},
		{"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"get_weather","input":{"city":"Tokyo"}}]}]}`
	_, errs, code := command(body, "import", "--from", "anthropic", "-", "-o", f.file)
	require.Equal(t, exitDone, code, errs)

	_, errs, code = command("", f.args("run", f.file, "--approve")...)
	require.Equal(t, exitDone, code, errs)
	require.Contains(t, errs, "in doubt")
	require.Contains(t, string(f.model.Bodies()[0]), "outcome of this tool call is unknown")
	require.Zero(t, f.executed())
}

// TestScriptsDecideAboutOpenCallsWithResume: with --approve the run pauses, and each call needs a decision.
func TestScriptsDecideAboutOpenCallsWithResume(t *testing.T) {
	f := forge(t, openIn(t)["open"], fake.AnthropicMessage(content.Text{Text: "Done."}))
	out, errs, code := command("", f.args("run", f.file, "--approve")...)
	require.Equal(t, exitPaused, code, errs)
	require.Contains(t, out, openReason)
	require.Zero(t, f.executed())

	_, errs, code = command(`{"call_1":{"approve":true}}`, f.args("resume", f.file, "--results", "-")...)
	require.Equal(t, exitBad, code)
	require.Contains(t, errs, `a call that waits for approval has no reply: "call_2"`)
	require.Zero(t, f.executed())

	out, errs, code = command(`{"call_1":{"approve":true},"call_2":{"approve":false}}`, f.args("resume", f.file, "--results", "-")...)
	require.Equal(t, exitDone, code, errs)
	require.Equal(t, "Done.\n", out)
	require.Equal(t, 1, f.executed())
}

// TestACallThatWasStartedIsNotExecutedAgain: such a call is in doubt, and the model reads that its outcome is unknown.
func TestACallThatWasStartedIsNotExecutedAgain(t *testing.T) {
	d := dag.New().User("Weather?").Assistant("", use("call_1", "Paris"))
	d = d.AppendExecutions(node.ToolExecution{Index: 0, State: node.ExecutionStarted, Started: time.Now()})
	require.NoError(t, d.Err())
	f := forge(t, d, fake.AnthropicMessage(content.Text{Text: "Done."}))
	_, errs, code := command("", f.args("run", f.file)...)
	require.Equal(t, exitDone, code, errs)
	require.Zero(t, f.executed())
	require.Contains(t, string(f.model.Bodies()[0]), content.OutcomeUnknown)
}

// TestResumeAsksWhateverTheFileSays: neither the pause nor the settings in FILE spare a call the question, now or later.
func TestResumeAsksWhateverTheFileSays(t *testing.T) {
	d := dag.New().User("Weather?").Assistant("", use("call_1", "Paris"), use("call_2", "Tokyo"))
	d = pauseAt(d, false, true)
	settings := map[string]any{"provider": "anthropic", "model": "claude-test", "approve": false}
	f := forge(t, d.WithMetadata(runKey, settings), fake.AnthropicMessage(use("call_3", "Rome")))
	before, err := os.ReadFile(f.file)
	require.NoError(t, err)

	for _, flags := range [][]string{nil, {"--approve"}, {"--approve=false"}} {
		_, errs, code := command(`{}`, f.args(append([]string{"resume", f.file, "--results", "-"}, flags...)...)...)
		require.Equal(t, exitBad, code)
		require.Contains(t, errs, "a call that waits for approval has no reply")
		f.requireUntouched(before)
	}

	// The call beside it waits too, though FILE does not say so.
	out, errs, code := command(`{"call_2":{"approve":false}}`, f.args("resume", f.file, "--results", "-")...)
	require.Equal(t, exitPaused, code, errs)
	require.Contains(t, out, `"city": "Paris"`)

	// And so does the model's next call, without a flag.
	out, errs, code = command(`{"call_1":{"approve":false}}`, f.args("resume", f.file, "--results", "-")...)
	require.Equal(t, exitPaused, code, errs)
	require.Contains(t, out, `"city": "Rome"`)
	require.Contains(t, out, "awaiting_approval")
	require.Zero(t, f.executed())
}

func TestResumeExecutesTheModelsCallsOnlyIfTheCommandLineSaysSo(t *testing.T) {
	d := dag.New().User("Weather?").Assistant("", use("call_1", "Paris"))
	d = pauseAt(d, true)
	f := forge(t, d, fake.AnthropicMessage(use("call_2", "Rome")), fake.AnthropicMessage(content.Text{Text: "Done."}))
	out, errs, code := command(`{"call_1":{"approve":false}}`, f.args("resume", f.file, "--results", "-", "--approve=false")...)
	require.Equal(t, exitDone, code, errs)
	require.Equal(t, "Done.\n", out)
	require.Equal(t, 1, f.executed())
}

func TestChatRefusesOpenCallsOfAFileWithoutATerminal(t *testing.T) {
	f := forge(t, openIn(t)["paused"], fake.AnthropicMessage(content.Text{Text: "Done."}))
	before, err := os.ReadFile(f.file)
	require.NoError(t, err)
	_, errs, code := command("y\ny\n", f.args("chat", f.file, "--allow", "*")...)
	require.Equal(t, exitUnapproved, code, errs)
	f.requireUntouched(before)
}

// TestServeAsksAboutOpenCallsOfAFile: the page's user approves them. The server was started without --approve.
func TestServeAsksAboutOpenCallsOfAFile(t *testing.T) {
	f := forge(t, openIn(t)["open"])
	v := &served{runner: runner{streams: &streams{err: os.Stderr}}}
	v.provider, v.model, v.baseURL, v.mcp = "anthropic", "claude-test", f.url, f.args()[len(f.args())-1:]
	require.NoError(t, v.begin(t.Context()))
	defer func() { require.NoError(t, v.end()) }()
	require.NoError(t, v.show(f.file))
	defer v.page.Close()

	var paused dag.DAG
	for event, err := range v.stream(t.Context(), openIn(t)["open"]) {
		if e, ok := event.(executor.End); ok {
			require.ErrorIs(t, err, executor.ErrPaused)
			paused = e.DAG
		}
	}
	require.Len(t, paused.Pending(), 2)
	for _, p := range paused.Pending() {
		require.True(t, p.Approval)
	}
	require.Zero(t, f.executed())
	require.Empty(t, f.model.Bodies())
}
