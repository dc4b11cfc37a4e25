package main

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
)

// whole returns the whole content of a node as text. The caller must make it safe to print.
func whole(n *node.Node) string {
	d := describe.Of(n)
	switch d.Sort {
	case describe.Tools:
		return declared(n.Payload().(node.Tools))
	case describe.Call:
		return execution(d)
	case describe.System:
		return d.Text
	case describe.Run:
		lines := append([]string{"run " + n.Payload().(node.RunStart).Run}, d.Notes(false)...)
		return entry(d.Title, indented(strings.Join(lines, "\n")))
	case describe.Record:
		return entry(d.Title, indentedJSON(content.JSON(d.Text)))
	}

	if d.Blocks.Len() > 0 {
		return strings.TrimRight(layOutBlocks(d.Blocks)+"\n\n"+details(n), "\n")
	}

	if d.Title == "" {
		return d.Text
	}
	return entry(d.Title, indented(d.Text))
}

// details returns the server's report about a response, or "".
func details(n *node.Node) string {
	m, _ := n.Message()
	if m.Answer.Details == "" {
		return ""
	}
	return entry("details of the response:", indentedJSON(m.Answer.Details))
}

// entry returns a heading with its body below it.
func entry(head, body string) string {
	return strings.TrimRight(strings.TrimLeft(head+"\n"+body, "\n"), "\n")
}

// declared returns the definitions of tools as text.
func declared(p node.Tools) string {
	var parts []string
	for _, def := range p.Defs.Slice() {
		parts = append(parts, entry(def.Name, indented(def.Description)+indentedJSON(def.Schema)+indentedJSON(def.Extra.JSON)))
	}

	if p.Withdrawn.Len() > 0 {
		parts = append(parts, "withdrawn: "+strings.Join(p.Withdrawn.Slice(), ", "))
	}

	return strings.Join(parts, "\n\n")
}

// execution returns a tool call and its result as text.
func execution(d describe.Node) string {
	c := d.Called
	parts := []string{part(describe.Part{Form: describe.Asked, Name: c.Tool, ID: c.ID, JSON: c.Input})}

	if c.Changed {
		parts = append(parts, entry("executed: "+c.RanTool, indentedJSON(c.RanInput)))
	}

	parts = append(parts, returned(c.ID, d.Outcome(), d.Blocks))
	return strings.Join(parts, "\n\n")
}

// layOutBlocks returns the blocks as text, with an empty line between them.
func layOutBlocks(blocks content.Blocks) string {
	var list []string
	for p := range describe.Parts(blocks) {
		list = append(list, part(p))
	}
	return strings.Join(list, "\n\n")
}

// part returns a part of a node as text.
func part(p describe.Part) string {
	switch p.Form {
	case describe.Said:
		return p.Text
	case describe.Asked:
		return entry(strings.TrimRight("→ "+p.Name+"  "+p.ID, " "), indentedJSON(p.JSON))
	case describe.Returned:
		outcome := ""
		if p.Failed {
			outcome = "failed"
		}
		return returned(p.ID, outcome, p.Content)
	}
	return entry(p.WordWith(size(p.Source)), indented(p.Text)+indentedJSON(p.JSON))
}

// returned returns a tool result as text, with a word for its outcome.
func returned(id, outcome string, result content.Blocks) string {
	return entry(strings.TrimRight("← "+id+"  "+outcome, " "), indented(layOutBlocks(result)))
}

// size returns the size of an image or a document after a comma, or "" if the conversation has only its address.
func size(s content.Source) string {
	if size := describe.Size(s); size != "" {
		return ", " + size
	}
	return ""
}

// indented indents every line by two spaces and ends the text with a line break. It returns "" for "".
func indented(text string) string {
	if text == "" {
		return ""
	}
	var out strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		if line != "\n" {
			out.WriteString("  ")
		}
		out.WriteString(line)
	}
	return out.String()
}

// indentedJSON formats JSON with a line for each member, and indents it. Invalid JSON is only indented.
func indentedJSON(j content.JSON) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(j), "", "  ") != nil {
		return indented(string(j))
	}
	return indented(out.String())
}
