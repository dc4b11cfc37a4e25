package gocode

import (
	"strconv"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// quote returns a string literal with only printable characters. It is a raw literal if that avoids escapes, as for
// JSON.
func quote(s string) string {
	if !strings.ContainsAny(s, `"\`) || !strconv.CanBackquote(s) {
		return strconv.Quote(s)
	}
	for _, r := range s {
		if !strconv.IsPrint(r) { // such as a change of the writing direction: it would reorder the code on screen
			return strconv.Quote(s)
		}
	}
	return "`" + s + "`"
}

// fields is the literal of a struct, without zero fields.
type fields struct {
	name string
	set  []string // "Name: value"
}

func (f *fields) add(name, literal string, zero bool) {
	if !zero {
		f.set = append(f.set, name+": "+literal)
	}
}

func (f *fields) text(name, value string) { f.add(name, quote(value), value == "") }

func (f *fields) String() string { return f.name + "{" + strings.Join(f.set, ", ") + "}" }

// payload returns the literal of a payload, or "" if a program cannot make it.
func (g *generator) payload(p node.Payload, before dag.DAG) string {
	g.node = true

	// Fields outside of the digest, such as times and usage, are left out: equal conversations need not share them.
	switch p := p.(type) {
	case node.System:
		f := fields{name: "node.System"}
		f.text("Name", p.Name)
		f.text("Text", p.Text)
		return f.String()

	case node.Tools:
		var defs []string
		for _, def := range p.Defs.Slice() {
			defs = append(defs, g.definition(def))
		}

		f := fields{name: "node.Tools"}
		f.add("Defs", "node.ListOf("+strings.Join(defs, ", ")+")", len(defs) == 0)
		f.add("Withdrawn", "node.ListOf("+strings.Join(quoted(p.Withdrawn.Slice()), ", ")+")", p.Withdrawn.Len() == 0)
		return f.String()

	case node.Message:
		f := fields{name: "node.Message"}
		f.text("Role", string(p.Role))
		g.blocksOf(&f, "Blocks", p.Blocks)
		return f.String()
	case node.ToolExecution:
		return g.execution(p)

	case node.SubGraph:
		f := fields{name: "node.SubGraph"}
		f.text("Title", p.Title)
		f.text("CallID", p.CallID)
		f.add("Heads", g.heads(p.Heads), p.Heads.Len() == 0)
		f.text("Summary", p.Summary)
		return f.String()

	case node.Compaction:
		f := fields{name: "node.Compaction"}
		g.blocksOf(&f, "Summary", p.Summary)
		places := g.places(p.Replaced, before)
		f.add("Replaced", places, places == "")
		return f.String()

	case node.RunStart:
		f := fields{name: "node.RunStart"}
		f.text("Agent", p.Agent)
		return f.String()

	case node.StopReason:
		f := fields{name: "node.StopReason"}
		f.text("Reason", string(p.Reason))
		f.text("Detail", p.Detail)
		return f.String()

	case node.Custom:
		f := fields{name: "node.Custom"}
		f.text("Name", p.Name)
		f.text("JSON", string(p.JSON))
		return f.String()
	}
	return ""
}

// execution returns the literal of a tool execution.
func (g *generator) execution(e node.ToolExecution) string {
	g.node = true
	f := fields{name: "node.ToolExecution"}
	f.text("CallID", e.CallID)
	f.add("Index", strconv.Itoa(e.Index), false)
	f.text("Tool", e.Tool)
	f.text("Input", string(e.Input))
	f.text("State", string(e.State))
	g.blocksOf(&f, "Result", e.Result)
	f.add("IsError", "true", !e.IsError)
	f.add("Child", g.heads(e.Child), e.Child.Len() == 0)
	return f.String()
}

// heads returns the list of the heads of a child conversation. Its nodes must have been written.
func (g *generator) heads(list node.List[*node.Node]) string {
	if list.Len() == 0 {
		return ""
	}
	return "node.ListOf(" + g.join(list.Slice()) + ".Heads()...)"
}

// places returns the list of the IDs replaced by a compaction, as indexes of nodes in the conversation before it. It
// returns "" if there are none.
func (g *generator) places(replaced node.List[node.ID], before dag.DAG) string {
	if replaced.Len() == 0 {
		return ""
	}

	// The IDs of the built conversation are new. Its nodes have the same positions.
	at := map[node.ID]int{}
	for i, n := range before.Nodes() {
		at[n.ID()] = i
	}

	// A node that is not in the conversation before the compaction cannot be replaced by it.
	args := []string{g.join(before.Heads())}
	for _, id := range replaced.Slice() {
		if i, ok := at[id]; ok {
			args = append(args, strconv.Itoa(i))
		}
	}
	if len(args) == 1 {
		return ""
	}

	g.ids = true
	return "ids(" + strings.Join(args, ", ") + ")"
}

// blocksOf adds a field with a list of blocks.
func (g *generator) blocksOf(f *fields, name string, b content.Blocks) {
	if b.Len() > 0 {
		f.add(name, g.list(b), false)
	}
}

// list returns the literal of a list of blocks. The list must not be empty.
func (g *generator) list(b content.Blocks) string {
	g.content = true
	if t, ok := b.At(0).(content.Text); ok && b.Len() == 1 && t.Text != "" && t.Extra == (content.Extra{}) {
		return "content.Words(" + quote(t.Text) + ")"
	}
	g.blocks = true
	return "blocks(" + strings.Join(g.all(b.Slice()), ", ") + ")"
}

func (g *generator) all(list []content.Block) []string {
	literals := make([]string, len(list))
	for i, b := range list {
		literals[i] = g.block(b)
	}
	return literals
}

// block returns the literal of a block.
func (g *generator) block(b content.Block) string {
	g.content = true
	switch b := b.(type) {
	case content.Text:
		f := fields{name: "content.Text"}
		f.text("Text", b.Text)
		return f.extra(b.Extra)

	case content.Image:
		f := fields{name: "content.Image"}
		f.add("Source", source(b.Source), false)
		return f.extra(b.Extra)
	case content.Document:
		f := fields{name: "content.Document"}
		f.add("Source", source(b.Source), false)
		f.text("Title", b.Title)
		return f.extra(b.Extra)

	case content.Thinking:
		f := fields{name: "content.Thinking"}
		f.text("Text", b.Text)
		f.text("Signature", b.Signature)
		f.text("Redacted", b.Redacted)
		return f.extra(b.Extra)

	case content.ToolUse:
		f := fields{name: "content.ToolUse"}
		f.text("ID", b.ID)
		f.text("Name", b.Name)
		f.text("Input", string(b.Input))
		return f.extra(b.Extra)
	case content.CutToolUse:
		f := fields{name: "content.CutToolUse"}
		f.text("Name", b.Name)
		f.text("Input", string(b.Input))
		return f.String()
	case content.ToolResult:
		f := fields{name: "content.ToolResult"}
		f.text("CallID", b.CallID)
		g.blocksOf(&f, "Content", b.Content)
		f.add("IsError", "true", !b.IsError)
		return f.extra(b.Extra)

	case content.Opaque:
		f := fields{name: "content.Opaque"}
		f.text("API", b.API)
		f.text("JSON", string(b.JSON))
		return f.String()
	case content.Unknown:
		return "content.Unknown{JSON: " + quote(string(b.JSON)) + "}"
	}
	panic("gocode: a variant of content.Block that block does not know")
}

func source(s content.Source) string {
	f := fields{name: "content.Source"}
	f.text("MediaType", s.MediaType)
	f.text("Data", s.Data)
	f.text("Text", s.Text)
	f.text("URL", s.URL)
	f.text("FileID", s.FileID)
	return f.String()
}

func (g *generator) definition(t content.Tool) string {
	g.content = true
	f := fields{name: "content.Tool"}
	f.text("Name", t.Name)
	f.text("Description", t.Description)
	f.text("Schema", string(t.Schema))
	return f.extra(t.Extra)
}

// extra returns the literal, with the members of one provider as its last field.
func (f *fields) extra(e content.Extra) string {
	if e != (content.Extra{}) {
		x := fields{name: "content.Extra"}
		x.text("API", e.API)
		x.text("JSON", string(e.JSON))
		f.add("Extra", x.String(), false)
	}
	return f.String()
}

// quoted returns a literal for each text.
func quoted(texts []string) []string {
	literals := make([]string, len(texts))
	for i, text := range texts {
		literals[i] = quote(text)
	}
	return literals
}
