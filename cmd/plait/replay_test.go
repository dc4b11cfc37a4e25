package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/providertest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

// taped is a recorded exchange with what the command imports of its request.
type taped struct {
	providertest.Exchange
	asked savedRequest
	said  []content.Message
	want  map[string]any // the normal form of the request
}

// TestRunAndResumeMakeEveryLinkedRequestAgain plays every recorded conversation of several requests: the first request is imported,
// and "plait run --defer-tools" and "plait resume", given the recorded results and words of the user, make the others. The
// everyday run takes each third recording.
func TestRunAndResumeMakeEveryLinkedRequestAgain(t *testing.T) {
	t.Parallel()
	var cached cacheTally
	for _, a := range recordedAPIs {
		t.Run(a.format, func(t *testing.T) {
			files, passed, linked, played := 0, 0, 0, 0
			for i, c := range providertest.Cassettes(t, a.folder, a.name) {
				if len(c.HistoryLinks) == 0 || !seedtest.Sample(i, 3) {
					continue
				}
				files++
				again := 0
				if t.Run(c.Name, func(t *testing.T) { again = a.replay(t, c, &cached) }) {
					passed++
				}
				linked, played = linked+len(linkedRequests(c)), played+again
			}
			t.Logf("linked recordings: %d of %d pass; %d of %d linked requests are made again", passed, files, played, linked)
		})
	}
	cached.require(t)
}

// linkedRequests is the requests that hold an answer to another one.
func linkedRequests(c providertest.Cassette) []int {
	var linked []int
	for k := range c.Exchanges {
		if slices.ContainsFunc(c.HistoryLinks, func(link [2]int) bool { return link[1] == k }) {
			linked = append(linked, k)
		}
	}
	return linked
}

// replay plays all conversations of a file, and returns how many requests go on from another one.
func (a recordedAPI) replay(t *testing.T, c providertest.Cassette, cached *cacheTally) int {
	all := a.imported(t, c)
	again := map[int]bool{}
	for _, chain := range chains(c, all) {
		var tape []taped
		for i, k := range chain {
			tape = append(tape, all[k])
			again[k] = again[k] || i > 0
		}
		cached.add(a.play(t, c.Name, tape))
	}
	n := 0
	for _, k := range linkedRequests(c) {
		reason, excused := notPlayed[fmt.Sprintf("%s/%d", c.Name, k)]
		require.NotEqual(t, excused, again[k], "request %d: %s", k, reason)
		if again[k] {
			n++
		}
	}
	return n
}

// imported is all exchanges, imported by the command.
func (a recordedAPI) imported(t *testing.T, c providertest.Cassette) []taped {
	all := make([]taped, len(c.Exchanges))
	for k, e := range c.Exchanges {
		talk, told, code := command(e.Request.Body, "import", "--from", a.format, "-")
		require.Equal(t, exitDone, code, told)
		d, err := dag.Read(strings.NewReader(talk))
		require.NoError(t, err)
		all[k] = taped{Exchange: e, said: d.Messages(), asked: savedRequestOf(d), want: a.normal(t, e.Request.Body)}
		if k > 0 && all[k].want["previous_response_id"] != nil {
			all[k].withHistory(t, all[k-1])
		}
		if a.format == "gemini" { // whose bodies do not name the model
			_, model, _ := strings.Cut(e.Request.Path, "/models/")
			all[k].asked.Model, _, _ = strings.Cut(model, ":")
		}
	}
	return all
}

// withHistory puts the history into a request that left it to the API.
func (e *taped) withHistory(t *testing.T, before taped) {
	delete(e.want, "previous_response_id")
	var answer struct {
		Output []any `json:"output"`
	}
	require.NoError(t, json.Unmarshal(before.Body(t), &answer))
	e.want["input"] = slices.Concat(before.want["input"].([]any), answer.Output, e.want["input"].([]any))
	whole := providertest.NormalResponses(t, toJSON(t, e.want))
	if system := before.want["instructions"]; system != nil {
		whole["instructions"] = system
	}
	e.want = whole
	talk, told, code := command(toJSON(t, whole), "import", "--from", "openai-responses", "-")
	require.Equal(t, exitDone, code, told)
	d, err := dag.Read(strings.NewReader(talk))
	require.NoError(t, err)
	e.said = d.Messages()
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(e.asked.Body, &members))
	delete(members, "previous_response_id")
	e.asked.Body = json.RawMessage(toJSON(t, members))
}

