package promptcache_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/report/promptcache"
)

const (
	claude = "claude-sonnet-4-5"
	gpt    = "gpt-5"
)

var begin = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// clock is a clock that the test sets.
type clock struct{ now time.Time }

// start returns an empty conversation and its clock.
func start() (dag.DAG, *clock) {
	c := &clock{begin}
	src := node.Counting(begin)
	src.Now = func() time.Time {
		c.now = c.now.Add(time.Second)
		return c.now
	}
	return dag.New().WithSource(src), c
}

// words is a text of about that many tokens.
func words(tokens int) string { return strings.Repeat("abc ", tokens) }

// response is a response to a request of that many tokens, of which some were read from the cache. Claude wrote the
// others to it.
func response(model string, input, read int64) node.Message {
	m := node.Message{Role: content.Assistant, Blocks: content.Words("Yes."), Answer: node.Answer{
		API: "openai-responses", Model: model, Usage: content.Usage{Input: input - read, CacheRead: read, Output: 2},
	}}
	if strings.HasPrefix(model, "claude") {
		m.Answer.API = "anthropic"
		m.Answer.Usage.Input, m.Answer.Usage.CacheWrite = 0, input-read
	}
	return m
}

func tool(name, description string) content.Tool {
	return content.Tool{Name: name, Description: description, Schema: `{"type":"object"}`}
}

// last returns the last call.
func last(t *testing.T, d dag.DAG, o *promptcache.Options) promptcache.Call {
	t.Helper()
	require.NoError(t, d.Err())
	calls := promptcache.Calls(d, o)
	require.NotEmpty(t, calls)
	return calls[len(calls)-1]
}

// asked is a conversation with tools, a system prompt and one exchange, of 5,000 tokens.
func asked(model string) (dag.DAG, *clock) {
	d, c := start()
	return d.Tools(tool("search", words(1000)), tool("open", "Opens a page.")).SetSystem("agent", words(2000)).
		User(words(2000)).Append(response(model, 5000, 0)), c
}

func TestCallsPredictsTheWholeEarlierRequest(t *testing.T) {
	d, _ := asked(claude)
	first := last(t, d, nil)
	require.Equal(t, "first", first.Break.Cause)
	require.Nil(t, first.Before)
	require.Equal(t, int64(5000), first.Input)
	require.Zero(t, first.Predicted)

	d = d.User("And now?").Append(response(claude, 5010, 5000))
	second := last(t, d, nil)
	require.Zero(t, second.Break)
	require.Equal(t, first.Node, second.Before)
	require.Equal(t, d.Head(), second.Node)
	require.Equal(t, []int64{5010, 5000, 5000, 5000}, []int64{second.Input, second.Shared, second.Predicted, second.Read})
	require.False(t, second.Estimated)
	require.Equal(t, "5,000 of 5,010 tokens predicted, 5,000 read", second.String())
}

func TestCallsCountsInStepsOfTheProvider(t *testing.T) {
	d, _ := asked(gpt)
	call := last(t, d.User("And now?").Append(response(gpt, 5010, 4992)), nil)
	require.Equal(t, int64(5000), call.Shared)
	require.Equal(t, int64(39*128), call.Predicted)
	require.Zero(t, call.Break)
}

