package dag

import (
	"bufio"
	"cmp"
	"hash/maphash"
	"io"
	"slices"
	"strings"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// Limits of the text in a part.
const (
	aroundChange = 3   // equal lines before and after a different one
	maxLines     = 400 // maximum lines of one part
	maxLine      = 400 // maximum size of one line, in bytes
)

// diffPart is a part of a changed node: a text, a call with its arguments, a result.
type diffPart struct {
	// Op is opRemoved, opAdded or opChanged.
	Op diffOp `json:"op"`
	// Name describes the part for people: "text", "call of get_weather", "failed result 0 of get_weather".
	Name string `json:"name"`
	// Lines is the text, line by line. Equal lines are included only near a different line. A very long text is cut at
	// the end, and a very long line around the first difference. JSON is in canonical form with a line for each member.
	Lines []diffLine `json:"lines"`
}

// diffLine is a line of a text, or a gap between lines.
type diffLine struct {
	// Op is opSame, opRemoved or opAdded.
	Op diffOp `json:"op"`
	// Text is the text of the line, cut if it is very long. It is not cleaned, and so not safe to print.
	Text string `json:"text"`
	// Gap is the number of lines left out here. A line with a gap has no text, and its Op is opSame.
	Gap int `json:"gap,omitzero"`
}

// Parts returns the different parts of the node: all parts of an added or removed node.
func (c nodeChange) Parts() []diffPart {
	var old, new []field
	if c.Old != nil {
		old = spelled(c.Old)
	}
	if c.New != nil {
		new = spelled(c.New)
	}

	// Pair equal parts first. Between them, parts of the same name have changed.
	whole, names := interned[field]{}, interned[string]{}
	name := func(f field) string { return f.name }
	self := func(f field) field { return f }
	oldKeys, newKeys := numbers(whole, old, self), numbers(whole, new, self)

	var parts []diffPart
	for _, p := range pairUp(oldKeys, newKeys, numbers(names, old, name), numbers(names, new, name)) {
		switch {
		case p.new < 0:
			parts = append(parts, diffPart{opRemoved, old[p.old].name, lineByLine(opRemoved, old[p.old].text)})
		case p.old < 0:
			parts = append(parts, diffPart{opAdded, new[p.new].name, lineByLine(opAdded, new[p.new].text)})
		case oldKeys[p.old] != newKeys[p.new]:
			parts = append(parts, diffPart{opChanged, new[p.new].name, compareFields(old[p.old], new[p.new])})
		}
	}

	// Some content has no text form, so the digests may differ although the texts are equal.
	if len(parts) == 0 && c.Op == opChanged {
		parts = []diffPart{{Op: opChanged, Name: "content without a text form"}}
	}
	return parts
}

// compareFields returns the different lines of two fields. If hidden content differs and no line shows it, a line says so.
func compareFields(old, new field) []diffLine {
	if old.text == new.text && old.hidden != new.hidden {
		new.text += "\n(content that is not shown differs)"
	}
	return compareLines(old.text, new.text)
}

// lineByLine returns the lines of a text, all with the same op.
func lineByLine(op diffOp, text string) []diffLine {
	all := strings.Split(text, "\n")
	shown := all[:min(len(all), maxLines)]
	lines := make([]diffLine, 0, len(shown)+1)
	for _, line := range shown {
		lines = append(lines, diffLine{Op: op, Text: safetext.Around(line, 0, maxLine)})
	}
	return gap(lines, len(all)-len(shown))
}

// gap appends a gap of that many lines, if there are any.
func gap(lines []diffLine, left int) []diffLine {
	if left > 0 {
		lines = append(lines, diffLine{Op: opSame, Gap: left})
	}
	return lines
}

// compareLines returns the different lines of two texts, and some equal lines around them.
func compareLines(old, new string) []diffLine {
	a, b := strings.Split(old, "\n"), strings.Split(new, "\n")
	keys := interned[string]{}
	self := func(s string) string { return s }
	aKeys, bKeys := numbers(keys, a, self), numbers(keys, b, self)

	// All lines are of one kind, so that a changed line is paired with its new form.
	all := pairUp(aKeys, bKeys, make([]int, len(a)), make([]int, len(b)))

	// Go through the pairs in runs: equal lines, then different lines, and so on.
	var lines []diffLine
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

		// After many lines, the rest is left out as one gap.
		if at = end; len(lines) > maxLines && at < len(all) {
			return gap(lines, len(all)-at)
		}
	}
	return lines
}

