package web

import (
	"slices"

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
func (m *Model) totals(pic *placed) []Total {
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

	for i, b := range pic.boxes {
		d := describe.Of(b.Node)
		agent := ""
		if f := pic.frameOf[i]; f >= 0 {
			agent = pic.frames[f].Title
		}

		switch d.Sort {
		case describe.Assistant:
			m.add(of("model", d.Model), d)
			of("model", d.Model).time(d)
			m.add(of("agent", agent), d)
		case describe.Call:
			m.add(of("tool", d.Label()), d)
			of("tool", d.Label()).time(d)

			// The tokens of a sub-agent's call are already counted in the sub-agent's own calls.
			d.Usage = content.Usage{}
			m.add(of("agent", agent), d)
		}
	}

	// A sub-agent took as long as the calls that started it.
	for i, f := range pic.frames {
		of("agent", f.Title).time(describe.Of(pic.boxes[pic.owners[i]].Node))
	}

	order := []string{"model", "tool", "agent"}
	slices.SortStableFunc(list, func(a, b Total) int { return slices.Index(order, a.By) - slices.Index(order, b.By) })
	return list
}

// add counts a call, its tokens and its cost.
func (m *Model) add(t *Total, d describe.Node) {
	t.Calls++
	if d.Grave() {
		t.Failed++
	}

	for i, n := range counts(d.Usage) {
		t.Usage[i] += n
	}
	t.Least = t.Least || d.Usage.Incomplete

	// Only responses have a price: tool calls count neither as priced nor as unpriced.
	cost, known := m.cost(d)
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
