package web

import (
	"slices"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/describe"
)

// Total sums up the calls of one model, one tool or one sub-agent.
type Total struct {
	By       string   `json:"by"` // "model", "tool" or "agent"
	Name     string   `json:"name"`
	Calls    int      `json:"calls"`
	Failed   int      `json:"failed,omitempty"`
	Usage    [5]int64 `json:"usage,omitzero"`
	Least    bool     `json:"least,omitempty"` // more tokens were used than Usage counts
	MS       float64  `json:"ms,omitempty"`
	Longest  float64  `json:"longest,omitempty"`
	Untimed  int      `json:"untimed,omitempty"` // calls of unknown duration; MS is the time of the others
	Cost     float64  `json:"cost,omitempty"`
	Priced   int      `json:"priced,omitempty"`   // calls in Cost
	Unpriced int      `json:"unpriced,omitempty"` // responses of unknown cost
}

// totals returns the totals of all branches and sub-agents: by model, by tool and by sub-agent, each in reading order.
// A sub-agent has the calls of its own conversations, and the time of the calls that started it.
func totals(v *view, prices api.Prices) []Total {
	type group struct{ by, name string }
	at := map[group]int{}
	var list []Total
	of := func(by, name string) *Total {
		i, ok := at[group{by, name}]
		if !ok {
			i = len(list)
			at[group{by, name}] = i
			list = append(list, Total{By: by, Name: name})
		}
		return &list[i]
	}

	for i := range v.nodes {
		d := describe.Of(v.nodes[i].node)
		agent := ""
		if f := v.nodes[i].place.Frame; f >= 0 {
			agent = v.frames[f].Title
		}

		switch d.Sort {
		case describe.Assistant:
			of("model", d.Model).add(d, prices)
			of("model", d.Model).time(d)
			of("agent", agent).add(d, prices)
		case describe.Call:
			of("tool", d.Label()).add(d, prices)
			of("tool", d.Label()).time(d)

			// The tokens of a sub-agent's call are already counted in the sub-agent's own calls.
			d.Usage = content.Usage{}
			of("agent", agent).add(d, prices)
		}
	}

	// A sub-agent took as long as the calls that started it.
	for i, f := range v.frames {
		of("agent", f.Title).time(describe.Of(v.nodes[v.owners[i]].node))
	}

	order := []string{"model", "tool", "agent"}
	slices.SortStableFunc(list, func(a, b Total) int { return slices.Index(order, a.By) - slices.Index(order, b.By) })
	return list
}

// add counts a call, its tokens and its cost.
func (t *Total) add(d describe.Node, prices api.Prices) {
	t.Calls++
	if d.Grave() {
		t.Failed++
	}

	for i, n := range counts(d.Usage) {
		t.Usage[i] += n
	}
	t.Least = t.Least || d.Usage.Incomplete

	// Only responses have a price: tool calls count neither as priced nor as unpriced.
	cost, known := costOf(prices, d)
	switch {
	case known:
		t.Cost += cost
		t.Priced++
	case d.Sort == describe.Assistant:
		t.Unpriced++
	}
}

// time adds the duration of a call.
func (t *Total) time(d describe.Node) {
	ms := milliseconds(d.Took)
	if ms == 0 {
		t.Untimed++
	}
	t.MS += ms
	t.Longest = max(t.Longest, ms)
}