// appendSame appends those lines of a run of equal lines that are near a difference. There is no difference before the
// first run and after the last run.
func appendSame(lines []diffLine, a []string, run []pair, first, last bool) []diffLine {
	before, after := aroundChange, aroundChange
	if first {
		before = 0
	}
	if last {
		after = 0
	}

	// A gap would take as much space as one line.
	left := len(run) - before - after
	if left <= 1 && !first && !last {
		before, left = len(run)-after, 0
	}

	for i, p := range run {
		if i == before && left > 0 {
			lines = gap(lines, left)
		}
		if i < before || i >= len(run)-after {
			lines = append(lines, diffLine{Op: opSame, Text: safetext.Around(a[p.old], 0, maxLine)})
		}
	}
	return lines
}

// appendDifferent appends the removed lines of a run, and then the added ones.
func appendDifferent(lines []diffLine, a, b []string, run []pair) []diffLine {
	var removed, added []diffLine
	for _, p := range run {
		// Show a long changed line where it begins to differ.
		from := 0
		if !p.lone() {
			from = differAt(a[p.old], b[p.new])
		}
		if p.old >= 0 {
			removed = append(removed, diffLine{Op: opRemoved, Text: safetext.Around(a[p.old], from, maxLine)})
		}
		if p.new >= 0 {
			added = append(added, diffLine{Op: opAdded, Text: safetext.Around(b[p.new], from, maxLine)})
		}
	}

	for _, list := range [][]diffLine{removed, added} {
		shown := min(len(list), maxLines)
		lines = gap(append(lines, list[:shown]...), len(list)-shown)
	}
	return lines
}

// differAt returns the length of the common beginning of two lines.
func differAt(a, b string) int {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	return i
}

// DiffOptions are options of [Difference.Write]. Nil is the same as the zero value.
type DiffOptions struct {
	// Color colors the changes for a terminal. Defaults to false.
	Color bool
}

// String returns the difference as text for people, without colors:
//
//	the first 3 nodes are the same
//	~ user      00000004 → 0000000a
//	    - Weather in Paris?
//	    + Weather in Rome?
//	= 1 node is the same
//	~ assistant 00000006 → 0000000c
//	    call of get_weather
//	      {
//	    -   "city": "Paris"
//	    +   "city": "Rome"
//	      }
//
// "-" is removed, "+" added, "~" changed, "=" the same. Text is cleaned: nothing in it can control a
// terminal. The form may change. Programs should use [Difference.MarshalJSON].
func (d Difference) String() string {
	var out strings.Builder
	_ = d.Write(&out, nil) // a Builder returns no errors
	return strings.TrimSuffix(out.String(), "\n")
}

// Write writes the text of String and a line break. Its errors are those of w.
func (d Difference) Write(w io.Writer, opts *DiffOptions) error {
	out := diffWriter{bufio.NewWriter(w), d, opts != nil && opts.Color, map[uint64]bool{}}
	if d.equal {
		out.row(opSame, "the conversations are the same: "+count(d.Common, "node"))
		return out.Flush()
	}

	out.row(opSame, alike(d.Common, "the first "))
	for _, c := range d.changes {
		out.same(c.Before)
		out.change(c)
	}
	out.same(d.after)

	// All nodes are the same, but not all of them are heads in both, in the same order, or after the same nodes.
	if len(d.changes) == 0 {
		out.row(opChanged, "the heads, or what nodes follow: "+names(d.OldHeads, d.oldName)+" → "+names(d.NewHeads, d.newName))
	}
	return out.Flush()
}

// alike returns the text for that many equal nodes.
func alike(nodes int, which string) string {
	switch nodes {
	case 0:
		return "no node is the same"
	case 1:
		return which + "1 node is the same"
	}
	return which + number(nodes) + " nodes are the same"
}

// names returns the short names of nodes, with that many digits.
func names(nodes []*node.Node, digits int) string {
	list := make([]string, len(nodes))
	for i, n := range nodes {
		list[i] = describe.Name(n.ID(), digits)
	}
	return cmp.Or(strings.Join(list, ", "), "none")
}

