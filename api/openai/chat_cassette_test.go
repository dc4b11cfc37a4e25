package openai

import (
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
	"github.com/plait-dev/plait/internal/testkit/providertest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// chatNotLinked is the whole list of requests that hold the answer to another one, or its words, and yet do not go on from it. They
// are imported and made again as all others are, but not played.
var chatNotLinked = map[string]string{
	"crewAI--crewai-agents-test-disabling-cache-for-agent/5":    "the program left out one of the two calls of the answer before",
	"crewAI--crewai-agents-test-lite-agent-structured-output/5": "the program asks anew, with the answer's words as the question",
}

// TestChatRunRepeatsRecordedConversations plays every conversation of several requests: a run, given the first request's
// conversation and tools that return the recorded results, must make every further request as it was recorded.
func TestChatRunRepeatsRecordedConversations(t *testing.T) {
	files, passed, linked, played := 0, 0, 0, 0
	for _, c := range chatCassettes(t) {
		if len(c.HistoryLinks) == 0 {
			continue
		}
		files++
		chains := chatChains(t, c)
		ok := t.Run(c.Name, func(t *testing.T) {
			for _, chain := range chains {
				replayChat(t, c, chain)
			}
			requireAllPlayed(t, c, chains)
		})
		all := goingOn(c, chains)
		linked += len(linkedRequests(c))
		if ok {
			passed, played = passed+1, played+len(all)
		}
	}
	t.Logf("linked recordings: %d of %d pass; %d of %d linked requests are made again by a run", passed, files, played, linked)
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

// goingOn is the requests in chains that go on from another one.
func goingOn(c providertest.Cassette, chains [][]int) []int {
	var all []int
	for _, chain := range chains {
		for _, k := range chain[1:] {
			if !slices.Contains(all, k) {
				all = append(all, k)
			}
		}
	}
	return all
}

// requireAllPlayed makes sure that every linked request was made again by a run, but for those that say why not.
func requireAllPlayed(t *testing.T, c providertest.Cassette, chains [][]int) {
	played := goingOn(c, chains)
	for _, k := range linkedRequests(c) {
		_, excused := chatNotLinked[fmt.Sprintf("%s/%d", c.Name, k)]
		require.NotEqual(t, excused, slices.Contains(played, k), "request %d", k)
	}
}

// chatChains returns the conversations, each to where nothing goes on from it. A request goes on from the last one before it
// whose answer it holds and whose messages it begins with.
func chatChains(t *testing.T, c providertest.Cassette) [][]int {
	messages := make([][]content.Message, len(c.Exchanges))
	chains := make([][]int, len(c.Exchanges))
	ends := make([]bool, len(c.Exchanges))
	for k, e := range c.Exchanges {
		messages[k], ends[k] = importChat(t, e.Request.Body).messages, true
		for j := range k {
			if linked(c, j, k) && goesOnFrom(messages[j], messages[k]) {
				chains[k], ends[j] = chains[j], false
			}
		}
		chains[k] = append(slices.Clone(chains[k]), k)
	}
	return slices.DeleteFunc(chains, func(chain []int) bool { return !ends[chain[len(chain)-1]] })
}

// linked reports whether request k holds the answer to request j.
func linked(c providertest.Cassette, j, k int) bool {
	return slices.Contains(c.HistoryLinks, [2]int{j, k})
}

// goesOnFrom reports whether now is before, an answer, and what the user's side says to it.
func goesOnFrom(before, now []content.Message) bool {
	n := len(before)
	return (len(now) == n+1 || len(now) == n+2) && now[n].Role == content.Assistant && sameMessages(before, now[:n])
}

func sameMessages(a, b []content.Message) bool {
	return slices.EqualFunc(a, b, func(x, y content.Message) bool { return x.Role == y.Role && x.Blocks.Equal(y.Blocks) })
}

// replayChat runs one conversation, a request at a time: what the user says beside results comes between two runs.
func replayChat(t *testing.T, c providertest.Cassette, chain []int) {
	var tape []providertest.Exchange
	var recorded []recording
	for _, i := range chain {
		tape = append(tape, c.Exchanges[i])
		recorded = append(recorded, importChat(t, c.Exchanges[i].Request.Body))
	}
	p := providertest.Play(t, tape...)
	model := &providertest.Switching{}
	for _, r := range recorded {
		r.options.SDK = localSDK(p.Server)
		model.Requests = append(model.Requests, NewChat(r.model, &r.options))
	}
	agent := executor.Agent{Provider: api.NewClient(model, &api.ClientOptions{Attempts: 1}), Limits: executor.Limits{Turns: 1}}
	call := recordedResults(recorded)
	d := recorded[0].dag
	for i := range recorded {
		if i > 0 {
			d = recorded[i].handover(recorded[i-1], d)
			if words := added(recorded[i-1], recorded[i]); len(words) > 0 {
				d = d.User("", words...)
			} else if m := d.Messages(); m[len(m)-1].Role == content.Assistant && len(m[len(m)-1].Blocks.ToolUses()) == 0 {
				d = recorded[i].begin(m) // the program asks again with nothing said, which a run does not
			}
		}
		agent.Tools = nil
		for _, def := range recorded[i].dag.ToolDefs() {
			agent.Tools = append(agent.Tools, executor.NewTool(def, call))
		}
		next, err := agent.Run(context.Background(), d)
		if tape[i].Response.Status != 200 {
			require.Error(t, err)
			break
		}
		require.NoError(t, err)
		require.Equal(t, i+1, model.Made, "a turn is one request")
		d = next
	}
	for i, made := range p.Requests() {
		providertest.RequireSame(t, providertest.NormalChat(t, tape[i].Request.Body), providertest.NormalChat(t, made))
	}
	providertest.RequireSaved(t, d)
}

// handover is the conversation as the next request has it: with further system prompts and tools, or, where the program took some
// back, as a new one in which the same was said.
func (r recording) handover(before recording, d dag.DAG) dag.DAG {
	n, tools := len(before.system), len(before.tools)
	if len(r.system) < n || !slices.Equal(r.system[:n], before.system) || len(r.tools) < tools {
		return r.begin(d.Messages())
	}
	for _, prompt := range r.system[n:] {
		d = d.System(prompt)
	}
	return d
}

// added is what the user's side says in the next request beyond results, which the run gives.
func added(before, next recording) []content.Block {
	return providertest.Added(next.messages[len(before.messages):])
}

// recordedResults is a tool that returns what was recorded.
func recordedResults(recorded []recording) func(context.Context, executor.Call) (executor.Result, error) {
	results := map[string]content.ToolResult{}
	for _, r := range recorded {
		for _, m := range r.messages {
			for _, result := range m.Blocks.ToolResults() {
				results[result.CallID] = result
			}
		}
	}
	return func(_ context.Context, call executor.Call) (executor.Result, error) {
		r, ok := results[call.ID]
		if !ok {
			return executor.Result{}, errors.New("no result was recorded")
		}
		return executor.Result{Content: r.Content, IsError: r.IsError}, nil
	}
}

// TestEveryRecordedChatRequestSurvives imports every recorded request, makes the body again, and saves and loads the conversation.
func TestEveryRecordedChatRequestSurvives(t *testing.T) {
	count := providertest.Tally{T: t, What: "recorded requests"}
	for _, c := range chatCassettes(t) {
		for i, e := range c.Exchanges {
			if e.Request == nil {
				continue
			}
			count.Run(fmt.Sprintf("%s/%d", c.Name, i), func(t *testing.T) {
				r := importChat(t, e.Request.Body)
				require.NoError(t, r.dag.Err())
				view := r.dag.Transcript()
				body, repairs, err := ChatBody(api.Request{System: view.System, Tools: view.Tools, Messages: view.Messages}, r.model, &r.options)
				providertest.RequireSaved(t, r.dag)
				if e.Response.Status != 200 {
					return // what the API refused may be repaired, or be nothing
				}
				require.NoError(t, err)
				require.Empty(t, repairs, "the API took this request as it was")
				providertest.RequireSame(t, providertest.NormalChat(t, e.Request.Body), providertest.NormalChat(t, string(body)))
			})
		}
	}
	count.Report()
}

// TestEveryRecordedChatAnswerSurvives decodes every recorded answer through the SDK, and makes of the folded message the message
// of the API again.
func TestEveryRecordedChatAnswerSurvives(t *testing.T) {
	count := providertest.Tally{T: t, What: "recorded answers"}
	for _, c := range chatCassettes(t) {
		for i, e := range c.Exchanges {
			if e.Response.Status != 200 {
				continue
			}
			count.Run(fmt.Sprintf("%s/%d", c.Name, i), func(t *testing.T) {
				answer, err := askChat(t, e)
				require.NoError(t, err)
				said, refused := words(answer.Blocks)
				require.Equal(t, e.Derived.Text, said)
				require.Len(t, answer.Blocks.ToolUses(), len(e.Derived.ToolCalls))
				require.Equal(t, e.Derived.ResponseID, answer.ResponseID)
				require.Equal(t, wantStop(e.Derived.Stop, answer.Blocks, refused), answer.Stop)
				require.NotZero(t, answer.Usage.Output)
				require.Equal(t, ChatAPI, answer.API)
				requireSameMessage(t, e, answer.Blocks)
				providertest.RequireSaved(t, dag.New().User("?").Append(node.Message{Role: content.Assistant, Blocks: answer.Blocks}))
			})
		}
	}
	count.Report()
}

// wantStop is the recorded reason, in our words.
func wantStop(reason string, b content.Blocks, refused bool) content.Stop {
	switch {
	case len(b.ToolUses()) > 0 && reason != "length":
		return content.StopToolUse
	case refused:
		return content.StopRefusal
	}
	return map[string]content.Stop{"stop": content.StopEndTurn, "length": content.StopMaxTokens}[reason]
}

// words joins the texts as the recordings' derived text does, and tells whether there is a refusal, which is no part of it.
func words(b content.Blocks) (said string, refused bool) {
	for _, block := range b.All() {
		t, ok := block.(content.Text)
		refused = refused || ok && isChatRefusal(t)
		if ok && !isChatRefusal(t) {
			said += t.Text
		}
	}
	return said, refused
}

// askChat makes a request that is answered with the recorded response.
func askChat(t testing.TB, e providertest.Exchange) (api.Response, error) {
	p := providertest.Play(t, e)
	model := NewChat("gpt", &Options{NoStream: !e.Streamed(), SDK: localSDK(p.Server)})
	return api.NewClient(model, &api.ClientOptions{Attempts: 1}).Send(context.Background(), hello())
}

// requireSameMessage makes the API's message of our blocks and compares it with that of an answer that came whole.
func requireSameMessage(t *testing.T, e providertest.Exchange, blocks content.Blocks) {
	if e.Streamed() {
		return
	}
	var answer struct {
		Choices []struct {
			Message map[string]any `json:"message"`
		} `json:"choices"`
	}
	require.NoError(t, json.Unmarshal(e.Body(t), &answer, jsonx.Lenient))
	var made map[string]any
	require.NoError(t, json.Unmarshal(appendChat(nil, content.Message{Role: content.Assistant, Blocks: blocks}, 0), &made))
	providertest.RequireSame(t, providertest.NormalChatMessage(answer.Choices[0].Message), providertest.NormalChatMessage(made))
}

// TestRecordedChatErrorsAreTyped gives every recorded error its kind.
func TestRecordedChatErrorsAreTyped(t *testing.T) {
	kinds := map[int]error{400: api.ErrInvalidRequest, 401: api.ErrAuth, 403: api.ErrAuth, 404: api.ErrNotFound, 429: api.ErrRateLimited}
	count := providertest.Tally{T: t, What: "recorded errors"}
	for _, c := range chatCassettes(t) {
		for i, e := range c.Exchanges {
			if e.Response.Status == 200 {
				continue
			}
			count.Run(fmt.Sprintf("%s/%d", c.Name, i), func(t *testing.T) {
				_, err := askChat(t, e)
				require.ErrorIs(t, err, kinds[e.Response.Status])
				var failure *api.Error
				require.ErrorAs(t, err, &failure)
				require.Equal(t, e.Response.Status, failure.Status)
				require.Equal(t, ChatAPI, failure.API)
				require.NotEmpty(t, failure.Type)
				require.NotEmpty(t, failure.Message)
				require.Equal(t, string(e.Body(t)), failure.Body)
				require.Equal(t, e.Response.Headers["x-request-id"], failure.RequestID)
			})
		}
	}
	count.Report()
}
