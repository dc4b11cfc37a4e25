// Package describe describes nodes in words: the log, the drawings, the page, the difference and the command use the
// same ones. [Of] describes a node, and [Parts] the blocks in it. Renderers lay out the description and need no switch
// over kinds of nodes or blocks. Text from outside, such as the name of a tool, is neither cut nor escaped here.
package describe

import (
	"strconv"
	"strings"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// answerNotes returns the notes about a response: the model, if withModel is set, how often its request was retried,
// and the stop reason, unless it is normal.
func answerNotes(a node.Answer, withModel bool) []string {
	var notes []string
	if withModel && a.Model != "" {
		notes = append(notes, a.Model)
	}
	if retries := retried(a.Retries); retries != "" {
		notes = append(notes, retries)
	}

	if a.Stop == content.StopCut {
		notes = append(notes, "cut off")
	} else if !a.Stop.Normal() {
		notes = append(notes, "stopped: "+string(a.Stop))
	}
	return notes
}

// retried returns how many attempts failed before a response: "1 retry", "2 retries"; "" for none.
func retried(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 retry"
	}
	return Number(n) + " retries"
}

// CallsWait returns how many calls have no result yet: "1 call waits", "2 calls wait".
func CallsWait(n int) string {
	if n == 1 {
		return "1 call waits"
	}
	return Count(n, "call") + " wait"
}

// replaced returns the number of nodes in a compaction, such as "of 3 nodes". It returns "" if the compaction lists
// none, for example one made by a model itself.
func replaced(p node.Compaction) string {
	if p.Replaced.Len() == 0 {
		return ""
	}
	return "of " + Count(p.Replaced.Len(), "node")
}

// startNotes returns the version of the agent and the limits of a run: "version 3", "at most 50 turns", "cost 2",
// "1m0s".
func startNotes(p node.RunStart) []string {
	var notes []string
	if p.Version != "" {
		notes = append(notes, "version "+p.Version)
	}

	// Limits read like totals.
	l := p.Limits
	limits := totals(node.StopReason{Turns: l.Turns, ToolCalls: l.Calls, Usage: content.Usage{Input: l.Tokens}, Cost: l.Cost,
		CostKnown: l.Cost > 0, Elapsed: l.Time})
	if len(limits) > 0 {
		limits[0] = "at most " + limits[0]
	}
	return append(notes, limits...)
}

// totals returns the totals of a run: "2 turns", "3 tool calls", "400 tokens", "1.5s". Zero totals are left out.
func totals(p node.StopReason) []string {
	var list []string
	add := func(n int64, thing, where string) {
		if n > 0 {
			list = append(list, Count(int(n), thing)+where)
		}
	}

	add(int64(p.Turns), "turn", "")
	add(int64(p.ToolCalls), "tool call", "")
	list = append(list, tokens(p.Usage, "")...)
	list = append(list, tokens(p.ToolUsage, " in tools")...)
	if p.Elapsed >= time.Millisecond {
		list = append(list, Duration(p.Elapsed))
	}

	// A cost of zero is shown only if it is known.
	if p.Cost > 0 || p.CostKnown {
		cost := "cost " + strconv.FormatFloat(p.Cost, 'g', 4, 64)
		if !p.CostKnown {
			cost += " (partial)"
		}
		list = append(list, cost)
	}
	return list
}

// tokens returns the number of tokens used, marked as a lower bound if the usage is incomplete.
func tokens(u content.Usage, where string) []string {
	switch n := u.Total(); {
	case n > 0 && u.Incomplete:
		return []string{"at least " + Count(int(n), "token") + where}
	case n > 0:
		return []string{Count(int(n), "token") + where}
	case u.Incomplete:
		return []string{"tokens unknown" + where}
	}
	return nil
}

// toolNames returns the names of declared tools, then those of withdrawn ones.
func toolNames(p node.Tools) string {
	var names []string
	for _, def := range p.Defs.Slice() {
		names = append(names, def.Name)
	}
	for i, name := range p.Withdrawn.Slice() {
		if i == 0 {
			name = "withdrawn: " + name
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// Duration returns d in a readable form with two or three digits: "820ms", "1.5s", "2m5s".
func Duration(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// Count returns a number of things: "1 node", "2,000 nodes".
func Count[N int | int64](n N, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return Number(n) + " " + thing
}

// Number returns n with a comma between thousands.
func Number[N int | int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
