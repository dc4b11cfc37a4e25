package dag

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// What Verify finds, beside WrongDigest and DuplicateID.
const (
	// SharedResult: a message says a result that stands in an execution, which is not what it was.
	SharedResult FindingKind = "shared result does not hold"
	// FalseRedaction: a node says that it is redacted, and its content is there.
	FalseRedaction FindingKind = "not redacted as it says"
	// CallWaits: a call at a head has no result yet. Sent as it is, it is answered by an error result.
	CallWaits FindingKind = "call waits for its result"
)

// Verification is what [DAG.Verify] found.
type Verification struct {
	// Nodes is how many nodes there are.
	Nodes int
	// Findings is what does not hold, in the order in which the nodes are saved. Of each node it says the digest that the content
	// has and the one that the node claims.
	Findings []Finding
	// Waiting is the calls that have no result yet, at all heads. They are no fault: a paused conversation has some.
	Waiting []Finding
	// Redacted is the nodes whose content was erased. What is left of them cannot be checked, but their digests and their places
	// can: the nodes after them hold only with those.
	Redacted []*node.Node
	// Unknown is the nodes of kinds that this version does not know. They are like redacted ones: nobody but a newer version can
	// check what they say.
	Unknown []*node.Node
}

// Verify recomputes the digest of every node that is saved with the conversation, each once: those that the heads and the refs
// reach, those of child conversations, and those of a file that nothing reaches. It needs no recursion, and takes time in
// proportion to the content.
//
// A digest is made of a node's own content and of the digests that the nodes before it claim. So a changed node is found where
// it is, and one whose digest was changed along with it is found in the nodes after it. Where a conversation has neither
// findings nor redacted or unknown nodes, its heads' digests stand for all of it: who remembers a head's digest from before
// knows that nothing was changed. Without such a digest from elsewhere nobody can tell a conversation from one that was made
// anew as a whole.
func (d DAG) Verify() Verification {
	nodes := d.saved()
	v := verifier{Verification: Verification{Nodes: len(nodes)}, byID: make(map[node.ID]*node.Node, len(nodes))}
	for _, n := range nodes {
		v.node(n)
	}
	v.Waiting = d.waiting()
	return v.Verification
}

// waiting returns a finding for each call that is open at a head. The heads of one tool phase are looked at together.
func (d DAG) waiting() []Finding {
	var order []*node.Node // the messages with the calls
	heads := map[*node.Node][]*node.Node{}
	for _, h := range d.heads {
		said := h
		if isExecution(h) && h.NumParents() == 1 {
			said = h.Parent(0)
		}
		if heads[said] == nil {
			order = append(order, said)
		}
		heads[said] = append(heads[said], h)
	}

	var list []Finding
	for _, said := range order {
		for _, c := range New().WithHeads(heads[said]...).OpenCalls() {
			detail := safetext.Line(fmt.Sprintf("call %d, %q of %q", c.Index, c.ID, c.Name), 200)
			list = append(list, Finding{Node: said, Kind: CallWaits, Detail: detail})
		}
	}
	return list
}

// digestDetail returns an error of n's digest without what a Finding says already: the node and the kind.
func digestDetail(n *node.Node, err error) string {
	text := strings.TrimPrefix(err.Error(), node.ErrDigest.Error()+": ")
	return strings.TrimPrefix(text, n.String()+" ")
}

// OK reports whether nothing was found. Waiting calls, and redacted and unknown nodes, do not count.
func (v Verification) OK() bool { return len(v.Findings) == 0 }

// String returns a line that counts, and one for each finding and each node that could not be checked.
func (v Verification) String() string {
	var out strings.Builder
	out.WriteString(count(v.Nodes, "node") + ": ")
	if v.OK() {
		out.WriteString("every digest holds")
	} else {
		out.WriteString(count(len(v.Findings), "finding"))
	}
	for _, f := range v.Findings {
		out.WriteString("\n" + f.String())
	}
	for _, f := range v.Waiting {
		out.WriteString("\n" + f.String())
	}
	for _, n := range v.Redacted {
		out.WriteString("\n" + n.String() + ": redacted")
	}
	for _, n := range v.Unknown {
		out.WriteString("\n" + n.String() + ": a kind that this version does not know")
	}
	return out.String()
}

