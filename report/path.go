package report

import (
	"cmp"
	"crypto/sha256"
	"hash/maphash"
	"slices"
	"strings"
	"unique"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/pattern"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// Step is a node on the path of a conversation.
type Step struct {
	// Label names the step without its content: "user", "assistant", "get_weather", "get_weather: no such city" for a
	// failed call, "stop max_turns". In the reason of a failure, long numbers and identifiers are replaced by "#":
	// failures of one kind have one label.
	Label string `json:"label"`
	// Kind is the kind of the node: "user", "assistant", "tool call", "stop" and so on.
	Kind string `json:"kind"`
	// Text is the beginning of the content on one line; of a tool call, the arguments and the first line of the result.
	Text string `json:"text,omitempty"`
	// Node is the short name of the node, as from DAG.ShortIDs.
	Node   string `json:"node"`
	Failed bool   `json:"failed,omitempty"`
	// Content is the same number for two steps exactly if everything up to them is equal. It is another one in each
	// process and not part of JSON, so it reveals nothing about the content.
	Content uint64 `json:"-"`
}

// Path is a sequence of step labels and an outcome, with the conversations that have both.
type Path struct {
	// Number identifies the path. 1 is the most frequent one.
	Number  int    `json:"number"`
	Outcome string `json:"outcome"`
	// Rows are the indexes of the rows with this path, in order.
	Rows []int `json:"rows"`
	// NumSteps is the number of steps.
	NumSteps int `json:"steps"`
	// Base is the number of the more frequent path with the longest common beginning, or 0. Same counts the steps of
	// this beginning: their labels are equal. SameContent counts the ones with equal content, too.
	Base        int `json:"base,omitempty"`
	Same        int `json:"same"`
	SameContent int `json:"same_content"`
	// Step is the label of the first different step, and Instead the label in Base. Each is "" if its path has ended,
	// and "…" if the step is not one of the first 400.
	Step    string `json:"step,omitempty"`
	Instead string `json:"instead,omitempty"`
}

const (
	maxSteps     = 400 // kept of a row
	maxText      = 120 // cells of a step's text
	maxArguments = 60  // characters of the arguments in it
)

// stepList holds the first steps of a row. The labels of all rows are shared: a step costs 32 bytes, and its text.
type stepList struct {
	steps []step
	texts []string // of the first steps; Texts drops the last ones
}

type step struct {
	name    unique.Handle[stepName]
	content uint64 // see Step.Content
	node    node.ID
}

// contentSeed makes Step.Content another number in each process.
var contentSeed = maphash.MakeSeed()

// stepName holds the parts of a step with values shared by many steps.
type stepName struct {
	label, kind string
	failed      bool
}

// Steps returns the first 400 steps of the path. Text is "" for steps without a text, and for steps with a dropped text
// ([Texts]).
func (r Row) Steps() []Step {
	if r.list == nil {
		return nil
	}

	steps := make([]Step, len(r.list.steps))
	for i, s := range r.list.steps {
		name := s.name.Value()
		steps[i] = Step{
			Label: name.label, Kind: name.kind, Failed: name.failed,
			Node: describe.Name(s.node, r.names), Content: s.content,
		}
		if i < len(r.list.texts) {
			steps[i].Text = r.list.texts[i]
		}
	}
	return steps
}

// steps returns the first steps, without their texts. A row from elsewhere than [Of], such as JSON, has none.
func (r Row) steps() []step {
	if r.list == nil {
		return nil
	}
	return r.list.steps
}

// walk finds the steps of the conversation, with the texts of the first ones.
func (r *Row) walk(d dag.DAG, maxTexts int) {
	shape := sha256.New()
	shape.Write([]byte(r.Outcome))
	r.list = &stepList{}
	var cause *Failure
	for _, n := range d.Nodes() {
		described := describe.Of(n)
		// The executions of a tool phase are its steps. Their results message repeats them.
		switch {
		case described.Sort == describe.Record, described.Sort == describe.Run,
			described.Sort == describe.Results && hasExecution(n):
			continue
		}

		failed := r.failureOf(n, described)
		cause = laterCause(cause, failed, described)
		name := stepName{label: labelOf(failed, described), kind: safetext.Line(described.Word, maxText), failed: failed != nil}

		// The zero byte separates the labels. Without it, "a", "bc" and "ab", "c" would be one path.
		shape.Write(append([]byte{0}, name.label...))

		if r.NumSteps++; r.NumSteps > maxSteps {
			continue // it counts in the shape, and is not kept
		}

		r.list.steps = append(r.list.steps, step{unique.Make(name), maphash.Comparable(contentSeed, n.Digest()), n.ID()})
		if r.NumSteps <= maxTexts {
			r.list.texts = append(r.list.texts, textOf(described))
		}
	}
	shape.Sum(r.shape[:0])
	if r.Outcome == outcomeFailed || r.Outcome == outcomeCutOff || r.Outcome == outcomeInDoubt {
		r.Cause = cause
	}

	// Rows live long: free the spare capacity of append.
	r.list.steps, r.list.texts = slices.Clone(r.list.steps), slices.Clone(r.list.texts)
}

// laterCause returns the cause after one more step; failed is nil if the step did not fail. A response shows that the
// run continued after earlier failures.
func laterCause(before, failed *Failure, described describe.Node) *Failure {
	switch {
	case described.Sort == describe.Assistant || before == nil:
		return failed
	case described.Sort == describe.Stop && (described.Stop != content.StopError || described.Text != ""):
		return failed
	}
	return before // the first of several calls, or the reason for the end of the run with an error
}

// labelOf returns the label of a step; failed is nil if it did not fail.
func labelOf(failed *Failure, described describe.Node) string {
	if failed != nil {
		return anonymous(failed.Text)
	}
	switch described.Sort {
	// Calls of one tool are the same step, whatever their arguments.
	case describe.Call:
		label := cmp.Or(described.Called.Tool, described.Word)
		if described.State != "" {
			label += ", " + described.State
		}
		return safetext.Line(label, maxText)
	case describe.Stop:
		return safetext.Line(described.Word+" "+described.Title, maxText)
	}
	return safetext.Line(described.Word, maxText)
}

// textOf returns the beginning of a node's content.
func textOf(described describe.Node) string {
	switch {
	case described.Sort == describe.Call:
		text := describe.Arguments(described.Called.Input, maxArguments)
		result, _, _ := strings.Cut(strings.TrimSpace(safetext.Head(describe.Text(described.Blocks), 4*maxText)), "\n")
		if described.Failed {
			result, _ = described.Reason()
		}
		if result != "" {
			text += " → " + result
		}
		return safetext.Line(text, maxText)
	case described.Blocks.Len() > 0:
		if text := describe.Text(described.Blocks); text != "" {
			return safetext.Line(text, maxText)
		}
		// Blocks without text, such as an image, are named.
		for p := range describe.Parts(described.Blocks) {
			return safetext.Line(p.Label(), maxText)
		}
	}
	return safetext.Line(described.Text, maxText)
}

// particular matches the varying parts in failures of one kind: UUIDs, long hexadecimal numbers, decimal fractions and
// numbers of four digits or more. Shorter numbers stay: an exit code or an HTTP status is the kind.
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

	// The most frequent paths come first, so each is compared with the more frequent ones alone.
	tree := branch{next: map[string]*branch{}}
	for i := range paths {
		paths[i].Number = i + 1
		for _, row := range paths[i].Rows {
			rows[row].Path = i + 1
		}
		paths[i].part(&tree, paths, rows)
	}
	return paths
}