func toJSON(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// chains is the conversations, each to where nothing goes on from it. A request goes on from the last one before it whose answer it
// holds and with whose words of the user's side it begins.
func chains(c providertest.Cassette, all []taped) [][]int {
	list := make([][]int, len(all))
	ends := make([]bool, len(all))
	for k := range all {
		ends[k] = true
		for j := range k {
			if slices.Contains(c.HistoryLinks, [2]int{j, k}) && goesOn(all[j].said, all[k].said) {
				list[k], ends[j] = list[j], false
			}
		}
		list[k] = append(slices.Clone(list[k]), k)
	}
	return slices.DeleteFunc(list, func(chain []int) bool { return len(chain) == 1 || !ends[chain[len(chain)-1]] })
}

// goesOn reports whether now is before, an answer, and what the user's side says to it.
func goesOn(before, now []content.Message) bool {
	n := len(before)
	if len(now) <= n || now[n].Role != content.Assistant {
		return false
	}
	answered := false // the user's side has spoken since
	for _, m := range now[n:] {
		if m.Role == content.User {
			answered = true
		} else if answered {
			return false
		}
	}
	return slices.Equal(keys(usersSide(before)), keys(usersSide(now[:n])))
}

func usersSide(messages []content.Message) []content.Block {
	var blocks []content.Block
	for _, m := range messages {
		if m.Role == content.User {
			blocks = append(blocks, m.Blocks.Slice()...)
		}
	}
	return blocks
}

// keys is what blocks say, without what a program changes from request to request.
func keys(blocks []content.Block) []string {
	var list []string
	for _, b := range blocks {
		switch b := b.(type) {
		case content.Text:
			list = append(list, b.Text)
		case content.ToolResult:
			list = append(list, "result of "+b.CallID)
		default:
			list = append(list, fmt.Sprintf("%T", b))
		}
	}
	return list
}

// play runs one conversation by the command, and returns it.
func (a recordedAPI) play(t *testing.T, name string, tape []taped) dag.DAG {
	var recorded []providertest.Exchange
	for _, e := range tape {
		recorded = append(recorded, e.Exchange)
	}
	p := providertest.Play(t, recorded...)
	file := filepath.Join(t.TempDir(), "talk.json")
	_, told, code := command(recorded[0].Request.Body, "import", "--from", a.format, "-", "-o", file)
	require.Equal(t, exitDone, code, told)
	var waiting pause
	began := 0
	for made := 0; made < len(tape); made = len(p.Requests()) {
		line := append([]string{"run", file, "--defer-tools"}, a.connection(p.URL, tape[made])...)
		if changedByProgram[name].unchecked {
			line = append(line, "--unchecked")
		}
		var replies string
		if made > 0 {
			now := tape[made].said[len(tape[made-1].said):]
			another := a.handsOver(tape[made-1], tape[made]) || len(usersSide(now)) == 0
			if another {
				require.Contains(t, handedOver, name)
			}
			if code == exitPaused {
				line[0], line[2] = "resume", "--results=-"
				replies = resultsOf(t, waiting.Calls, now)
				if another { // the results, and nothing is asked
					_, told, code = command(replies, append(line, "--max-turns", strconv.Itoa(made-began))...)
					require.Equal(t, exitDone, code, told)
					require.Len(t, p.Requests(), made)
					line[0], line[2] = "run", "--defer-tools"
				}
			}
			if another {
				a.handOver(t, file, tape[made])
			}
			line = append(line, a.words(t, now)...)
		}
		if line[0] == "run" {
			began = made
		}
		var out string
		out, told, code = command(replies, line...)
		require.Greater(t, len(p.Requests()), made, "%v makes no request: %s", line, told)
		if n := len(p.Requests()); n > len(tape) || tape[n-1].Response.Status != 200 {
			require.Equal(t, exitBad, code, "the API refused it, or the tape is over")
			break
		}
		require.Contains(t, []int{exitDone, exitPaused}, code, told)
		if code == exitPaused {
			waiting = pause{}
			require.NoError(t, json.Unmarshal([]byte(out), &waiting))
		}
	}
	requests := p.Requests()
	require.GreaterOrEqual(t, len(requests), len(tape))
	for i, e := range tape {
		if e.Response.Status == 200 || !refusedOtherwise[name] {
			a.requireAgain(t, name, e.want, requests[i])
		}
	}
	out, told, code := command("", "verify", file)
	require.Equal(t, exitDone, code, out+told)
	d, err := dag.Load(file)
	require.NoError(t, err)
	return d
}

// front is the members of a request that stand before the conversation.
var front = []string{"system", "instructions", "systemInstruction", "tools"}

// handsOver reports whether a program goes on with other instructions or tools.
func (a recordedAPI) handsOver(before, now taped) bool {
	return slices.ContainsFunc(front, func(name string) bool { return !reflect.DeepEqual(before.want[name], now.want[name]) })
}

// handOver gives the conversation to who goes on with it: exported, with the instructions and tools of the request, and imported.
func (a recordedAPI) handOver(t *testing.T, file string, next taped) {
	t.Helper()
	body, told, code := command("", "export", "--to", a.format, "--model", "any", file)
	require.Equal(t, exitDone, code, told)
	var now, want map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(body), &now))
	require.NoError(t, json.Unmarshal([]byte(next.Request.Body), &want))
	if a.format == "anthropic" {
		now["messages"] = withoutGoOn(t, now["messages"])
	}
	for _, name := range append([]string{"system_instruction"}, front...) {
		if delete(now, name); want[name] != nil {
			now[name] = want[name]
		}
	}
	if a.format == "openai-chat" || a.format == "openai-responses" {
		system, _ := instructions(t, want[a.messages])
		_, rest := instructions(t, now[a.messages])
		now[a.messages] = json.RawMessage(toJSON(t, slices.Concat(system, rest)))
	}
	_, told, code = command(toJSON(t, now), "import", "--from", a.format, "-", "-o", file)
	require.Equal(t, exitDone, code, told)
}