// MarshalJSON returns an object with the members ok, nodes, findings, waiting, redacted and unknown, the last two with the nodes' ids.
func (v Verification) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		OK       bool      `json:"ok"`
		Nodes    int       `json:"nodes"`
		Findings []Finding `json:"findings"`
		Waiting  []Finding `json:"waiting"`
		Redacted []node.ID `json:"redacted"`
		Unknown  []node.ID `json:"unknown"`
	}{v.OK(), v.Nodes, slices.Concat([]Finding{}, v.Findings), slices.Concat([]Finding{}, v.Waiting), idsOf(v.Redacted), idsOf(v.Unknown)})
}

// MarshalJSON returns an object with the members node, the id, kind and detail.
func (f Finding) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Node   node.ID     `json:"node"`
		Kind   FindingKind `json:"kind"`
		Detail string      `json:"detail,omitzero"`
	}{f.Node.ID(), f.Kind, f.Detail})
}

func idsOf(nodes []*node.Node) []node.ID {
	ids := make([]node.ID, len(nodes))
	for i, n := range nodes {
		ids[i] = n.ID()
	}
	return ids
}

type verifier struct {
	Verification
	byID   map[node.ID]*node.Node
	broken map[*node.Node]bool // executions whose digests do not hold
}

// node checks n. The nodes before it were checked.
func (v *verifier) node(n *node.Node) {
	if old := v.byID[n.ID()]; old == nil {
		v.byID[n.ID()] = n
	} else if old.Digest() != n.Digest() {
		v.report(n, DuplicateID, "another node has the id "+n.ID().String())
	}
	if _, unknown := n.Payload().(node.Unknown); unknown {
		v.Unknown = append(v.Unknown, n)
		return
	}
	if n.Redacted() {
		v.Redacted = append(v.Redacted, n)
		return
	}
	err := n.Verify()
	if errors.Is(err, node.ErrRedaction) {
		v.report(n, FalseRedaction, "")
	}
	if !errors.Is(err, node.ErrDigest) {
		return
	}
	v.report(n, WrongDigest, digestDetail(n, err))
	if isExecution(n) {
		if v.broken == nil {
			v.broken = map[*node.Node]bool{}
		}
		v.broken[n] = true
	}
	v.shared(n)
}

// shared reports which results of n are those of executions that do not hold.
func (v *verifier) shared(n *node.Node) {
	m, _ := n.Message()
	for i, r := range m.Blocks.ToolResults() {
		if i >= n.NumParents() || !v.broken[n.Parent(i)] {
			continue
		}
		if e := n.Parent(i).Payload().(node.ToolExecution); e.Answer() == r {
			v.report(n, SharedResult, "result "+number(i)+" is that of "+n.Parent(i).String())
		}
	}
}

func (v *verifier) report(n *node.Node, kind FindingKind, detail string) {
	v.Findings = append(v.Findings, Finding{Node: n, Kind: kind, Detail: safetext.Line(detail, 300)})
}

// saved returns every node that is saved with d, in that order; but two nodes with one id are two.
func (d DAG) saved() []*node.Node {
	type visit struct {
		n    *node.Node
		next int
	}
	nodes := make([]*node.Node, 0, d.sizeHint())
	seen := make(map[*node.Node]bool, cap(nodes))
	var stack []visit
	enter := func(n *node.Node) {
		if !seen[n] {
			seen[n] = true
			stack = append(stack, visit{n: n})
		}
	}
	h := d.header()
	order := walk{extra: h.loose}
	for _, root := range slices.Concat(d.roots(), h.loose[nil]) {
		enter(root)
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			n := order.before(top.n, top.next)
			top.next++
			if n != nil {
				enter(n)
				continue
			}
			nodes = append(nodes, top.n)
			stack = stack[:len(stack)-1]
		}
	}
	return nodes
}
