package providers

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// ownTools is a response of an API in which its model uses all tools that the API offers, and ends with calls that the
// program answers.
type ownTools struct {
	tools    []content.Tool
	body     content.JSON // further members of a request
	response string       // with %s for the items
	items    []item
	// secret begins everything in the items that only the API can read: signatures, encrypted content, containers.
	secret string
	// rest is the response to the results of the calls, if a tool that the API runs waits for them. If another model
	// ends the turn, the API gets the items of left in place of those that wait.
	rest []string
	left map[int]string
	// running is in requests of the turn, while it has a tool that waits.
	running string
}

// item is an item of a response: a block, a part, a tool call of a message.
type item struct {
	json string // as it comes, and as it goes back to its API
	text string // what models of other APIs read in its place
	note string // a part of the note about it in requests to other APIs, if it loses anything there
}

// only is a tool that one API has: its name, and its entry among the API's tools.
func only(api, name string, entry content.JSON) content.Tool {
	return content.Tool{Name: name, Extra: content.Extra{API: api, JSON: entry}}
}

// became is the end of a note about an item that became text.
const became = " can read became text"

// ownToolsOf are the responses of all APIs.
var ownToolsOf = map[string]ownTools{
	"anthropic": {
		tools: []content.Tool{
			only("anthropic", "web_search", `{"type":"web_search_20250305","name":"web_search"}`),
			only("anthropic", "code_execution", `{"type":"code_execution_20260120","name":"code_execution"}`),
			only("anthropic", "claude_computer", `{"type":"computer_20250124","name":"computer","display_width_px":800,"display_height_px":600}`),
			only("anthropic", "files", `{"type":"mcp_toolset","mcp_server_name":"files"}`),
			only("anthropic", "browser", `{"type":"browser_toolset_20260801"}`),
		},
		body: `{"mcp_servers":[{"type":"url","name":"files","url":"https://files.test/mcp"}]}`,
		response: `{"id":"msg_1","type":"message","role":"assistant","model":"claude-test","content":[%s],"container":{"id":"secret_anthropic_container","expires_at":"2026-05-05T21:31:45Z"},` +
			`"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5}}`,
		items: []item{
			{`{"type":"thinking","thinking":"A secret thought.","signature":"secret_anthropic_signature"}`, "", "thinking that only anthropic can read"},
			{`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"snow in Oslo"}}`, "snow in Oslo", "anthropic" + became},
			{`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://yr.test/oslo","title":"Oslo this week","encrypted_content":"secret_anthropic_page","page_age":null}]}`,
				"Oslo this week", "anthropic" + became},
			{`{"type":"text","text":"It may snow in Oslo.","citations":[{"type":"web_search_result_location","cited_text":"Snow.","url":"https://yr.test/oslo","title":"Oslo this week","encrypted_index":"secret_anthropic_index"}]}`,
				"It may snow in Oslo.", "citations"},
			{`{"type":"mcp_tool_use","id":"mcptoolu_1","name":"list_files","input":{"path":"reports"},"server_name":"files"}`, "list_files", "anthropic" + became},
			{`{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","is_error":false,"content":[{"type":"text","text":"budget.csv"}]}`, "budget.csv", "anthropic" + became},
			{`{"type":"server_tool_use","id":"srvtoolu_2","name":"code_execution","input":{"code":"print(get_weather(city))"}}`, "print(get_weather(city))", "anthropic" + became},
			{`{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{"city":"Oslo"},"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_2"}}`, "Oslo", ""},
			{`{"type":"tool_use","id":"toolu_2","name":"computer","input":{"action":"screenshot"}}`, "screenshot", ""},
			{`{"type":"tool_use","id":"toolu_3","name":"navigate","input":{"url":"https://yr.test"},"toolset_name":"browser"}`, "browser_navigate", ""},
		},
		secret: "secret_anthropic",
		left: map[int]string{
			6: "", // the code that waits
			7: `{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{"city":"Oslo"}}`,
		},
		running: `"container":"secret_anthropic_container"`,
		rest: []string{
			`{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_2","content":{"type":"code_execution_result","stdout":"snow","stderr":"","return_code":0,"content":[]}}`,
			`{"type":"text","text":"It snows in Oslo."}`,
		},
	},
	"openai-responses": {
		secret: "secret_openai",
		tools: []content.Tool{
			only("openai-responses", "gpt_search", `{"type":"web_search"}`), only("openai-responses", "gpt_code", `{"type":"code_interpreter","container":{"type":"auto"}}`),
			only("openai-responses", "gpt_computer", `{"type":"computer"}`), only("openai-responses", "gpt_shell", `{"type":"shell"}`), only("openai-responses", "gpt_patch", `{"type":"apply_patch"}`),
			only("openai-responses", "gpt_files", `{"type":"mcp","server_label":"files","server_url":"https://files.test/mcp","require_approval":"always"}`),
		},
		response: `{"id":"resp_1","object":"response","created_at":1700000000,"status":"completed","error":null,"incomplete_details":null,"model":"gpt-test","output":[%s],` +
			`"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}`,
		items: []item{
			{`{"type":"reasoning","summary":[{"type":"summary_text","text":"A secret thought."}],"encrypted_content":"secret_openai_1","id":"rs_1"}`, "", "thinking that only openai-responses can read"},
			{`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"snow in Bergen"}}`, "snow in Bergen", "openai-responses" + became},
			{`{"type":"message","role":"assistant","id":"msg_1","status":"completed","content":[{"type":"output_text","text":"Bergen is wet.","annotations":[{"type":"url_citation","start_index":0,"end_index":6,"url":"https://yr.test/bergen","title":"Bergen"}],"logprobs":[]}]}`,
				"Bergen is wet.", "citations"},
			{`{"type":"code_interpreter_call","id":"ci_1","status":"completed","container_id":"secret_openai_container","code":"print(6*7)","outputs":[{"type":"logs","logs":"forty-two"}]}`, "forty-two", "openai-responses" + became},
			{`{"type":"mcp_list_tools","id":"mcpl_1","server_label":"files","tools":[{"name":"read_file","input_schema":{"type":"object"}}]}`, "", "only openai-responses can read"},
			{`{"type":"mcp_call","id":"mcp_1","server_label":"files","name":"read_file","arguments":"{\"path\":\"plan.md\"}","output":"Buy skis.","status":"completed"}`, "Buy skis.", "openai-responses" + became},
			{`{"type":"reasoning","summary":[],"encrypted_content":"secret_openai_2","id":"rs_2"}`, "", "thinking that only openai-responses can read"},
			{`{"type":"computer_call","call_id":"call_1","action":{"type":"click","x":11,"y":22},"pending_safety_checks":[],"id":"cu_1","status":"completed"}`, "click", ""},
			{`{"type":"shell_call","call_id":"call_2","action":{"commands":["ls reports"]},"id":"sh_1","status":"completed","environment":{"type":"local"}}`, "ls reports", ""},
			{`{"type":"apply_patch_call","call_id":"call_3","operation":{"type":"delete_file","path":"old.md"},"id":"apc_1","status":"completed"}`, "old.md", ""},
			{`{"type":"program","id":"prog_1","call_id":"prg_1","code":"await get_weather(city)","fingerprint":"secret_openai_program"}`, "await get_weather(city)", "openai-responses" + became},
			{`{"type":"function_call","call_id":"call_4","name":"get_weather","arguments":"{\"city\":\"Bergen\"}","id":"fc_1","status":"completed","caller":{"type":"program","caller_id":"prg_1"}}`, "Bergen", ""},
			{`{"type":"mcp_approval_request","id":"mcpr_1","server_label":"files","name":"drop_file","arguments":"{}"}`, "drop_file", ""},
		},
	},
	"openai-chat": {
		tools: []content.Tool{only("openai-chat", "notes", `{"type":"custom","custom":{"name":"notes"}}`)},
		response: `{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"gpt-test","choices":[{"index":0,"message":{"role":"assistant","content":"Bodø is sunny.","refusal":null,` +
			`"annotations":[{"type":"url_citation","url_citation":{"start_index":0,"end_index":5,"url":"https://yr.test/bodo","title":"Bodø"}}],"tool_calls":[%s]},"logprobs":null,"finish_reason":"tool_calls"}],` +
			`"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`,
		items: []item{
			{`{"id":"call_c1","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Bodø\"}"}}`, "Bodø", "citations"},
			{`{"id":"call_c2","type":"custom","custom":{"name":"notes","input":"remember the skis"}}`, "remember the skis", "the arguments of notes"},
		},
	},
	"gemini": {
		secret: "c2VjcmV0", // "secret", in base64
		tools: []content.Tool{
			only("gemini", "gemini_search", `{"googleSearch":{}}`), only("gemini", "gemini_code", `{"codeExecution":{}}`),
			only("gemini", "gemini_computer", `{"computerUse":{"environment":"ENVIRONMENT_BROWSER"}}`),
		},
		response: `{"candidates":[{"content":{"parts":[%s],"role":"model"},"finishReason":"STOP","index":0,"groundingMetadata":{"webSearchQueries":["rain in Narvik"]}}],` +
			`"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15},"modelVersion":"gemini-3-test","responseId":"r"}`,
		items: []item{
			{`{"text":"A secret thought.","thought":true,"thoughtSignature":"c2VjcmV0MQ=="}`, "", "thinking that only gemini can read"},
			{`{"executableCode":{"language":"PYTHON","code":"print(1+1)"},"thoughtSignature":"c2VjcmV0Mg=="}`, "print(1+1)", "gemini" + became},
			{`{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"two"}}`, "two", "gemini" + became},
			{`{"toolCall":{"id":"tc_1","toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["rain in Narvik"]}},"thoughtSignature":"c2VjcmV0Mw=="}`, "rain in Narvik", "gemini" + became},
			{`{"toolResponse":{"id":"tc_1","toolType":"GOOGLE_SEARCH_WEB","response":{"results":["Narvik is dry."]}}}`, "Narvik is dry.", "gemini" + became},
			{`{"text":"Narvik is dry today.","thoughtSignature":"c2VjcmV0NA=="}`, "Narvik is dry today.", ""},
			{`{"functionCall":{"id":"fc_1","name":"open_web_browser","args":{}},"thoughtSignature":"c2VjcmV0NQ=="}`, "open_web_browser", ""},
			{`{"functionCall":{"id":"fc_2","name":"get_weather","args":{"city":"Narvik"}}}`, "Narvik", "citations"},
		},
	},
}

