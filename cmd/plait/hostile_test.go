package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// question is a conversation in a file of its own, which a model is to go on with.
func question(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "talk.json")
	_, errs, code := command(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Weather in Paris?"}],
		"tools":[{"name":"get_weather","input_schema":{"type":"object"}}]}`, "import", "--from", "anthropic", "-", "-o", file)
	require.Equal(t, exitDone, code, errs)
	return file
}

// during is a model that answers, and does something before.
func during(t *testing.T, do func(), answers ...content.Block) string {
	t.Helper()
	var replies []fake.Reply
	for _, b := range answers {
		replies = append(replies, fake.AnthropicMessage(b))
	}
	model := fake.Anthropic(replies...)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		do()
		model.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestFileThatWasChangedDuringARun is left as it is, and what was said is not lost.
func TestFileThatWasChangedDuringARun(t *testing.T) {
	file := question(t)
	url := during(t, func() {
		_, errs, code := command("", "fork", file, "--name", "meanwhile", "-o", file)
		require.Equal(t, exitDone, code, errs)
	}, content.Text{Text: "18 °C."})
	_, errs, code := command("", "run", file, "--provider", "anthropic", "--base-url", url, "--no-stream", "--defer-tools")
	require.Equal(t, exitBad, code)
	require.Contains(t, errs, "was changed during the run")
	d, err := dag.Load(file)
	require.NoError(t, err)
	require.Len(t, d.Refs(), 1)
	require.Empty(t, d.Text())
	beside, err := filepath.Glob(file + ".run-*.json")
	require.NoError(t, err)
	require.Len(t, beside, 1)
	require.Contains(t, errs, beside[0])
	out, errs, code := command("", "show", beside[0])
	require.Equal(t, exitDone, code, errs)
	require.Equal(t, "18 °C.\n", out)
}

// TestFileThatCannotBeWritten: what was said goes to a temporary file, which is named.
func TestFileThatCannotBeWritten(t *testing.T) {
	file := question(t)
	url := during(t, func() {
		require.NoError(t, os.RemoveAll(filepath.Dir(file)))
	}, content.Text{Text: "18 °C."})
	t.Setenv("TMPDIR", t.TempDir())
	_, errs, code := command("", "run", file, "--provider", "anthropic", "--base-url", url, "--no-stream", "--defer-tools")
	require.Equal(t, exitBad, code)
	_, other, ok := strings.Cut(strings.TrimSpace(errs), "the conversation is in ")
	require.True(t, ok, errs)
	out, errs, code := command("", "show", other)
	require.Equal(t, exitDone, code, errs)
	require.Equal(t, "18 °C.\n", out)
}

func TestVerifyPrintsOneLineForANameWithALineBreak(t *testing.T) {
	good := question(t)
	hostile := filepath.Join(t.TempDir(), "a\ngood.json: 4 nodes")
	text, err := os.ReadFile(good)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(hostile, text, 0o600))

	out, errs, code := command("", "verify", good, hostile)
	require.Equal(t, exitDone, code, errs)
	require.Equal(t, 3, strings.Count(out, "\n"), out)
	require.NotContains(t, out, "\ngood.json")
}

// TestInterruptedRun saves what was said, and can be gone on with.
func TestInterruptedRun(t *testing.T) {
	file := question(t)
	ctx, interrupt := context.WithCancel(context.Background())
	url := during(t, interrupt, content.Text{Text: "18 °C."})
	var out, errs bytes.Buffer
	code := plait(ctx, []string{"run", file, "--provider", "anthropic", "--base-url", url, "--user", "And Lyon?", "--defer-tools", "-q"}, strings.NewReader(""), &out, &errs)
	require.Equal(t, exitBad, code)
	require.Equal(t, "repaired: message 0: merged: two user messages in a row\nplait: interrupted; the conversation so far is saved\n", errs.String())
	log, told, code := command("", "log", file)
	require.Equal(t, exitDone, code, told)
	require.Contains(t, log, "And Lyon?")

	url = during(t, func() {}, content.Text{Text: "18 °C."})
	answer, told, code := command("", "run", file, "--provider", "anthropic", "--base-url", url, "--no-stream", "--defer-tools")
	require.Equal(t, exitDone, code, told)
	require.Equal(t, "18 °C.\n", answer)
}

// TestRunReportsArgumentsThatWereRepaired: a model wrote its arguments as a JSON string, and the call that waits has the object inside.
func TestRunReportsArgumentsThatWereRepaired(t *testing.T) {
	file := question(t)
	call := use("call_1", "Paris")
	call.Input = `"{\"city\":\"Paris\"}"`
	url := during(t, func() {}, call)
	out, errs, code := command("", "run", file, "--provider", "anthropic", "--base-url", url, "--no-stream", "--defer-tools", "-q")
	require.Equal(t, exitPaused, code, errs)
	require.Equal(t, "repaired: call call_1: arguments: the JSON object inside what the model wrote is used\n", errs)
	require.Contains(t, out, `"city": "Paris"`)
	require.Contains(t, out, `"call call_1: arguments: `)
}

