package anthropic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/internal/testkit/providertest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// changed says in what a recorded program sent back something else than what was said, so that there Plait's requests differ from
// the recorded ones on purpose.
type changed struct {
	reason string
	// answers says that the program changed the model's answers. They are compared with what the model said instead.
	answers bool
	// member is a member of the request that the program changed; it is not compared.
	member string
}

// changedByProgram is the whole list of recordings that pass with a difference.
var changedByProgram = map[string]changed{
	"chatlas--test-provider-anthropic-test-data-extraction": {
		reason: "it encodes the JSON in the model's text anew, without spaces", answers: true},
	"crewAI--crewai-agents-testanthropicnativetoolcalling-test-anthropic-parallel-native-tool-calling-test-agent-ki": {
		reason: "it leaves out what the model said beside its calls", answers: true},
	"crewAI--crewai-utilities-testanthropicstructuredplanning-test-anthropic-research-workflow-generates-steps": {
		reason: "it leaves out what the model said beside its calls", answers: true},
	"crewAI--llms-anthropic-test-anthropic-agent-kickoff-structured-output-with-tools": {
		reason: "it leaves out what the model said beside its calls", answers: true},
	"ellmer--testthat-anthropic-web-search": {
		reason: "it leaves out the model's thinking and its citations", answers: true},
	"anthropic-sdk-go--toolrunner-tool-runner-custom-handling": {
		reason: "its second request has no tools; a conversation of Plait does not take a declaration back", member: "tools"},
	"pydantic-ai--test-anthropic-fable-5-1-drops-a-stale-thinking-block": {
		reason: "it changes the system prompt, to see what the API does", member: "system"},
}

// TestRunRepeatsRecordedConversations plays every conversation of several requests: Run, given the first request's conversation
// and tools that return the recorded results, must make every further request as it was recorded.
func TestRunRepeatsRecordedConversations(t *testing.T) {
	files, passed, requests := 0, 0, 0
	for _, c := range cassettes(t) {
		if len(c.HistoryLinks) == 0 {
			continue
		}
		files++
		ok := t.Run(c.Name, func(t *testing.T) {
			for _, chain := range chains(t, c) {
				replay(t, c, chain)
				requests += len(chain)
			}
		})
		if ok {
			passed++
		}
	}
	t.Logf("linked recordings: %d of %d pass (%d requests)", passed, files, requests)
}

// chains groups the exchanges into conversations: each begins anew or goes on from the one before it, which is told by whether its
// messages begin with those of that one.
func chains(t *testing.T, c providertest.Cassette) [][]int {
	var chains [][]int
	var before []content.Message
	for i, e := range c.Exchanges {
		now := importRequest(t, e.Request.Body).messages
		if n := len(before); n > 0 && len(now) > n && sameMessages(before, now[:n]) && now[n].Role == content.Assistant {
			chains[len(chains)-1] = append(chains[len(chains)-1], i)
		} else {
			chains = append(chains, []int{i})
		}
		before = now
	}
	return chains
}

func sameMessages(a, b []content.Message) bool {
	return slices.EqualFunc(a, b, func(x, y content.Message) bool { return x.Role == y.Role && bareEqual(x.Blocks, y.Blocks) })
}

// bareEqual compares blocks without their Extra, in which cache_control moves.
func bareEqual(a, b content.Blocks) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		x, _ := content.Of(bare(a.At(i))) // the blocks come from a list
		y, _ := content.Of(bare(b.At(i)))
		if !x.Equal(y) {
			return false
		}
	}
	return true
}

func bare(b content.Block) content.Block {
	switch b := b.(type) {
	case content.Text:
		b.Extra = content.Extra{}
		return b
	case content.Image:
		b.Extra = content.Extra{}
		return b
	case content.Document:
		b.Extra = content.Extra{}
		return b
	case content.ToolResult:
		b.Extra = content.Extra{}
		var inner []content.Block
		for _, in := range b.Content.All() {
			inner = append(inner, bare(in))
		}
		b.Content, _ = content.Of(inner...)
		return b
	}
	return b
}

// replay runs one conversation.
func replay(t *testing.T, c providertest.Cassette, chain []int) {
	var tape []providertest.Exchange
	var recorded []recording
	for _, i := range chain {
		tape = append(tape, c.Exchanges[i])
		recorded = append(recorded, importRequest(t, c.Exchanges[i].Request.Body))
	}
	p := providertest.Play(t, tape...)
	model := &providertest.Switching{}
	for _, r := range recorded {
		r.options.SDK = localSDK(p.URL, p.Client())
		model.Requests = append(model.Requests, New(r.model, &r.options))
	}
	agent := recordedAgent(t, model, recorded)
	d := recorded[0].dag
	for model.Made < len(tape) {
		if model.Made > 0 {
			d = d.User("", added(recorded[model.Made-1], recorded[model.Made])...)
		}
		before := model.Made
		agent.Limits.Turns = len(tape) - before
		next, err := agent.Run(context.Background(), d)
		require.NoError(t, err)
		require.Greater(t, model.Made, before, "the run made no request")
		d = next
	}
	for i, made := range p.Requests() {
		requireRequest(t, c, tape, recorded, i, made)
	}
	providertest.RequireSaved(t, d)
}