// TestOwnToolsTravel lets a model of each API use everything that the API offers, and pauses at calls that wait for
// approval. The conversation is saved, loaded and continued by models of other APIs, which do the same, and by the first
// again, in the middle of its turn and after it. The strict fakes accept every request. An API gets its items back as
// they came; of what another API cannot read, a note reports what became of it.
func TestOwnToolsTravel(t *testing.T) {
	t.Parallel()
	for _, paths := range travels() {
		for mode, noStream := range map[string]bool{"streamed": false, "whole": true} {
			t.Run(strings.Join(paths, " ")+"/"+mode, func(t *testing.T) { travel(t, paths, noStream) })
		}
	}
}

// travels lists the paths: the API of each step. Each API uses all of its tools in its first step, and finishes the turn
// in a later one.
func travels() (paths [][]string) {
	names := []string{"anthropic", "openai-responses", "openai-chat", "gemini"}
	for i, from := range names {
		paths = append(paths, []string{from, from, from})
		for _, to := range names {
			if from != to {
				paths = append(paths, []string{from, to, from, to, from}, []string{from, to, to, from})
			}
		}
		around := append(append([]string(nil), names[i:]...), names[:i]...)
		paths = append(paths, append(around, append(around, around...)...))
	}
	return paths
}

func travel(t *testing.T, path []string, noStream bool) {
	fakes := fakesFor(path)
	weather := executor.NewTool(greeting().Tools[0], func(context.Context, executor.Call) (executor.Result, error) {
		return executor.Result{Content: content.Words("Snow.")}, nil
	})
	tools := []dag.Tool{weather}
	for _, p := range providers {
		for _, tool := range ownToolsOf[p.name].tools {
			tools = append(tools, tool)
		}
	}

	d := dag.New().System("Be brief.").Tools(tools...).User("Weather?")
	var j journey
	for _, name := range path {
		p, _ := named(name)
		server := httptest.NewServer(fakes[name])
		model := p.at(server, api.Options{Body: ownToolsOf[name].body, Cache: api.CacheOff}, noStream)
		next, notes, err := proceed(t.Context(), d, api.NewClient(model, &api.ClientOptions{Attempts: 1}), weather)
		server.Close()
		require.Empty(t, fakes[name].Refused(), name)
		bodies := fakes[name].Bodies()
		j.check(t, name, string(bodies[len(bodies)-1]), strings.Join(notes, "\n"))

		// The first response pauses the run, a later one ends it.
		if j.step(name) {
			var paused *executor.PausedError
			require.ErrorAs(t, err, &paused, name)
		} else {
			require.NoError(t, err, name)
			next = next.User("And now?")
		}
		var saved bytes.Buffer
		require.NoError(t, next.Write(&saved))
		d, err = dag.Read(&saved)
		require.NoError(t, err)
	}
}

