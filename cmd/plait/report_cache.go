package main

import (
	"fmt"
	"math"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/report/promptcache"
)

// cachedCall is a model call in the output of report --cache --json.
type cachedCall struct {
	Conversation string `json:"conversation"`
	// ID and Model belong to the response. Before is the ID of an earlier response: its request is compared
	// with this one's.
	ID     string `json:"id"`
	Model  string `json:"model,omitempty"`
	Before string `json:"before,omitempty"`

	Input     int64 `json:"input"`
	Estimated bool  `json:"estimated,omitempty"`
	Shared    int64 `json:"shared"`
	Predicted int64 `json:"predicted"`
	Read      int64 `json:"read"`
	Written   int64 `json:"written"`

	Break *cacheBreak `json:"break,omitempty"`

	text  string // all of it in a line
	short string // the short name of the response
}

// cacheBreak is why a request could not be read from the cache, or not all of it.
type cacheBreak struct {
	Cause string `json:"cause"`
	Part  string `json:"part,omitempty"`
	// Index is the index of the first different tool, system prompt or message. It is nil if no part differs.
	Index *int   `json:"index,omitempty"`
	Node  string `json:"node,omitempty"`
	Why   string `json:"why"`
}

// cachePolicy returns the cache policy for the requests of a conversation. It comes from the imported request, if there
// was one.
func cachePolicy(d dag.DAG) api.Cache { return savedRequestOf(d).Cache }

// cachedCalls returns the model calls in a conversation, in the order of their times.
func cachedCalls(name string, d dag.DAG) []cachedCall {
	var list []cachedCall
	short := d.ShortIDs()
	for _, c := range promptcache.Calls(everyNode(d), &promptcache.Options{Cache: cachePolicy(d)}) {
		m, _ := c.Node.Message()
		call := cachedCall{Conversation: name, ID: c.Node.ID().String(), short: short(c.Node), Model: m.Answer.Model,
			Input: c.Input, Estimated: c.Estimated, Shared: c.Shared, Predicted: c.Predicted,
			Read: c.Read, Written: c.Written, text: c.String()}
		if c.Before != nil {
			call.Before = c.Before.ID().String()
		}

		if b := c.Break; b.Cause != "" {
			call.Break = &cacheBreak{Cause: b.Cause, Part: b.Part, Why: b.Why}
			// 0 is the index of the first part, so the index of no part is nil.
			if b.Part != "" {
				call.Break.Index = &b.Index
			}
			if b.Node != nil {
				call.Break.Node = b.Node.ID().String()
			}
		}
		list = append(list, call)
	}
	return list
}

// cached writes the model calls, with what each found in the prompt cache.
func (t *reportText) cached() {
	if len(t.Requests) == 0 {
		return
	}
	var cells [][]string
	for _, c := range t.Requests {
		about, why := "", ""
		if c.Estimated {
			about = "about "
		}
		if c.Break != nil {
			why = ": " + c.Break.Why
		}
		cells = append(cells, []string{
			about + describe.Number(c.Input), describe.Number(c.Predicted), describe.Number(c.Read), describe.Number(c.Written),
			safetext.Line(fmt.Sprintf("%s: %s %s%s", c.Conversation, c.short, c.Model, why), math.MaxInt),
		})
	}

	t.out.WriteByte('\n')
	t.table([]column{{"request", false}, {"predicted", false}, {"cache read", false}, {"cache write", false}, {"call", true}}, cells,
		plainRow, nothingAfter)
}
