package web

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// Form is the layout of a part on the page.
type Form string

// The forms. The functions partWords and place in the page's script have a case for each.
const (
	FormText    Form = ""        // text, unchanged
	FormTitle   Form = "title"   // text, in bold
	FormJSON    Form = "json"    // JSON, indented
	FormInput   Form = "input"   // the arguments of an execution; Label is the tool
	FormChanged Form = "changed" // the arguments at From and those at At, with the differences marked
	FormCall    Form = "call"    // a tool call with its arguments; Label is the tool
	FormHead    Form = "head"    // Label is a heading
	FormNote    Form = "note"    // Label is a remark
	FormCard    Form = "card"    // Parts in a box; Label is its heading
	FormFold    Form = "fold"    // Parts in a box that opens; Label is its heading
	FormResult  Form = "result"  // Parts in a box, as a tool returned them
	FormAside   Form = "aside"   // Parts left out of the node's text in searches and comparisons
	FormImage   Form = "image"   // an image, from a saved source; Label is its heading
	FormLinks   Form = "links"   // links to nodes, by their IDs at At
	FormCalls   Form = "calls"   // a table of the executions before the node
)

// Part is a part of a node's content, ready to be laid out. Long texts are not in it: At is their path in the node's
// saved form.
type Part struct {
	Form  Form   `json:"form,omitempty"`
	Label string `json:"label,omitempty"`
	At    string `json:"at,omitempty"`
	From  string `json:"from,omitempty"`
	Bad   bool   `json:"bad,omitempty"`  // a failure
	Open  bool   `json:"open,omitempty"` // a fold that is initially open
	Parts []Part `json:"parts,omitempty"`
}

const (
	labelWidth = 120 // cells of a label
	lineWidth  = 160 // cells of the line of a node
	argsChars  = 72  // characters of a call's arguments on a line
	openBytes  = 600 // longer thinking is folded
)

// nodeParts returns the content of n. d is the description of n.
func nodeParts(n *node.Node, d describe.Node) []Part {
	switch d.Sort {
	case describe.System:
		list := textAt(d.Text, "body.text")
		if d.Title != "" {
			list = append([]Part{note(d.Lead(false, ""))}, list...)
		}
		return list
	case describe.Tools:
		return tools(n.Payload().(node.Tools))
	case describe.Results:
		// The table at the end shows the results of the executions before n, and blocks all others.
		return append(blocks(d.Blocks, "body.blocks", executed(n)), Part{Form: FormCalls})
	case describe.Call:
		return execution(n.Payload().(node.ToolExecution), d)
	case describe.SubGraph:
		return append([]Part{{Form: FormTitle, At: "body.title"}}, textAt(d.Text, "body.summary")...)
	case describe.Compaction:
		list := append([]Part{head("summary")}, blocks(d.Blocks, "body.summary", nil)...)
		if of := d.Notes(false); len(of) > 0 {
			list = append(list, note(d.Word+" "+of[0]), Part{Form: FormLinks, At: "body.replaced"})
		}
		return list
	case describe.Run:
		list := append(textAt(d.Title, "body.agent"), textAt(n.Payload().(node.RunStart).Run, "info.run")...)
		if notes := d.Notes(false); len(notes) > 0 {
			list = append(list, note(strings.Join(notes, ", ")))
		}
		return list
	case describe.Stop:
		return append([]Part{{Form: FormTitle, At: "body.reason"}}, textAt(d.Text, "body.detail")...)
	case describe.Record:
		return []Part{{Form: FormTitle, At: "body.name"}, {Form: FormJSON, At: "body.json"}}
	case describe.Unknown:
		return []Part{note(d.Text), {Form: FormJSON, At: "body"}}
	}
	return blocks(d.Blocks, "body.blocks", nil)
}

func head(label string) Part { return Part{Form: FormHead, Label: label} }

func note(label string) Part { return Part{Form: FormNote, Label: clip(label)} }

// textAt returns the part for a text saved at a path, and none for an empty text.
func textAt(text, at string) []Part {
	if text == "" {
		return nil
	}
	return []Part{{At: at}}
}

func clip(label string) string { return safetext.Line(label, labelWidth) }