func TestCallsFindsTheFirstDifference(t *testing.T) {
	// Each case continues a conversation whose last request had 5,000 tokens.
	for name, c := range map[string]struct {
		continued func(d dag.DAG, c *clock) dag.DAG
		want      promptcache.Break // Node is the last of that kind, if Part is set
		least     int64             // bounds of Predicted
		most      int64
	}{
		"a tool was added": {
			continued: func(d dag.DAG, _ *clock) dag.DAG { return d.Tools(tool("more", "x")) },
			want:      promptcache.Break{Cause: "tools", Part: "tools", Index: 2, Why: `tool "more" was added`},
		},
		"a tool was removed": {
			continued: func(d dag.DAG, _ *clock) dag.DAG { return d.WithdrawTools("search") },
			want:      promptcache.Break{Cause: "tools", Part: "tools", Index: 0, Why: `tool "search" was removed`},
		},
		"a tool changed": {
			continued: func(d dag.DAG, _ *clock) dag.DAG { return d.Tools(tool("open", "Other words.")) },
			want: promptcache.Break{Cause: "tools", Part: "tools", Index: 1,
				Why: `the definition of tool "open" changed`},
		},
		"tools moved": {
			continued: func(d dag.DAG, _ *clock) dag.DAG {
				return d.WithdrawTools("search").Tools(tool("search", words(1000)))
			},
			want: promptcache.Break{Cause: "tools", Part: "tools", Index: 0,
				Why: `the order of the tools changed at "open"`},
		},
		"the system prompt changed": {
			continued: func(d dag.DAG, _ *clock) dag.DAG { return d.SetSystem("agent", words(2100)) },
			want:      promptcache.Break{Cause: "system", Part: "system", Index: 0, Why: "system prompt 1 changed"},
		},
		"a system prompt was added": {
			continued: func(d dag.DAG, _ *clock) dag.DAG { return d.System("Be brief.") },
			want: promptcache.Break{Cause: "system", Part: "system", Index: 1,
				Why: "system prompt 2 was added"},
		},
		"a system prompt was removed": {
			continued: func(d dag.DAG, _ *clock) dag.DAG { return d.SetSystem("agent", "") },
			want: promptcache.Break{Cause: "system", Part: "system", Index: 0,
				Why: "system prompt 1 was removed"},
		},
		"the time to live passed": {
			continued: func(d dag.DAG, c *clock) dag.DAG {
				c.now = c.now.Add(10 * time.Minute)
				return d
			},
			want: promptcache.Break{Cause: "expired",
				Why: "10m2s passed since the request before, and a prefix is kept for 5m0s"},
		},
		"nothing changed and nothing was read": {
			continued: func(d dag.DAG, _ *clock) dag.DAG { return d },
			want:      promptcache.Break{Cause: "unexplained", Why: "nothing in the conversation explains it"},
			least:     5000, most: 5000,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, clock := asked(claude)
			d = c.continued(d, clock)
			changed := d.Head()
			call := last(t, d.User("And now?").Append(response(claude, 5010, 0)), nil)
			if c.want.Part != "" {
				c.want.Node = changed
			}
			require.Equal(t, c.want, call.Break)
			require.GreaterOrEqual(t, call.Predicted, c.least)
			require.LessOrEqual(t, call.Predicted, c.most)
		})
	}

	t.Run("a compaction replaced messages", func(t *testing.T) {
		d, _ := asked(claude)
		d = d.User("More.").Append(response(claude, 5010, 5000))
		replaced := d.Transcript().Nodes[1:3]
		d = d.Append(node.Compaction{Summary: content.Words("So far."), Replaced: node.ListOf(replaced[0].ID(), replaced[1].ID())})
		call := last(t, d.User("And now?").Append(response(claude, 5020, 0)), nil)
		require.Equal(t, promptcache.Break{Cause: "compaction", Part: "messages", Index: 1, Node: replaced[0],
			Why: "message 2 is the summary of a compaction"}, call.Break)
		require.Equal(t, int64(5000), call.Predicted, "the end of the first request is before the summary")
	})

	t.Run("the model changed", func(t *testing.T) {
		d, _ := asked(claude)
		d = d.User("More.").Append(response(gpt, 4000, 0))
		call := last(t, d, nil)
		require.Equal(t, promptcache.Break{Cause: "model", Why: "the provider changed from anthropic to openai-responses"},
			call.Break)
		require.Zero(t, call.Predicted)

		// Back at the first model, its own earlier request counts.
		call = last(t, d.User("More.").Append(response(claude, 5100, 5000)), nil)
		require.Zero(t, call.Break)
		require.Equal(t, int64(5000), call.Predicted)
	})

	t.Run("the head moved to another branch", func(t *testing.T) {
		d, _ := asked(claude)
		one := d.User("One?").User("Really?").Append(response(claude, 5100, 5000))
		two := d.User("Two?").Append(response(claude, 5010, 5000))
		call := last(t, two.WithHeads(one.Head(), two.Head()), nil)
		require.Equal(t, two.Head(), call.Node)
		require.Equal(t, promptcache.Break{Cause: "branch", Part: "messages", Index: 2, Node: two.Head().Parent(0),
			Why: "another branch begins at message 3"}, call.Break)
		require.Equal(t, int64(5000), call.Predicted, "up to the branch")
	})

	t.Run("the other branch asked another model", func(t *testing.T) {
		d, _ := asked(claude)
		one := d.User("One?").Append(response("claude-opus-5", 5010, 0))
		two := d.User("Two?").Append(response(claude, 5010, 5000))
		d = two.WithHeads(one.Head(), two.Head())
		calls := promptcache.Calls(d, nil)
		require.Equal(t, promptcache.Break{Cause: "model",
			Why: "the model changed from claude-sonnet-4-5 to claude-opus-5"}, calls[1].Break)
		require.Equal(t, "branch", calls[2].Break.Cause)
		require.Equal(t, calls[0].Node, calls[2].Before)
		require.Equal(t, int64(5000), calls[2].Predicted)
	})

	t.Run("the other branch has more in common", func(t *testing.T) {
		for name, change := range map[string]func(dag.DAG) dag.DAG{
			"tools":  func(d dag.DAG) dag.DAG { return d.Tools(tool("more", words(1000))) },
			"system": func(d dag.DAG) dag.DAG { return d.System(words(1000)) },
		} {
			d, _ := asked(claude)
			d = change(d)
			one := d.User("One?").Append(response(claude, 6000, 0))
			two := d.User("Two?").Append(response(claude, 6000, 0))
			call := last(t, two.WithHeads(one.Head(), two.Head()), nil)
			require.Equal(t, one.Head(), call.Before, name)
			require.Equal(t, "branch", call.Break.Cause, name)
			require.InDelta(t, 4000, call.Predicted, 100, "%s: up to the end of the system prompts", name)
		}

		// One changed the last tool, and both the system prompt: less is the same in the other branch.
		d, _ := asked(claude)
		one := d.Tools(tool("search", "x")).User("One?").Append(response(claude, 6000, 0))
		two := d.SetSystem("agent", words(500)).User("Two?").Append(response(claude, 6000, 0))
		call := last(t, two.WithHeads(one.Head(), two.Head()), nil)
		require.Equal(t, d.Head(), call.Before)
		require.Equal(t, "system", call.Break.Cause)

		// Both changed the second prompt, and one added a third.
		d, _ = start()
		d = d.System(words(2000)).SetSystem("b", "B").User("Hello.").Append(response(claude, 3000, 0)).SetSystem("b", words(1000))
		one = d.User("One?").Append(response(claude, 4000, 0))
		two = d.System("C").User("Two?").Append(response(claude, 4000, 0))
		call = last(t, two.WithHeads(one.Head(), two.Head()), nil)
		require.Equal(t, one.Head(), call.Before)
		require.Equal(t, "system prompt 3 was added", call.Break.Why)
	})

	t.Run("the same request again", func(t *testing.T) {
		d, _ := asked(claude)
		d = d.User("One?")
		one, two := d.Append(response(claude, 5100, 5000)), d.Append(response(claude, 5100, 5100))
		call := last(t, d.WithHeads(one.Head(), two.Head()), nil)
		require.Zero(t, call.Break)
		require.Equal(t, int64(5100), call.Predicted, "the whole request was sent before")
	})

	t.Run("below the minimum", func(t *testing.T) {
		d, _ := start()
		d = d.User("Hello.").Append(response(claude, 900, 0)).User("And now?").Append(response(claude, 910, 0))
		call := last(t, d, nil)
		require.Equal(t, promptcache.Break{Cause: "short",
			Why: "the common beginning has fewer than 1,024 tokens, the minimum"}, call.Break)
		require.Equal(t, int64(900), call.Shared)
		require.Zero(t, call.Predicted)
	})
}

