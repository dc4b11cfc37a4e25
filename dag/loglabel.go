package dag

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-json/jsontext"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// face is how a node looks in the log: its sign in the graph, the word for what it is, what it says, and what came of it. The
// texts are others' words and not made harmless yet.
type face struct {
	glyph, word, says, came string
	color                   color
}

// signs are what the texts of a log are put together with.
type signs struct{ arrow, cross, times, dot, cut string }

var (
	plainSigns = signs{"→", "✗", "×", " · ", "…"}
	asciiSigns = signs{"->", "x", "x", ", ", "..."}
)

// faceOf returns the face of n. executed says that its calls have executions, which show the arguments.
func (l *logger) faceOf(n *node.Node, executed bool) face {
	f := l.plainFace(n, executed)
	f.word = l.line(describe.Kind(n), 20)
	if isExecution(n) {
		f.word = "" // the call says it
	}
	if n.Failed() {
		f.color = red
	}
	return f
}

func (l *logger) plainFace(n *node.Node, executed bool) face {
	switch p := n.Payload().(type) {
	case node.System:
		return face{glyph: "◆", color: gray, says: systemSays(p)}
	case node.Tools:
		return face{glyph: "◆", color: gray, says: excerpt(describe.ToolNames(p))}
	case node.Message:
		results := p.Blocks.ToolResults()
		switch {
		case p.Role == content.Assistant:
			return face{glyph: "●", color: green, says: l.assistantSays(p, l.models), came: l.callsOf(p, executed)}
		case len(results) > 0:
			return face{glyph: "◇", color: cyan, says: l.resultsSay(n, results)}
		}
		return face{glyph: "○", color: cyan, says: l.says(p.Blocks)}
	case node.ToolExecution:
		p.Tool, p.Input = calledBy(n, p)
		return face{glyph: "▪", color: blue, says: l.ranSays(p) + elapsed(p), came: l.outcome(p.IsError) + l.says(p.Result)}
	case node.SubGraph:
		return face{glyph: "▣", color: blue, says: excerpt(p.Title), came: l.to(excerpt(p.Summary))}
	case node.Compaction:
		return face{glyph: "≡", color: magenta, says: compactionSays(p, l.says(p.Summary))}
	case node.StopReason:
		return face{glyph: "■", color: gray, says: l.stopSays(p)}
	case node.Custom:
		return face{glyph: "▫", color: gray, says: excerpt(p.Name) + " " + excerpt(string(p.JSON))}
	}
	return face{glyph: "?", says: "a kind that this version does not know"}
}

// text is what the face says, made harmless, in at most that many cells. What came of it has two fifths of them at least, where
// it needs them.
func (s signs) text(f face, width int) string {
	came := s.line(f.came, width)
	if came == "" {
		return s.line(f.says, width)
	}
	said := s.line(f.says, max(width-safetext.Width(came)-1, width*3/5))
	if said == "" {
		return came
	}
	return said + " " + s.line(f.came, width-safetext.Width(said)-1)
}

// line is text on one line and made harmless, in at most that many cells.
func (s signs) line(text string, width int) string {
	if s.cut == "…" {
		return safetext.Line(text, width)
	}
	whole := safetext.Line(text, math.MaxInt32)
	if safetext.Width(whole) <= width {
		return whole
	}
	return strings.TrimSuffix(safetext.Line(text, max(width-len(s.cut)+1, 1)), "…") + s.cut
}

// excerpt is the beginning of s: more than a row holds, and little to copy.
func excerpt(s string) string {
	const most = 2048
	if len(s) > most {
		return content.Clean(s[:most])
	}
	return s
}

// compactionSays returns the summary, after the number of nodes that it replaces.
func compactionSays(p node.Compaction, summary string) string {
	if replaced := describe.Replaced(p); replaced != "" {
		return replaced + ": " + summary
	}
	return summary
}

// systemSays returns the prompt after its name, if it has one.
func systemSays(p node.System) string {
	switch {
	case p.Name == "":
		return excerpt(p.Text)
	case p.Text == "":
		return "(" + excerpt(p.Name) + " removed)"
	}
	return "(" + excerpt(p.Name) + ") " + excerpt(p.Text)
}

