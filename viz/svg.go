package viz

import (
	"bufio"
	"cmp"
	"io"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/viz/internal/ink"
)

// SVG writes d to w as a self-contained SVG picture: it holds no script, no link and no font, and fetches nothing. It
// follows the light or dark theme of the reader's system, and is light if that is unknown. It is folded like the
// drawing of [Mermaid], unless Options.Full is set.
//
//   - Each box is a group with the ID n0, n1 …, its number in reading order. Folding does not change it. Each edge
//     names its boxes in data-from and data-to. Each frame has the ID f0, f1 … and names the box it belongs to in
//     data-owner.
//   - Text can be selected and searched, and is read aloud in reading order. Every text is shown letter for letter, and
//     cannot end the element around it.
//   - The same graph gives the same bytes.
//
// SVG returns the error of d or of w.
func SVG(w io.Writer, d dag.DAG, o *Options) error {
	if o == nil {
		o = &Options{}
	}
	p, err := Layout(d, o)
	if err != nil {
		return err
	}
	s := svgWriter{Writer: bufio.NewWriterSize(w, 1<<16), Picture: p}
	s.picture(cmp.Or(strings.TrimSpace(safetext.Clip(o.Title, 1, nameChars)), "Conversation"))
	return s.Flush()
}

// svgWriter writes one picture. Its bufio.Writer keeps the first error.
type svgWriter struct {
	*bufio.Writer
	*Picture
	num         []byte
	path, inner ink.Path
}

// put writes strings unchanged and integers in decimal.
func (s *svgWriter) put(parts ...any) {
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			s.WriteString(part)
		case int:
			s.num = strconv.AppendInt(s.num[:0], int64(part), 10)
			s.Write(s.num)
		}
	}
}

// xmlText escapes text for XML, as content and in quotes.
var xmlText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// text writes plain text, escaped.
func (s *svgWriter) text(text string) {
	xmlText.WriteString(s, safetext.UTF8(text))
}

func (s *svgWriter) picture(title string) {
	// The summary holds only numbers and fixed words, so it needs no escapes.
	s.put(`<svg xmlns="http://www.w3.org/2000/svg" width="`, s.Width, `" height="`, s.Height, `" viewBox="0 0 `, s.Width, " ", s.Height,
		`" role="group" aria-labelledby="plait-title plait-desc" xml:space="preserve">`, "\n<title id=\"plait-title\">")
	s.text(title)
	s.put("</title>\n<desc id=\"plait-desc\">", s.summary(), "</desc>\n<style>\n")
	s.style()
	s.put("</style>\n", `<rect class="page" width="100%" height="100%"/>`, "\n")

	if len(s.Note) > 0 {
		s.put(`<text class="note">`)
		for i, line := range s.Note {
			s.put(`<tspan x="`, margin, `" y="`, margin+fontSize+i*lineHeight, `">`)
			s.text(line)
			s.put("</tspan>")
		}
		s.put("</text>\n")
	}

	// SVG paints in document order: edges over frames, titles over edges, and boxes over all of them.
	for i, f := range s.Frames {
		s.frame(i, f)
	}

	s.put(`<g class="edges" aria-hidden="true">`, "\n")
	s.edges()
	s.put("</g>\n")
	for i, f := range s.Frames {
		s.title(i, f)
	}

	// For screen readers, the boxes are a list in reading order.
	s.put(`<g role="list">`, "\n")
	for i := range s.Boxes {
		s.box(&s.Boxes[i])
	}
	s.put("</g>\n")

	if len(s.Boxes) == 0 {
		s.put(`<text x="`, margin, `" y="`, margin+fontSize, `">`, ink.Empty, "</text>\n")
	}
	s.put("</svg>\n")
}

// summary returns the description of the picture: the number of nodes, frames and failures, or how it is folded.
func (s *svgWriter) summary() string {
	if len(s.Note) > 0 {
		return strings.Join(s.Note, " ")
	}

	nodes, failures := 0, 0
	for _, b := range s.Boxes {
		nodes += b.Nodes
		if b.Results != nil {
			nodes++
		}
		if b.Style == styleFailed {
			failures++
		}
	}
	return listed(count(nodes, "node"), some(len(s.Frames), "inner conversation"), some(failures, "failure"))
}

// style writes the style sheet. Fill, stroke and text color are set together, for both themes.
func (s *svgWriter) style() {
	s.put("text{font:", fontSize, "px ui-monospace,Menlo,Consolas,\"DejaVu Sans Mono\",\"Liberation Mono\",monospace;white-space:pre}\n",
		".h{font-weight:bold}path,rect{stroke-width:1.25}.head path{stroke-width:3}.head .i{stroke-width:1.25}\n",
		".edges path{fill:none;stroke-width:1.5}.dashed{stroke-dasharray:5 4}.several path{stroke-dasharray:4 3}\n")
	s.palette(ink.Light)
	s.put("@media (prefers-color-scheme:dark){\n")
	s.palette(ink.Dark)
	s.put("}\n")
}