// withoutGoOn is messages without what is put after an answer, where nothing was said to it yet.
func withoutGoOn(t *testing.T, list json.RawMessage) json.RawMessage {
	var all []json.RawMessage
	require.NoError(t, json.Unmarshal(list, &all))
	if strings.Contains(string(all[len(all)-1]), `"`+content.GoOn+`"`) {
		all = all[:len(all)-1]
	}
	return json.RawMessage(toJSON(t, all))
}

// instructions is the messages at the beginning that are system prompts, and the others.
func instructions(t *testing.T, list json.RawMessage) (system, rest []json.RawMessage) {
	var all []json.RawMessage
	if json.Unmarshal(list, &all) != nil {
		return nil, []json.RawMessage{list} // a string
	}
	for _, raw := range all {
		var m struct {
			Role string `json:"role"`
		}
		require.NoError(t, json.Unmarshal(raw, &m))
		if len(rest) == 0 && (m.Role == "system" || m.Role == "developer") {
			system = append(system, raw)
		} else {
			rest = append(rest, raw)
		}
	}
	return system, rest
}

// connection is the flags that say whom to ask, and how it was asked for this request.
func (a recordedAPI) connection(url string, e taped) []string {
	if strings.HasPrefix(a.format, "openai") {
		url += "/v1"
	}
	flags := []string{"--provider", a.format, "--model", e.asked.Model, "--base-url", url}
	if len(e.asked.Body) > 0 {
		flags = append(flags, "--body", string(e.asked.Body))
	}
	if !e.Streamed() {
		flags = append(flags, "--no-stream")
	}
	return flags
}

// words is the flags for what the user says in messages, beside results.
func (a recordedAPI) words(t *testing.T, messages []content.Message) []string {
	added := providertest.Added(messages)
	if len(added) == 0 {
		return nil
	}
	if text, ok := added[0].(content.Text); ok && len(added) == 1 && text.Extra.JSON == "" {
		return []string{"--user", text.Text}
	}
	blocks, err := content.Of(added...)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "said.json")
	require.NoError(t, os.WriteFile(file, blocks.Append(nil), 0o600))
	return []string{"--user-json", file}
}

