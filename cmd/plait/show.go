package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// whole is all that a node says, laid out for people. What is no text of the command's own is made harmless where it is printed.
func whole(n *node.Node) string {
	switch p := n.Payload().(type) {
	case node.Tools:
		var parts []string
		for _, def := range p.Defs.Slice() {
			parts = append(parts, strings.TrimRight(def.Name+"\n"+indented(def.Description)+indentedJSON(def.Schema)+indentedJSON(def.Extra.JSON), "\n"))
		}
		if p.Withdrawn.Len() > 0 {
			parts = append(parts, "withdrawn: "+strings.Join(p.Withdrawn.Slice(), ", "))
		}
		return strings.Join(parts, "\n\n")
	case node.Message:
		return laidOut(p.Blocks)
	case node.ToolExecution:
		text := call(content.ToolUse{ID: p.CallID, Name: p.Tool, Input: p.Input})
		if ran := p.Ran; ran.Tool != "" || ran.Input != "" {
			text += "\n\ncarried out: " + ran.Tool + "\n" + indentedJSON(ran.Input)
		}
		return text + "\n\n" + result(content.ToolResult{CallID: p.CallID, Content: p.Result, IsError: p.IsError})
	case node.SubGraph:
		return strings.Trim(p.Title+"\n\n"+p.Summary, "\n")
	case node.Compaction:
		return laidOut(p.Summary)
	case node.StopReason:
		return strings.TrimRight(string(p.Reason)+"\n"+indented(p.Detail), "\n")
	case node.Custom:
		return strings.TrimRight(p.Name+"\n"+indentedJSON(p.JSON), "\n")
	}
	return says(n)
}

// laidOut is blocks, with an empty line between them.
func laidOut(blocks content.Blocks) string {
	var parts []string
	for _, b := range blocks.All() {
		parts = append(parts, block(b))
	}
	return strings.Join(parts, "\n\n")
}

func block(b content.Block) string {
	switch b := b.(type) {
	case content.Text:
		return b.Text
	case content.Thinking:
		if b.Text == "" {
			return "(thinking that is not shown)"
		}
		return "(thinking)\n" + strings.TrimRight(indented(b.Text), "\n")
	case content.ToolUse:
		return call(b)
	case content.CutToolUse:
		return strings.TrimRight("[cut-off call] "+b.Name+"\n"+indentedJSON(b.Input), "\n")
	case content.ToolResult:
		return result(b)
	case content.Image:
		return "[image" + source(b.Source) + "]"
	case content.Document:
		text := strings.TrimRight("[document "+b.Title, " ") + source(b.Source) + "]"
		return strings.TrimRight(text+"\n"+indented(b.Source.Text), "\n")
	case content.Opaque:
		return "[block of " + b.API + "]\n" + strings.TrimRight(indentedJSON(b.JSON), "\n")
	case content.Unknown:
		return "[unknown block]\n" + strings.TrimRight(indentedJSON(b.JSON), "\n")
	}
	return fmt.Sprintf("[%T]", b)
}

func call(use content.ToolUse) string {
	return strings.TrimRight(strings.TrimRight("→ "+use.Name+"  "+use.ID, " ")+"\n"+indentedJSON(use.Input), "\n")
}

func result(r content.ToolResult) string {
	head := "← " + r.CallID
	if r.IsError {
		head += "  failed"
	}
	return strings.TrimRight(head+"\n"+indented(laidOut(r.Content)), "\n")
}

// source is where something is, or how much of it there is.
func source(s content.Source) string {
	text := ""
	if s.MediaType != "" {
		text = " " + s.MediaType
	}
	switch {
	case s.Data != "":
		text += fmt.Sprintf(", %d bytes", base64.StdEncoding.DecodedLen(len(s.Data))-strings.Count(s.Data[max(len(s.Data)-2, 0):], "="))
	case s.URL != "":
		text += " " + s.URL
	case s.FileID != "":
		text += " file " + s.FileID
	}
	return text
}

// indented is text two columns to the right, with a line break at its end; "" for none.
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

// indentedJSON is the same of JSON, with its members on lines of their own. What is no JSON stays as it is.
func indentedJSON(j content.JSON) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(j), "", "  ") != nil {
		return indented(string(j))
	}
	return indented(out.String())
}
