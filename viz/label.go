package viz

import (
	"fmt"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// The styles of boxes.
const (
	styleUser      = "user"
	styleAssistant = "assistant"
	styleAside     = "aside"
	styleFailed    = "failed"
	styleFolded    = "folded"
)

// The shapes of boxes.
const (
	shapeTurn  = "turn"
	shapeSetup = "setup"
	shapeCall  = "call"
	shapeMerge = "merge"
	shapeStop  = "stop"
	shapeStore = "store"
	shapeNote  = "note"
)

// face is the look of a vertex: its label as plain text, its outline and its colors.
type face struct {
	label, shape, style string
}

// labeller makes the labels of one drawing.
type labeller struct {
	o            *outline
	lines, chars int
	models       bool // several models answered, so each is named
}

// The widths of names in a label: one line each, cut if they are absurdly long.
const (
	nameChars = 48
	argsChars = 72
)

// faces holds the outline and the colors of each sort of node. A failed node has other colors.
var faces = map[describe.Sort]struct {
	shape, style string
}{
	describe.System:     {shapeSetup, styleAside},
	describe.Tools:      {shapeSetup, styleAside},
	describe.User:       {shapeTurn, styleUser},
	describe.Assistant:  {shapeTurn, styleAssistant},
	describe.Results:    {shapeMerge, styleUser},
	describe.Call:       {shapeCall, styleUser},
	describe.SubGraph:   {shapeCall, styleUser},
	describe.Compaction: {shapeStore, styleAside},
	describe.Run:        {shapeStop, styleAside},
	describe.Stop:       {shapeStop, styleAside},
	describe.Record:     {shapeNote, styleAside},
	describe.Unknown:    {shapeNote, styleAside},
}

// face returns the look of vertex i.
func (l labeller) face(i int) face {
	n := l.o.vertices[i].node
	d := describe.Of(n)
	d.Waiting = l.o.waiting[n.ID()]
	if l.o.working[n.ID()] {
		d.State = "in the background"
	}
	f := face{shape: faces[d.Sort].shape, style: faces[d.Sort].style}
	if d.Grave() && d.Sort != describe.Assistant { // a response keeps the colors of its side
		f.style = styleFailed
	}
	if d.State == describe.Denied { // nothing was done
		f.style = styleAside
	}

	// The parents of a results message are the calls of one response, and no branches.
	head, text := d.Head(l.models, name), l.body(d.Text)
	if n := len(l.o.vertices[i].parents); n > 1 && d.Sort != describe.Results {
		head += fmt.Sprintf(", joins %d branches", n)
	}

	switch d.Sort {
	case describe.Assistant:
		f.label = lines(head, l.body(blocksText(d.Blocks)), l.calls(i, d.Blocks.ToolUses()))
	case describe.Results:
		f.label = lines(head, l.body(l.results(i, d)))
	case describe.Call:
		if d.Failed {
			f.label = l.failed(d)
		} else {
			f.label = lines(executed(d.Called), l.body(outcome(d)))
		}
	case describe.Stop:
		f.label = lines(head, text, strings.Join(d.Notes(false), ", "))
	case describe.Record:
		f.label = lines(head, l.body(d.RecordLine(l.chars)))
	default:
		f.label = lines(head, text, l.body(blocksText(d.Blocks)))
	}
	return f
}

// mark returns the last line of a box: the number of its head, if its conversation has several, and the names of its
// refs. It returns "" if there is nothing to mark.
func (l labeller) mark(i int) string {
	v := &l.o.vertices[i]
	var marks []string
	if v.head > 0 && l.o.several(v.group) {
		marks = append(marks, fmt.Sprintf("head %d", v.head))
	}
	marks = append(marks, l.o.refsOf(i)...)
	if len(marks) == 0 {
		return ""
	}
	return "◀ " + safetext.Clip(strings.Join(marks, ", "), 1, max(l.chars, nameChars))
}

func (l labeller) body(text string) string { return safetext.Clip(text, l.lines, l.chars) }

// results returns the text of a message with tool results. The results are included unless the calls above it show
// them.
func (l labeller) results(i int, d describe.Node) string {
	var texts []string
	if !l.o.all(l.o.vertices[i].parents, isCall) {
		for _, r := range d.Blocks.ToolResults() {
			texts = append(texts, blocksText(r.Content))
		}
	}

	return strings.Join(append(texts, blocksText(d.Blocks)), "\n")
}

// calls lists the tools called by a message of the assistant: the names alone if the calls have boxes of their own, and
// otherwise the arguments too.
func (l labeller) calls(i int, calls []content.ToolUse) string {
	if len(calls) == 0 {
		return ""
	}

	// The boxes of the calls below have the arguments.
	var parts []string
	if l.o.all(l.o.vertices[i].kids, isCall) {
		for _, c := range calls {
			parts = append(parts, name(c.Name))
		}
		return l.body("calls " + tally(parts))
	}

	for _, c := range calls {
		parts = append(parts, signature(c.Name, c.Input))
	}
	return l.body(strings.Join(parts, "\n"))
}

// tally returns each name once, with the number of its occurrences. Of many names it returns the first ones: "search
// ×40, fetch, and 3 more tools".
func tally(names []string) string {
	times := map[string]int{}
	var order []string
	for _, name := range names {
		if times[name]++; times[name] == 1 {
			order = append(order, name)
		}
	}

	const shown = 8
	var parts []string
	for i, name := range order {
		// A single further name is listed too: "and 1 more tool" would save nothing.
		if i == shown && len(order) > shown+1 {
			parts = append(parts, "and "+count(len(order)-shown, "more tool"))
			break
		}
		if n := times[name]; n > 1 {
			name += fmt.Sprintf(" ×%d", n)
		}
		parts = append(parts, name)
	}
	return strings.Join(parts, ", ")
}

// failed returns the label of a failed call: the tool, the error, and then the arguments.
func (l labeller) failed(d describe.Node) string {
	// executed begins with the same tool. Without arguments, only "()" remains.
	tool := name(d.Called.RanTool)
	arguments := strings.TrimPrefix(executed(d.Called), tool)
	return lines(tool, l.body(outcome(d)), strings.TrimPrefix(arguments, "()"))
}

// executed returns the executed call, and the call of the model if it differs.
func executed(e describe.Execution) string {
	called := signature(e.Tool, e.Input)
	if e.Changed {
		return signature(e.RanTool, e.RanInput) + " in place of " + called
	}
	return called
}

// outcome returns the result of a call, or its error from the most telling line on.
func outcome(d describe.Node) string {
	text := blocksText(d.Blocks)
	if d.Failed {
		line, rest := describe.Telling(text)
		text = lines(line, rest)
	}
	switch {
	case d.Outcome() != "":
		return describe.WithOutcome(d.Outcome(), text)
	case text == "":
		return "(no output)"
	}
	return text
}

// blocksText returns the text of blocks, without the calls and results among them.
func blocksText(blocks content.Blocks) string {
	var parts []string
	for p := range describe.Parts(blocks) {
		switch p.Form {
		case describe.Said:
			parts = append(parts, p.Text)
		case describe.Thought, describe.Shown:
			parts = append(parts, p.Word())
		case describe.Asked, describe.Returned: // written by calls and results
		}
	}
	return strings.Join(parts, "\n")
}

// signature formats a call: get_weather(city: Tokyo).
func signature(tool string, input content.JSON) string {
	return name(tool) + "(" + describe.Arguments(input, argsChars) + ")"
}

func name(s string) string { return safetext.Clip(s, 1, nameChars) }

// lines joins the parts that are not empty with newlines.
func lines(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		if p == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p)
	}
	return b.String()
}

func count(n int, what string) string { return describe.Count(n, what) }

func isCall(n *node.Node) bool { _, ok := n.Payload().(node.ToolExecution); return ok }

// all reports whether there are vertices, and is returns true for the node of each.
func (o *outline) all(vertices []int, is func(*node.Node) bool) bool {
	for _, i := range vertices {
		if !is(o.vertices[i].node) {
			return false
		}
	}
	return len(vertices) > 0
}