// requireRequest compares request i of a conversation with the recorded one.
func requireRequest(t *testing.T, c providertest.Cassette, tape []providertest.Exchange, recorded []recording, i int, made string) {
	want, got := providertest.NormalAnthropic(t, tape[i].Request.Body), providertest.NormalAnthropic(t, made)
	differs := changedByProgram[c.Name]
	delete(want, differs.member)
	delete(got, differs.member)
	if differs.answers {
		for j := range i {
			at := len(recorded[j].messages) // where the answer to request j stands
			said := got["messages"].([]any)[at].(map[string]any)
			requireAnswer(t, tape[j], said["content"].([]any))
			want["messages"].([]any)[at], got["messages"].([]any)[at] = "answer", "answer"
		}
	}
	providertest.RequireSame(t, want, got)
}

// requireAnswer checks that the blocks that are sent back are what the model said.
func requireAnswer(t *testing.T, e providertest.Exchange, blocks []any) {
	if e.Streamed() {
		require.Len(t, blocks, 1)
		require.Equal(t, map[string]any{"type": "text", "text": e.Derived.Text}, blocks[0])
		return
	}
	var answer struct {
		Content []any `json:"content"`
	}
	require.NoError(t, json.Unmarshal(e.Body(t), &answer, jsonx.Lenient))
	providertest.RequireSame(t, map[string]any{"content": providertest.NormalAnthropicContent(answer.Content)}, map[string]any{"content": blocks})
}

// added is what the user's side says in the next request beyond results, which Run gives.
func added(before, next recording) []content.Block {
	return providertest.Added(next.messages[len(before.messages):])
}

// recordedAgent is an agent whose tools return what was recorded.
func recordedAgent(t *testing.T, model api.Provider, recorded []recording) executor.Agent {
	results := map[string]content.ToolResult{}
	for _, r := range recorded {
		for _, m := range r.messages {
			for _, result := range m.Blocks.ToolResults() {
				results[result.CallID] = result
			}
		}
	}
	call := func(_ context.Context, call executor.Call) (executor.Result, error) {
		r, ok := results[call.ID]
		if !ok {
			return executor.Result{}, errors.New("no result was recorded")
		}
		return executor.Result{Content: r.Content, IsError: r.IsError}, nil
	}
	agent := executor.Agent{Provider: api.NewClient(model, &api.ClientOptions{Attempts: 1})}
	for _, def := range recorded[0].dag.ToolDefs() {
		if def.Server() { // also tools that a program runs but that are declared by their type (a computer, a memory)
			agent.Handler = func(ctx context.Context, c executor.Call) (any, error) { return call(ctx, c) }
			continue
		}
		agent.Tools = append(agent.Tools, executor.NewTool(def, call))
	}
	return agent
}

// repeatedIDs lists the recordings in which two calls of different turns have the same id. The API took them, although its words
// are that ids must be unique; Plait makes them unique.
var repeatedIDs = map[string]string{
	"cross-provider/pydantic-ai-test-tool-search-test-cross-provider-capability-replay-google-gemini-3-flash-preview-anthropic-cla": "0usajhl5",
}

// refusedByDAG lists the recordings that the API refused for a tool definition that a conversation does not take either.
var refusedByDAG = map[string]string{
	"rig--anthropic-strict-schema-matrix-boolean-root-schema-is-rejected-for-tool-input": "the schema is true",
}

// declare declares the tools of a request.
func declare(t *testing.T, body string) dag.DAG {
	req, _, err := Import([]byte(body))
	require.NoError(t, err)
	return dag.New().Tools(asTools(req.Tools)...)
}

// numberIDs replaces the id of each call, and of its result, by a number.
func numberIDs(request map[string]any) {
	n, now := 0, map[any]int{}
	for _, m := range request["messages"].([]any) {
		for _, b := range m.(map[string]any)["content"].([]any) {
			switch block := b.(map[string]any); block["type"] {
			case "tool_use":
				n++
				now[block["id"]], block["id"] = n, n
			case "tool_result":
				block["tool_use_id"] = now[block["tool_use_id"]]
			}
		}
	}
}

