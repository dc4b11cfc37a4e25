package dag

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-json/jsontext"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// face is a node's row in the log: its sign in the graph and the word for its kind, and then name, why, text and
// outcome. These four are not cleaned yet. why is the failure of a failed node: it is red, and cut last.
type face struct {
	glyph, word              string
	name, why, text, outcome string
	color                    color
}

// The signs in a log's text.
const (
	arrowSign = "→"
	crossSign = "✗"
	timesSign = "×"
	dotSign   = " · "
	cutSign   = "…"
)

// look is the sign of a node and its color.
type look struct {
	glyph string
	color color
}

// nodeLooks maps each sort of node to its look.
var nodeLooks = map[describe.Sort]look{
	describe.System:     {"◆", gray},
	describe.Tools:      {"◆", gray},
	describe.User:       {"○", cyan},
	describe.Assistant:  {"●", green},
	describe.Results:    {"◇", cyan},
	describe.Call:       {"▪", blue},
	describe.SubGraph:   {"▣", blue},
	describe.Compaction: {"≡", magenta},
	describe.Run:        {"▸", gray},
	describe.Stop:       {"■", gray},
	describe.Record:     {"▫", gray},
	describe.Unknown:    {glyph: "?"},
}

// faceOf returns the face of n. executed is set if its calls have executions: the executions then show the arguments.
func (l *logger) faceOf(n *node.Node, executed bool) face {
	d := describe.Of(n)
	d.Waiting = l.waiting[n.ID()]
	look := nodeLooks[d.Sort]
	f := face{glyph: look.glyph, color: look.color, word: cleanLine(d.Word, 20)}
	if d.Grave() {
		f.color = red
	}

	lead := excerpt(d.Lead(l.models, dotSign))
	switch d.Sort {
	case describe.Call:
		f.word = "" // the text shows that it is a call
		d.Called.Tool, d.Called.Input = calledBy(n, d.Called)

		// The failure is the first thing to see, before the arguments.
		if d.Failed {
			f.name, f.why, f.text = failedText(d)
			break
		}
		f.text, f.outcome = join(executionText(d.Called), d.Elapsed()), outcomeText(d)
	case describe.SubGraph:
		f.text, f.outcome = lead, arrowTo(excerpt(d.Text))
	case describe.Assistant:
		f.text, f.outcome = blocksText(d.Blocks), callsText(d.Blocks, executed)
		if d.Grave() {
			f.why = lead
		} else {
			f.text = join(lead, f.text)
		}
	case describe.Results:
		f.name, f.why, f.text = resultsText(n, d)
	case describe.Stop:
		// The reason comes before the totals, which may be cut.
		reason, totals := excerpt(d.Title), ""
		if d.Text != "" {
			reason += dotSign + excerpt(d.Text)
		}
		for _, note := range d.Notes(l.models) {
			totals += dotSign + note
		}

		if d.Grave() {
			f.why, f.text = reason, totals
		} else {
			f.text = reason + totals
		}
	case describe.Record:
		f.text = join(lead, d.RecordLine(300))
	default:
		f.text = join(lead, excerpt(d.Text), blocksText(d.Blocks))
	}
	return f
}

// faceText returns the texts of a face, cleaned, in at most width cells.
func faceText(f face, width int) []piece {
	if f.why == "" {
		return pieceText(join(f.name, f.text), f.outcome, width)
	}

	// A long name leaves two thirds of the row to the failure.
	var row []piece
	if name := cleanLine(f.name, max(width/3, 8)); name != "" {
		row = append(row, note(name), note(" "))
		width -= safetext.Width(name) + 1
	}
	why := cleanLine(f.why, width)
	row = append(row, piece{why, red})
	width -= safetext.Width(why)

	// A few cells are too little for the rest: do not begin it.
	const few = 8
	if width < few {
		return row
	}
	rest := pieceText(f.text, f.outcome, width-1)
	if len(rest) > 0 && !strings.HasPrefix(rest[0].text, ",") {
		row = append(row, note(" "))
	}
	return append(row, rest...)
}

// pieceText returns a text and the outcome after it, cleaned, in at most width cells. A long outcome gets at least two
// fifths of the cells.
func pieceText(text, outcome string, width int) []piece {
	end := cleanLine(outcome, width)
	if end == "" {
		return []piece{note(cleanLine(text, width))}
	}
	text = cleanLine(text, max(width-safetext.Width(end)-1, width*3/5))
	if text == "" {
		return []piece{note(end)}
	}
	return []piece{note(text), note(" "), note(cleanLine(outcome, width-safetext.Width(text)-1))}
}

// cleanLine returns text on one line, cleaned, in at most width cells.
func cleanLine(text string, width int) string { return safetext.Line(text, width) }

// excerpt returns the beginning of s: more than fits into a row, but little enough to copy.
func excerpt(s string) string {
	const maxBytes = 2048
	if len(s) > maxBytes {
		return safetext.UTF8(s[:maxBytes])
	}
	return s
}

// blocksText returns the text of the blocks, without tool calls. Thinking is included only if there is nothing else.
func blocksText(blocks content.Blocks) string {
	var texts, thinking []string
	for p := range describe.Parts(blocks) {
		switch p.Form {
		case describe.Said:
			texts = append(texts, excerpt(p.Text))
		case describe.Thought:
			thinking = append(thinking, p.Word()+" "+excerpt(p.Text))
		case describe.Returned:
			texts = append(texts, resultMark(p.Failed)+blocksText(p.Content))
		case describe.Shown:
			texts = append(texts, excerpt(p.Word()))
		case describe.Asked: // in callsText
		}
	}

	if len(texts) == 0 && len(blocks.ToolUses()) == 0 {
		texts = thinking
	}
	return strings.Join(texts, " ")
}

