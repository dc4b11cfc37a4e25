package main

import (
	"html"
	"math"
	"strconv"
	"strings"
	"sync"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"github.com/plait-dev/plait/internal/safetext"
)

// markdownParser parses Markdown as GitHub does.
var markdownParser = sync.OnceValue(func() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList)).Parser()
})

// markdown draws Markdown that arrives in pieces, in rows of a terminal. A block is printed when the next one begins:
// more text may change it until then.
type markdown struct {
	width  int
	color  bool
	print  func(rows []string) // prints finished blocks
	show   func(rows []string) // shows the unfinished ones
	source string              // not yet printed
	parsed int                 // the length of source when it was last parsed
	begun  bool                // a block was printed: the next one is set apart
}

func (m *markdown) fit(width int) { m.width = max(width-1, 10) }

// write appends a piece of text.
func (m *markdown) write(piece string) {
	m.source += strings.ReplaceAll(piece, "\r", "")

	// A long block is parsed again after a sixteenth more of it, so that all of it takes linear time.
	if len(m.source) < m.parsed+m.parsed/16 {
		return
	}
	m.parsed = len(m.source)
	if isTangled(m.source) {
		if begin := strings.LastIndex(m.source, "\n\n") + 1; begin > 0 {
			m.emit(m.source[:begin])
			m.source, m.parsed = m.source[begin:], 0
		}
		m.show(m.draw(m.source))
		return
	}

	// The last block may still become another one.
	last := markdownParser().Parse(text.NewReader([]byte(m.source))).LastChild()
	if last != nil && last.Pos() > 0 {
		if begin := strings.LastIndexByte(m.source[:last.Pos()], '\n') + 1; begin > 0 {
			m.emit(m.source[:begin])
			m.source, m.parsed = m.source[begin:], 0
		}
	}
	m.show(m.draw(m.source))
}

// end prints the rest.
func (m *markdown) end() {
	m.emit(m.source)
	m.show(nil)
	m.source, m.parsed, m.begun = "", 0, false
}

// emit prints blocks, set apart from those before.
func (m *markdown) emit(source string) {
	rows := m.draw(source)
	if len(rows) == 0 {
		return
	}
	if m.begun {
		rows = append([]string{""}, rows...)
	}
	m.print(rows)
	m.begun = true
}

// draw returns the rows of a text.
func (m *markdown) draw(source string) []string {
	d := drawing{source: []byte(source), color: m.color}
	if isTangled(source) {
		return d.plain(m.width)
	}
	return d.blocks(markdownParser().Parse(text.NewReader(d.source)), m.width)
}

// isTangled reports whether a text takes the parser time beyond measure: it is quadratic in the links of a paragraph,
// and in the quotes and lists around a line. No text that somebody reads comes near the limits.
func isTangled(source string) bool {
	for paragraph := range strings.SplitSeq(source, "\n\n") {
		if strings.Count(paragraph, "](") > 500 {
			return true
		}
	}
	for line := range strings.Lines(source) {
		if len(line)-len(strings.TrimLeft(line, "> \t-+*0123456789.)")) > 200 {
			return true
		}
	}
	return false
}

// drawing draws the blocks of a text. Every text of the source goes through safetext on its way to a row.
type drawing struct {
	source []byte
	color  bool
}

// plain returns the rows of the text as it is.
func (d *drawing) plain(width int) []string {
	var rows []string
	for line := range strings.Lines(strings.TrimSpace(string(d.source))) {
		rows = append(rows, d.wrap([]inline{{text: strings.TrimRight(line, "\n")}}, width)...)
	}
	return rows
}

// blocks returns the rows of the blocks in a node, with a row between two of them.
func (d *drawing) blocks(parent ast.Node, width int) []string {
	var rows []string
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		block := d.block(n, max(width, 1))
		if len(rows) > 0 && len(block) > 0 && !tight(parent) {
			rows = append(rows, "")
		}
		rows = append(rows, block...)
	}
	return rows
}

// tight reports whether no rows stand between the blocks of a node.
func tight(n ast.Node) bool {
	if item, ok := n.(*ast.ListItem); ok {
		n = item.Parent()
	}
	list, ok := n.(*ast.List)
	return ok && list.IsTight
}

// block returns the rows of a block.
func (d *drawing) block(n ast.Node, width int) []string {
	switch n := n.(type) {
	case *ast.Heading:
		return d.wrap(d.spans(n, bold, nil), width)
	case *ast.Paragraph, *ast.TextBlock:
		return d.wrap(d.spans(n, "", nil), width)
	case *ast.ThematicBreak:
		return []string{d.styled(strings.Repeat("─", width), faint)}
	case *extast.Table:
		return d.table(n, width)
	case *ast.LinkReferenceDefinition:
		return d.wrap([]inline{{text: string(n.Label) + ": " + string(n.Destination)}}, width)

	// Blocks that hold blocks.
	case *ast.Blockquote:
		return prefixed(d.blocks(n, width-2), d.styled("│ ", faint), d.styled("│ ", faint))
	case *ast.List:
		return d.list(n, width)

	// Blocks whose lines stay as they are.
	case *ast.CodeBlock:
		return d.code(n, "", width)
	case *ast.FencedCodeBlock:
		return d.code(n, string(n.Language(d.source)), width)
	case *ast.HTMLBlock:
		rows := d.code(n, "", width)
		if n.HasClosure() {
			rows = append(rows, safetext.Row(string(n.ClosureLine.Value(d.source))))
		}
		return rows
	}
	return d.blocks(n, width)
}