// proceed runs a conversation, or resumes it: every call is approved. It returns the notes about the request.
func proceed(ctx context.Context, d dag.DAG, model api.Provider, weather executor.Tool) (dag.DAG, []string, error) {
	var notes []string
	agent := executor.Agent{
		Provider: model, Tools: []dag.Tool{weather},
		Handler: func(_ context.Context, call executor.Call) (any, error) {
			if call.Name == "mcp_approval_request" {
				return map[string]any{"approve": true}, nil
			}
			return "Done: " + call.Name, nil
		},
		Hooks: []executor.Hook{{
			Before: func(context.Context, executor.Call) (executor.Decision, error) {
				return executor.AskApproval("a person decides"), nil
			},
			Observe: func(ctx context.Context, event executor.Event, _ error) context.Context {
				if e, ok := event.(executor.Repaired); ok {
					notes = append(notes, notesOf(e.Repairs)...)
				}
				return ctx
			},
		}},
	}

	var replies []executor.Reply
	for _, pending := range d.Pending() {
		replies = append(replies, executor.Approved(pending))
	}
	if len(replies) == 0 {
		d, err := agent.Run(ctx, d)
		return d, notes, err
	}
	d, err := agent.Resume(ctx, d, replies...)
	return d, notes, err
}

// journey is the state of a conversation on its path.
type journey struct {
	used    []string        // the APIs that have used their tools
	waiting map[string]bool // those with a tool of their own that waits for the results of this turn
	ended   map[string]bool // those whose turn another model ended while a tool waited
	open    bool            // the last response has calls
}

