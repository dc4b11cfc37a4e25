package dag

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

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

// look is the sign of a node and its colour.
type look struct {
	glyph string
	color color
}

// nodeLooks has the look of each sort of node.
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

// faceOf returns the face of n. executed says that its calls have executions, which show the arguments.
func (l *logger) faceOf(n *node.Node, executed bool) face {
	d := describe.Of(n)
	look := nodeLooks[d.Sort]
	f := face{glyph: look.glyph, color: look.color, word: l.line(d.Word, 20)}
	if d.Failed {
		f.color = red
	}

	lead := excerpt(d.Lead(l.models, l.dot))
	switch d.Sort {
	case describe.Call:
		f.word = "" // the call says it
		d.Called.Tool, d.Called.Input = calledBy(n, d.Called)
		f.says, f.came = join(l.executedSays(d.Called), d.Elapsed()), l.outcome(d.Failed)+l.says(d.Blocks)
	case describe.SubGraph:
		f.says, f.came = lead, l.to(excerpt(d.Text))
	case describe.Assistant:
		f.says, f.came = join(lead, l.says(d.Blocks)), l.callsOf(d.Blocks, executed)
	case describe.Results:
		f.says = l.resultsSay(n, d)
	case describe.Stop:
		f.says = lead
		if d.Text != "" {
			f.says += l.dot + excerpt(d.Text)
		}
	default:
		f.says = join(lead, excerpt(d.Text), l.says(d.Blocks))
	}
	return f
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

// says is what blocks say, but for calls. Thinking is shown where there is nothing else.
func (s signs) says(blocks content.Blocks) string {
	var said, thought []string
	for p := range describe.Parts(blocks) {
		switch p.Form {
		case describe.Said:
			said = append(said, excerpt(p.Text))
		case describe.Thought:
			thought = append(thought, p.Word()+" "+excerpt(p.Text))
		case describe.Returned:
			said = append(said, s.outcome(p.Failed)+s.says(p.Content))
		case describe.Shown:
			said = append(said, excerpt(p.Word()))
		case describe.Asked: // callsOf writes the calls
		}
	}
	if len(said) == 0 && len(blocks.ToolUses()) == 0 {
		said = thought
	}
	return strings.Join(said, " ")
}

// callsOf is the calls of a message: each with its arguments, or only how often a tool was called.
func (s signs) callsOf(blocks content.Blocks, executed bool) string {
	var order []string
	times := map[string]int{}
	for _, call := range blocks.ToolUses() {
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

// executedSays writes what was executed, and what was called where that is something else.
func (s signs) executedSays(e describe.Execution) string {
	if !e.Changed {
		return s.callSays(e.Tool, e.Input)
	}
	return s.callSays(cmp.Or(e.RanTool, e.Tool), cmp.Or(e.RanInput, e.Input)) + " in place of " + s.callSays(e.Tool, e.Input)
}

// calledBy is the tool and the arguments of the execution n. One that was appended by hand may leave them to the call.
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
func (s signs) resultsSay(n *node.Node, d describe.Node) string {
	shown := 0
	for i := range n.NumParents() {
		if isExecution(n.Parent(i)) {
			shown++
		}
	}
	all, failed := d.CountResults()
	if shown < all {
		return s.says(d.Blocks)
	}

	text := number(all)
	if failed > 0 {
		text += ", " + number(failed) + " failed"
	}
	if rest := s.says(withoutResults(d.Blocks)); rest != "" {
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

func count(n int, thing string) string { return describe.Count(n, thing) }

func number(n int) string { return describe.Number(n) }

// join puts a space between what is not empty.
func join(parts ...string) string {
	return strings.TrimSpace(strings.Join(parts, " "))
}
