package openai

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/providertest"
	"github.com/stretchr/testify/require"
)

// responsesChangedByProgram is what programs change beyond that. There, what Plait sends back is compared with what the model said.
var responsesChangedByProgram = map[string]string{
	"pydantic-ai--models-test-openai-responses-test-openai-responses-thinking-with-modified-history"://
	"it puts other words into the model's mouth, to see what the API does",
	"pydantic-ai--test-tool-search-test-openai-native-tool-search-with-deferred-capability"://
	"it rewrites the arguments and the results of a tool search, and declares what was found anew",
}

// handedOff lists the conversations that another agent goes on with, with its own instructions and tools.
var handedOff = map[string]bool{
	"dd-trace-py--contrib-openai-agents-test-multiple-agent-handoffs":                                                true,
	"openllmetry--opentelemetry-instrumentation-openai-agents-test-complete-handoff-with-tools-test-router-analytic": true,
	"openllmetry--opentelemetry-instrumentation-openai-agents-test-openai-agents-test-music-composer-handoff-hierar": true,
}

// TestRunRepeatsRecordedResponses plays every conversation of several requests: Run, given the first request's conversation and
// tools that return the recorded results, must make every further request as it was recorded.
func TestRunRepeatsRecordedResponses(t *testing.T) {
	requests, equal := 0, 0
	count := providertest.Tally{T: t, What: "linked recordings"}
	for _, c := range responsesCassettes(t) {
		if len(c.HistoryLinks) == 0 {
			continue
		}
		count.Run(c.Name, func(t *testing.T) {
			for _, chain := range responsesChains(t, c) {
				equal += replayChain(t, c.Name, chain)
				requests += len(chain)
			}
		})
	}
	count.Report()
	t.Logf("%d of %d requests are as they were recorded; the others differ as responsesChangedByProgram says", equal, requests)
}

// taped is an exchange of a conversation, and its request with the whole history in it.
type taped struct {
	providertest.Exchange
	want     map[string]any // the normal form of the request
	recorded responsesRecording
}

// responsesChains groups the accepted exchanges into conversations: each begins anew or goes on from the one before it, which is
// told by whether what the user's side said begins with what it said there.
func responsesChains(t *testing.T, c providertest.Cassette) [][]taped {
	var chains [][]taped
	for _, e := range c.Exchanges {
		if e.Response.Status != 200 {
			continue
		}
		now := taped{Exchange: e, want: providertest.NormalResponses(t, e.Request.Body), recorded: importResponses(t, e.Request.Body)}
		n := len(chains)
		if n > 0 {
			before := chains[n-1][len(chains[n-1])-1]
			if now.want["previous_response_id"] != nil {
				now = withHistory(t, now, before)
			}
			if goesOn(before.want["input"].([]any), now.want["input"].([]any)) {
				chains[n-1] = append(chains[n-1], now)
				continue
			}
		}
		chains = append(chains, []taped{now})
	}
	return chains
}

// withHistory is an exchange whose history the API kept, with the history in its request.
func withHistory(t *testing.T, now, before taped) taped {
	delete(now.want, "previous_response_id")
	items := slices.Concat(before.want["input"].([]any), normalAnswer(t, before.Exchange), now.want["input"].([]any))
	now.want["input"] = items
	if system := before.want["instructions"]; system != nil {
		now.want["instructions"] = system
	}
	now.recorded.messages = append(slices.Clone(before.recorded.messages), now.recorded.messages...)
	return now
}

// normalAnswer is the items of an answer in normal form.
func normalAnswer(t *testing.T, e providertest.Exchange) []any {
	items := recordedOutput(t, e)
	for _, item := range items {
		providertest.NormalResponsesItem(item.(map[string]any))
	}
	return items
}

// goesOn reports whether b begins with what the user's side says in a, and says more.
func goesOn(a, b []any) bool {
	said, now := ofUserSide(a), ofUserSide(b)
	return len(now) > len(said) && len(b) > len(a) && slices.EqualFunc(said, now[:len(said)], func(x, y any) bool { return sameValue(x, y) })
}

func ofUserSide(items []any) []any {
	return slices.DeleteFunc(slices.Clone(items), func(item any) bool { return !isUserSide(item.(map[string]any)) })
}

func isUserSide(item map[string]any) bool {
	switch item["type"] {
	case "function_call_output", "custom_tool_call_output", "additional_tools":
		return true
	}
	return item["role"] == "user"
}