// TestEveryRecordedRequestSurvives imports every recorded request, makes the body again, and saves and loads the conversation.
func TestEveryRecordedRequestSurvives(t *testing.T) {
	count := providertest.Tally{T: t, What: "recorded requests"}
	for _, c := range cassettes(t) {
		for i, e := range c.Exchanges {
			if e.Request == nil {
				continue
			}
			count.Run(fmt.Sprintf("%s/%d", c.Name, i), func(t *testing.T) {
				if refusedByDAG[c.Name] != "" {
					require.ErrorIs(t, declare(t, e.Request.Body).Err(), content.ErrTool)
					return
				}
				r := importRequest(t, e.Request.Body)
				view := r.dag.Transcript()
				body, repairs, err := Body(api.Request{System: view.System, Tools: view.Tools, Messages: view.Messages}, r.model, &r.options)
				require.NoError(t, err)
				providertest.RequireSaved(t, r.dag)
				if e.Response.Status != 200 {
					return // what the API refused may be repaired
				}
				want, got := providertest.NormalAnthropic(t, e.Request.Body), providertest.NormalAnthropic(t, string(body))
				if repeatedIDs[c.Name] == "" {
					require.Empty(t, repairs, "the API took this request as it was")
				} else {
					require.Equal(t, "id", repairs[0].Kind)
					numberIDs(want)
					numberIDs(got)
				}
				providertest.RequireSame(t, want, got)
			})
		}
	}
	count.Report()
}

// TestEveryRecordedAnswerSurvives decodes every recorded answer through the SDK, and makes of the folded message the blocks of
// the API again.
func TestEveryRecordedAnswerSurvives(t *testing.T) {
	count := providertest.Tally{T: t, What: "recorded answers"}
	for _, c := range cassettes(t) {
		for i, e := range c.Exchanges {
			if e.Response.Status != 200 || inStreamError(e) {
				continue
			}
			count.Run(fmt.Sprintf("%s/%d", c.Name, i), func(t *testing.T) {
				answer, err := ask(t, e)
				require.NoError(t, err)
				require.Equal(t, e.Derived.Text, textOf(answer.Blocks))
				require.Len(t, answer.Blocks.ToolUses(), len(e.Derived.ToolCalls))
				require.Equal(t, e.Derived.ResponseID, answer.ResponseID)
				require.Equal(t, content.Stop(e.Derived.Stop), answer.Stop)
				require.NotZero(t, answer.Usage.Output)
				require.Equal(t, API, answer.API)
				requireSameBlocks(t, e, answer.Blocks)
				providertest.RequireSaved(t, dag.New().User("?").Append(node.Message{Role: content.Assistant, Blocks: answer.Blocks}))
			})
		}
	}
	count.Report()
}

func inStreamError(e providertest.Exchange) bool {
	return e.Streamed() && bytes.Contains([]byte(e.Response.Body), []byte("event: error"))
}

// ask makes a request that is answered with the recorded response.
func ask(t testing.TB, e providertest.Exchange) (api.Response, error) {
	p := providertest.Play(t, e)
	model := New("claude", &Options{NoStream: !e.Streamed(), SDK: localSDK(p.URL, p.Client())})
	return api.NewClient(model, &api.ClientOptions{Attempts: 1}).Send(context.Background(), hello())
}

func hello() api.Request {
	return api.Request{Messages: []content.Message{{Role: content.User, Blocks: content.Words("Hello")}}}
}

// textOf joins the texts as the recordings' derived text does.
func textOf(b content.Blocks) string {
	var all string
	for _, block := range b.All() {
		if said, ok := block.(content.Text); ok {
			all += said.Text
		}
	}
	return all
}

// requireSameBlocks makes the API's blocks of ours and compares them with those of an answer that came whole.
func requireSameBlocks(t *testing.T, e providertest.Exchange, blocks content.Blocks) {
	if e.Streamed() {
		return
	}
	list, err := jsonx.Members(content.JSON(e.Response.Body))
	require.NoError(t, err)
	raw, _ := jsonx.Take(list, "content")
	made := []byte{'['}
	for _, block := range blocks.All() {
		made = appendBlock(write.Comma(made), block, "")
	}
	made = append(made, ']')
	require.JSONEq(t, string(raw), string(made))
}

// TestRecordedErrorsAreTyped gives every recorded error its kind.
func TestRecordedErrorsAreTyped(t *testing.T) {
	kinds := map[int]error{
		400: api.ErrInvalidRequest, 401: api.ErrAuth, 404: api.ErrNotFound, 429: api.ErrRateLimited, 529: api.ErrOverloaded,
		200: api.ErrOverloaded, // inside a stream
	}
	count := providertest.Tally{T: t, What: "recorded errors"}
	for _, c := range cassettes(t) {
		for i, e := range c.Exchanges {
			if e.Response.Status == 200 && !inStreamError(e) {
				continue
			}
			count.Run(fmt.Sprintf("%s/%d", c.Name, i), func(t *testing.T) {
				_, err := ask(t, e)
				require.ErrorIs(t, err, kinds[e.Response.Status])
				var failure *api.Error
				require.ErrorAs(t, err, &failure)
				require.Equal(t, e.Response.Status, failure.Status)
				require.Equal(t, API, failure.API)
				require.NotEmpty(t, failure.Body)
				if failure.Type != "" {
					require.NotEmpty(t, failure.Message)
				}
			})
		}
	}
	count.Report()
}
