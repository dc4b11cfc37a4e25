package viz

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/goccy/go-json/jsontext"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
)

// Style is how a kind of box looks: its colours.
type Style string

// The styles.
const (
	StyleUser      Style = "user"      // the user's side: what it says, runs and answers
	StyleAssistant Style = "assistant" // the model's side
	StyleAside     Style = "aside"     // what neither side says: system prompts, tools, the end of a run
	StyleFailed    Style = "failed"    // what went wrong
	StyleFolded    Style = "folded"    // what is not drawn
)

// Shape is the outline of a box, by what the box is.
type Shape string

// The shapes.
const (
	ShapeTurn  Shape = "turn"  // what somebody says
	ShapeSetup Shape = "setup" // a system prompt, the tools
	ShapeCall  Shape = "call"  // a tool that ran, a conversation in the conversation
	ShapeMerge Shape = "merge" // the message with the results of calls
	ShapeStop  Shape = "stop"  // the end of a run
	ShapeStore Shape = "store" // a compaction
	ShapeNote  Shape = "note"  // what a program keeps beside the conversation
)

// face is what is seen of a vertex: plain text, its outline and its colours.
type face struct {
	label string
	shape Shape
	style Style
}

// labeller makes the labels of one drawing.
type labeller struct {
	o            *outline
	lines, chars int
	models       bool // several models spoke, so each is named
}

// widths of the parts of a label that are names: shown on one line, cut when they are absurd.
const (
	nameChars = 48
	argsChars = 72
)

// face returns what is seen of vertex i.
func (l labeller) face(i int) face {
	v := l.o.vertices[i]
	switch p := v.node.Payload().(type) {
	case node.System:
		return face{lines(systemHead(p), l.body(p.Text)), ShapeSetup, StyleAside}
	case node.Tools:
		return face{lines("tools", l.body(describe.ToolNames(p))), ShapeSetup, StyleAside}
	case node.Message:
		return l.message(i, p)
	case node.ToolExecution:
		return l.call(p)
	case node.SubGraph:
		return face{lines(title(v.node), l.body(p.Summary)), ShapeCall, StyleUser}
	case node.Compaction:
		return face{lines(strings.TrimRight("compaction "+describe.Replaced(p), " "), l.body(said(p.Summary))), ShapeStore, StyleAside}
	case node.StopReason:
		return stop(p, l.body(p.Detail))
	case node.Custom:
		return face{lines(strings.TrimRight("record "+name(p.Name), " "), l.body(string(p.JSON))), ShapeNote, StyleAside}
	}
	return face{name(v.node.Kind()), ShapeNote, StyleAside}
}

func (l labeller) body(text string) string { return clip(text, l.lines, l.chars) }

func (l labeller) message(i int, m node.Message) face {
	calls, results := m.Blocks.ToolUses(), m.Blocks.ToolResults()
	if m.Role == content.Assistant {
		head := "assistant"
		for _, note := range describe.Answer(m.Answer, l.models) {
			head += ", " + name(note)
		}
		return face{lines(head, l.body(said(m.Blocks)), l.calls(i, calls)), ShapeTurn, StyleAssistant}
	}
	if len(results) == 0 {
		return face{lines("user", l.body(said(m.Blocks))), ShapeTurn, StyleUser}
	}
	bad := 0
	for _, r := range results {
		if r.IsError {
			bad++
		}
	}
	head := count(len(results), "result")
	if bad > 0 {
		head += fmt.Sprintf(", %d failed", bad)
	}
	var texts []string
	if !l.o.all(l.o.vertices[i].parents, isCall) { // else the calls above show them
		for _, r := range results {
			texts = append(texts, said(r.Content))
		}
	}
	return face{lines(head, l.body(strings.Join(append(texts, said(m.Blocks)), "\n"))), ShapeMerge, StyleUser}
}

