package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/testkit/pgtest"
	_ "github.com/plait-dev/plait/internal/testkit/quick"
)

func TestMain(m *testing.M) {
	testscript.Main(withServers{m}, map[string]func(){"plait": main, "weather-mcp": weatherMCP})
}

// withServers stops the PostgreSQL of the tests when they end.
type withServers struct{ m *testing.M }

func (w withServers) Run() int { return pgtest.Run(w.m) }

// TestScripts runs what people type: "run plait …", or "exits 3 plait …" with the exit code that is to come. "input FILE"
// is the standard input of the next command. "node X FILE words" puts the id of the node that says the words into $X.
// "change FILE old new" changes it by hand. "number FILE" replaces its IDs, in their order, by 1, 2, 3 and so on. "begun
// DATABASE" makes durable runs in several states, "worked DATABASE RUN…" executes them, and "damaged DATABASE RUN RUN"
// changes the index of the one and removes the other. $ANTHROPIC is a strict server that calls two tools and then
// answers. $TALK is one that talks, and $CALLS one that calls two tools for each message. weather-mcp is an MCP server.
func TestScripts(t *testing.T) { runScripts(t, "testdata/script", "") }

// TestPostgresScripts is TestScripts with $POSTGRES, the URL of an empty database.
func TestPostgresScripts(t *testing.T) { runScripts(t, "testdata/postgres", pgtest.Database(t)) }

func TestRunsInBothDatabases(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { runScripts(t, "testdata/runs", "sessions.db") })
	t.Run("postgres", func(t *testing.T) { runScripts(t, "testdata/runs", pgtest.Database(t)) })
}

func runScripts(t *testing.T, folder, url string) {
	variables := variablesOf(t, folder)
	folder, err := filepath.Abs(folder) // a command of a script changes the working directory
	require.NoError(t, err)
	path := os.Getenv("PATH") // a command of another script may just be changing it
	testscript.Run(t, testscript.Params{
		Dir: folder,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"run":     scriptRun,
			"input":   scriptInput,
			"exits":   scriptExits,
			"node":    nodeID,
			"change":  change,
			"begun":   begun,
			"worked":  worked,
			"damaged": damaged,
			"number":  number,
		},
		Setup: func(env *testscript.Env) error {
			server := httptest.NewServer(fake.Anthropic(
				fake.AnthropicMessage(content.Text{Text: "I look."}, use("call_1", "Paris"), use("call_2", "Tokyo")),
				fake.AnthropicMessage(content.Text{Text: "Paris has 18 °C and Tokyo 22 °C."}),
			))
			env.Defer(server.Close)
			env.Setenv("PATH", path)
			env.Setenv("ANTHROPIC", server.URL)
			env.Setenv("TALK", talkingServer(env))
			env.Setenv("CALLS", callingServer(env))
			env.Setenv("POSTGRES", url)
			env.Setenv("DATABASE", url)
			env.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector lets each process end a second later
			begin(env, variables)
			return nil
		},
	})
}

// talkingServer starts a strict server that answers "Answer 1.", "Answer 2." and so on, and knows no model "wrong". It returns its URL.
func talkingServer(env *testscript.Env) string {
	var replies []fake.Reply
	for n := range 20 {
		replies = append(replies, fake.AnthropicMessage(content.Text{Text: fmt.Sprintf("Answer %d.", n+1)}))
	}
	talk := fake.Anthropic(replies...)

	return routed(env, func(body []byte) http.Handler {
		if bytes.Contains(body, []byte(`"model":"wrong"`)) {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusNotFound)
				fmt.Fprint(w, `{"type":"error","error":{"type":"not_found_error","message":"model: wrong"}}`)
			})
		}
		return talk
	})
}

// callingServer starts a strict server that calls two tools for each message, and then answers with an escape sequence. It returns its URL.
func callingServer(env *testscript.Env) string {
	var calls, answers []fake.Reply
	for n := range 20 {
		paris, tokyo := fmt.Sprintf("paris_%d", n), fmt.Sprintf("tokyo_%d", n)
		calls = append(calls, fake.AnthropicMessage(content.Text{Text: "I look."}, use(paris, "Paris"), use(tokyo, "Tokyo")))
		answers = append(answers, fake.AnthropicMessage(content.Text{Text: "Done.\x1b]0;title\a"}))
	}
	call, answer := fake.Anthropic(calls...), fake.Anthropic(answers...)

	return routed(env, func(body []byte) http.Handler {
		var request struct {
			Messages []struct {
				Content []struct{ Type string }
			}
		}
		_ = json.Unmarshal(body, &request) // call refuses what cannot be read
		if n := len(request.Messages); n > 0 && request.Messages[n-1].Content[0].Type == "tool_result" {
			return answer
		}
		return call
	})
}

// routed starts a server whose requests are answered by the handler that route returns for their bodies. It returns its URL.
func routed(env *testscript.Env, route func(body []byte) http.Handler) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		route(body).ServeHTTP(w, r)
	}))
	env.Defer(server.Close)
	return server.URL
}

// weatherMCP is an MCP server on standard input and output. Its results have an escape sequence.
func weatherMCP() {
	server := sdk.NewServer(&sdk.Implementation{Name: "weather", Version: "v1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "get_weather", Description: "Current weather for one city."},
		func(_ context.Context, _ *sdk.CallToolRequest, in struct {
			City string `json:"city"`
		}) (*sdk.CallToolResult, any, error) {
			text := in.City + " has 18 °C.\x1b[2J"
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, nil
		})
	if err := server.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func use(id, city string) content.ToolUse {
	return content.ToolUse{ID: id, Name: "get_weather", Input: content.JSON(`{"city":"` + city + `"}`)}
}

func nodeID(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: node NAME FILE WORDS")
	}
	from := &streams{ctx: context.Background()}
	defer from.databases.close()
	d, err := from.load(ts.MkAbs(args[1]))
	ts.Check(err)
	for _, n := range d.Nodes() {
		if strings.Contains(says(describe.Of(n)), args[2]) {
			ts.Setenv(args[0], n.ID().String())
			return
		}
	}
	ts.Fatalf("no node says %q", args[2])
}

func number(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: number FILE")
	}
	text := ts.ReadFile(args[0])
	ids := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).FindAllString(text, -1)
	slices.Sort(ids)
	for i, id := range slices.Compact(ids) {
		text = strings.ReplaceAll(text, id, fmt.Sprintf("00000000-0000-7000-8000-%012x", i+1))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

func change(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: change FILE OLD NEW")
	}
	text := ts.ReadFile(args[0])
	changed := strings.ReplaceAll(text, args[1], args[2])
	if changed == text {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(changed), 0o600))
}