// says is what blocks say, but for calls. Thinking is shown where there is nothing else.
func (s signs) says(blocks content.Blocks) string {
	var said, thought []string
	for _, b := range blocks.All() {
		switch b := b.(type) {
		case content.Text:
			said = append(said, excerpt(b.Text))
		case content.Thinking:
			thought = append(thought, describe.Thinking+" "+excerpt(b.Text))
		case content.ToolResult:
			said = append(said, s.outcome(b.IsError)+s.says(b.Content))
		default:
			if word := describe.Block(b); word != "" {
				said = append(said, excerpt(word))
			}
		}
	}
	if len(said) == 0 && len(blocks.ToolUses()) == 0 {
		said = thought
	}
	return strings.Join(said, " ")
}

func (s signs) assistantSays(m node.Message, models bool) string {
	notes := describe.Answer(m.Answer, models)
	if len(notes) == 0 {
		return s.says(m.Blocks)
	}
	return join("["+excerpt(strings.Join(notes, ", "))+"]", s.says(m.Blocks))
}

// callsOf is the calls of a message: each with its arguments, or only how often a tool was called.
func (s signs) callsOf(m node.Message, executed bool) string {
	var order []string
	times := map[string]int{}
	for _, call := range m.Blocks.ToolUses() {
		name := excerpt(call.Name)
		if !executed {
			name = s.callSays(call.Name, call.Input)
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

// callSays writes a call as a program would: its tool, and the members of its arguments.
func (s signs) callSays(tool string, input content.JSON) string {
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

// ranSays writes what was carried out, and what was called where that is something else.
func (s signs) ranSays(e node.ToolExecution) string {
	if e.Ran == (node.Ran{}) {
		return s.callSays(e.Tool, e.Input)
	}
	return s.callSays(cmp.Or(e.Ran.Tool, e.Tool), cmp.Or(e.Ran.Input, e.Input)) + " in place of " + s.callSays(e.Tool, e.Input)
}

// calledBy is the tool and the arguments of the execution n. One that was appended by hand may leave them to the call.
func calledBy(n *node.Node, e node.ToolExecution) (tool string, input content.JSON) {
	if e.Tool != "" || n.NumParents() != 1 {
		return e.Tool, e.Input
	}
	if m, ok := n.Parent(0).Message(); ok {
		calls := callsOf(m.Blocks)
		if i := calls.of(e); i >= 0 {
			return calls.calls[i].Name, calls.calls[i].Input
		}
	}
	return e.Tool, e.Input
}

func elapsed(e node.ToolExecution) string {
	if e.Started.IsZero() || e.Ended.IsZero() {
		return ""
	}
	took := e.Ended.Sub(e.Started)
	if took < time.Millisecond {
		return ""
	}
	return " " + describe.Duration(took)
}

func (s signs) outcome(failed bool) string {
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

// resultsSay is what a message with results says: how many there are, where executions before it show them.
func (s signs) resultsSay(n *node.Node, results []content.ToolResult) string {
	shown, failed := 0, 0
	for i := range n.NumParents() {
		if isExecution(n.Parent(i)) {
			shown++
		}
	}
	if shown < len(results) {
		m, _ := n.Message()
		return s.says(m.Blocks)
	}
	for _, r := range results {
		if r.IsError {
			failed++
		}
	}

	text := number(len(results))
	if failed > 0 {
		text += ", " + number(failed) + " failed"
	}
	m, _ := n.Message()
	if rest := s.says(withoutResults(m.Blocks)); rest != "" {
		text += s.dot + rest
	}
	return text
}

// withoutResults returns the blocks but for the tool results among them.
func withoutResults(blocks content.Blocks) content.Blocks {
	rest := blocks.Slice()
	rest = slices.DeleteFunc(rest, func(b content.Block) bool { _, is := b.(content.ToolResult); return is })
	list, _ := content.Of(rest...) // they were in a list
	return list
}

func (s signs) stopSays(stop node.StopReason) string {
	parts := append([]string{string(stop.Reason)}, describe.Totals(stop)...)
	if stop.Detail != "" {
		parts = append(parts, excerpt(stop.Detail))
	}
	return strings.Join(parts, s.dot)
}

func count(n int, thing string) string { return describe.Count(n, thing) }

func number(n int) string { return describe.Number(n) }

// join puts a space between what is not empty.
func join(parts ...string) string {
	return strings.TrimSpace(strings.Join(parts, " "))
}
