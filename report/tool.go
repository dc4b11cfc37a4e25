package report

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/plait-dev/plait/node"
)

// Tool sums up the calls of one tool.
type Tool struct {
	Name string `json:"name"`
	// Calls counts the calls with a result. Failed counts the failed calls and the calls in doubt.
	Calls  int `json:"calls"`
	Failed int `json:"failed"`
	// P50 and P95 are percentiles of the duration of a call, over the Timed calls with a known time. They are written
	// to JSON in milliseconds.
	Timed int           `json:"timed"`
	P50   time.Duration `json:"-"`
	P95   time.Duration `json:"-"`

	times []time.Duration // sorted
}

// Times returns the times of the timed calls, sorted. It returns at most n of them, at equal distances: their
// percentiles are about those of all.
func (t Tool) Times(n int) []time.Duration {
	if len(t.times) <= n {
		return slices.Clone(t.times)
	}
	times := make([]time.Duration, n)
	for i := range times {
		times[i] = percentile(t.times, (float64(i)+0.5)/float64(n))
	}
	return times
}

// failureRate returns the share of failed calls, between 0 and 1.
func (t Tool) failureRate() float64 {
	if t.Calls == 0 {
		return 0
	}
	return float64(t.Failed) / float64(t.Calls)
}

// MarshalJSON writes the tool with its percentiles as "p50_ms" and "p95_ms". Both are null without a known time.
func (t Tool) MarshalJSON() ([]byte, error) {
	type plain Tool
	out := struct {
		plain
		Rate float64  `json:"failure_rate"`
		P50  *float64 `json:"p50_ms"`
		P95  *float64 `json:"p95_ms"`
	}{plain: plain(t), Rate: t.failureRate()}

	if t.Timed > 0 {
		p50, p95 := milliseconds(t.P50), milliseconds(t.P95)
		out.P50, out.P95 = &p50, &p95
	}
	return json.Marshal(out)
}

// percentile returns the smallest of the sorted times such that the given share of them is not longer.
func percentile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	at := int(math.Ceil(share*float64(len(sorted)))) - 1
	return sorted[max(at, 0)]
}

// toolCounts are the calls of each tool.
type toolCounts map[string]*Tool

func (c toolCounts) of(name string) *Tool {
	if c[name] == nil {
		c[name] = &Tool{Name: name}
	}
	return c[name]
}

func (c toolCounts) add(name string, failed bool) *Tool {
	t := c.of(name)
	t.Calls++
	if failed {
		t.Failed++
	}
	return t
}

// execution adds an executed call.
func (c toolCounts) execution(n *node.Node) {
	e := n.Payload().(node.ToolExecution)
	// It has no result yet.
	if e.State.Unfinished() {
		return
	}

	t := c.add(e.Tool, n.Failed())
	// Times come from files: an execution that ended before its start has no known time.
	if !e.Started.IsZero() && !e.Ended.Before(e.Started) {
		t.times = append(t.times, e.Ended.Sub(e.Started))
	}
}

// results adds the calls with results in a message, unless they have executions.
func (c toolCounts) results(n *node.Node) {
	m, _ := n.Message()
	if hasExecution(n) || n.NumParents() == 0 {
		return
	}

	// A result has no name. Its call, in the message before, has.
	names := map[string]string{} // of the tools, by the ID of the call
	if asked, ok := n.Parent(0).Message(); ok {
		for _, use := range asked.Blocks.ToolUses() {
			names[use.ID] = use.Name
		}
	}
	for _, result := range m.Blocks.ToolResults() {
		c.add(names[result.CallID], result.IsError)
	}
}

// hasExecution reports whether the calls with results in a message have executions.
func hasExecution(n *node.Node) bool {
	for i := range n.NumParents() {
		if _, ok := n.Parent(i).Payload().(node.ToolExecution); ok {
			return true
		}
	}
	return false
}

// merge adds the calls of another sum.
func (c toolCounts) merge(list []Tool) {
	for _, other := range list {
		t := c.of(other.Name)
		t.Calls += other.Calls
		t.Failed += other.Failed
		// Keep all times: the percentiles of a sum do not follow from those of its parts.
		t.times = append(t.times, other.times...)
	}
}

// list returns the tools in the order of their names.
func (c toolCounts) list() []Tool {
	list := make([]Tool, 0, len(c))
	for _, name := range slices.Sorted(maps.Keys(c)) {
		t := *c[name]
		slices.Sort(t.times)
		t.Timed, t.P50, t.P95 = len(t.times), percentile(t.times, 0.5), percentile(t.times, 0.95)
		list = append(list, t)
	}
	return list
}

// phaseTimes holds when each tool phase began and ended, by the message with the calls.
type phaseTimes map[*node.Node][2]time.Time

func (p phaseTimes) add(n *node.Node) {
	e := n.Payload().(node.ToolExecution)
	if e.Started.IsZero() || e.Ended.Before(e.Started) || n.NumParents() == 0 {
		return
	}

	phase, ok := p[n.Parent(0)]
	if !ok || e.Started.Before(phase[0]) {
		phase[0] = e.Started
	}
	if e.Ended.After(phase[1]) {
		phase[1] = e.Ended
	}
	p[n.Parent(0)] = phase
}

func (p phaseTimes) total() (sum time.Duration) {
	for _, phase := range p {
		sum = longer(sum, phase[1].Sub(phase[0]))
	}
	return sum
}

// longer returns a + b, at most the longest duration: times come from files. Neither may be negative.
func longer(a, b time.Duration) time.Duration { return a + min(b, math.MaxInt64-a) }