// TestParallelCallsWithoutIDsAreNotRepaired: Gemini leaves out the IDs of calls, so two calls share the empty one.
func TestParallelCallsWithoutIDsAreNotRepaired(t *testing.T) {
	file := question(t)
	model := fake.Gemini(fake.GeminiContent(
		content.ToolUse{Name: "get_weather", Input: `{"city":"Paris"}`}, content.ToolUse{Name: "get_weather", Input: `{"city":"Oslo"}`}))
	server := httptest.NewServer(model)
	defer server.Close()
	out, errs, code := command("", "run", file, "--provider", "gemini", "--model", "gemini-2.5-flash", "--base-url", server.URL, "--no-stream", "--defer-tools", "-q")
	require.Equal(t, exitPaused, code, errs)
	require.Empty(t, errs)
	require.Contains(t, out, `"city": "Paris"`)
	require.Contains(t, out, `"city": "Oslo"`)
	require.NotContains(t, out, "arguments:")
}

// TestHostileResults change nothing, and name what is wrong.
func TestHostileResults(t *testing.T) {
	file := question(t)
	url := during(t, func() {}, use("call_1", "Paris"), content.Text{Text: "18 °C."})
	_, errs, code := command("", "run", file, "--provider", "anthropic", "--base-url", url, "--no-stream", "--defer-tools")
	require.Equal(t, exitPaused, code, errs)
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	for replies, want := range map[string]string{
		``:                    "-: ",
		`null`:                "-: it is not an object of replies",
		`[]`:                  "-: ",
		`{"call_1": null}`:    "-: ",
		`{"call_1": "18 °C"}`: "-: ",
		`{"call_1": {}}`:      "neither approve nor result",
		`{"call_1": {"result": "x", "\u001b[2J": 1}}`:                       "",
		`{"\u001b[2J": {"result": "x"}}`:                                    "the call is not pending",
		`{"call_1": {"approve": true}}`:                                     "",
		`{"call_1": {"result": [{"type": "tool_result", "call_id": "a"}]}}`: "",
		"{\"call_1\": {\"result\": \"a\xffb\"}}":                            "-: ",
	} {
		_, errs, code := command(replies, "resume", file, "--results", "-")
		require.Equal(t, exitBad, code, "%s: %s", replies, errs)
		require.Contains(t, errs, want, replies)
		require.NotContains(t, errs, "\x1b")
		after, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(before), string(after), replies)
	}
	_, errs, code = command(string(before), "resume", "-", "--results", "-")
	require.Equal(t, exitBad, code)
	require.Contains(t, errs, "standard input")
}

// TestNoFile looks at what is no saved conversation with every command.
func TestNoFile(t *testing.T) {
	dir := t.TempDir()
	file := question(t)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	torn := filepath.Join(dir, "torn.json")
	require.NoError(t, os.WriteFile(torn, data[:len(data)/2], 0o600))
	for _, name := range []string{dir, torn, filepath.Join(dir, "missing.json"), os.DevNull} {
		for _, line := range []string{
			"log", "show", "verify", "prune", "fork --name x", "export --to gemini", "render --as dot", "redact FILE 1234", "diff FILE FILE",
			"run --provider anthropic --model m", "resume --results -", "import --from anthropic",
		} {
			if !strings.Contains(line, "FILE") {
				line += " FILE"
			}
			args := strings.Fields(line)
			for i, arg := range args {
				args[i] = strings.Replace(arg, "FILE", name, 1)
			}
			out, errs, code := command("{}", args...)
			require.Equal(t, exitBad, code, "%v: %s", args, errs)
			require.Contains(t, errs, name, "%v", args)
			require.Empty(t, out)
		}
	}
	after, err := os.ReadFile(torn)
	require.NoError(t, err)
	require.Len(t, after, len(data)/2)
}

// TestPauseEndsWithWhatItWaitsFor: a paused run repeats arguments, which must not outlive their redaction, and belongs to one end.
func TestPauseEndsWithWhatItWaitsFor(t *testing.T) {
	file := question(t)
	url := during(t, func() {}, use("call_1", "Secretville"))
	_, errs, code := command("", "run", file, "--provider", "anthropic", "--base-url", url, "--no-stream", "--defer-tools")
	require.Equal(t, exitPaused, code, errs)
	d, err := dag.Load(file)
	require.NoError(t, err)

	fork := filepath.Join(t.TempDir(), "fork.json")
	_, errs, code = command("", "fork", file, "--at", d.Head().Parent(0).ID().String(), "-o", fork)
	require.Equal(t, exitDone, code, errs)
	_, errs, code = command("{}", "resume", fork, "--results", "-")
	require.Equal(t, exitBad, code)
	require.Contains(t, errs, "holds no paused run")

	_, errs, code = command("", "redact", file, d.Head().Parent(0).ID().String())
	require.Equal(t, exitDone, code, errs)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(text), "Secretville")
}

