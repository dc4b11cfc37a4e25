package dag

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-json/jsontext"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/cells"
	"github.com/plait-dev/plait/node"
)

// face is how a node looks in the log: its sign in the graph, the word for what it is, what it says, and what came of it. The
// texts are others' words and not made harmless yet.
type face struct{ glyph, word, says, came string }

// faceOf returns the face of n. executed says that its calls have executions, which show the arguments; models says that the
// model is named, because several spoke.
func faceOf(n *node.Node, executed, models bool) face {
	switch p := n.Payload().(type) {
	case node.System:
		return face{glyph: "◆", word: "system", says: excerpt(p.Text)}
	case node.Tools:
		return face{glyph: "◆", word: "tools", says: toolNames(p)}
	case node.Message:
		results := p.Blocks.ToolResults()
		switch {
		case p.Role == content.Assistant:
			return face{glyph: "●", word: "assistant", says: assistantSays(p, models), came: callsOf(p, executed)}
		case len(results) > 0 && len(results) == p.Blocks.Len():
			return face{glyph: "◇", word: "results", says: resultsSay(n, results)}
		}
		return face{glyph: "○", word: "user", says: says(p.Blocks)}
	case node.ToolExecution:
		p.Tool, p.Input = calledBy(n, p)
		return face{glyph: "▪", says: ranSays(p) + elapsed(p), came: outcome(p.IsError) + says(p.Result)}
	case node.SubGraph:
		return face{glyph: "▣", word: "sub-graph", says: excerpt(p.Title), came: arrow(excerpt(p.Summary))}
	case node.Compaction:
		return face{glyph: "≡", word: "summary", says: "of " + count(p.Replaced.Len(), "node") + ": " + says(p.Summary)}
	case node.StopReason:
		return face{glyph: "■", word: "stop", says: stopSays(p)}
	case node.Custom:
		return face{glyph: "▫", word: "note", says: excerpt(p.Name) + " " + excerpt(string(p.JSON))}
	}
	return face{glyph: "?", word: cells.OneLine(n.Kind(), 20), says: "a kind that this version does not know"}
}

// text is what the face says, made harmless, in at most that many cells. What came of it has two fifths of them at least, where
// it needs them.
func (f face) text(width int) string {
	came := cells.OneLine(f.came, width)
	if came == "" {
		return cells.OneLine(f.says, width)
	}
	said := cells.OneLine(f.says, max(width-cells.Of(came)-1, width*3/5))
	if said == "" {
		return came
	}
	return said + " " + cells.OneLine(f.came, width-cells.Of(said)-1)
}

// excerpt is the beginning of s: more than a row holds, and little to copy.
func excerpt(s string) string {
	const most = 2048
	if len(s) > most {
		return content.Clean(s[:most])
	}
	return s
}

func toolNames(t node.Tools) string {
	var names []string
	for _, def := range t.Defs.Slice() {
		names = append(names, def.Name)
	}
	return excerpt(strings.Join(names, ", "))
}

// says is what blocks say, but for calls. Thinking is shown where there is nothing else.
func says(blocks content.Blocks) string {
	var said, thought []string
	for _, b := range blocks.All() {
		switch b := b.(type) {
		case content.Text:
			said = append(said, excerpt(b.Text))
		case content.Image:
			said = append(said, "["+cmp.Or(excerpt(b.Source.MediaType), "image")+"]")
		case content.Document:
			said = append(said, "["+join("document", excerpt(b.Title))+"]")
		case content.Thinking:
			thought = append(thought, "(thinks) "+excerpt(b.Text))
		case content.ToolResult:
			said = append(said, outcome(b.IsError)+says(b.Content))
		case content.Opaque:
			said = append(said, "["+excerpt(b.API)+" block]")
		case content.Unknown:
			said = append(said, "[unknown block]")
		}
	}
	if len(said) == 0 && len(blocks.ToolUses()) == 0 {
		said = thought
	}
	return strings.Join(said, " ")
}