// diffWriter writes rows. Flush returns its first error.
type diffWriter struct {
	*bufio.Writer
	diff  Difference
	color bool
	shown map[uint64]bool // hashes of the lines of calls and results
}

// looks maps an Op to the sign and the color of its rows.
var looks = map[diffOp]struct{ sign, color string }{
	opSame:    {"=", "\x1b[2m"},
	opRemoved: {"-", "\x1b[31m"},
	opAdded:   {"+", "\x1b[32m"},
	opChanged: {"~", "\x1b[33m"},
}

// row writes one row. The text must be cleaned.
func (w diffWriter) row(op diffOp, text string) {
	if w.color {
		text = looks[op].color + text + "\x1b[0m"
	}
	_, _ = w.WriteString(text + "\n")
}

func (w diffWriter) same(nodes int) {
	if nodes > 0 {
		w.row(opSame, "= "+alike(nodes, ""))
	}
}

func (w diffWriter) change(c nodeChange) {
	// A changed node usually has a new ID: show both.
	var list []string
	n := cmp.Or(c.New, c.Old)
	if c.Old != nil {
		list = append(list, describe.Name(c.Old.ID(), w.diff.oldName))
	}
	if c.New != nil {
		if name := describe.Name(c.New.ID(), w.diff.newName); !slices.Contains(list, name) {
			list = append(list, name)
		}
	}

	word := safetext.Line(describe.Of(n).Word, 20)
	word += strings.Repeat(" ", max(wordWidth-safetext.Width(word), 0))
	w.row(c.Op, looks[c.Op].sign+" "+word+" "+strings.Join(list, " → "))
	for _, p := range c.Parts() {
		w.part(p)
	}
}

// part writes one part. A text needs no name. An execution repeats the arguments of its call, and a results message
// repeats the results: the same lines are written once.
func (w diffWriter) part(p diffPart) {
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
			w.row(opSame, "      … "+count(line.Gap, "line"))
		case line.Op == opSame:
			w.row("", "      "+safetext.Row(line.Text))
		default:
			w.row(line.Op, "    "+looks[line.Op].sign+" "+safetext.Row(line.Text))
		}
	}
}

// again reports whether it was called with the same lines before.
func (w diffWriter) again(lines []diffLine) bool {
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
		Op     diffOp     `json:"op"`
		Before int        `json:"before"`
		Old    *jsonNode  `json:"old"`
		New    *jsonNode  `json:"new"`
		Parts  []diffPart `json:"parts"`
	}
	jsonNode struct {
		ID   string `json:"id"`
		Kind string `json:"kind"`
		Role string `json:"role,omitempty"`
	}
)

// MarshalJSON returns the difference as a JSON object with the members
//
//   - equal: whether both conversations have the same content;
//   - common: the number of nodes at the beginning of both;
//   - old, new: the first different nodes, or null. Each is an object with id, kind and, for a message, role;
//   - old_heads, new_heads: the heads of the conversations;
//   - changes: for each different node, in order, an object with op, before (the number of equal nodes since the change
//     before it), old, new (as above), and parts. A part has op, name, and lines. A line has op and text; or gap, if
//     lines are left out;
//   - after: the number of equal nodes after the last change.
//
// Each op is "same", "removed", "added" or "changed". Members are stable; later versions may add some.
func (d Difference) MarshalJSON() ([]byte, error) {
	out := jsonDiff{
		Equal: d.equal, Common: d.Common, Old: nodeJSON(d.Old), New: nodeJSON(d.New),
		OldHeads: nodesJSON(d.OldHeads), NewHeads: nodesJSON(d.NewHeads), After: d.after,
	}

	for _, c := range d.changes {
		out.Changes = append(out.Changes, jsonChange{c.Op, c.Before, nodeJSON(c.Old), nodeJSON(c.New), c.Parts()})
	}
	return json.Marshal(out, jsontext.AllowInvalidUTF8(true))
}

func nodeJSON(n *node.Node) *jsonNode {
	if n == nil {
		return nil
	}
	m, _ := n.Message()
	return &jsonNode{n.ID().String(), n.Kind(), string(m.Role)}
}

func nodesJSON(nodes []*node.Node) []*jsonNode {
	out := make([]*jsonNode, len(nodes))
	for i, n := range nodes {
		out[i] = nodeJSON(n)
	}
	return out
}
