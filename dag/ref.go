package dag

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// Errors about refs.
var (
	// ErrNoRef marks a name without a ref.
	ErrNoRef = errors.New("no such ref")
)

// maxRefName is the maximum size of a ref's name, in bytes.
const maxRefName = 200

// Ref is a name for heads, like a branch or a tag in git. Refs and all their nodes are kept and saved with a
// conversation. They are not content: [Equal] ignores them, and appending moves the heads but no ref.
type Ref struct {
	// Name is 1 to 200 bytes of UTF-8 without control characters and line breaks.
	Name string
	// Heads are the heads of the named conversation, in order. An empty conversation has none.
	Heads []*node.Node
}

// WithRef returns the conversation with a ref of that name for its current heads. An existing ref of that name is
// moved. The cost does not grow with the conversation, and hardly with the number of refs. An invalid name is
// an error of the chain.
func (d DAG) WithRef(name string) DAG {
	if d.err != nil {
		return d
	}
	if err := checkRefName(name); err != nil {
		return d.fail("WithRef", err)
	}
	return d.name(Ref{Name: name, Heads: d.heads()})
}

func (d DAG) name(r Ref) DAG { return d.change(func(e *env) { e.refs = e.refs.with(r.Name, r.Heads) }) }

// WithoutRef returns the conversation without the ref of that name. It returns d if there is none.
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
	allRefs(d.environment().refs, func(r Ref) {
		r.Heads = slices.Clone(r.Heads)
		list = append(list, r)
	})
	return list
}

// AtRef returns the conversation with the heads of the ref of that name. It shares all nodes and keeps all refs. The
// chain's error is ErrNoRef if there is no such ref.
func (d DAG) AtRef(name string) DAG {
	if d.err != nil {
		return d
	}
	r := d.environment().refs.get(name)
	if r == nil {
		return d.fail("AtRef", fmt.Errorf("%w: %s", ErrNoRef, quoted(name)))
	}
	return d.atAll(r.value)
}

// takeRefs returns d with the refs of o, except those with the name of a ref of d.
func (d DAG) takeRefs(o DAG) DAG {
	o.environment().refs.beyond(d.environment().refs, func(name string, heads []*node.Node) {
		d = d.name(Ref{Name: name, Heads: heads})
	})
	return d
}

// roots returns the heads and the heads of all refs. All saved nodes are reachable from them, except header.loose.
func (d DAG) roots() []*node.Node {
	refs := d.environment().refs
	if refs == nil {
		return d.heads()
	}
	roots := slices.Clone(d.heads())
	allRefs(refs, func(r Ref) { roots = append(roots, r.Heads...) })
	return roots
}

func checkRefName(name string) error {
	reason := ""
	switch {
	case name == "":
		reason = "it is empty"
	case len(name) > maxRefName:
		reason = fmt.Sprintf("it has %d bytes, the maximum is %d", len(name), maxRefName)
	case !utf8.ValidString(name):
		reason = "it is not UTF-8"
	case strings.ContainsFunc(name, breaks):
		reason = "it contains a control character or a line break"
	default:
		return nil
	}
	return fmt.Errorf("%w: %s: %s", errRefName, quoted(name), reason)
}

// breaks reports whether r would break a line or control a terminal.
func breaks(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// quoted returns the beginning of text for an error text.
func quoted(text string) string { return safetext.Quote(text, 80) }

// refs holds the heads of each ref, by name.
type refs = tree[[]*node.Node]

// allRefs calls do for each ref, in the order of names.
func allRefs(t *refs, do func(Ref)) {
	t.all(func(name string, heads []*node.Node) { do(Ref{Name: name, Heads: heads}) })
}

// changedRefs calls do, in the order of names, for each ref whose heads in t and old differ. gone is set for a ref that
// is only in old.
func changedRefs(t, old *refs, do func(r Ref, gone bool)) {
	t.since(old, sameNodes, func(name string, heads []*node.Node, gone bool) {
		do(Ref{Name: name, Heads: heads}, gone)
	})
}

// refsAt returns the refs with place applied to the heads of each.
func refsAt(t *refs, place func([]*node.Node) []*node.Node) *refs {
	if t == nil {
		return nil
	}

	// The names are the same, and so is the shape of the tree.
	return &refs{t.name, place(t.value), t.weight, refsAt(t.left, place), refsAt(t.right, place)}
}

// appendRefs appends the saved form: an object with the ids of the heads by name.
func appendRefs(dst []byte, t *refs) []byte {
	dst = append(dst, '{')
	allRefs(t, func(r Ref) { dst = r.append(dst) })
	return append(dst, '}')
}

func (r Ref) append(dst []byte) []byte { return appendHeads(write.Name(dst, r.Name), r.Heads) }