func (s *svgWriter) palette(p ink.Palette) {
	s.put(".page{fill:", p.Page, ";stroke:none}.edges path{stroke:", p.Line, "}.edges .tips{fill:", p.Line, ";stroke:none}\n")
	s.put(".frame{fill:", p.Frame.Fill, ";stroke:", p.Frame.Stroke, "}.title rect{fill:", p.Frame.Fill, ";stroke:none}")
	s.put("text{fill:", p.Frame.Text, "}\n")
	for _, style := range ink.Styles {
		l := p.Boxes[style]
		s.put(".", style, " path{fill:", l.Fill, ";stroke:", l.Stroke, "}.", style, " .i{fill:none}")
		s.put(".", style, " text{fill:", l.Text, "}\n")
	}
}

func (s *svgWriter) frame(i int, f Frame) {
	s.put(`<rect class="frame" id="f`, i, `" data-owner="n`, s.Boxes[f.Owner].Number, `"`)
	s.rect(f.X, f.Y, f.W, f.H)
	s.put(` rx="8"/>`, "\n")
}

// title writes the title of a frame. Titles are drawn over the edges into the frame.
func (s *svgWriter) title(i int, f Frame) {
	x, y := ink.TitleAt(f.X, f.Y)
	s.put(`<g class="title" data-frame="f`, i, `"><rect`)
	s.rect(ink.TitleGround(f.X, f.Y, textWidth(safetext.Width(f.Title))))
	s.put(`/><text x="`, x, `" y="`, y, `">`)
	s.text(f.Title)
	s.put("</text></g>\n")
}

func (s *svgWriter) rect(x, y, w, h int) {
	s.put(` x="`, x, `" y="`, y, `" width="`, w, `" height="`, h, `"`)
}

// edges writes the edges and then their arrowheads. All edges to a box end in the same point and share one.
func (s *svgWriter) edges() {
	// Arrowheads are filled and lines are not, so the arrowheads are a path of their own.
	tips := ink.Path(nil)
	done := make([]bool, len(s.Boxes))
	for _, e := range s.Edges {
		s.put("<path")
		if e.Dashed {
			s.put(` class="dashed"`)
		}
		s.put(` data-from="n`, s.Boxes[e.From].Number, `" data-to="n`, s.Boxes[e.To].Number, `" d="`)
		s.path = ink.Line(s.path[:0], len(e.Points), func(i int) (x, y int) { return e.Points[i].X, e.Points[i].Y })
		s.write(s.path)
		s.put("\"/>\n")

		if !done[e.To] {
			done[e.To] = true
			end := e.Points[len(e.Points)-1]
			tips = ink.Tip(tips, end.X, end.Y)
		}
	}

	if len(tips) > 0 {
		s.put(`<path class="tips" d="`)
		s.write(tips)
		s.put("\"/>\n")
	}
}

// write writes the commands of a path.
func (s *svgWriter) write(p ink.Path) {
	for _, step := range p {
		s.WriteByte(step.Op)
		switch step.Op {
		case 'Z':
		case 'Q':
			s.put(step.CX, " ", step.CY, " ", step.X, " ", step.Y)
		default:
			s.put(step.X, " ", step.Y)
		}
	}
}

func (s *svgWriter) box(b *Box) {
	// Each of these steps leaves the quote of its attribute open, and the next one closes it.
	s.put(`<g id="n`, b.Number, `" role="listitem" class="`, b.Style)
	if b.Head > 0 {
		s.put(" head")
	}
	if b.Nodes > 1 {
		s.put(" several")
	}

	s.path, s.inner = ink.Box(s.path[:0], s.inner[:0], b.Shape, b.X, b.Y, b.W, b.H)
	s.put(`"><path d="`)
	s.write(s.path)
	if len(s.inner) > 0 {
		s.put(`"/><path class="i" d="`)
		s.write(s.inner)
	}

	s.put(`"/>`)
	s.lines(b)
	s.put("</g>\n")
}

// lines writes the text of a box. Lines of one direction are one element: where a line begins then does not depend on
// how a viewer treats an element with another direction inside it.
func (s *svgWriter) lines(b *Box) {
	left, y := ink.TextAt(b.Shape, b.X, b.Y)
	before := false
	for i, line := range b.Lines {
		x, right := left, b.FromRight != nil && b.FromRight[i]
		if right {
			x = ink.TextEnd(b.Shape, b.X, b.W)
		}

		if i > 0 && right != before {
			s.put("</text>")
		}
		if i == 0 || right != before {
			s.put(openText[right])
		}
		before = right

		s.put(`<tspan x="`, x, `" y="`, y+i*lineHeight)
		if i < b.Heading {
			s.put(`" class="h`)
		}
		s.put(`">`)
		s.text(line)
		s.put("</tspan>")
	}
	s.put("</text>")
}

// openText is the tag of lines, by whether they read from right to left.
var openText = map[bool]string{false: "<text>", true: `<text direction="rtl">`}
