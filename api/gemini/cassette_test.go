package gemini

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync"
	"testing"

	json "github.com/goccy/go-json/v2"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/internal/testkit/providertest"
	"github.com/plait-dev/plait/node"
)

// changed says in what a recorded program sent back something else than what was said, so that there Plait's requests differ from
// the recorded ones on purpose.
type changed struct {
	reason string
	// answers says that the program changed the model's answers. They are compared with what the model said instead.
	answers bool
	// ids says that it made up ids for calls that had none.
	ids bool
	// files says that it sent files inside of results.
	files bool
	// member is a member of the request that the program changed; it is not compared.
	member string
}

// changedByProgram is the whole list of recordings that pass with a difference.
var changedByProgram = map[string]changed{
	"chatlas--test-provider-google-test-data-extraction": {
		reason: "it encodes the JSON in the model's text anew, and leaves out the signature of a text", answers: true},
	"chatlas--test-provider-google-test-google-web-fetch": {reason: "it leaves out the signature of a text", answers: true},
	"chatlas--test-provider-google-test-tools-simple":     {reason: "it leaves out the signature of a text", answers: true},
	"fantasy--testgooglecommon-gemini-2-5-flash-multi-tool-streaming": {
		reason: "it makes up ids", ids: true},
	"fantasy--testgooglecommon-gemini-2-5-flash-multi-tool": {reason: "it makes up ids", ids: true},
	"fantasy--testgooglethinking-gemini-2-5-pro-thinking-streaming": {
		reason: "it makes up ids, and leaves out what the model thought", ids: true, answers: true},
	"fantasy--testgooglethinking-gemini-2-5-pro-thinking": {
		reason: "it makes up ids, and leaves out what the model thought", ids: true, answers: true},
	"openinference--openinference-instrumentation-google-adk-test-instrumentor-test-google-adk-instrumentor-image-a": {
		reason: "it changes the system prompt on the way", member: "systemInstruction"},
	"pydantic-ai--models-test-google-test-google-model-file-search-grounding-gemini-3-false": {
		reason: "it adds to the calls of Google's tools what they found", answers: true},
	"pydantic-ai--models-test-multimodal-tool-returns-test-multimodal-tool-return-matrix-direct-uploaded-file-image": {
		reason: "it makes up ids, and sends a file inside a functionResponse; Plait shows it after the results", ids: true, files: true},
}

// TestRunRepeatsRecordedConversations plays every conversation of several requests: Run, given the first request's conversation
// and tools that return the recorded results, must make every further request as it was recorded.
func TestRunRepeatsRecordedConversations(t *testing.T) {
	files, passed := 0, 0
	var count sameness
	for _, c := range cassettes(t) {
		if len(c.HistoryLinks) == 0 {
			continue
		}
		files++
		ok := t.Run(c.Name, func(t *testing.T) {
			for _, chain := range chains(t, c) {
				replay(t, c, chain, &count)
			}
		})
		if ok {
			passed++
		}
	}
	t.Logf("linked recordings: %d of %d pass (%d requests, %d equal as they are, the others but for what the table says)",
		passed, files, count.requests, count.equal)
}

// sameness counts requests, and those that are equal to the recorded ones without an exception.
type sameness struct{ requests, equal int }

// chains groups the exchanges into conversations: each begins anew or goes on from the last one that its contents begin with.
func chains(t *testing.T, c providertest.Cassette) [][]int {
	var chains [][]int
	messages := make([][]content.Message, len(c.Exchanges))
	for i, e := range c.Exchanges {
		messages[i] = importRequest(t, e).messages
		goesOn := slices.IndexFunc(chains, func(chain []int) bool {
			before := messages[chain[len(chain)-1]]
			n := len(before)
			return len(messages[i]) > n && sameMessages(before, messages[i][:n]) && messages[i][n].Role == content.Assistant
		})
		if goesOn >= 0 {
			chains[goesOn] = append(chains[goesOn], i)
		} else {
			chains = append(chains, []int{i})
		}
	}
	return chains
}

func sameMessages(a, b []content.Message) bool {
	return slices.EqualFunc(a, b, func(x, y content.Message) bool { return x.Role == y.Role && x.Blocks.Equal(y.Blocks) })
}

// replay runs one conversation.
func replay(t *testing.T, c providertest.Cassette, chain []int, count *sameness) {
	var tape []providertest.Exchange
	var recorded []recording
	for _, i := range chain {
		tape = append(tape, c.Exchanges[i])
		recorded = append(recorded, importRequest(t, c.Exchanges[i]))
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
		agent.Limits.Turns = untilMixed(recorded, before) - before
		next, err := agent.Run(context.Background(), d)
		require.NoError(t, err)
		require.Greater(t, model.Made, before, "the run made no request")
		d = next
	}
	for i, made := range p.Requests() {
		requireRequest(t, c, tape, i, made, count)
	}
	providertest.RequireSaved(t, d)
}

