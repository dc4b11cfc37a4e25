package dag

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// Errors of finding a node by name, beside ErrForeign for a node that is not there.
var (
	// ErrAmbiguous marks a name of several nodes.
	ErrAmbiguous = errors.New("several nodes match")
)

// FindError is the error of [DAG.Find]. Its chain holds ErrForeign or ErrAmbiguous, unless the text cannot
// be the name of a node.
type FindError struct {
	// Name is the name passed to Find.
	Name string
	// Candidates are up to 5 possible nodes, in order: the nodes with that name, or else the nodes whose ID has the
	// longest beginning or end in common with it.
	Candidates []*node.Node
	// More is the number of further candidates.
	More int
	// Err is the reason, never nil.
	Err error
}

// Error returns the name, and the candidates with their kinds and IDs. It is safe to print.
func (e *FindError) Error() string {
	text := quoted(e.Name) + ": " + e.Err.Error()

	// Several matches are a list; without a match, the nearest nodes are suggestions.
	sign := "; is it "
	if errors.Is(e.Err, ErrAmbiguous) {
		sign = ": "
	}
	for i, n := range e.Candidates {
		if i > 0 {
			sign = ", "
		}
		text += sign + safetext.Line(n.Kind(), 40) + " " + n.ID().String()
	}
	if e.More > 0 {
		text += fmt.Sprintf(" or %d more", e.More)
	}
	return text
}

// Unwrap returns the reason.
func (e *FindError) Unwrap() error { return e.Err }

// Find returns the node of that name: its ID, or the beginning or the end of its ID, with at least 4 digits. Every short
// name of a node is the end of an ID ([node.ShortID], [DAG.ShortIDs]). Digits are in lower or upper case, and hyphens do
// not count.
//
// Find searches all saved nodes of the conversation, including those of refs and of sub-agents. Every error is a
// *FindError.
func (d DAG) Find(name string) (*node.Node, error) {
	digits, err := parseName(name)
	if err != nil {
		return nil, &FindError{Name: name, Err: err}
	}

	// Keep the nodes with the most digits in common: if none has all of them, they are the candidates of the error.
	var found []*node.Node
	best := minDigits - 1 // candidates have more digits in common
	for _, n := range d.nameable() {
		alike := commonDigits(digits, n.ID())
		if alike > best {
			best, found = alike, nil
		}
		if alike == best {
			found = append(found, n)
		}
	}

	switch {
	case best < len(digits):
		err = ErrForeign
	case len(found) > 1:
		err = ErrAmbiguous
	default:
		return found[0], nil
	}
	shown := min(len(found), 5)
	return nil, &FindError{Name: name, Candidates: slices.Clip(found[:shown]), More: len(found) - shown, Err: err}
}

// AtName returns the conversation at the ref of that name, or else at the node that [DAG.Find] returns. The chain's
// error is the *FindError, with ErrNoRef in its chain as well.
func (d DAG) AtName(name string) DAG {
	if d.err != nil || d.environment().refs.get(name) != nil {
		return d.AtRef(name)
	}
	n, err := d.Find(name)
	if err != nil {
		return d.fail("AtName", fmt.Errorf("%w; %w", ErrNoRef, err))
	}
	return d.WithHeads(n)
}

// ShortIDs returns a function with the short name of each node of the conversation: the last 8 digits of the ID, as in
// [node.ShortID]; more if two nodes have the same ones, and then of all nodes equally many. Find accepts the names.
// Computing their length takes time proportional to the conversation's size, and decodes no node.
func (d DAG) ShortIDs() func(*node.Node) string {
	length := describe.NameLength(d.nameable())
	return func(n *node.Node) string { return describe.Name(n.ID(), length) }
}

// nameable returns all saved nodes of the conversation, including those of refs and of sub-agents, each ID once.
func (d DAG) nameable() []*node.Node {
	nodes, _, _ := d.header().nodes(d.roots()) // Write and Validate report duplicate IDs
	return nodes
}

// minDigits is the minimum number of digits in a name.
const minDigits = 4

// parseName returns the digits of a name in lower case.
func parseName(name string) (string, error) {
	// A long name is cut before it is copied: no name of a node has so many bytes.
	digits := strings.ReplaceAll(strings.ToLower(excerpt(name)), "-", "")
	if len(digits) < minDigits || len(digits) > 2*len(node.ID{}) || strings.Trim(digits, "0123456789abcdef") != "" {
		return "", errPrefix
	}
	return digits, nil
}

// commonDigits returns how many digits of a name are at the beginning or at the end of the ID, whichever is more.
func commonDigits(digits string, id node.ID) int {
	var text [2 * len(id)]byte
	hex.Encode(text[:], id[:])

	begin, end := 0, 0
	for begin < len(digits) && digits[begin] == text[begin] {
		begin++
	}
	for end < len(digits) && digits[len(digits)-1-end] == text[len(text)-1-end] {
		end++
	}
	return max(begin, end)
}
