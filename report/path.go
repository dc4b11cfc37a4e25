package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/pattern"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// Step is a node on the path of a conversation.
type Step struct {
	// Label names the step, without what was said: "user", "assistant", "get_weather", "get_weather: no such city" for
	// a failed call, "stop max_turns". In the reason of a failure, long numbers and identifiers are replaced by "#", so
	// that two failures of one kind have one label.
	Label string `json:"label"`
	// Kind is the kind of the node: "user", "assistant", "tool call", "stop" and so on.
	Kind string `json:"kind"`
	// Text is the beginning of the content on one line; of a tool call, the arguments and the first line of the result.
	Text string `json:"text,omitempty"`
	// Node is the end of the node's ID, as DAG.Find accepts it.
	Node string `json:"node"`
	// Digest is the beginning of the node's digest. Two steps have the same one exactly if everything was the same up
	// to there.
	Digest string `json:"digest"`
	Failed bool   `json:"failed,omitempty"`
}

// Path is a sequence of steps with the same labels that one or more conversations took, and the outcome.
type Path struct {
	// Number identifies the path. 1 is the most frequent one.
	Number  int     `json:"number"`
	Outcome Outcome `json:"outcome"`
	// Rows are the indexes of the rows that took the path, in order.
	Rows []int `json:"rows"`
	// NumSteps is the number of steps.
	NumSteps int `json:"steps"`
	// Base is the more frequent path that has most in common with this one, or 0 for none. Same is the number of steps
	// at the beginning with the same labels, and SameContent how many of these said the same as well.
	Base        int `json:"base,omitempty"`
	Same        int `json:"same"`
	SameContent int `json:"same_content"`
	// Step is the label of the first step that differs from Base, and Instead the one of Base. Each is "" if that path
	// has ended, and "…" if it is not one of the first 400 steps.
	Step    string `json:"step,omitempty"`
	Instead string `json:"instead,omitempty"`
}

const (
	maxSteps     = 400 // kept of a row
	maxText      = 120 // cells of a step's text
	maxArguments = 60  // characters of the arguments in it
)

// walk finds the steps of the conversation.
func (r *Row) walk(d dag.DAG) {
	shape := sha256.New()
	shape.Write([]byte(r.Outcome))
	for _, n := range d.Nodes() {
		said := describe.Of(n)
		if said.Sort == describe.Record || said.Sort == describe.Results && hasExecution(n) {
			continue
		}

		label := labelOf(n, said)
		shape.Write(append([]byte{0}, label...))
		if r.NumSteps++; r.NumSteps > maxSteps {
			continue
		}
		digest := n.Digest()
		r.Steps = append(r.Steps, Step{
			Label: label, Kind: safetext.Line(said.Word, maxText), Text: textOf(said), Node: node.ShortID(n.ID()), Digest: hex.EncodeToString(digest[:8]),
			Failed: failureOf(n, said) != nil,
		})
	}
	shape.Sum(r.shape[:0])
}

// labelOf returns the label of a step.
func labelOf(n *node.Node, said describe.Node) string {
	if f := failureOf(n, said); f != nil {
		return anonymous(f.Text)
	}
	switch said.Sort {
	case describe.Call:
		label := cmp.Or(said.Called.Tool, said.Word)
		if said.State != "" {
			label += ", " + said.State
		}
		return safetext.Line(label, maxText)
	case describe.Stop:
		return safetext.Line(said.Word+" "+said.Title, maxText)
	}
	return safetext.Line(said.Word, maxText)
}

// textOf returns the beginning of what a node says.
func textOf(said describe.Node) string {
	switch {
	case said.Sort == describe.Call:
		text := describe.Arguments(said.Called.Input, maxArguments)
		if result := firstLine(describe.Text(said.Blocks)); result != "" {
			text += " → " + result
		}
		return safetext.Line(text, maxText)
	case said.Blocks.Len() > 0:
		if text := describe.Text(said.Blocks); text != "" {
			return safetext.Line(text, maxText)
		}
		for p := range describe.Parts(said.Blocks) {
			return safetext.Line(p.Label(), maxText)
		}
	}
	return safetext.Line(said.Text, maxText)
}

// particular matches what differs between two failures of one kind: UUIDs, long hexadecimal numbers, decimal fractions
// and numbers of four digits or more. Shorter numbers stay: an exit code or an HTTP status is the kind.
var particular = pattern.Of(`[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|\b[0-9a-fA-F]{12,}\b|\d+(?:\.\d+)+|\d{4,}`)

func anonymous(text string) string { return particular().ReplaceAllString(text, "#") }

// Paths groups the rows by path, the most frequent path first, and sets the Path of each row. Unreadable rows have no
// path.
func Paths(rows []Row) []Path {
	byShape := map[[32]byte][]int{}
	for i := range rows {
		rows[i].Path = 0
		if rows[i].Error == "" {
			byShape[rows[i].shape] = append(byShape[rows[i].shape], i)
		}
	}

	paths := make([]Path, 0, len(byShape))
	for _, members := range byShape {
		first := rows[members[0]]
		paths = append(paths, Path{Rows: members, Outcome: first.Outcome, NumSteps: first.NumSteps})
	}
	slices.SortFunc(paths, func(a, b Path) int {
		return cmp.Or(cmp.Compare(len(b.Rows), len(a.Rows)), cmp.Compare(a.Rows[0], b.Rows[0]))
	})

	for i := range paths {
		paths[i].Number = i + 1
		for _, row := range paths[i].Rows {
			rows[row].Path = i + 1
		}
		paths[i].part(paths[:i], rows)
	}
	return paths
}

// part finds where p parts from one of the more frequent paths.
func (p *Path) part(before []Path, rows []Row) {
	mine := rows[p.Rows[0]].Steps
	var base []Step
	var numBase int
	for _, other := range before {
		steps := rows[other.Rows[0]].Steps
		if same := common(mine, steps, func(a, b Step) bool { return a.Label == b.Label }); p.Base == 0 || same > p.Same {
			p.Base, p.Same, base, numBase = other.Number, same, steps, other.NumSteps
		}
	}
	if p.Base == 0 {
		return
	}

	p.SameContent = common(mine, base, func(a, b Step) bool { return a.Digest == b.Digest })
	p.Step = labelAt(mine, p.Same, p.NumSteps)
	p.Instead = labelAt(base, p.Same, numBase)
}

// labelAt returns the label of step i of a path with so many steps, of which the first ones are kept.
func labelAt(kept []Step, i, all int) string {
	switch {
	case i < len(kept):
		return kept[i].Label
	case i < all:
		return "…"
	}
	return ""
}

// common returns the number of equal steps at the beginning of both lists.
func common(a, b []Step, equal func(a, b Step) bool) int {
	n := 0
	for n < min(len(a), len(b)) && equal(a[n], b[n]) {
		n++
	}
	return n
}
