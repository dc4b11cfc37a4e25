package dag

import (
	"bufio"
	"cmp"
	"hash/maphash"
	"io"
	"strings"
	"unicode/utf8"

	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// What is shown of a text. More tells nobody more.
const (
	aroundChange = 3   // lines before and after one that differs
	maxLines     = 400 // of one part
	maxLine      = 400 // bytes of one line
)

// Part is a part of what a changed node says: a text, a call with its arguments, a result.
type Part struct {
	// Op is Removed, Added or Changed.
	Op Op
	// Name says what it is, as far as a person needs to know: "text", "call of get_weather", "failed result 0 of get_weather".
	Name string
	// Lines is the text, line by line. Lines that are the same are there near one that differs. Of a very long text, the
	// beginning is; of a very long line, what is around the first difference. JSON is in canonical form with a line for each member.
	Lines []Line
}

// Line is a line of a text, or a gap between lines.
type Line struct {
	// Op is Same, Removed or Added.
	Op Op
	// Text is the line as it was said, cut where it is very long. It is not safe to print.
	Text string
	// Gap is how many lines are left out here; such a Line has no text and its Op is Same.
	Gap int
}

// Parts returns the parts of what the node says that differ: all of them for a node that was added or removed, none for one that
// was moved.
func (c Change) Parts() []Part {
	if c.Op == Moved {
		return nil
	}
	var old, new []field
	if c.Old != nil {
		old = spelled(c.Old)
	}
	if c.New != nil {
		new = spelled(c.New)
	}
	whole, names := interned[field]{}, interned[string]{}
	name := func(f field) string { return f.name }
	self := func(f field) field { return f }
	oldKeys, newKeys := numbers(whole, old, self), numbers(whole, new, self)
	var parts []Part
	for _, p := range pairUp(oldKeys, newKeys, numbers(names, old, name), numbers(names, new, name)) {
		switch {
		case p.new < 0:
			parts = append(parts, Part{Removed, old[p.old].name, lineByLine(Removed, old[p.old].text)})
		case p.old < 0:
			parts = append(parts, Part{Added, new[p.new].name, lineByLine(Added, new[p.new].text)})
		case oldKeys[p.old] != newKeys[p.new]:
			parts = append(parts, Part{Changed, new[p.new].name, compareLines(old[p.old].text, new[p.new].text)})
		}
	}
	if len(parts) == 0 && c.Op == Changed {
		parts = []Part{{Op: Changed, Name: "what no text shows"}}
	}
	return parts
}

// lineByLine returns a text of which all lines are the same, added or removed.
func lineByLine(op Op, text string) []Line {
	all := strings.Split(text, "\n")
	shown := all[:min(len(all), maxLines)]
	lines := make([]Line, 0, len(shown)+1)
	for _, line := range shown {
		lines = append(lines, Line{Op: op, Text: cutLine(line, 0)})
	}
	return gap(lines, len(all)-len(shown))
}

func gap(lines []Line, left int) []Line {
	if left > 0 {
		lines = append(lines, Line{Op: Same, Gap: left})
	}
	return lines
}

// compareLines returns the lines in which two texts differ, with some around them.
func compareLines(old, new string) []Line {
	a, b := strings.Split(old, "\n"), strings.Split(new, "\n")
	keys := interned[string]{}
	self := func(s string) string { return s }
	aKeys, bKeys := numbers(keys, a, self), numbers(keys, b, self)
	all := pairUp(aKeys, bKeys, make([]int, len(a)), make([]int, len(b)))
	var lines []Line
	same := func(p pair) bool { return !p.lone() && aKeys[p.old] == bKeys[p.new] }
	for at := 0; at < len(all); {
		end := at
		for end < len(all) && same(all[end]) == same(all[at]) {
			end++
		}
		if same(all[at]) {
			lines = appendSame(lines, a, all[at:end], at == 0, end == len(all))
		} else {
			lines = appendDifferent(lines, a, b, all[at:end])
		}
		if at = end; len(lines) > maxLines && at < len(all) {
			return gap(lines, len(all)-at)
		}
	}
	return lines
}

// appendSame appends lines that are the same: those near a difference, which is neither before the first nor after the last.
func appendSame(lines []Line, a []string, run []pair, first, last bool) []Line {
	before, after := aroundChange, aroundChange
	if first {
		before = 0
	}
	if last {
		after = 0
	}
	left := len(run) - before - after
	if left <= 1 && !first && !last { // a gap would take as much room
		before, left = len(run)-after, 0
	}
	for i, p := range run {
		if i == before && left > 0 {
			lines = gap(lines, left)
		}
		if i < before || i >= len(run)-after {
			lines = append(lines, Line{Op: Same, Text: cutLine(a[p.old], 0)})
		}
	}
	return lines
}

// appendDifferent appends what was removed, and then what was added in its place.
func appendDifferent(lines []Line, a, b []string, run []pair) []Line {
	var removed, added []Line
	for _, p := range run {
		from := 0
		if !p.lone() {
			from = differAt(a[p.old], b[p.new])
		}
		if p.old >= 0 {
			removed = append(removed, Line{Op: Removed, Text: cutLine(a[p.old], from)})
		}
		if p.new >= 0 {
			added = append(added, Line{Op: Added, Text: cutLine(b[p.new], from)})
		}
	}
	for _, list := range [][]Line{removed, added} {
		shown := min(len(list), maxLines)
		lines = gap(append(lines, list[:shown]...), len(list)-shown)
	}
	return lines
}

// differAt is how far two lines are the same.
func differAt(a, b string) int {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	return i
}

// cutLine returns the part of a long line around a place.
func cutLine(line string, around int) string {
	if len(line) <= maxLine {
		return line
	}
	from := max(0, min(around-maxLine/4, len(line)-maxLine)) // a little of what is the same tells where one is
	to := from + maxLine
	for from > 0 && !utf8.RuneStart(line[from]) {
		from--
	}
	for to < len(line) && !utf8.RuneStart(line[to]) {
		to--
	}
	text := line[from:to]
	if from > 0 {
		text = "…" + text
	}
	if to < len(line) {
		text += "…"
	}
	return text
}

// DiffOptions change how a difference is written. Nil is the same as the zero value.
type DiffOptions struct {
	// Color colours what is removed and added, for a terminal. Defaults to false.
	Color bool
}

// String writes the difference for people, without colours:
//
//	the first 3 nodes are the same
//	~ user      00000004 → 0000000a
//	    - Weather in Paris?
//	    + Weather in Rome?
//	= 1 node says the same
//	~ assistant 00000006 → 0000000c
//	    call of get_weather
//	      {
//	    -   "city": "Paris"
//	    +   "city": "Rome"
//	      }
//
// "-" is removed, "+" added, "~" changed, ">" moved, "=" the same. Text is made harmless: nothing in it can drive a terminal. The
// form may change; programs read [Difference.MarshalJSON].
func (d Difference) String() string {
	var out strings.Builder
	_ = d.Write(&out, nil) // a Builder takes everything
	return strings.TrimSuffix(out.String(), "\n")
}

// Write writes the difference as String has it, and a line break after it. Errors are those of writing.
func (d Difference) Write(w io.Writer, opts *DiffOptions) error {
	out := diffWriter{bufio.NewWriter(w), opts != nil && opts.Color, map[uint64]bool{}}
	if d.equal {
		out.row(Same, "the conversations say the same: "+count(d.Common, "node"))
		return out.Flush()
	}
	out.row(Same, alike(d.Common, "the first "))
	for _, c := range d.Changes {
		out.same(c.Before)
		out.change(c)
	}
	out.same(d.After)
	if len(d.Changes) == 0 {
		out.row(Changed, "the heads: "+shortIDs(d.OldHeads)+" → "+shortIDs(d.NewHeads))
	}
	return out.Flush()
}

// alike says that so many nodes are the same.
func alike(nodes int, which string) string {
	switch nodes {
	case 0:
		return "nothing is the same at the beginning"
	case 1:
		return which + "1 node is the same"
	}
	return which + number(nodes) + " nodes are the same"
}

func shortIDs(nodes []*node.Node) string {
	ids := make([]string, len(nodes))
	for i, n := range nodes {
		ids[i] = node.ShortID(n.ID())
	}
	return cmp.Or(strings.Join(ids, ", "), "none")
}

// diffWriter writes rows. Its Writer keeps the first error for Flush.
type diffWriter struct {
	*bufio.Writer
	color bool
	shown map[uint64]bool // hashes of the lines of calls and results
}

// looks is the sign and the colour of a row.
var looks = map[Op]struct{ sign, color string }{
	Same: {"=", "\x1b[2m"}, Removed: {"-", "\x1b[31m"}, Added: {"+", "\x1b[32m"}, Changed: {"~", "\x1b[33m"}, Moved: {">", "\x1b[36m"},
}

// row writes one row. The text must be harmless.
func (w diffWriter) row(op Op, text string) {
	if w.color {
		text = looks[op].color + text + "\x1b[0m"
	}
	_, _ = w.WriteString(text + "\n")
}

func (w diffWriter) same(nodes int) {
	if nodes > 0 {
		w.row(Same, "= "+alike(nodes, ""))
	}
}

func (w diffWriter) change(c Change) {
	n, ids := c.New, ""
	if c.Old != nil && c.New != nil && c.Old.ID() != c.New.ID() {
		ids = node.ShortID(c.Old.ID()) + " → "
	}
	if n == nil {
		n = c.Old
	}
	word := safetext.Line(describe.Of(n).Word, 20)
	word += strings.Repeat(" ", max(wordWidth-safetext.Width(word), 0))
	w.row(c.Op, looks[c.Op].sign+" "+word+" "+ids+node.ShortID(n.ID()))
	for _, p := range c.Parts() {
		w.part(p)
	}
}

// part writes one part. A text needs no name. What an execution says was said by the call, and what the message with the results
// says by the executions: it is written once.
func (w diffWriter) part(p Part) {
	if p.Name != "text" {
		name := "    " + safetext.Line(p.Name, logWidth)
		if w.again(p.Lines) {
			w.row(p.Op, name+": as above")
			return
		}
		w.row(p.Op, name)
	}
	for _, line := range p.Lines {
		switch {
		case line.Gap > 0:
			w.row(Same, "      … "+count(line.Gap, "line"))
		case line.Op == Same:
			w.row("", "      "+safetext.Row(line.Text))
		default:
			w.row(line.Op, "    "+looks[line.Op].sign+" "+safetext.Row(line.Text))
		}
	}
}

// again reports whether the same lines were asked about before.
func (w diffWriter) again(lines []Line) bool {
	var h maphash.Hash
	h.SetSeed(treeSeed)
	for _, line := range lines {
		_, _ = h.WriteString(string(line.Op) + line.Text + "\n")
	}
	sum := h.Sum64()
	before := w.shown[sum]
	w.shown[sum] = true
	return before && len(lines) > 0
}

// The JSON form.
type (
	jsonDiff struct {
		Equal    bool         `json:"equal"`
		Common   int          `json:"common"`
		Old      *jsonNode    `json:"old"`
		New      *jsonNode    `json:"new"`
		OldHeads []*jsonNode  `json:"old_heads"`
		NewHeads []*jsonNode  `json:"new_heads"`
		Changes  []jsonChange `json:"changes"`
		After    int          `json:"after"`
	}
	jsonChange struct {
		Op     Op         `json:"op"`
		Before int        `json:"before"`
		Old    *jsonNode  `json:"old"`
		New    *jsonNode  `json:"new"`
		Parts  []jsonPart `json:"parts"`
	}
	jsonNode struct {
		ID     string `json:"id"`
		Digest string `json:"digest"`
		Kind   string `json:"kind"`
		Role   string `json:"role,omitempty"`
	}
	jsonPart struct {
		Op    Op         `json:"op"`
		Name  string     `json:"name"`
		Lines []jsonLine `json:"lines"`
	}
	jsonLine struct {
		Op   Op     `json:"op"`
		Text string `json:"text"`
		Gap  int    `json:"gap,omitzero"`
	}
)

// MarshalJSON returns the difference as a JSON object, whose members stay as they are:
//
//   - equal: whether both say the same; common: how many nodes both begin with;
//   - old, new: the first nodes that are not the same, each an object with id, digest, kind and, of a message, role; null where
//     there is none;
//   - old_heads, new_heads: the nodes that the conversations end in;
//   - changes: for each [Change] an object with op, before, old, new (as above), and parts;
//   - a part has op, name, and lines; a line has op and text, or gap where lines are left out;
//   - after: how many nodes are the same after the last change.
//
// Each op is one of the constants of [Op]. Later versions may add members.
func (d Difference) MarshalJSON() ([]byte, error) {
	out := jsonDiff{Equal: d.equal, Common: d.Common, Old: nodeJSON(d.Old), New: nodeJSON(d.New), OldHeads: nodesJSON(d.OldHeads),
		NewHeads: nodesJSON(d.NewHeads), Changes: make([]jsonChange, len(d.Changes)), After: d.After}
	for i, c := range d.Changes {
		out.Changes[i] = jsonChange{c.Op, c.Before, nodeJSON(c.Old), nodeJSON(c.New), []jsonPart{}}
		for _, p := range c.Parts() {
			part := jsonPart{p.Op, p.Name, make([]jsonLine, len(p.Lines))}
			for k, line := range p.Lines {
				part.Lines[k] = jsonLine{line.Op, content.Clean(line.Text), line.Gap}
			}
			out.Changes[i].Parts = append(out.Changes[i].Parts, part)
		}
	}
	return json.Marshal(out)
}

func nodeJSON(n *node.Node) *jsonNode {
	if n == nil {
		return nil
	}
	m, _ := n.Message()
	return &jsonNode{n.ID().String(), n.Digest().String(), n.Kind(), string(m.Role)}
}

func nodesJSON(nodes []*node.Node) []*jsonNode {
	out := make([]*jsonNode, len(nodes))
	for i, n := range nodes {
		out[i] = nodeJSON(n)
	}
	return out
}