// callsText returns the calls of a message: each with its arguments, or only the number of calls of each tool if they
// are executed.
func callsText(blocks content.Blocks, executed bool) string {
	var order []string
	times := map[string]int{}
	for _, call := range blocks.ToolUses() {
		name := excerpt(call.Name)
		if !executed {
			name = callText(call.Name, call.Input)
		}

		// Equal calls are written once, with their number.
		if times[name]++; times[name] == 1 {
			order = append(order, name)
		}
	}
	for i, name := range order {
		if n := times[name]; n > 1 {
			order[i] += " " + timesSign + strconv.Itoa(n)
		}
	}
	return arrowTo(excerpt(strings.Join(order, ", ")))
}

// callText returns a call in the form of a function call: the tool, and the members of its arguments.
func callText(tool string, input content.JSON) string {
	var members []string
	read := jsontext.NewDecoder(strings.NewReader(string(input)))
	if t, err := read.ReadToken(); err != nil || t.Kind() != '{' {
		return excerpt(tool) + "(" + excerpt(string(input)) + ")"
	}

	// A row has room for few members: do not read all of a large object.
	for length := 0; length < 300; {
		name, err := read.ReadToken()
		if err != nil || name.Kind() != '"' {
			break
		}
		member := excerpt(name.String()) + ": "
		value, err := read.ReadValue()
		if err != nil {
			value = jsontext.Value(cutSign) // the arguments were cut off
		}
		member += excerpt(string(value))
		members = append(members, member)
		length += len(member)
	}
	return excerpt(tool) + "(" + strings.Join(members, ", ") + ")"
}

// executionText returns the executed call, and the original call if it was changed.
func executionText(e describe.Execution) string {
	if !e.Changed {
		return callText(e.Tool, e.Input)
	}
	executed := callText(cmp.Or(e.RanTool, e.Tool), cmp.Or(e.RanInput, e.Input))
	return executed + " in place of " + callText(e.Tool, e.Input)
}

// outcomeText returns the sign and the result of an execution. Its state, if it has one, comes before the result.
func outcomeText(d describe.Node) string {
	return resultMark(d.Failed) + describe.WithOutcome(excerpt(d.State), blocksText(d.Blocks))
}

// failedText returns the texts of an execution that failed: the tool, the first line of the error, and then the
// arguments.
func failedText(d describe.Node) (name, why, text string) {
	name = excerpt(cmp.Or(d.Called.RanTool, d.Called.Tool))
	reason, more := d.Reason()
	why = crossSign + " " + describe.WithOutcome(excerpt(d.State), excerpt(reason))
	if reason == "" && d.State == "" {
		why += d.Outcome()
	}
	if more {
		why += " " + cutSign
	}

	// The tool is named at the beginning of the row: leave only the arguments, and nothing if there are none.
	arguments := strings.TrimPrefix(executionText(d.Called), name)
	return name, why, join(strings.TrimPrefix(arguments, "()"), d.Elapsed())
}

// calledBy returns the tool and the arguments of the execution n. If an execution appended by hand has none, they are
// taken from the call.
func calledBy(n *node.Node, e describe.Execution) (tool string, input content.JSON) {
	if e.Tool != "" || n.NumParents() != 1 {
		return e.Tool, e.Input
	}
	if m, ok := n.Parent(0).Message(); ok {
		calls := lineage.CallsOf(m.Blocks)
		if i := calls.Of(n.Payload().(node.ToolExecution)); i >= 0 {
			return calls.Call(i).Name, calls.Call(i).Input
		}
	}
	return e.Tool, e.Input
}

// resultMark returns the sign before a result.
func resultMark(failed bool) string {
	if failed {
		return crossSign + " "
	}
	return arrowSign + " "
}

func arrowTo(text string) string {
	if text == "" {
		return ""
	}
	return arrowSign + " " + text
}

// resultsText returns the texts of a results message. If executions before it show the results, it returns only the
// number of results, and of failed ones.
func resultsText(n *node.Node, d describe.Node) (name, why, text string) {
	shown := 0
	for i := range n.NumParents() {
		if isExecution(n.Parent(i)) {
			shown++
		}
	}
	all, failed := d.CountResults()

	// Some results are in no row of an execution: show all of them here.
	if shown < all {
		return "", "", blocksText(d.Blocks)
	}

	if rest := blocksText(withoutResults(d.Blocks)); rest != "" {
		text = dotSign + rest
	}
	bad := strings.Join(d.BadResults(), ", ")
	switch {
	case failed > 0:
		return number(all) + ",", bad, text
	case bad != "":
		return "", "", number(all) + ", " + bad + text
	}
	return "", "", number(all) + text
}

// withoutResults returns the blocks without the tool results.
func withoutResults(blocks content.Blocks) content.Blocks {
	rest := blocks.Slice()
	rest = slices.DeleteFunc(rest, func(b content.Block) bool { _, is := b.(content.ToolResult); return is })
	list, _ := content.Of(rest...) // no error: these blocks come from a list
	return list
}

func count(n int, thing string) string { return describe.Count(n, thing) }

func number(n int) string { return describe.Number(n) }

// join joins the parts with spaces, without empty parts at the beginning and the end.
func join(parts ...string) string {
	return strings.TrimSpace(strings.Join(parts, " "))
}