// list returns the rows of a list.
func (d *drawing) list(list *ast.List, width int) []string {
	var rows []string
	number := list.Start
	for item := list.FirstChild(); item != nil; item = item.NextSibling() {
		sign := "• "
		if list.IsOrdered() {
			sign = strconv.Itoa(number) + string(list.Marker) + " "
			number++
		}

		indent := strings.Repeat(" ", safetext.Width(sign))
		if len(rows) > 0 && !list.IsTight {
			rows = append(rows, "")
		}
		block := d.blocks(item, width-len(indent))
		if len(block) == 0 {
			block = []string{""}
		}
		rows = append(rows, prefixed(block, sign, indent)...)
	}
	return rows
}

// prefixed returns rows behind a text of the first, and one of the others.
func prefixed(rows []string, first, rest string) []string {
	out := make([]string, len(rows))
	for i, row := range rows {
		out[i] = rest + row
		if i == 0 {
			out[i] = first + row
		}
	}
	return out
}

// code returns the rows of a block of code. They are not broken between words.
func (d *drawing) code(n ast.Node, language string, width int) []string {
	var rows []string
	lines := n.Lines()
	for i := range lines.Len() {
		line := lines.At(i)
		text := strings.TrimRight(safetext.Block(string(line.Value(d.source))), "\n")
		style := cyan
		if language == "diff" {
			style = diffStyle(text)
		}
		text = ansi.Hardwrap(strings.ReplaceAll(text, "\t", "    "), max(width-2, 1), true)
		for row := range strings.SplitSeq(text, "\n") {
			rows = append(rows, "  "+d.styled(row, style))
		}
	}
	return rows
}

// Styles, as parameters of an SGR sequence.
const (
	bold      = "1"
	faint     = "2"
	italic    = "3"
	underline = "4"
	struck    = "9"
	red       = "31"
	green     = "32"
	cyan      = "36"
)

// styled returns a text in a style.
func (d *drawing) styled(text, style string) string {
	if !d.color || style == "" || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// inline is a text in one style. A text of "\n" is a line break.
type inline struct{ text, style string }

// spans appends the text of the inline nodes in n.
func (d *drawing) spans(n ast.Node, style string, to []inline) []inline {
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		switch c := child.(type) {
		case *ast.Text:
			to = append(to, inline{html.UnescapeString(string(c.Value(d.source))), style})
			switch {
			case c.HardLineBreak():
				to = append(to, inline{"\n", style})
			case c.SoftLineBreak():
				to = append(to, inline{" ", style})
			}
		case *ast.String:
			to = append(to, inline{string(c.Value), style})
		case *ast.CodeSpan:
			to = d.spans(c, with(style, cyan), to)
		case *ast.Emphasis:
			to = d.spans(c, with(style, []string{italic, bold}[min(c.Level, 2)-1]), to)
		case *extast.Strikethrough:
			to = d.spans(c, with(style, struck), to)
		case *extast.TaskCheckBox:
			to = append(to, inline{map[bool]string{true: "☑ ", false: "☐ "}[c.IsChecked], style})
		case *ast.AutoLink:
			to = append(to, inline{string(c.URL(d.source)), with(style, underline)})
		case *ast.RawHTML:
			for i := range c.Segments.Len() {
				segment := c.Segments.At(i)
				to = append(to, inline{string(segment.Value(d.source)), style})
			}

		// The address of a link is always seen: its text may claim another one.
		case *ast.Link:
			to = d.spans(c, with(style, underline), to)
			to = append(to, inline{" (" + string(c.Destination) + ")", style})
		case *ast.Image:
			to = d.spans(c, style, to)
			to = append(to, inline{" (" + string(c.Destination) + ")", style})
		default:
			to = d.spans(c, style, to)
		}
	}
	return to
}

func with(style, more string) string { return strings.TrimPrefix(style+";"+more, ";") }

// wrap breaks spans into rows between words.
func (d *drawing) wrap(spans []inline, width int) []string {
	var text strings.Builder
	for _, s := range spans {
		if s.text == "\n" {
			text.WriteByte('\n')
			continue
		}
		text.WriteString(d.styled(safetext.Row(s.text), s.style))
	}
	if text.Len() == 0 {
		return nil
	}
	return strings.Split(lipgloss.Wrap(text.String(), width, ""), "\n")
}

// table returns the rows of a table. Cells of a table that is too wide have several rows.
func (d *drawing) table(source *extast.Table, width int) []string {
	border := lipgloss.NormalBorder()
	t := table.New().Border(border).BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).
		StyleFunc(func(_, column int) lipgloss.Style {
			return lipgloss.NewStyle().PaddingLeft(min(column, 1)).PaddingRight(1)
		})
	if d.color {
		t.BorderStyle(lipgloss.NewStyle().Faint(true))
	}

	for line := source.FirstChild(); line != nil; line = line.NextSibling() {
		header := line.Kind() == extast.KindTableHeader
		style := ""
		if header {
			style = bold
		}
		var cells []string
		for cell := line.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, strings.Join(d.wrap(d.spans(cell, style, nil), math.MaxInt), " "))
		}
		if header {
			t.Headers(cells...)
		} else {
			t.Row(cells...)
		}
	}

	drawn := t.Render()
	if lipgloss.Width(drawn) > width {
		drawn = t.Width(width).Render()
	}
	var rows []string
	for row := range strings.SplitSeq(drawn, "\n") {
		rows = append(rows, strings.TrimRight(row, " "))
	}
	return rows
}