func TestCallsFollowsTheCachePolicy(t *testing.T) {
	d, c := asked(claude)
	c.now = c.now.Add(10 * time.Minute)
	d = d.User("And now?").Append(response(claude, 5010, 0))
	require.Equal(t, int64(5000), last(t, d, &promptcache.Options{Cache: api.CacheLong}).Predicted)
	require.Zero(t, last(t, d, nil).Predicted)

	d, _ = asked("gpt-5.6")
	d = d.User("And now?").Append(response("gpt-5.6", 5010, 5000))
	require.Equal(t, int64(5000), last(t, d, nil).Predicted)
	require.Zero(t, last(t, d, &promptcache.Options{Cache: api.CacheOff}).Predicted)
}

// What Claude's API reports about the request before is all that it has in its cache.
func TestCallsKnowsWhatWasWritten(t *testing.T) {
	after := func(before content.Usage) promptcache.Call {
		d, _ := start()
		m := response(claude, 0, 0)
		m.Answer.Usage = before
		d = d.User(words(5000)).Append(m)
		return last(t, d.User("And now?").Append(response(claude, 5010, 0)), nil)
	}

	part := after(content.Usage{Input: 1000, CacheRead: 1500, CacheWrite: 2500})
	require.Equal(t, int64(5000), part.Shared)
	require.Equal(t, int64(4000), part.Predicted)

	nothing := after(content.Usage{Input: 5000})
	require.Zero(t, nothing.Predicted)
	require.Equal(t, promptcache.Break{Cause: "not_written", Why: "the request before was not written to the cache"}, nothing.Break)

	unknown := after(content.Usage{})
	require.Positive(t, unknown.Predicted)

	// Nothing was written up to the system prompts either.
	d, _ := start()
	m := response(claude, 0, 0)
	m.Answer.Usage = content.Usage{Input: 5000}
	d = d.System(words(3000)).User(words(2000)).Append(m)
	d = d.Append(node.Compaction{Summary: content.Words("So far."), Replaced: node.ListOf(d.Transcript().Nodes[0].ID())})
	call := last(t, d.User("And now?").Append(response(claude, 3010, 0)), nil)
	require.Equal(t, "compaction", call.Break.Cause)
	require.InDelta(t, 3000, call.Shared, 20)
	require.Zero(t, call.Predicted)
}