func assistantSays(m node.Message, models bool) string {
	var notes []string
	if models && m.Answer.Model != "" {
		notes = append(notes, excerpt(m.Answer.Model))
	}
	switch m.Answer.Stop {
	case "", content.StopEndTurn, content.StopToolUse, content.StopSequence:
	default:
		notes = append(notes, string(m.Answer.Stop))
	}
	if len(notes) == 0 {
		return says(m.Blocks)
	}
	return join("["+strings.Join(notes, ", ")+"]", says(m.Blocks))
}

// callsOf is the calls of a message: each with its arguments, or only how often a tool was called.
func callsOf(m node.Message, executed bool) string {
	var order []string
	times := map[string]int{}
	for _, call := range m.Blocks.ToolUses() {
		name := excerpt(call.Name)
		if !executed {
			name = callSays(call.Name, call.Input)
		}
		if times[name]++; times[name] == 1 {
			order = append(order, name)
		}
	}
	for i, name := range order {
		if n := times[name]; n > 1 {
			order[i] += " ×" + strconv.Itoa(n)
		}
	}
	return arrow(excerpt(strings.Join(order, ", ")))
}

// callSays writes a call as a program would: its tool, and the members of its arguments.
func callSays(tool string, input content.JSON) string {
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
			value = jsontext.Value("…") // the arguments were cut off
		}
		member += excerpt(string(value))
		members = append(members, member)
		length += len(member)
	}
	return excerpt(tool) + "(" + strings.Join(members, ", ") + ")"
}

// ranSays writes what was carried out, and what was called where that is something else.
func ranSays(e node.ToolExecution) string {
	if e.Ran == (node.Ran{}) {
		return callSays(e.Tool, e.Input)
	}
	return callSays(cmp.Or(e.Ran.Tool, e.Tool), cmp.Or(e.Ran.Input, e.Input)) + " in place of " + callSays(e.Tool, e.Input)
}

// calledBy is the tool and the arguments of the execution n. One that was appended by hand may leave them to the call.
func calledBy(n *node.Node, e node.ToolExecution) (tool string, input content.JSON) {
	if e.Tool != "" || n.NumParents() != 1 {
		return e.Tool, e.Input
	}
	if m, ok := n.Parent(0).Message(); ok {
		calls := m.Blocks.ToolUses()
		if i := callOf(e, calls); i >= 0 {
			return calls[i].Name, calls[i].Input
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
	return " " + short(took)
}

// short is a time as a person says it: two or three digits.
func short(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}

func outcome(failed bool) string {
	if failed {
		return "✗ "
	}
	return "→ "
}

func arrow(s string) string {
	if s == "" {
		return ""
	}
	return "→ " + s
}

// resultsSay is what a message with results says: how many there are, where executions before it show them.
func resultsSay(n *node.Node, results []content.ToolResult) string {
	shown, failed := 0, 0
	for i := range n.NumParents() {
		if isExecution(n.Parent(i)) {
			shown++
		}
	}
	if shown < len(results) {
		m, _ := n.Message()
		return says(m.Blocks)
	}
	for _, r := range results {
		if r.IsError {
			failed++
		}
	}
	if failed > 0 {
		return number(len(results)) + ", " + number(failed) + " failed"
	}
	return number(len(results))
}

func stopSays(s node.StopReason) string {
	parts := []string{string(s.Reason)}
	if s.Turns > 0 {
		parts = append(parts, count(s.Turns, "turn"))
	}
	if s.ToolCalls > 0 {
		parts = append(parts, count(s.ToolCalls, "tool call"))
	}
	if total := s.Usage.Total(); total > 0 {
		parts = append(parts, count(int(total), "token"))
	}
	if total := s.ToolUsage.Total(); total > 0 {
		parts = append(parts, count(int(total), "token")+" in tools")
	}
	if s.Elapsed >= time.Millisecond {
		parts = append(parts, short(s.Elapsed))
	}
	if s.Detail != "" {
		parts = append(parts, excerpt(s.Detail))
	}
	return strings.Join(parts, " · ")
}

// count is a number of things: "1 node", "2,000 nodes".
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return number(n) + " " + thing
}

// number writes n with a comma between thousands.
func number(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// join puts a space between what is not empty.
func join(parts ...string) string {
	return strings.TrimSpace(strings.Join(parts, " "))
}
