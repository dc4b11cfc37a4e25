package dag

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-json/jsontext"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// face is a node's row in the log: its sign in the graph, the word for its kind, its text, and the outcome after the
// text. text and outcome are not cleaned yet.
type face struct {
	glyph, word, text, outcome string
	color                      color
}

// signs are the characters between the parts of a log's text.
type signs struct{ arrow, cross, times, dot, cut string }

var (
	plainSigns = signs{"→", "✗", "×", " · ", "…"}
	asciiSigns = signs{"->", "x", "x", ", ", "..."}
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
	describe.Stop:       {"■", gray},
	describe.Record:     {"▫", gray},
	describe.Unknown:    {glyph: "?"},
}

// faceOf returns the face of n. executed is set if its calls have executions, which show the arguments.
func (l *logger) faceOf(n *node.Node, executed bool) face {
	d := describe.Of(n)
	look := nodeLooks[d.Sort]
	f := face{glyph: look.glyph, color: look.color, word: l.line(d.Word, 20)}
	if d.Grave() {
		f.color = red
	}

	lead := excerpt(d.Lead(l.models, l.dot))
	switch d.Sort {
	case describe.Call:
		f.word = "" // the text shows that it is a call
		d.Called.Tool, d.Called.Input = calledBy(n, d.Called)
		f.text, f.outcome = join(l.executionText(d.Called), d.Elapsed()), l.outcomeText(d)
	case describe.SubGraph:
		f.text, f.outcome = lead, l.to(excerpt(d.Text))
	case describe.Assistant:
		f.text, f.outcome = join(lead, l.blocksText(d.Blocks)), l.callsText(d.Blocks, executed)
	case describe.Results:
		f.text = l.resultsText(n, d)
	case describe.Stop:
		f.text = lead
		if d.Text != "" {
			f.text += l.dot + excerpt(d.Text)
		}
	default:
		f.text = join(lead, excerpt(d.Text), l.blocksText(d.Blocks))
	}
	return f
}

// text returns the text and the outcome of a face, cleaned, in at most width cells. A long outcome gets at least two
// fifths of the cells.
func (s signs) text(f face, width int) string {
	outcome := s.line(f.outcome, width)
	if outcome == "" {
		return s.line(f.text, width)
	}
	text := s.line(f.text, max(width-safetext.Width(outcome)-1, width*3/5))
	if text == "" {
		return outcome
	}
	return text + " " + s.line(f.outcome, width-safetext.Width(text)-1)
}

// line returns text on one line, cleaned, in at most width cells.
func (s signs) line(text string, width int) string { return safetext.LineMarked(text, width, s.cut) }

// excerpt returns the beginning of s: more than fits into a row, and little to copy.
func excerpt(s string) string {
	const maxBytes = 2048
	if len(s) > maxBytes {
		return safetext.UTF8(s[:maxBytes])
	}
	return s
}

// blocksText returns the text of the blocks, without tool calls. Thinking is included only if there is nothing else.
func (s signs) blocksText(blocks content.Blocks) string {
	var texts, thinking []string
	for p := range describe.Parts(blocks) {
		switch p.Form {
		case describe.Said:
			texts = append(texts, excerpt(p.Text))
		case describe.Thought:
			thinking = append(thinking, p.Word()+" "+excerpt(p.Text))
		case describe.Returned:
			texts = append(texts, s.mark(p.Failed)+s.blocksText(p.Content))
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
func (s signs) callsText(blocks content.Blocks, executed bool) string {
	var order []string
	times := map[string]int{}
	for _, call := range blocks.ToolUses() {
		name := excerpt(call.Name)
		if !executed {
			name = s.callText(call.Name, call.Input)
		}
		if times[name]++; times[name] == 1 {
			order = append(order, name)
		}
	}
	for i, name := range order {
		if n := times[name]; n > 1 {
			order[i] += " " + s.times + strconv.Itoa(n)
		}
	}
	return s.to(excerpt(strings.Join(order, ", ")))
}

// callText returns a call in the form of a function call: the tool, and the members of its arguments.
func (s signs) callText(tool string, input content.JSON) string {
	var members []string
	read := jsontext.NewDecoder(strings.NewReader(string(input)))
	if t, err := read.ReadToken(); err != nil || t.Kind() != '{' {
		return excerpt(tool) + "(" + excerpt(string(input)) + ")"
	}

	for length := 0; length < 300; {
		name, err := read.ReadToken()
		if err != nil || name.Kind() != '"' {
			break
		}
		member := excerpt(name.String()) + ": "
		value, err := read.ReadValue()
		if err != nil {
			value = jsontext.Value(s.cut) // the arguments were cut off
		}
		member += excerpt(string(value))
		members = append(members, member)
		length += len(member)
	}
	return excerpt(tool) + "(" + strings.Join(members, ", ") + ")"
}

// executionText returns the executed call, and the original call if it was changed.
func (s signs) executionText(e describe.Execution) string {
	if !e.Changed {
		return s.callText(e.Tool, e.Input)
	}
	executed := s.callText(cmp.Or(e.RanTool, e.Tool), cmp.Or(e.RanInput, e.Input))
	return executed + " in place of " + s.callText(e.Tool, e.Input)
}

// outcomeText returns the sign and the result of an execution. Its state, if it has one, comes before the result.
func (s signs) outcomeText(d describe.Node) string {
	return s.mark(d.Failed) + describe.WithOutcome(excerpt(d.State), s.blocksText(d.Blocks))
}

// calledBy returns the tool and the arguments of the execution n. An execution that was appended by hand may not have
// them: they are then those of the call.
func calledBy(n *node.Node, e describe.Execution) (tool string, input content.JSON) {
	if e.Tool != "" || n.NumParents() != 1 {
		return e.Tool, e.Input
	}
	if m, ok := n.Parent(0).Message(); ok {
		calls := callsOf(m.Blocks)
		if i := calls.of(n.Payload().(node.ToolExecution)); i >= 0 {
			return calls.calls[i].Name, calls.calls[i].Input
		}
	}
	return e.Tool, e.Input
}

// mark returns the sign before a result.
func (s signs) mark(failed bool) string {
	if failed {
		return s.cross + " "
	}
	return s.arrow + " "
}

func (s signs) to(text string) string {
	if text == "" {
		return ""
	}
	return s.arrow + " " + text
}

// resultsText returns the text of a results message: only the number of results, if the executions before it show them.
func (s signs) resultsText(n *node.Node, d describe.Node) string {
	shown := 0
	for i := range n.NumParents() {
		if isExecution(n.Parent(i)) {
			shown++
		}
	}
	all, failed := d.CountResults()
	if shown < all {
		return s.blocksText(d.Blocks)
	}

	text := number(all)
	if failed > 0 {
		text += ", " + number(failed) + " failed"
	}
	if rest := s.blocksText(withoutResults(d.Blocks)); rest != "" {
		text += s.dot + rest
	}
	return text
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
