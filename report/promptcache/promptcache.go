package promptcache

import (
	"fmt"
	"slices"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
)

// Options describe what a conversation does not record. The zero value and nil are the defaults.
type Options struct {
	// Cache is the cache policy of the requests: see api.Options. It decides how long a prefix is kept. For a provider
	// that does not report what it wrote, it also decides whether anything is cached. Defaults to api.CacheShort.
	Cache api.Cache
}

// Call is a model call: a request, compared with an earlier one, and what its response reported.
type Call struct {
	// Node is the node of the response.
	Node *node.Node
	// Before is the response to the earlier request: the one to the same model with the longest common beginning. It is
	// nil if there was none.
	Before *node.Node

	// Input is the number of tokens of the request. It is an estimate if Estimated is set.
	Input     int64
	Estimated bool
	// Shared is the approximate number of tokens in the common beginning of both requests.
	Shared int64
	// Predicted is the approximate number of Shared tokens that the provider could read from its cache, by its
	// documented rules.
	Predicted int64
	// Read and Written are the numbers of tokens read from the cache and written to it, as the provider reported them.
	Read, Written int64

	// Break is the reason if not all of the earlier request could be read. The zero value is no reason.
	Break Break
}

// String returns the call in a line: "1,200 of 1,350 tokens predicted, 0 read: system prompt 1 changed".
func (c Call) String() string {
	about := ""
	if c.Estimated {
		about = "about "
	}
	line := fmt.Sprintf("%s of %s%s tokens predicted, %s read", describe.Number(int(c.Predicted)), about,
		describe.Number(int(c.Input)), describe.Number(int(c.Read)))

	if c.Break.Why != "" {
		line += ": " + c.Break.Why
	}
	return line
}

// Break is the first difference between a request and the earlier one, or another reason why the earlier one could not
// be read from the cache.
type Break struct {
	// Cause is the kind of reason; "" for none:
	//
	//	first        no earlier request was sent to this model
	//	model        the request before was sent to another model or provider, and none to this one
	//	tools        a tool was added, changed, removed or moved
	//	system       a system prompt was added, changed or removed
	//	message      an earlier message was changed or removed
	//	compaction   the summary of a compaction replaced messages
	//	branch       the request is the first of another branch, or of a sub-agent; the common beginning could still be read
	//	expired      more time passed than the provider keeps a prefix, and nothing was read
	//	not_written  the provider reported that it wrote nothing, or too little, of the request before to its cache
	//	short        the common beginning is shorter than the provider's minimum
	//	unexplained  less than half of the prediction was read, and nothing in the conversation explains it: an option may
	//	             have changed, or the provider dropped the prefix early
	Cause string
	// Part is the part of the request that differs first: "tools", "system" or "messages"; "" if no part differs.
	Part string
	// Index is the index of the first tool, system prompt or message that differs, in the list of Part.
	Index int
	// Node is the node with that message, or the last node that declared tools or set a system prompt. It is nil if no
	// part differs, or if the request has no such node.
	Node *node.Node
	// Why is the reason as text. Tools' names in it are the model's or the program's: make it safe before it is shown.
	Why string
}

// The causes of a [Break].
const (
	becauseFirst          = "first"
	becauseModelChanged   = "model"
	becauseToolsChanged   = "tools"
	becauseSystemChanged  = "system"
	becauseMessageChanged = "message"
	becauseCompacted      = "compaction"
	becauseBranched       = "branch"
	becauseExpired        = "expired"
	becauseNotWritten     = "not_written"
	becauseTooShort       = "short"
	becauseUnexplained    = "unexplained"
)

// The parts of a request, in the order in which providers cache them.
const (
	partTools    = "tools"
	partSystem   = "system"
	partMessages = "messages"
)

// Lost reports whether tokens that were in the cache could not be read. Other causes are normal: a first request, a
// branch.
func (b Break) Lost() bool {
	switch b.Cause {
	case becauseModelChanged, becauseToolsChanged, becauseSystemChanged, becauseMessageChanged, becauseCompacted,
		becauseExpired, becauseUnexplained:
		return true
	}
	return false
}

// Calls returns the model calls of a conversation, in the order of their times: those on all branches before the heads,
// and those of sub-agents. A message of the assistant is no call if its node.Answer names neither an API nor a model: a
// program wrote it.
//
// As long as requests add to earlier ones, the cost is proportional to the conversation. Any other request costs in
// proportion to its whole length. Where the conversation branches, the list of the messages before the branch is copied,
// but not compared: 12,000 calls with a branch at every second one take seconds.
func Calls(d dag.DAG, o *Options) []Call {
	if o == nil {
		o = &Options{}
	}

	requests := requestsOf(d.WithChildren())
	latest := map[sibling]*request{}
	list := make([]Call, len(requests))
	for i, r := range requests {
		// Compare also with the latest request that follows the same call or, if no call comes before r, with the
		// latest such request to the same model.
		key := sibling{after: r.after}
		if r.after == nil {
			key.api, key.model = r.answer.API, r.answer.Model
		}

		r.compare(latest[key], o.Cache)
		r.release(latest[key])
		latest[key] = r
		list[i] = r.Call
	}
	return list
}

// sibling is the key of the requests that follow the same one. The api and model are set for those that follow none.
type sibling struct {
	after      *request
	api, model string
}

// place is what is known about the line of first parents up to a node.
type place struct {
	call   *request   // the last call
	tools  *node.Node // the last node since then that declared tools; nil for none
	system *node.Node // the last node since then that set a system prompt; nil for none
}

// requestsOf returns the requests among the nodes, in the order of their times. Each node comes after its parents.
func requestsOf(nodes []*node.Node) []*request {
	places := make(map[*node.Node]place, len(nodes))
	var list []*request
	for _, n := range nodes {
		var at place
		if n.NumParents() > 0 {
			at = places[n.Parent(0)]
		}

		switch p := n.Payload().(type) {
		case node.Tools:
			at.tools = n
		case node.System:
			at.system = n
		case node.Message:
			if p.Role != content.Assistant || p.Answer.API == "" && p.Answer.Model == "" {
				break
			}
			r := &request{Call: Call{Node: n}, answer: p.Answer, after: at.call, place: at, time: n.Time()}
			if r.after != nil {
				r.after.waiting++

				// The clock of a conversation may go backward, but a request never comes before one that it follows.
				if r.time.Before(r.after.time) {
					r.time = r.after.time
				}
			}
			list = append(list, r)

			// The tools and the system prompts of the line are those since this call.
			at = place{call: r}
		}
		places[n] = at
	}

	slices.SortStableFunc(list, func(a, b *request) int { return a.time.Compare(b.time) })
	return list
}
