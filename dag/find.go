package dag

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// Errors about a node that is looked for by what is known of its name, beside ErrForeign for one that is not there.
var (
	// ErrAmbiguous marks a name that several nodes have.
	ErrAmbiguous = errors.New("several nodes have that name")
	// ErrPrefix marks text that can be no node's name.
	ErrPrefix = errors.New("not the beginning of an id or a digest, which is 4 hexadecimal digits or more")
)

// FindError says what became of looking for a node. Its chain holds ErrForeign, ErrAmbiguous or ErrPrefix.
type FindError struct {
	// Name is what was looked for.
	Name string
	// Candidates is some of the nodes that may have been meant, in order, 5 at most: those that have the name, or where none has
	// it those whose ids or digests begin most like it.
	Candidates []*node.Node
	// More is how many candidates there are beyond these.
	More int
	Err  error
}

// Error names what was looked for, and the candidates by kind, id and digest. It is safe to print.
func (e *FindError) Error() string {
	text := quoted(e.Name) + ": " + e.Err.Error()
	sign := "; is it "
	if errors.Is(e.Err, ErrAmbiguous) {
		sign = ": "
	}
	for i, n := range e.Candidates {
		if i > 0 {
			sign = ", "
		}
		text += sign + safetext.Line(n.Kind(), 40) + " " + n.ID().String() + " (" + n.Digest().String()[:19] + ")"
	}
	if e.More > 0 {
		text += fmt.Sprintf(" or one of %d more", e.More)
	}
	return text
}

// Unwrap returns what kind of error it is.
func (e *FindError) Unwrap() error { return e.Err }

// Find returns the node of that name: its id, the beginning of its id, the last 8 digits of its id (as [node.ShortID] and a
// node's String have them), its digest, or the beginning of its digest, with "sha256:" before it or not. A beginning has at least
// 4 digits, in lower or upper case; hyphens do not count. All nodes that are saved with the conversation are looked at, so that a
// node is found too which only a ref reaches, or which is a sub-agent's. Every error is a *FindError.
func (d DAG) Find(name string) (*node.Node, error) {
	p, err := parsePrefix(name)
	if err != nil {
		return nil, &FindError{Name: name, Err: err}
	}
	nodes, _ := d.header().nodes(d.roots()) // a clash of ids is for Write and Validate to report
	var found []*node.Node
	best := minPrefix - 1 // what is less alike is no candidate
	for _, n := range nodes {
		alike := p.alike(n)
		if alike > best {
			best, found = alike, nil
		}
		if alike == best {
			found = append(found, n)
		}
	}
	switch {
	case best < len(p.digits):
		err = ErrForeign
	case len(found) > 1:
		err = ErrAmbiguous
	default:
		return found[0], nil
	}
	shown := min(len(found), 5)
	return nil, &FindError{Name: name, Candidates: slices.Clip(found[:shown]), More: len(found) - shown, Err: err}
}

// AtName returns the conversation that ends where name says: at a ref of that name, or else in the node that [DAG.Find] finds. The
// chain's error is the *FindError, with ErrNoRef in its chain as well.
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

const minPrefix = 4

// prefix is the beginning of a digest, and of an id unless digest is set, in lower-case digits.
type prefix struct {
	digits string
	digest bool
}

func parsePrefix(name string) (prefix, error) {
	digits, digest := strings.CutPrefix(strings.ToLower(excerpt(name)), "sha256:")
	if !digest {
		digits = strings.ReplaceAll(digits, "-", "")
	}
	if len(digits) < minPrefix || len(digits) > 64 || strings.Trim(digits, "0123456789abcdef") != "" {
		return prefix{}, ErrPrefix
	}
	return prefix{digits: digits, digest: digest}, nil
}

// alike is how many digits of p a name of n begins with.
func (p prefix) alike(n *node.Node) int {
	var text [64]byte
	digest, id := n.Digest(), n.ID()
	hex.Encode(text[:], digest[:])
	most := p.begins(text[:])
	if p.digest {
		return most
	}
	hex.Encode(text[:], id[:])
	if string(text[24:32]) == p.digits {
		return len(p.digits)
	}
	return max(most, p.begins(text[:32]))
}

func (p prefix) begins(text []byte) int {
	i := 0
	for i < len(p.digits) && i < len(text) && p.digits[i] == text[i] {
		i++
	}
	return i
}