// step records a response of an API, and reports whether it has calls.
func (j *journey) step(name string) bool {
	j.open = !slices.Contains(j.used, name)
	if j.open {
		j.used = append(j.used, name)
		j.mark(&j.waiting, name, len(ownToolsOf[name].rest) > 0)
		return true
	}

	for other, waits := range j.waiting {
		if waits && other != name {
			j.mark(&j.ended, other, true)
		}
	}
	j.waiting = nil
	return false
}

func (j *journey) mark(set *map[string]bool, name string, value bool) {
	if *set == nil {
		*set = map[string]bool{}
	}
	(*set)[name] = value
}

// fakesFor returns a fake of each API on a path, with its replies in order.
func fakesFor(path []string) map[string]*fake.API {
	replies := map[string][]fake.Reply{}
	var j journey
	for _, name := range path {
		own := ownToolsOf[name]
		p, _ := named(name)
		waits := j.waiting[name]
		switch {
		case j.step(name):
			var items []string
			for _, item := range own.items {
				items = append(items, item.json)
			}
			replies[name] = append(replies[name], fake.Reply{Body: fmt.Sprintf(own.response, strings.Join(items, ","))})
		case waits:
			ends := strings.Replace(fmt.Sprintf(own.response, strings.Join(own.rest, ",")), `"stop_reason":"tool_use"`, `"stop_reason":"end_turn"`, 1)
			replies[name] = append(replies[name], fake.Reply{Body: ends})
		default:
			replies[name] = append(replies[name], p.says(content.Text{Text: "Well."}))
		}
	}

	fakes := map[string]*fake.API{}
	for name, list := range replies {
		p, _ := named(name)
		fakes[name] = p.fake(list...)
	}
	return fakes
}

// check checks a request: it has what was used before, as it came, or as a text with a note.
func (j *journey) check(t *testing.T, name, body, notes string) {
	for _, from := range j.used {
		own := ownToolsOf[from]
		if from == name {
			j.checkOwn(t, name, body, notes)
			continue
		}

		for _, tool := range own.tools {
			require.Contains(t, notes, `"`+tool.Name+`" is left out`, "%s: a tool of %s", name, from)
		}
		for _, item := range own.items {
			require.Contains(t, body, item.text, "%s: of %s", name, item.json)
			require.Contains(t, notes, item.note, "%s: of %s", name, item.json)
		}
		if own.secret != "" {
			require.NotContains(t, body, own.secret, name)
		}
	}
}

// checkOwn checks that an API gets its own items back.
func (j *journey) checkOwn(t *testing.T, name, body, notes string) {
	own := ownToolsOf[name]
	for i, item := range own.items {
		want := item.json
		if left, ok := own.left[i]; ok && j.ended[name] {
			require.False(t, holds(body, want), "%s: the turn has ended: %s", name, want)
			require.Contains(t, notes, "a call of a server tool without its result")
			want = left
		}
		require.True(t, want == "" || holds(body, want), "%s\nlacks %s\nnotes: %s", body, want, notes)
	}
	for _, item := range own.rest {
		if !j.ended[name] && !j.waiting[name] {
			require.True(t, holds(body, item), "%s\nlacks %s", body, item)
		}
	}
	if own.running != "" {
		require.Equal(t, j.waiting[name], strings.Contains(body, own.running), body)
	}
}

// holds reports whether a document has a value, with the members in any order.
func holds(document, value string) bool {
	if strings.Contains(document, value) {
		return true
	}
	want := content.JSON(value).Canonical()
	var walk func(v jsontext.Value) bool
	walk = func(v jsontext.Value) bool {
		if content.JSON(v).Canonical() == want {
			return true
		}
		var object map[string]jsontext.Value
		var list []jsontext.Value
		_ = json.Unmarshal(v, &object)
		_ = json.Unmarshal(v, &list)
		for _, inner := range object {
			if walk(inner) {
				return true
			}
		}
		for _, inner := range list {
			if walk(inner) {
				return true
			}
		}
		return false
	}
	return walk(jsontext.Value(document))
}