// resultsOf is the recorded results of the calls that wait: found by their ids, or where a program made those up, by what they call.
func resultsOf(t *testing.T, calls []pendingCall, messages []content.Message) string {
	type answered struct {
		content.ToolUse
		content.ToolResult
	}
	var open []content.ToolUse
	var all []answered
	for _, m := range messages {
		open = append(open, m.Blocks.ToolUses()...)
		for _, r := range m.Blocks.ToolResults() {
			i := slices.IndexFunc(open, func(use content.ToolUse) bool { return use.ID == r.CallID })
			require.GreaterOrEqual(t, i, 0)
			all = append(all, answered{open[i], r})
			open = slices.Delete(open, i, i+1)
		}
	}
	replies := map[string]any{}
	for _, call := range calls {
		i := slices.IndexFunc(all, func(a answered) bool { return a.ID == call.ID })
		if i < 0 {
			i = slices.IndexFunc(all, func(a answered) bool {
				return a.Name == call.Name && a.Input.Canonical() == content.JSON(call.Arguments).Canonical()
			})
		}
		if i >= 0 {
			replies[call.ID] = map[string]any{"result": all[i].Content, "is_error": all[i].IsError}
			all = slices.Delete(all, i, i+1)
		}
	}
	return toJSON(t, replies)
}

// requireAgain compares a request with the recorded one, but for what the recorded program changed.
func (a recordedAPI) requireAgain(t *testing.T, name string, want map[string]any, request string) {
	t.Helper()
	got := a.normal(t, request)
	if a.format == "openai-responses" {
		want, got = providertest.ResponsesSentBack(want), providertest.ResponsesSentBack(got)
	}
	differs := changedByProgram[name]
	if differs.answers {
		want[a.messages], got[a.messages] = usersSideOf(want[a.messages]), usersSideOf(got[a.messages])
	}
	if differs.ids || differs.files {
		for _, request := range []map[string]any{want, got} {
			bareParts(request, differs.files)
		}
	}
	providertest.RequireSame(t, want, got)
}

// usersSideOf is the messages, contents or items that are not the model's.
func usersSideOf(list any) []any {
	return slices.DeleteFunc(slices.Clone(list.([]any)), func(one any) bool {
		item := one.(map[string]any)
		switch item["type"] {
		case nil, "function_call_output", "custom_tool_call_output":
			return item["role"] == "assistant" || item["role"] == "model"
		}
		return true
	})
}

// bareParts takes the ids of calls and results out of a request of Gemini, and files beside results.
func bareParts(request map[string]any, files bool) {
	for _, c := range request["contents"].([]any) {
		for _, p := range c.(map[string]any)["parts"].([]any) {
			part := p.(map[string]any)
			for _, kind := range []string{"functionCall", "functionResponse"} {
				if call, ok := part[kind].(map[string]any); ok {
					delete(call, "id")
					if files {
						delete(call, "parts")
					}
				}
			}
		}
	}
}

// changed says in what a recorded program sent back something else than what was said, so that there Plait's requests differ from the
// recorded ones on purpose.
type changed struct {
	reason string
	// answers says that it changed the model's answers; what the user's side says is compared. That what is sent back is what the model
	// said is compared in the tests of the API's own module.
	answers bool
	// ids says that it made up ids for calls that had none, and files, that it sent files inside of results.
	ids, files bool
	// unchecked says that it answers calls itself whose arguments do not fit.
	unchecked bool
}