func TestCallsKnowsTheRulesOfEachModel(t *testing.T) {
	for _, c := range []struct {
		api, model string
		least      int64 // the shortest prefix that is cached
		step       int64
	}{
		{"anthropic", "claude-sonnet-4-5-20250929", 1024, 1},
		{"anthropic", "claude-opus-4-5", 4096, 1},
		{"anthropic", "claude-haiku-4-5-20251001", 4096, 1},
		{"anthropic", "claude-opus-4-7", 2048, 1},
		{"anthropic", "claude-opus-5", 512, 1},
		{"openai-chat", "gpt-4o", 1024, 128},
		{"openai-responses", "o3-mini", 1024, 128},
		{"openai-responses", "gpt-5.6", 1024, 1},
		{"openai-chat", "llama-3", 0, 1},
		{"gemini", "gemini-2.5-flash", 2048, 1},
		{"gemini", "gemini-3.1-pro-preview", 4096, 1},
		{"other", "m", 0, 1},
	} {
		predicted := func(tokens int64) int64 {
			m := response(claude, tokens, 0)
			m.Answer.API, m.Answer.Model = c.api, c.model
			d, _ := start()
			d = d.User(words(100)).Append(m)
			m.Answer.Usage.CacheWrite += 10
			return last(t, d.User("And now?").Append(m), nil).Predicted
		}
		if c.least > 0 {
			require.Equal(t, c.least, predicted(c.least), c.model)
			require.Zero(t, predicted(c.least-1), c.model)
		}
		require.Equal(t, 5001-5001%c.step, predicted(5001), c.model)
	}
}

func TestCallsKeepsAPrefixForTheTimeOfItsProvider(t *testing.T) {
	for _, c := range []struct {
		model string
		cache api.Cache
		keeps time.Duration
	}{
		{claude, api.CacheShort, 5 * time.Minute},
		{claude, api.CacheLong, time.Hour},
		{gpt, api.CacheShort, time.Hour},
		{gpt, api.CacheLong, 24 * time.Hour},
		{"gpt-5.6", api.CacheLong, 30 * time.Minute},
	} {
		after := func(wait time.Duration, read int64) promptcache.Call {
			d, clock := asked(c.model)
			clock.now = clock.now.Add(wait)
			m := response(c.model, 5010, read)
			m.Answer.Latency = 2 * time.Second // the whole time since the response, but for the wait
			return last(t, d.User("And now?").Append(m), &promptcache.Options{Cache: c.cache})
		}
		require.NotZero(t, after(c.keeps, 0).Predicted, "%s %s", c.model, c.cache)
		require.NotZero(t, after(c.keeps+time.Hour, 4992).Predicted, "it was kept for longer")
		late := after(c.keeps+time.Second, 0)
		require.Zero(t, late.Predicted, "%s %s", c.model, c.cache)
		require.Equal(t, "expired", late.Break.Cause)
	}
}

