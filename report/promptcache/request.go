package promptcache

import (
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/node"
)

// request is a Call under comparison.
type request struct {
	Call
	answer node.Answer
	time   time.Time // of the response; not before that of after
	after  *request  // the call before it on its line; nil for none
	place  place     // of the response's parent

	// transcript is what the model was sent. It is built when needed, and dropped after the last comparison.
	transcript *shared.Transcript
	waiting    int // the number of requests after this one that are still to be compared

	messages    int      // the number of messages
	front, size int64    // the estimated tokens of the tools and system prompts, and of all
	base        *request // the latest request that is the whole beginning of this one; nil for none
}

// sent returns what the model was sent.
func (r *request) sent() *shared.Transcript {
	if r.transcript == nil {
		before := dag.DAG{}.WithHeads(r.Node.Parents()...)
		t := shared.Of(&before)
		r.transcript = &t
	}
	return r.transcript
}

// release drops transcripts that are no longer needed for a comparison. last is the latest request after the same one.
func (r *request) release(last *request) {
	if last != nil && last.waiting == 0 {
		last.transcript = nil
	}
	if r.after == nil {
		return
	}
	if r.after.waiting--; r.after.waiting == 0 {
		r.after.transcript = nil
	}
}

// sameModel reports whether both requests were sent to the same model.
func (r *request) sameModel(other *request) bool {
	return r.answer.API == other.answer.API && r.answer.Model == other.answer.Model
}

// earlier returns the last request to the same model before r on its line, or nil.
func (r *request) earlier() *request {
	const farthest = 100 // no provider keeps a prefix for so many calls of other models
	before := r.after
	for i := 0; before != nil && i < farthest; i++ {
		if before.sameModel(r) {
			return before
		}
		before = before.after
	}
	return nil
}

// compare fills in the Call. last is the latest request after the same one, or nil.
func (r *request) compare(last *request, policy api.Cache) {
	u := r.answer.Usage
	r.Read, r.Written = reported(u.CacheRead), reported(u.CacheWrite)
	r.Input = reported(u.Input) + r.Read + r.Written

	// Compare with the request that has most in common with this one.
	before := r.earlier()
	found := r.common(before, 0)
	known := 0
	if found.whole && last != nil && last.base == before {
		known = found.messages // both begin with that request
	}
	other := r.common(last, known)
	if last != nil && last.sameModel(r) && (before == nil || other.more(found)) {
		before, found = last, other
	}

	r.measure(before, found)
	if before == nil {
		r.Break = Break{Cause: becauseFirst, Why: "it is the first request"}
		if r.after != nil {
			r.Break = Break{Cause: becauseModelChanged, Why: modelWhy(r.after.answer, r.answer)}
		}
		return
	}

	r.Before = before.Node
	r.Break = r.difference(before, found, before == last)

	// r only adds to the request before it, but an earlier one has done so in another way: r begins a new branch.
	if r.Break.Cause == "" && last != nil && !other.whole {
		r.Break = r.branched(other.messages)
	}
	r.predict(before, found, rulesOf(r.answer, policy))
}

// most limits numbers of tokens, so that their sums do not overflow.
const most = 1 << 50

// reported returns a number of tokens from a response, which may come from a file, within bounds.
func reported(n int64) int64 { return min(max(n, 0), most) }

// common is how much of the beginning two requests have in common: the number of equal tools, system prompts and
// messages.
type common struct {
	tools, system, messages int

	front bool // all tools and system prompts are equal
	whole bool // the earlier request is the beginning of the later one
}

// more reports whether c is more than other.
func (c common) more(other common) bool {
	switch {
	case c.front != other.front:
		return c.front
	case c.tools != other.tools:
		return c.tools > other.tools
	case c.system != other.system:
		return c.system > other.system
	}
	return c.messages > other.messages
}

// common returns what r has in common with an earlier request: nothing if before is nil. The first known messages are
// equal, and not compared again.
func (r *request) common(before *request, known int) (c common) {
	if before == nil {
		return c
	}

	a, b := before.sent(), r.sent()

	// Nothing after a different tool or system prompt is in common: a prefix is cached only as a whole.
	c.tools = prefix(a.Tools, b.Tools, func(x, y content.Tool) bool { return x == y })
	if c.tools < max(len(a.Tools), len(b.Tools)) {
		return c
	}
	c.system = prefix(a.System, b.System, func(x, y string) bool { return x == y })
	if c.system < max(len(a.System), len(b.System)) {
		return c
	}

	c.front = true
	c.messages = known + prefix(a.Messages[known:], b.Messages[known:], func(x, y content.Message) bool {
		return x.Role == y.Role && x.Blocks.Equal(y.Blocks)
	})
	c.whole = c.messages == len(a.Messages)
	return c
}

// prefix returns the length of the common beginning of two lists. Lists that share their memory are not compared.
func prefix[E any](a, b []E, equal func(x, y E) bool) int {
	shorter := min(len(a), len(b))

	// Transcripts of one branch are prefixes of the same lists.
	if shorter > 0 && &a[0] == &b[0] {
		return shorter
	}
	for i := range shorter {
		if !equal(a[i], b[i]) {
			return i
		}
	}
	return shorter
}

// measure sets the sizes of r, and Input where the provider reported nothing, and Shared.
func (r *request) measure(before *request, found common) {
	t := r.sent()
	r.messages = len(t.Messages)
	r.front = api.EstimateTokens(api.Request{System: t.System, Tools: t.Tools})
	r.Estimated = r.Input == 0

	if found.whole {
		added := tokens(t.Messages[found.messages:])
		r.base, r.size = before, before.size+added
		if r.Estimated {
			r.Input = before.Input + added
		}
		r.Shared = min(before.Input, r.Input)
		return
	}

	r.size = r.front + tokens(t.Messages)
	if r.Estimated {
		r.Input = r.size
	}
	if before == nil {
		return
	}

	// Estimate the tokens from the last request whose tokens are known.
	from := &request{}
	common := api.EstimateTokens(api.Request{Tools: t.Tools[:found.tools], System: t.System[:found.system]})
	if found.front {
		// Find the longest earlier request that ends within the common beginning.
		for r.base = before.base; r.base != nil && r.base.messages > found.messages; {
			r.base = r.base.base
		}
		if r.base != nil {
			from = r.base
		}
		common = r.front + tokens(t.Messages[:found.messages])
	}

	// Correct the estimate of the part after from by what the provider reported for that part of before.
	r.Shared = min(from.Input+scaled(common-from.size, before.Input-from.Input, before.size-from.size), r.Input)
}

// tokens returns about how many tokens messages have.
func tokens(messages []content.Message) int64 {
	return api.EstimateTokens(api.Request{Messages: messages})
}

// scaled returns n × reported ÷ estimated, or n if one of them is not positive.
func scaled(n, reported, estimated int64) int64 {
	if reported <= 0 || estimated <= 0 {
		return max(n, 0)
	}
	return int64(min(float64(max(n, 0))*float64(reported)/float64(estimated), most))
}

// idle returns the time between the response to an earlier request and this request. It is not known if a node has no
// time.
func (r *request) idle(before *request) (idle time.Duration, known bool) {
	if r.Node.Time().IsZero() || before.Node.Time().IsZero() {
		return 0, false
	}

	// Times are those of responses. A request was sent one latency before its response.
	return r.time.Add(-r.answer.Latency).Sub(before.time), true
}
