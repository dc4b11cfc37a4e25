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

// Errors of finding a node by name, beside ErrForeign for a node that is not there.
var (
	// ErrAmbiguous marks a name of several nodes.
	ErrAmbiguous = errors.New("several nodes match")
	// ErrPrefix marks text that cannot be the name of a node.
	ErrPrefix = errors.New("not an abbreviated ID or digest: 4 hexadecimal digits or more")
)

// FindError is the error of [DAG.Find]. Its chain holds ErrForeign, ErrAmbiguous or ErrPrefix.
type FindError struct {
	// Name is the name passed to Find.
	Name string
	// Candidates are up to 5 possible nodes, in order: the nodes with that name, or else the nodes whose ID or digest
	// has the longest beginning in common with it.
	Candidates []*node.Node
	// More is the number of further candidates.
	More int
	// Err is the reason, never nil.
	Err error
}

// Error returns the name, and the candidates with their kinds, IDs and digests. It is safe to print.
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

		// 19 bytes of a digest are "sha256:" and 12 digits.
		text += sign + safetext.Line(n.Kind(), 40) + " " + n.ID().String() + " (" + n.Digest().String()[:19] + ")"
	}
	if e.More > 0 {
		text += fmt.Sprintf(" or %d more", e.More)
	}
	return text
}

// Unwrap returns the reason.
func (e *FindError) Unwrap() error { return e.Err }

// Find returns the node of that name. A name is one of
//
//   - the ID, or the beginning of it;
//   - the last 8 digits of the ID, as in [node.ShortID] and the String of a node;
//   - the digest, or the beginning of it, with or without "sha256:".
//
// A beginning has at least 4 digits, in lower or upper case; hyphens do not count. Find searches all saved nodes of the
// conversation, including those of refs and of sub-agents. Every error is a *FindError.
func (d DAG) Find(name string) (*node.Node, error) {
	p, err := parsePrefix(name)
	if err != nil {
		return nil, &FindError{Name: name, Err: err}
	}

	nodes, _, _ := d.header().nodes(d.roots()) // Write and Validate report duplicate IDs

	// Keep the nodes with the most digits in common: if none has all of them, they are the candidates of the error.
	var found []*node.Node
	best := minPrefix - 1 // candidates have more digits in common
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

// minPrefix is the minimum number of digits in a name.
const minPrefix = 4

// prefix is the beginning of an ID or a digest in lower-case digits; only of a digest if digest is set.
type prefix struct {
	digits string
	digest bool
}

func parsePrefix(name string) (prefix, error) {
	// A long name is cut before it is copied: no name of a node has so many bytes.
	digits, digest := strings.CutPrefix(strings.ToLower(excerpt(name)), "sha256:")
	if !digest {
		digits = strings.ReplaceAll(digits, "-", "")
	}
	if len(digits) < minPrefix || len(digits) > 64 || strings.Trim(digits, "0123456789abcdef") != "" {
		return prefix{}, ErrPrefix
	}
	return prefix{digits: digits, digest: digest}, nil
}

// alike returns the number of leading digits that p has in common with a name of n.
func (p prefix) alike(n *node.Node) int {
	var text [64]byte
	digest, id := n.Digest(), n.ID()
	hex.Encode(text[:], digest[:])
	longest := p.begins(text[:])
	if p.digest {
		return longest
	}

	// The last 8 digits match only as a whole, as in ShortID.
	hex.Encode(text[:], id[:])
	if string(text[24:32]) == p.digits {
		return len(p.digits)
	}
	return max(longest, p.begins(text[:32]))
}

func (p prefix) begins(text []byte) int {
	i := 0
	for i < len(p.digits) && i < len(text) && p.digits[i] == text[i] {
		i++
	}
	return i
}