// requireRequest compares request i of a conversation with the recorded one.
func requireRequest(t *testing.T, c providertest.Cassette, tape []providertest.Exchange, i int, made string, count *sameness) {
	want, got := providertest.NormalGemini(t, tape[i].Request.Body), providertest.NormalGemini(t, made)
	if count.requests++; reflect.DeepEqual(want, got) {
		count.equal++
		return
	}
	differs := changedByProgram[c.Name]
	delete(want, differs.member)
	delete(got, differs.member)
	if differs.ids {
		withoutIDs(want)
		withoutIDs(got)
	}
	if differs.files {
		withoutFiles(want)
	}
	if differs.answers {
		for j := range i {
			at := len(providertest.NormalGemini(t, tape[j].Request.Body)["contents"].([]any)) // where the answer to request j stands
			said := got["contents"].([]any)[at].(map[string]any)
			requireParts(t, tape[j], said["parts"].([]any))
			want["contents"].([]any)[at], got["contents"].([]any)[at] = "answer", "answer"
		}
	}
	providertest.RequireSame(t, want, got)
}

func withoutIDs(request map[string]any) {
	for part := range partsIn(request) {
		for _, kind := range []string{"functionCall", "functionResponse"} {
			if call, ok := part[kind].(map[string]any); ok {
				delete(call, "id")
			}
		}
	}
}

func withoutFiles(request map[string]any) {
	for part := range partsIn(request) {
		if result, ok := part["functionResponse"].(map[string]any); ok {
			delete(result, "parts")
		}
	}
}

// partsIn yields every part of a request.
func partsIn(request map[string]any) iter.Seq[map[string]any] {
	return func(yield func(map[string]any) bool) {
		for _, c := range request["contents"].([]any) {
			for _, p := range c.(map[string]any)["parts"].([]any) {
				if !yield(p.(map[string]any)) {
					return
				}
			}
		}
	}
}

// requireParts checks that the parts that are sent back are what the model said.
func requireParts(t *testing.T, e providertest.Exchange, parts []any) {
	t.Helper()
	providertest.RequireSame(t, saidParts(t, e), parts)
}

// saidParts is the parts of a recorded answer. Those of a stream are put together here, by the few rules that the recordings need.
func saidParts(t *testing.T, e providertest.Exchange) []any {
	var all []any
	for _, raw := range recordedChunks(t, e) {
		var one struct {
			Candidates []struct {
				Content struct {
					Parts []any `json:"parts"`
				} `json:"content"`
			} `json:"candidates"`
		}
		require.NoError(t, json.Unmarshal(raw, &one, jsonx.Lenient))
		for _, c := range one.Candidates {
			all = append(all, providertest.NormalGeminiParts(any(c.Content.Parts))...)
		}
	}
	if !e.Streamed() {
		return all
	}
	joined := []any{}
	for _, p := range all {
		part := p.(map[string]any)
		if n := len(joined); n > 0 {
			last := joined[n-1].(map[string]any)
			words, isText := part["text"].(string)
			before, wasText := last["text"].(string)
			if isText && wasText && part["thought"] == last["thought"] && last[thoughtSignature] == nil {
				last["text"] = before + words
				if part[thoughtSignature] != nil {
					last[thoughtSignature] = part[thoughtSignature]
				}
				continue
			}
		}
		joined = append(joined, part)
	}
	return joined
}

func recordedChunks(t *testing.T, e providertest.Exchange) [][]byte {
	if !e.Streamed() {
		return chunksOf(e.Body(t))
	}
	var chunks [][]byte
	for data, err := range roundtrip.Events(bytes.NewReader(e.Body(t))) {
		require.NoError(t, err)
		chunks = append(chunks, data)
	}
	return chunks
}

// untilMixed is the number of the next request that has words of the user beside results, before which Run has to stop.
func untilMixed(recorded []recording, from int) int {
	for i := from + 1; i < len(recorded); i++ {
		mixed := recorded[i].messages[len(recorded[i-1].messages):]
		results := slices.ContainsFunc(mixed, func(m content.Message) bool { return len(m.Blocks.ToolResults()) > 0 })
		if results && len(added(recorded[i-1], recorded[i])) > 0 {
			return i
		}
	}
	return len(recorded)
}

// added is what the user's side says in the next request beyond results, which Run gives.
func added(before, next recording) []content.Block {
	return providertest.Added(next.messages[len(before.messages):])
}