// tools returns a fold for each declared tool. Schemas are aside: nobody searches them.
func tools(p node.Tools) []Part {
	var list []Part
	for i, def := range p.Defs.Slice() {
		at := "body.tools." + strconv.Itoa(i)
		fold := Part{Form: FormFold, Label: clip(cmp.Or(def.Name, "a tool of the provider"))}

		if def.Description != "" {
			fold.Parts = append(fold.Parts, Part{At: at + ".description"})
		}

		aside := Part{Form: FormAside}
		if def.Schema != "" {
			aside.Parts = append(aside.Parts, Part{Form: FormJSON, At: at + ".schema"})
		}
		if def.Extra.JSON != "" {
			aside.Parts = append(aside.Parts, Part{Form: FormJSON, At: at + ".extra.json"})
		}
		if aside.Parts != nil {
			fold.Parts = append(fold.Parts, aside)
		}
		list = append(list, fold)
	}

	if names := p.Withdrawn.Slice(); len(names) > 0 {
		list = append(list, note("withdrawn: "+strings.Join(names, ", ")))
	}
	return list
}

// execution returns the parts of an execution: its arguments, its result, and the record of its run.
func execution(e node.ToolExecution, d describe.Node) []Part {
	// The arguments. If a hook changed the call, the model's come first, then the changes.
	input := Part{Form: FormInput, Label: clip(d.Called.Tool), At: "body.input"}
	list := []Part{head("arguments"), input}
	if d.Called.Changed {
		instead := head("executed instead")
		if e.Ran.Tool != "" {
			instead.Label += ": " + clip(e.Ran.Tool)
		}
		list = []Part{head("arguments, as the model wrote them"), input, instead}
		if e.Ran.Input != "" {
			list = append(list, Part{Form: FormChanged, From: "body.input", At: "info.ran.input"})
		}
	}

	// The result, under a heading with the outcome of a call that did not succeed.
	if outcome := d.Outcome(); outcome != "" {
		list = append(list, head(outcome))
	} else {
		list = append(list, head("result"))
	}
	if d.Blocks.Len() > 0 {
		list = append(list, Part{Form: FormResult, Bad: d.Failed, Parts: blocks(d.Blocks, "body.result", nil)})
	} else {
		list = append(list, note(noResult(d)))
	}

	if aside := recorded(e); len(aside) > 0 {
		list = append(list, Part{Form: FormAside, Parts: aside})
	}
	return list
}

// noResult returns the words for a missing result.
func noResult(d describe.Node) string {
	switch d.State {
	case "":
		return "no output"
	case describe.InDoubt:
		return "the outcome is not known"
	}
	return "no result yet"
}

// recorded returns the record of an execution beside its result: its whole output, details and times.
func recorded(e node.ToolExecution) []Part {
	var list []Part
	if e.Full.Len() > 0 {
		list = append(list, Part{Form: FormFold, Label: "whole output", Parts: blocks(e.Full, "info.full", nil)})
	}
	if e.Details != "" {
		list = append(list, head("details"), Part{Form: FormJSON, At: "info.details"})
	}
	if e.Started.IsZero() {
		return list
	}

	// An execution that was only started has no end, and neither has one in doubt.
	text := "started " + e.Started.Format(time.RFC3339Nano)
	if e.Ended.IsZero() {
		return append(list, note(text))
	}
	return append(list, note(text+", ended "+e.Ended.Format(time.RFC3339Nano)))
}

// result identifies a tool result.
type result struct {
	callID  string
	content content.Blocks
}

// executed returns the results of the executions before n.
func executed(n *node.Node) map[result]bool {
	results := map[result]bool{}
	for _, parent := range n.Parents() {
		if d := describe.Of(parent); d.Sort == describe.Call {
			results[result{d.Called.ID, d.Blocks}] = true
		}
	}
	return results
}

// blocks returns the parts of the blocks saved at a path. Results of the node's executions are left out: a table shows
// them.
func blocks(list content.Blocks, at string, executed map[result]bool) []Part {
	var all []Part
	i := 0
	for p := range describe.Parts(list) {
		if p.Form != describe.Returned || !executed[result{p.ID, p.Content}] {
			all = append(all, block(p, at+"."+strconv.Itoa(i)))
		}
		i++
	}
	return all
}