// calls names the tools that an assistant's message calls, with their arguments where no box of their own shows them.
func (l labeller) calls(i int, calls []content.ToolUse) string {
	if len(calls) == 0 {
		return ""
	}
	kids := l.o.vertices[i].kids
	drawn, again := l.o.all(kids, isCall), 1
	var parts []string
	for i, c := range calls {
		switch {
		case !drawn:
			parts = append(parts, signature(c.Name, c.Input))
		case i > 0 && c.Name == calls[i-1].Name:
			again++
			parts[len(parts)-1] = fmt.Sprintf("%s ×%d", name(c.Name), again)
		default:
			again = 1
			parts = append(parts, name(c.Name))
		}
	}
	if drawn {
		return l.body("calls " + strings.Join(parts, ", "))
	}
	return l.body(strings.Join(parts, "\n"))
}

func (l labeller) call(p node.ToolExecution) face {
	outcome, look := said(p.Result), StyleUser
	switch {
	case p.IsError:
		outcome, look = "failed: "+outcome, StyleFailed
	case outcome == "":
		outcome = "(no output)"
	}
	called := signature(p.Tool, p.Input)
	if p.Ran != (node.Ran{}) {
		called = signature(cmp.Or(p.Ran.Tool, p.Tool), cmp.Or(p.Ran.Input, p.Input)) + " in place of " + called
	}
	return face{lines(called, l.body(outcome)), ShapeCall, look}
}

func stop(p node.StopReason, detail string) face {
	look := StyleAside
	if !p.Reason.Normal() {
		look = StyleFailed
	}
	return face{lines("stop: "+name(string(p.Reason)), detail, strings.Join(describe.Totals(p), ", ")), ShapeStop, look}
}

// said is what blocks say, in words; the calls and results among them are left out.
func said(blocks content.Blocks) string {
	var parts []string
	for _, b := range blocks.All() {
		switch b := b.(type) {
		case content.Text:
			parts = append(parts, b.Text)
		case content.Thinking:
			parts = append(parts, describe.Thinking)
		default:
			if word := describe.Block(b); word != "" {
				parts = append(parts, word)
			}
		}
	}
	return strings.Join(parts, "\n")
}

// signature writes a call as get_weather(city: Tokyo).
func signature(tool string, input content.JSON) string {
	return name(tool) + "(" + arguments(string(input)) + ")"
}

// arguments writes a JSON object as "city: Tokyo, days: 3"; other text as it is.
func arguments(input string) string {
	dec := jsontext.NewDecoder(bytes.NewBufferString(input), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return clip(input, 1, argsChars)
	}
	var b strings.Builder
	for dec.PeekKind() != '}' && b.Len() <= argsChars {
		key, err := dec.ReadToken()
		if err != nil {
			return clip(input, 1, argsChars)
		}
		called := clip(key.String(), 1, nameChars)
		value, err := dec.ReadValue()
		if err != nil {
			return clip(input, 1, argsChars)
		}
		if value.Kind() == '"' {
			value, _ = jsontext.AppendUnquote(nil, value) // the error says what became U+FFFD
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(called + ": " + clip(string(value), 1, argsChars))
	}
	if dec.PeekKind() != '}' {
		b.WriteString(", …")
	}
	return clip(b.String(), 1, argsChars)
}

// systemHead returns the head of a system prompt's label, with the prompt's name.
func systemHead(p node.System) string {
	switch {
	case p.Name == "":
		return "system"
	case p.Text == "":
		return "system, " + name(p.Name) + " removed"
	}
	return "system, " + name(p.Name)
}

// title names the conversation that hangs on n.
func title(n *node.Node) string {
	switch p := n.Payload().(type) {
	case node.ToolExecution:
		return "sub-agent: " + name(p.Tool)
	case node.SubGraph:
		return "sub-graph: " + name(p.Title)
	}
	return ""
}

func name(s string) string { return clip(s, 1, nameChars) }

// lines joins the parts that are not empty.
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

// all reports whether there are vertices, and each is such a node.
func (o *outline) all(vertices []int, is func(*node.Node) bool) bool {
	for _, i := range vertices {
		if !is(o.vertices[i].node) {
			return false
		}
	}
	return len(vertices) > 0
}
