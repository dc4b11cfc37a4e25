// Package describe puts into words what nodes are, so that the log, the drawings and the command agree. The words of others among what it
// returns, such as names of tools, are neither cut nor made harmless.
package describe

import (
	"strconv"
	"strings"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// Thinking stands for thinking whose text is not shown, or before it.
const Thinking = "[thinking]"

// Kind returns the word for what n is: "user", "assistant" and "results" for messages, "tool call" for an execution, "record" for a Custom
// node. It returns the kind itself for one that this version does not know.
func Kind(n *node.Node) string {
	switch p := n.Payload().(type) {
	case node.System:
		return "system"
	case node.Tools:
		return "tools"
	case node.Message:
		switch {
		case p.Role == content.Assistant:
			return "assistant"
		case len(p.Blocks.ToolResults()) > 0:
			return "results"
		}
		return "user"
	case node.ToolExecution:
		return "tool call"
	case node.SubGraph:
		return "sub-graph"
	case node.Compaction:
		return "compaction"
	case node.StopReason:
		return "stop"
	case node.Custom:
		return "record"
	}
	return n.Kind()
}

// Answer returns what there is to note about how an answer came about: the model, where withModel, and why it stopped, unless that is
// normal.
func Answer(a node.Answer, withModel bool) []string {
	var notes []string
	if withModel && a.Model != "" {
		notes = append(notes, a.Model)
	}
	if a.Stop == content.StopCut {
		notes = append(notes, "cut off")
	} else if !a.Stop.Normal() {
		notes = append(notes, "stopped: "+string(a.Stop))
	}
	return notes
}

// Replaced returns how many nodes a compaction replaces: "of 3 nodes", or "" where it names none, as one that a model made itself.
func Replaced(p node.Compaction) string {
	if p.Replaced.Len() == 0 {
		return ""
	}
	return "of " + Count(p.Replaced.Len(), "node")
}

// Totals returns what a run took: "2 turns", "3 tool calls", "400 tokens", "1.5s". What is zero is left out.
func Totals(p node.StopReason) []string {
	var totals []string
	add := func(n int64, thing, where string) {
		if n > 0 {
			totals = append(totals, Count(int(n), thing)+where)
		}
	}
	add(int64(p.Turns), "turn", "")
	add(int64(p.ToolCalls), "tool call", "")
	totals = append(totals, tokens(p.Usage, "")...)
	totals = append(totals, tokens(p.ToolUsage, " in tools")...)
	if p.Elapsed >= time.Millisecond {
		totals = append(totals, Duration(p.Elapsed))
	}
	if p.Cost > 0 || p.CostKnown {
		cost := "cost " + strconv.FormatFloat(p.Cost, 'g', 4, 64)
		if !p.CostKnown {
			cost += " (partial)"
		}
		totals = append(totals, cost)
	}
	return totals
}

// tokens returns how many tokens were used, and that it is not all of them where the usage is incomplete.
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

// ToolNames returns the names of declared tools, then those of withdrawn ones.
func ToolNames(p node.Tools) string {
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

// Block returns a word in brackets for a block that has no text to show, and "" for other blocks: "[image image/png]",
// "[document Report application/pdf]", "[anthropic block]".
func Block(b content.Block) string {
	switch b := b.(type) {
	case content.Image:
		return source("image", b.Source)
	case content.Document:
		return source("document "+b.Title, b.Source)
	case content.CutToolUse:
		return "[cut-off call of " + b.Name + "]"
	case content.Opaque:
		return "[" + b.API + " block]"
	case content.Unknown:
		return "[unknown block]"
	}
	return ""
}

func source(what string, s content.Source) string {
	return "[" + strings.Join(strings.Fields(what+" "+s.MediaType+" "+s.URL+" "+s.FileID), " ") + "]"
}

// Duration returns d as a person says it, with two or three digits: "820ms", "1.5s", "2m5s".
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
func Count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return Number(n) + " " + thing
}

// Number returns n with a comma between thousands.
func Number(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