// replayChain runs one conversation, and returns how many requests are as they were recorded.
func replayChain(t *testing.T, name string, chain []taped) int {
	var tape []providertest.Exchange
	for _, e := range chain {
		tape = append(tape, e.Exchange)
	}
	p := providertest.Play(t, tape...)
	model := &switchingResponses{}
	for _, e := range chain {
		e.recorded.options.SDK = localSDK(p.Server)
		delete(e.want, "previous_response_id")
		model.requests = append(model.requests, NewResponses(e.recorded.model, &e.recorded.options))
		if handedOff[name] {
			model.agents = append(model.agents, e.recorded.dag)
		}
	}
	agent := recordedResponsesAgent(t, model, chain)
	d := chain[0].recorded.dag
	for model.made < len(tape) {
		if model.made > 0 {
			d = d.User("", addedBlocks(chain[model.made-1].recorded, chain[model.made].recorded)...)
		}
		before := model.made
		agent.Limits.Turns = untilAdded(chain, before)
		next, err := agent.Run(context.Background(), d)
		require.NoError(t, err)
		require.Greater(t, model.made, before, "the run made no request")
		d = next
	}
	providertest.RequireSaved(t, d)
	equal := 0
	for i, made := range p.Requests() {
		got := providertest.ResponsesSentBack(providertest.NormalResponses(t, made))
		if sameValue(providertest.ResponsesSentBack(chain[i].want), got) {
			equal++
			continue
		}
		providertest.RequireSame(t, providertest.ResponsesSentBack(wanted(t, name, chain, i)), got)
	}
	return equal
}

// wanted is what request i has to be: as it was recorded or, where the program changed the answers, with the answers as they were.
func wanted(t *testing.T, name string, chain []taped, i int) map[string]any {
	want := maps.Clone(chain[i].want)
	if responsesChangedByProgram[name] == "" {
		return want
	}
	items := chain[0].want["input"].([]any)
	for j := range i {
		said, now := ofUserSide(chain[j].want["input"].([]any)), ofUserSide(chain[j+1].want["input"].([]any))
		items = slices.Concat(items, normalAnswer(t, chain[j].Exchange), now[len(said):])
	}
	want["input"] = items
	return want
}

// untilAdded is how many requests a run makes from request i on until the user's side says more than results.
func untilAdded(chain []taped, i int) int {
	n := 1
	for i+n < len(chain) && len(addedBlocks(chain[i+n-1].recorded, chain[i+n].recorded)) == 0 {
		n++
	}
	return n
}

// addedBlocks is what the user's side says in the next request beyond results, which Run gives.
func addedBlocks(before, next responsesRecording) []content.Block {
	var said, now []content.Block
	for _, r := range []struct {
		from responsesRecording
		to   *[]content.Block
	}{{before, &said}, {next, &now}} {
		for _, m := range r.from.messages {
			for _, b := range m.Blocks.All() {
				if _, result := b.(content.ToolResult); !result && m.Role == content.User {
					*r.to = append(*r.to, b)
				}
			}
		}
	}
	return now[len(said):]
}

// recordedResponsesAgent is an agent whose tools return what was recorded.
func recordedResponsesAgent(t *testing.T, model api.Provider, chain []taped) executor.Agent {
	results := map[string]content.ToolResult{}
	for _, e := range chain {
		for _, m := range e.recorded.messages {
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
	bound := map[string]bool{}
	for _, def := range allTools(chain) {
		if bound[def.Name] {
			continue
		}
		if bound[def.Name] = true; def.Server() {
			agent.Handler = func(ctx context.Context, c executor.Call) (any, error) { return call(ctx, c) }
			continue
		}
		agent.Tools = append(agent.Tools, executor.NewTool(def, call))
	}
	return agent
}

func allTools(chain []taped) []content.Tool {
	var all []content.Tool
	for _, e := range chain {
		all = append(all, e.recorded.dag.ToolDefs()...)
	}
	return all
}

// switchingResponses makes its first request of the first model, its second of the second, and so on: programs change options from
// request to request.
type switchingResponses struct {
	requests []api.Provider
	agents   []dag.DAG // whose instructions and tools the requests have; none is the conversation's own
	made     int
}

func (s *switchingResponses) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	s.made++
	if s.agents != nil {
		agent := s.agents[s.made-1].Transcript()
		req.System, req.Tools = agent.System, agent.Tools
	}
	return s.requests[s.made-1].Stream(ctx, req)
}