func TestResumeNamesTheReplyThatIsWrong(t *testing.T) {
	for replies, reason := range map[string]string{
		`{"call_1":"22"}`:              `the reply to "call_1": it is no JSON object`,
		`{"call_1":{"result":22}}`:     `the reply to "call_1": result: it is neither a string nor a list of blocks`,
		`{"call_1":{"resul":"22"}}`:    `the reply to "call_1": resul: it does not belong`,
		`[]`:                           `it is not an object of replies, such as {"call_1": {"result": "22 °C"}}`,
		`null`:                         `it is not an object of replies, such as {"call_1": {"result": "22 °C"}}`,
		`{"call_1":{"result":"22"}`:    `unexpected end of JSON input`,
		`{"call_1":{"approve":"yes"}}`: `the reply to "call_1": approve: it is neither true nor false`,
	} {
		waiting := dag.New().User("Go.").Assistant("", content.ToolUse{ID: "call_1", Name: "look", Input: "{}"}).
			AppendExecutions(node.ToolExecution{State: node.ExecutionAwaitingApproval})
		r := &runner{streams: &streams{}, results: filepath.Join(t.TempDir(), "replies.json")}
		require.NoError(t, os.WriteFile(r.results, []byte(replies), 0o600))
		_, err := r.replies(waiting)
		require.ErrorContains(t, err, reason, replies)
	}
}

// A conversation may come from somebody else. Were its server used, it would get the user's key.
func TestServerThatOnlyTheConversationNamesIsRefused(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "secret")
	file := filepath.Join(t.TempDir(), "talk.json")
	settings := runSettings{Provider: "openai-chat", Model: "m", BaseURL: "http://server.invalid/v1"}
	require.NoError(t, dag.New().User("Hi").WithMetadata(runKey, settings).Save(file))

	for _, args := range [][]string{{"chat", file}, {"chat", file, "--model", "gpt-5"}, {"run", file}} {
		_, errs, code := command("Hi\n", args...)
		require.Equal(t, exitBad, code, args)
		require.Contains(t, errs, `names the server "http://server.invalid/v1"`, args)
		require.Contains(t, errs, "--base-url", args)
	}
}

func TestServersThatAConversationMayName(t *testing.T) {
	for s, trusted := range map[runSettings]bool{
		{Provider: "openai-chat"}:                                                true,
		{Provider: "openai-chat", BaseURL: "http://127.0.0.1:8080/v1"}:           true,
		{Provider: "openai-chat", BaseURL: "http://[::1]:8080/v1"}:               true,
		{Provider: "anthropic", BaseURL: "http://localhost:8080"}:                true,
		{Provider: "deepseek", BaseURL: "https://api.deepseek.com/v1"}:           true,
		{Provider: "groq", BaseURL: "https://api.deepseek.com/v1"}:               false,
		{Provider: "openai-chat", BaseURL: "https://llm.example.com/v1"}:         false,
		{Provider: "openai-chat", BaseURL: "http://127.0.0.1@llm.example.com/"}:  false,
		{Provider: "openai-chat", BaseURL: "http://127.0.0.1.example.com/"}:      false,
		{Provider: "openai-chat", BaseURL: "http://localhost.example.com/"}:      false,
		{Provider: "openai-chat", BaseURL: "//llm.example.com/127.0.0.1"}:        false,
		{Provider: "openai-chat", BaseURL: "http://llm.example.com\n/127.0.0.1"}: false,
	} {
		require.Equal(t, trusted, s.trusted(), "%s at %s", s.Provider, s.BaseURL)
	}
}

// TestSavesAtTheSameTimeLoseNothing: of programs that have read the same FILE, the first one to save replaces it. The
// others keep what they have beside it.
func TestSavesAtTheSameTimeLoseNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: folders have no locks on Windows")
	}
	file := question(t)
	for range 5 {
		var runs [8]runner
		errs := make([]error, len(runs))
		for i := range runs {
			runs[i].streams = &streams{}
			_, err := runs[i].open(file)
			require.NoError(t, err)
		}

		var saves sync.WaitGroup
		for i := range runs {
			saves.Go(func() {
				_, errs[i] = runs[i].keep(file, dag.New().User(fmt.Sprint(i)))
			})
		}
		saves.Wait()

		var done []int
		for i, err := range errs {
			if err == nil {
				done = append(done, i)
			}
		}
		require.Len(t, done, 1)
		d, err := dag.Load(file)
		require.NoError(t, err)
		require.Equal(t, dag.New().User(fmt.Sprint(done[0])).String(), d.String())
	}
	beside, err := filepath.Glob(file + ".run-*.json")
	require.NoError(t, err)
	require.Len(t, beside, 5*7)
}
