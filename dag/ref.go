package dag

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/cells"
	"github.com/plait-dev/plait/node"
)

// Errors about named heads.
var (
	// ErrRefName marks a name that a ref cannot have.
	ErrRefName = errors.New("not a name for a ref")
	// ErrNoRef marks a name that no ref has.
	ErrNoRef = errors.New("no such ref")
)

// maxRefName is the most bytes that the name of a ref has.
const maxRefName = 200

// Ref is a name for heads, as a branch or a tag is in version control. Refs travel with a conversation and are saved with it; so
// are the nodes that only a ref reaches. They are no part of what is said: [Equal] does not look at them, and what is appended
// moves the heads and leaves refs where they are.
type Ref struct {
	// Name is 1 to 200 bytes of UTF-8 without control characters and line breaks.
	Name string
	// Heads is where the conversation of that name ends, in order; none for an empty conversation.
	Heads []*node.Node
}

// WithRef returns the conversation with name for its heads as they are now. A ref of that name is moved there. The cost does
// not grow with the conversation, and hardly with the number of refs. The chain's error is ErrRefName for a name that a ref
// cannot have.
func (d DAG) WithRef(name string) DAG {
	if d.err != nil {
		return d
	}
	if err := checkRefName(name); err != nil {
		return d.fail("WithRef", err)
	}
	return d.name(Ref{Name: name, Heads: d.heads})
}

func (d DAG) name(r Ref) DAG { return d.change(func(e *env) { e.refs = e.refs.with(r) }) }

// WithoutRef returns the conversation without the ref of that name. Where there is none, it is d.
func (d DAG) WithoutRef(name string) DAG {
	refs := d.environment().refs
	if d.err != nil || refs.get(name) == nil {
		return d
	}
	return d.change(func(e *env) { e.refs = refs.without(name) })
}

// Refs returns all refs, sorted by name, as a new slice.
func (d DAG) Refs() []Ref {
	var list []Ref
	d.environment().refs.all(func(r Ref) {
		r.Heads = slices.Clone(r.Heads)
		list = append(list, r)
	})
	return list
}

// AtRef returns the conversation that has that name. It shares all nodes and keeps all refs. The chain's error is ErrNoRef where
// nothing has the name.
func (d DAG) AtRef(name string) DAG {
	if d.err != nil {
		return d
	}
	r := d.environment().refs.get(name)
	if r == nil {
		return d.fail("AtRef", fmt.Errorf("%w: %s", ErrNoRef, quoted(name)))
	}
	d.heads = r.Heads
	return d
}

// takeRefs returns d with the refs of o whose names are free.
func (d DAG) takeRefs(o DAG) DAG {
	o.environment().refs.all(func(r Ref) {
		if d.environment().refs.get(r.Name) == nil {
			d = d.name(r)
		}
	})
	return d
}

// roots is the heads and the heads of all refs: what is saved begins there.
func (d DAG) roots() []*node.Node {
	refs := d.environment().refs
	if refs == nil {
		return d.heads
	}
	roots := slices.Clone(d.heads)
	refs.all(func(r Ref) { roots = append(roots, r.Heads...) })
	return roots
}

func checkRefName(name string) error {
	reason := ""
	switch {
	case name == "":
		reason = "it is empty"
	case len(name) > maxRefName:
		reason = fmt.Sprintf("it has %d bytes, and not %d at most", len(name), maxRefName)
	case !utf8.ValidString(name):
		reason = "it is not UTF-8"
	case strings.ContainsFunc(name, breaks):
		reason = "it holds a control character or a line break"
	default:
		return nil
	}
	return fmt.Errorf("%w: %s: %s", ErrRefName, quoted(name), reason)
}

// breaks reports whether r would break a line or drive a terminal.
func breaks(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// quoted is text of anybody's for an error message: short, and harmless.
func quoted(text string) string { return `"` + cells.OneLine(excerpt(text), 80) + `"` }

// refs is a set of refs. It is a search tree by name and a heap by weight, so that its shape depends on nothing but the names:
// two sets that have much in common share it, or differ in few places. Nothing in it is changed after it is made; nil is empty.
type refs struct {
	Ref
	weight      uint64
	left, right *refs
}

// refSeed keeps names that were chosen to be in a row from making the tree a list.
var refSeed = maphash.MakeSeed()

func (t *refs) get(name string) *refs {
	for t != nil && t.Name != name {
		if name < t.Name {
			t = t.left
		} else {
			t = t.right
		}
	}
	return t
}

func (t *refs) with(r Ref) *refs {
	less, more := t.split(r.Name)
	return less.join((&refs{Ref: r, weight: maphash.String(refSeed, r.Name)}).join(more))
}

func (t *refs) without(name string) *refs {
	less, more := t.split(name)
	return less.join(more)
}

// split returns what comes before name, and what comes after it.
func (t *refs) split(name string) (less, more *refs) {
	switch {
	case t == nil:
		return nil, nil
	case name < t.Name:
		less, more = t.left.split(name)
		return less, &refs{t.Ref, t.weight, more, t.right}
	case name > t.Name:
		less, more = t.right.split(name)
		return &refs{t.Ref, t.weight, t.left, less}, more
	}
	return t.left, t.right
}

// join returns what is in either; all names of t come before those of more.
func (t *refs) join(more *refs) *refs {
	switch {
	case t == nil:
		return more
	case more == nil:
		return t
	case t.above(more):
		return &refs{t.Ref, t.weight, t.left, t.right.join(more)}
	}
	return &refs{more.Ref, more.weight, t.join(more.left), more.right}
}

func (t *refs) above(o *refs) bool {
	return t.weight > o.weight || t.weight == o.weight && t.Name < o.Name
}

// all calls do for each ref, in the order of names.
func (t *refs) all(do func(Ref)) {
	if t != nil {
		t.left.all(do)
		do(t.Ref)
		t.right.all(do)
	}
}

// since calls do, in the order of names, for each ref that is not in old as it is here: with gone set for one that is in old
// alone. It passes over what both share.
func (t *refs) since(old *refs, do func(r Ref, gone bool)) {
	switch {
	case t == old:
	case old == nil || t != nil && t.above(old):
		less, more := old.split(t.Name)
		t.left.since(less, do)
		do(t.Ref, false)
		t.right.since(more, do)
	case t == nil || old.above(t):
		less, more := t.split(old.Name)
		less.since(old.left, do)
		do(old.Ref, true)
		more.since(old.right, do)
	default:
		t.left.since(old.left, do)
		if !sameNodes(t.Heads, old.Heads) {
			do(t.Ref, false)
		}
		t.right.since(old.right, do)
	}
}

// append appends the saved form: an object with the ids of the heads by name.
func (t *refs) append(dst []byte) []byte {
	dst = append(dst, '{')
	t.all(func(r Ref) { dst = r.append(dst) })
	return append(dst, '}')
}

func (r Ref) append(dst []byte) []byte { return appendHeads(content.AppendRaw(dst, r.Name), r.Heads) }