// block returns the part of one block.
func block(p describe.Part, at string) Part {
	at = strings.TrimSuffix(at+"."+p.Member, ".")
	switch p.Form {
	case describe.Said:
		return Part{At: at}
	case describe.Thought:
		if p.Text == "" {
			return note("thinking, hidden by the provider")
		}
		return Part{Form: FormFold, Label: p.Label(), Open: len(p.Text) < openBytes, Parts: []Part{{At: at}}}
	case describe.Asked:
		return Part{Form: FormCall, Label: clip(p.Name), At: at}
	case describe.Returned:
		label := clip(p.Label() + " " + p.ID)
		return Part{Form: FormCard, Label: label, Bad: p.Failed, Parts: blocks(p.Content, at, nil)}
	case describe.Shown:
	}

	// Other content shows its kind and size; an image is shown itself.
	word := p.Word()
	if size := describe.Size(p.Source); size != "" {
		word = p.WordWith(", " + size)
	}
	word = strings.TrimSuffix(strings.TrimPrefix(word, "["), "]")
	shown := Part{Form: FormCard, Label: clip(word)}
	switch {
	case p.Member == "source":
		shown.Form, shown.At = FormImage, at
	case p.Text != "":
		shown.Parts = []Part{{At: at}}
	case p.JSON != "":
		shown.Parts = []Part{{Form: FormJSON, At: at}}
	}
	return shown
}

// line returns the node on one line, without its label. For an execution it is the result, and call the arguments.
func line(d describe.Node) (call, line string) {
	text := excerpt(d.Text)
	switch d.Sort {
	case describe.Call:
		line = blocksLine(d.Blocks)
		if d.Failed {
			reason, rest := describe.Telling(describe.Text(d.Blocks))
			line = strings.TrimSpace(reason + " " + excerpt(rest))
		}
		line = describe.WithOutcome(d.Outcome(), line)
		return "(" + describe.Arguments(d.Called.Input, argsChars) + ")", safetext.Line(cmp.Or(line, "no output"), lineWidth)
	case describe.Results:
		text = d.Head(false, clip)
	case describe.Record: // the label has the name
	case describe.Assistant:
		text = d.Lead(false, ", ")
	case describe.SubGraph, describe.Stop:
		text = describe.WithOutcome(excerpt(d.Lead(false, ", ")), text)
	default:
		text = excerpt(d.Lead(false, ", ")) + " " + text
	}
	return "", safetext.Line(text+" "+blocksLine(d.Blocks), lineWidth)
}

// blocksLine returns the beginning of the text of blocks, then the called tools. Thinking is included only if there is
// nothing else. Results are left out.
func blocksLine(list content.Blocks) string {
	var texts, thinking, calls []string
	for p := range describe.Parts(list) {
		switch p.Form {
		case describe.Said:
			texts = append(texts, excerpt(p.Text))
		case describe.Thought:
			thinking = append(thinking, p.Word()+" "+excerpt(p.Text))
		case describe.Asked:
			calls = append(calls, clip(p.Name))
		case describe.Shown:
			texts = append(texts, excerpt(p.Word()))
		case describe.Returned:
		}
	}

	if len(calls) > 0 {
		texts = append(texts, "→ "+tally(calls))
	}
	if len(texts) == 0 {
		texts = thinking
	}
	return strings.Join(texts, " ")
}

// tally returns each name once, with the number of its occurrences: "get_weather ×3, search".
func tally(names []string) string {
	times := map[string]int{}
	var order []string
	for _, name := range names {
		if times[name]++; times[name] == 1 {
			order = append(order, name)
		}
	}

	for i, name := range order {
		if n := times[name]; n > 1 {
			order[i] = name + " ×" + strconv.Itoa(n)
		}
	}
	return strings.Join(order, ", ")
}

// excerpt returns the beginning of s: enough for a line, and little to copy.
func excerpt(s string) string {
	const maxBytes = 2048
	if len(s) > maxBytes {
		return safetext.UTF8(s[:maxBytes])
	}
	return s
}