// recordedAgent is an agent whose tools return what was recorded, each call by its name and arguments.
func recordedAgent(t *testing.T, model api.Provider, recorded []recording) executor.Agent {
	var mu sync.Mutex
	results := map[string][]content.ToolResult{}
	last := recorded[len(recorded)-1].messages
	for i, m := range last {
		if i+1 == len(last) || m.Role != content.Assistant {
			continue
		}
		calls := m.Blocks.ToolUses()
		for j := i + 1; j < len(last) && last[j].Role == content.User; j++ {
			for _, r := range last[j].Blocks.ToolResults() {
				require.NotEmpty(t, calls)
				key := calls[0].Name + string(calls[0].Input.Canonical())
				results[key], calls = append(results[key], r), calls[1:]
			}
		}
	}
	call := func(_ context.Context, call executor.Call) (executor.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		key := call.Name + string(call.Input.Canonical())
		if len(results[key]) == 0 {
			return executor.Result{}, errors.New("no result was recorded")
		}
		r := results[key][0]
		results[key] = results[key][1:]
		return executor.Result{Content: r.Content, IsError: r.IsError}, nil
	}
	return executor.Agent{
		Provider: api.NewClient(model, &api.ClientOptions{Attempts: 1}),
		Handler:  func(ctx context.Context, c executor.Call) (any, error) { return call(ctx, c) },
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
				r := importRequest(t, e)
				view := r.dag.Transcript()
				body, repairs, err := Body(api.Request{System: view.System, Tools: view.Tools, Messages: view.Messages}, r.model, &r.options)
				require.NoError(t, err)
				providertest.RequireSaved(t, r.dag)
				if e.Response.Status != 200 {
					return // what the API refused may be repaired
				}
				require.Empty(t, repairs, "the API took this request as it was")
				providertest.RequireSame(t, providertest.NormalGemini(t, e.Request.Body), providertest.NormalGemini(t, string(body)))
			})
		}
	}
	count.Report()
}

// unanswered is the recordings that end for a reason that leaves nothing to go on with.
func unanswered(e providertest.Exchange) bool { return failedReason(e.Derived.Stop, "") != nil }

// TestEveryRecordedAnswerSurvives decodes every recorded answer through the SDK, and makes of the folded message the parts of the
// API again.
func TestEveryRecordedAnswerSurvives(t *testing.T) {
	count := providertest.Tally{T: t, What: "recorded answers"}
	for _, c := range cassettes(t) {
		for i, e := range c.Exchanges {
			if e.Response.Status != 200 || unanswered(e) {
				continue
			}
			count.Run(fmt.Sprintf("%s/%d", c.Name, i), func(t *testing.T) {
				answer, err := ask(t, e)
				require.NoError(t, err)
				require.Equal(t, e.Derived.Text, textOf(answer.Blocks))
				require.Len(t, answer.Blocks.ToolUses(), len(e.Derived.ToolCalls))
				require.Equal(t, e.Derived.ResponseID, answer.ResponseID)
				require.Equal(t, stopOf(e.Derived.Stop, len(e.Derived.ToolCalls) > 0), answer.Stop)
				require.NotZero(t, answer.Usage.Input)
				require.Equal(t, API, answer.API)
				requireSameParts(t, e, answer.Blocks)
				providertest.RequireSaved(t, dag.New().User("?").Append(node.Message{Role: content.Assistant, Blocks: answer.Blocks}))
			})
		}
	}
	count.Report()
}

// ask makes a request that is answered with the recorded response.
func ask(t testing.TB, e providertest.Exchange) (api.Response, error) {
	p := providertest.Play(t, e)
	model := New("gemini-test", &Options{NoStream: !e.Streamed(), SDK: localSDK(p.URL, p.Client())})
	return api.NewClient(model, &api.ClientOptions{Attempts: 1}).Send(context.Background(), hello())
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

// requireSameParts makes the API's parts of our blocks and compares them with those of the answer.
func requireSameParts(t *testing.T, e providertest.Exchange, blocks content.Blocks) {
	made := []byte{'['}
	for _, block := range blocks.All() {
		made = appendPart(write.Comma(made), block)
	}
	var parts []any
	require.NoError(t, json.Unmarshal(append(made, ']'), &parts))
	normal := providertest.NormalGeminiParts(any(parts))
	providertest.RequireSame(t, append([]any{}, saidParts(t, e)...), normal)
	signatures := 0
	for _, p := range normal {
		if p.(map[string]any)[thoughtSignature] != nil {
			signatures++
		}
	}
	require.Equal(t, e.Derived.Signatures, signatures)
}

// TestRecordedErrorsAreTyped gives every recorded error its kind.
func TestRecordedErrorsAreTyped(t *testing.T) {
	kinds := map[int]error{
		400: api.ErrInvalidRequest, 403: api.ErrAuth, 404: api.ErrNotFound, 429: api.ErrRateLimited, 503: api.ErrOverloaded,
		200: api.ErrServer, // an answer that ends in a call that cannot be read
	}
	count := providertest.Tally{T: t, What: "recorded errors"}
	for _, c := range cassettes(t) {
		for i, e := range c.Exchanges {
			if e.Response.Status == 200 && !unanswered(e) {
				continue
			}
			count.Run(fmt.Sprintf("%s/%d", c.Name, i), func(t *testing.T) {
				_, err := ask(t, e)
				want := kinds[e.Response.Status]
				if bytes.Contains(e.Body(t), []byte("API_KEY_INVALID")) {
					want = api.ErrAuth
				}
				require.ErrorIs(t, err, want)
				var failure *api.Error
				require.ErrorAs(t, err, &failure)
				require.Equal(t, e.Response.Status, failure.Status)
				require.Equal(t, API, failure.API)
				require.NotEmpty(t, failure.Type)
				require.NotEmpty(t, failure.Message)
			})
		}
	}
	count.Report()
}