// What is cached ends where the messages differ, or at the last breakpoint before.
func TestCallsEstimatesACommonBeginning(t *testing.T) {
	compacted := func(model string, from, to int) promptcache.Call {
		d, _ := asked(model)
		for i := range int64(3) {
			d = d.User(words(1000)).Append(response(model, 6000+1000*i, 5000+1000*i))
		}
		nodes := d.Transcript().Nodes
		var replaced []node.ID
		for _, n := range nodes[from:to] {
			replaced = append(replaced, n.ID())
		}
		d = d.Append(node.Compaction{Summary: content.Words("So far."), Replaced: node.ListOf(replaced...)})
		return last(t, d.User("And now?").Append(response(model, 7900, 0)), nil)
	}

	// Messages 1 to 3 are those of the first two requests: the end of the second is a breakpoint.
	call := compacted(claude, 4, 6)
	require.Equal(t, "compaction", call.Break.Cause)
	require.Equal(t, int64(6000), call.Predicted)
	require.InDelta(t, 6000, call.Shared, 20)

	// Nothing of the messages: the breakpoint behind the system prompts is left.
	call = compacted(claude, 0, 2)
	require.InDelta(t, 3000, call.Shared, 100)
	require.Equal(t, call.Shared, call.Predicted)

	call = compacted(gpt, 4, 6)
	require.Zero(t, call.Predicted%128)
	require.InDelta(t, call.Shared, call.Predicted, 127)
	call = compacted("gpt-5.6", 0, 2)
	require.InDelta(t, 3000, call.Shared, 100)
	require.Zero(t, call.Predicted, "it has no breakpoint behind the system prompts")
}

// The provider counts other tokens than the estimate: its count of the whole request is the measure.
func TestCallsScalesEstimatesToWhatWasReported(t *testing.T) {
	d, _ := start()
	d = d.System(words(3000)).User(words(2000)).Append(response(gpt, 10_000, 0))
	d = d.Append(node.Compaction{Summary: content.Words("So far."), Replaced: node.ListOf(d.Transcript().Nodes[0].ID())})
	call := last(t, d.User("And now?").Append(response(gpt, 6020, 0)), nil)
	require.InDelta(t, 6000, call.Shared, 20)
}

func TestCallsComparesSubAgentsWithEachOther(t *testing.T) {
	d, _ := asked(claude)
	agent := func(question string, read int64) dag.DAG {
		return dag.New().WithSource(d.Source()).System(words(2000)).User(question).Append(response(claude, 2100, read))
	}
	d = d.SubGraph("first", agent("One?", 0)).SubGraph("second", agent("Other?", 2000))
	calls := promptcache.Calls(d, nil)
	require.Len(t, calls, 3)

	first, second := calls[1], calls[2]
	require.NotEqual(t, "branch", first.Break.Cause)
	require.Equal(t, first.Node, second.Before)
	require.Equal(t, "branch", second.Break.Cause)
	require.Equal(t, 0, second.Break.Index)
	require.InDelta(t, 2000, second.Predicted, 100, "the system prompt")
}

func TestCallsEstimatesWhatNoProviderReports(t *testing.T) {
	d, _ := start()
	silent := response("llama-3", 0, 0)
	d = d.User(words(1000)).Append(silent).User(words(500)).Append(silent)
	call := last(t, d, nil)
	require.True(t, call.Estimated)
	require.InDelta(t, 1500, call.Input, 20)
	require.InDelta(t, 1000, call.Predicted, 10)
	require.Zero(t, call.Break, "a server that reports nothing is not asked why")
	require.Contains(t, call.String(), "of about 1,5")
}

func TestCallsTakesOnlyResponsesForCalls(t *testing.T) {
	d, _ := start()
	require.Empty(t, promptcache.Calls(d, nil))
	require.Empty(t, promptcache.Calls(d.User("Hello.").Assistant("An example of an answer."), nil))
}

// A file may have any times and numbers.
func TestCallsTakesAnyTimesAndNumbers(t *testing.T) {
	d, clock := asked(claude)
	clock.now = clock.now.Add(-time.Hour)
	call := last(t, d.User("And now?").Append(response(claude, 5010, 5000)), nil)
	require.Equal(t, int64(5000), call.Predicted, "a clock that goes backward")

	m := response(gpt, 0, 0)
	m.Answer.Usage = content.Usage{Input: 1<<63 - 1, CacheRead: 1<<63 - 1, CacheWrite: 1<<63 - 1}
	d, _ = start()
	call = last(t, d.User("Hello.").Append(m).User("And now?").Append(m), nil)
	require.Positive(t, call.Input)
	require.Positive(t, call.Predicted)

	m.Answer.Usage = content.Usage{Input: -5, CacheRead: -5}
	call = last(t, d.User("Hello.").Append(m).User("And now?").Append(m), nil)
	require.Zero(t, call.Read)
	require.Positive(t, call.Input)
}