// part compares p with the more frequent paths in the tree, and adds p to the tree.
func (p *Path) part(tree *branch, paths []Path, rows []Row) {
	mine := rows[p.Rows[0]].steps()
	p.Base, p.Same = tree.add(mine, p.Number)
	if p.Base == 0 {
		return
	}

	base := paths[p.Base-1]
	other := rows[base.Rows[0]].steps()
	p.SameContent = common(mine, other, func(a, b step) bool { return a.content == b.content })
	p.Step = labelAt(mine, p.Same, p.NumSteps)
	p.Instead = labelAt(other, p.Same, base.NumSteps)
}

// branch is a node of a tree of paths. Paths with the same labels at the beginning share branches.
type branch struct {
	steps []step             // from the branch before
	first int                // the number of the first added path
	next  map[string]*branch // by the label of their first step
}

// add adds a path. It returns the earlier path with the longest common beginning, and the number of its common labels.
// Of several such paths it returns the first one added, and 0 if there is none.
func (b *branch) add(steps []step, number int) (base, same int) {
	if b.first == 0 {
		b.first = number
	} else {
		base = b.first
	}

	for len(steps) > 0 {
		// Follow the branch of the next label, as far as the labels are equal.
		label := steps[0].label()
		next := b.next[label]
		if next == nil {
			b.next[label] = &branch{steps: steps, first: number, next: map[string]*branch{}}
			break
		}

		n := common(steps, next.steps, func(a, b step) bool { return a.label() == b.label() })
		// It parts in the middle of a branch: split the branch there.
		if n < len(next.steps) {
			rest := *next
			rest.steps = next.steps[n:]
			*next = branch{steps: next.steps[:n], first: next.first, next: map[string]*branch{rest.steps[0].label(): &rest}}
		}
		base, same = next.first, same+n
		b, steps = next, steps[n:]
	}
	return base, same
}

func (s step) label() string { return s.name.Value().label }

// labelAt returns the label of step i of a path. all is the number of its steps; kept holds the first ones.
func labelAt(kept []step, i, all int) string {
	switch {
	case i < len(kept):
		return kept[i].label()
	case i < all:
		return "…"
	}
	return ""
}

// common returns the number of equal steps at the beginning of both lists.
func common(a, b []step, equal func(a, b step) bool) int {
	n := 0
	for n < min(len(a), len(b)) && equal(a[n], b[n]) {
		n++
	}
	return n
}