// changedByProgram is the whole list of recordings that pass with a difference.
var changedByProgram = map[string]changed{
	"crewAI--crewai-agents-testanthropicnativetoolcalling-test-anthropic-parallel-native-tool-calling-test-agent-ki": {
		reason: "it leaves out what the model said beside its calls", answers: true},
	"crewAI--crewai-utilities-testanthropicstructuredplanning-test-anthropic-research-workflow-generates-steps": {
		reason: "it leaves out what the model said beside its calls", answers: true},
	"crewAI--llms-anthropic-test-anthropic-agent-kickoff-structured-output-with-tools": {
		reason: "it leaves out what the model said beside its calls", answers: true},
	"ellmer--testthat-anthropic-web-search": {
		reason: "it leaves out the model's thinking and its citations", answers: true},
	"chatlas--test-provider-google-test-data-extraction":  {reason: "it leaves out the signature of a text", answers: true},
	"chatlas--test-provider-google-test-google-web-fetch": {reason: "it leaves out the signature of a text", answers: true},
	"chatlas--test-provider-google-test-tools-simple":     {reason: "it leaves out the signature of a text", answers: true},
	"fantasy--testgooglecommon-gemini-2-5-flash-multi-tool-streaming": {
		reason: "it makes up ids", ids: true},
	"fantasy--testgooglecommon-gemini-2-5-flash-multi-tool": {reason: "it makes up ids", ids: true},
	"fantasy--testgooglethinking-gemini-2-5-pro-thinking-streaming": {
		reason: "it makes up ids, and leaves out what the model thought", ids: true, answers: true},
	"fantasy--testgooglethinking-gemini-2-5-pro-thinking": {
		reason: "it makes up ids, and leaves out what the model thought", ids: true, answers: true},
	"pydantic-ai--models-test-google-test-google-model-file-search-grounding-gemini-3-false": {
		reason: "it adds to the calls of Google's tools what they found", answers: true},
	"pydantic-ai--models-test-multimodal-tool-returns-test-multimodal-tool-return-matrix-direct-uploaded-file-image": {
		reason: "it makes up ids, and sends a file inside a functionResponse; Plait shows it after the results", ids: true, files: true, unchecked: true},
	"pydantic-ai--models-test-openai-responses-test-openai-responses-thinking-with-modified-history": {
		reason: "it puts other words into the model's mouth, to see what the API does", answers: true},
	"pydantic-ai--test-tool-search-test-openai-native-tool-search-with-deferred-capability": {
		reason: "it rewrites the arguments and the results of a tool search, and declares what was found anew", answers: true},
}

// handedOver is the whole list of recordings in which a program goes on with other instructions or tools, or asks again where nothing was
// said. There the conversation is exported, given what is new, and imported.
var handedOver = map[string]string{
	"anthropic-sdk-go--toolrunner-tool-runner-custom-handling":                                                         "its second request has no tools",
	"pydantic-ai--test-anthropic-fable-5-1-drops-a-stale-thinking-block":                                               "it changes the system prompt, to see what the API does",
	"crewAI--crewai-agents-test-disabling-cache-for-agent":                                                             "it adds a system prompt",
	"crewAI--lib-crewai-test-hierarchical-process":                                                                     "it adds a system prompt",
	"crewAI--lib-crewai-test-tools-with-custom-caching":                                                                "it adds a system prompt",
	"crewAI--crewai-agents-test-lite-agent-structured-output":                                                          "it sends the model's answer back with nothing said to it",
	"dd-trace-py--contrib-openai-agents-test-multiple-agent-handoffs-with-chat-completions":                            "another agent goes on",
	"opentelemetry-python-contrib--instrumentation-genai-opentelemetry-instrumentation-openai-v2-test-async-chat-co-x": "its second request has no tools",
	"ruby-openai--gpt-3-5-turbo-multiple-tool-calls-full-conversation":                                                 "its second request has no tools",
	"dd-trace-py--contrib-openai-agents-test-multiple-agent-handoffs":                                                  "another agent goes on",
	"openllmetry--opentelemetry-instrumentation-openai-agents-test-complete-handoff-with-tools-test-router-analytic":   "another agent goes on",
	"openllmetry--opentelemetry-instrumentation-openai-agents-test-openai-agents-test-music-composer-handoff-hierar":   "another agent goes on",
	"openinference--openinference-instrumentation-google-adk-test-instrumentor-test-google-adk-instrumentor-image-a":   "it changes the system prompt on the way",
}

// notPlayed is the whole list of requests that hold the answer to another one and do not go on from it.
var notPlayed = map[string]string{
	"crewAI--llms-anthropic-test-anthropic-agent-kickoff-structured-output-with-tools/2": "the program asks anew, with the answer's words as the question",
	"crewAI--crewai-agents-test-disabling-cache-for-agent/5":                             "the program left out one of the two calls of the answer before",
	"crewAI--crewai-agents-test-lite-agent-structured-output/5":                          "the program asks anew, with the answer's words as the question",
	"adk-go--agent-llmagent-testdelegation-03-chattosingleturn/3":                        "words of the user stand before the answer that it goes on from",
}

// refusedOtherwise is the recordings whose last request the API refused, and Plait makes in a form that it takes.
var refusedOtherwise = map[string]bool{
	"pydantic-ai--models-test-multimodal-tool-returns-test-multimodal-tool-return-matrix-tool-return-content-url-fo": true, // sound
}
