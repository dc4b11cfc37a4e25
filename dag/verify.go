package dag

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/node"
)

// Findings of Verify, beside WrongDigest and DuplicateID.
const (
	// SharedResult: a results message repeats the result of an execution whose digest is wrong.
	SharedResult FindingKind = "wrong shared result"
	// FalseRedaction: a node is marked as redacted but still has content.
	FalseRedaction FindingKind = "marked as redacted but has content"
	// CallWaits: a call at a head has no result yet. If it is sent as it is, it gets an error result.
	CallWaits FindingKind = "call has no result yet"
)

// Verification is the result of [DAG.Verify].
type Verification struct {
	// Nodes is the number of nodes.
	Nodes int
	// Findings lists the faults, in the order in which the nodes are saved. A WrongDigest gives the digest of the
	// content and the digest that the node claims.
	Findings []Finding
	// Waiting lists the calls without a result, at all heads. They are not a fault: a paused conversation has some.
	Waiting []Finding
	// Redacted lists the redacted nodes. The rest of their content cannot be checked. Their digests and positions can,
	// because the digests of the nodes after them depend on both.
	Redacted []*node.Node
	// Unknown lists the nodes of unknown kinds. Only a newer version can check their content.
	Unknown []*node.Node
}

// Verify recomputes the digest of every saved node of the conversation, each once: nodes reachable from the heads and
// the refs, nodes of child conversations, and unreachable nodes of the file. It takes time in proportion to the
// content, without recursion.
//
// A digest covers the node's own content and the digests claimed by its parents. A changed node is therefore reported
// itself. If its digest was changed along with it, the nodes after it are reported.
//
// If there are no findings and no redacted or unknown nodes, the digests of the heads cover the whole conversation. To
// be sure that nothing was changed, compare them with head digests recorded before. Without recorded digests, Verify
// cannot detect a conversation that was rebuilt as a whole.
func (d DAG) Verify() Verification {
	nodes := d.saved()
	v := verifier{Verification: Verification{Nodes: len(nodes)}, byID: make(map[node.ID]*node.Node, len(nodes))}
	for _, n := range nodes {
		v.node(n)
	}
	for _, c := range d.waiting() {
		v.Waiting = append(v.Waiting, waitingFinding(c))
	}
	return v.Verification
}

func waitingFinding(c shared.OpenCall) Finding {
	text := fmt.Sprintf("call %d, %q of %q", c.Index, c.Use.ID, c.Use.Name)
	if c.Started != nil {
		text += ", " + describe.State(c.Started.Payload().(node.ToolExecution).State)
	}
	return Finding{Node: c.Caller, Kind: CallWaits, Detail: safetext.Line(text, 200)}
}

func init() {
	shared.OpenCalls = func(heads []*node.Node) []shared.OpenCall { return New().WithHeads(heads...).waiting() }
}

// waiting returns the open calls at the heads of d, and at those of paused sub-agents' conversations.
func (d DAG) waiting() []shared.OpenCall {
	var calls []shared.OpenCall
	seen := map[node.ID]bool{} // of the calls' messages: a damaged file may hold a conversation several times
	conversations := []DAG{d}
	for i := 0; i < len(conversations); i++ {
		own := conversations[i].ownWaiting(seen)
		calls = append(calls, own...)

		// A call that was started may hold a paused sub-agent, with open calls of its own.
		for _, c := range own {
			if c.Started != nil {
				conversations = append(conversations, FromNode(c.Started))
			}
		}
	}
	return calls
}

// ownWaiting returns the open calls at the heads, without those in sub-agents. seen has the callers visited before.
func (d DAG) ownWaiting(seen map[node.ID]bool) (calls []shared.OpenCall) {
	for p := range lineage.Phases(d.heads) {
		if seen[p.Caller.ID()] {
			continue
		}
		seen[p.Caller.ID()] = true
		for i := range p.List {
			if p.Done[i] == nil {
				calls = append(calls, shared.OpenCall{Caller: p.Caller, Index: p.At[i], Use: p.Call(i), Started: p.Started[i]})
			}
		}
	}
	return calls
}

// digestDetail returns the text of a digest error of n without the node and the kind, because a Finding has both.
func digestDetail(n *node.Node, err error) string {
	text := strings.TrimPrefix(err.Error(), node.ErrDigest.Error()+": ")
	return strings.TrimPrefix(text, n.String()+" ")
}

// OK reports whether there are no findings. Waiting calls, redacted nodes and unknown nodes do not count.
func (v Verification) OK() bool { return len(v.Findings) == 0 }

// String returns a line with the counts, and a line for each finding, each waiting call and each node that cannot be
// checked.
func (v Verification) String() string {
	var out strings.Builder
	out.WriteString(count(v.Nodes, "node") + ": ")
	if v.OK() {
		out.WriteString("every digest is correct")
	} else {
		out.WriteString(count(len(v.Findings), "finding"))
	}

	for _, f := range slices.Concat(v.Findings, v.Waiting) {
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

// MarshalJSON returns an object with the members ok, nodes, findings, waiting, redacted and unknown. The last two hold
// node IDs.
func (v Verification) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		OK       bool      `json:"ok"`
		Nodes    int       `json:"nodes"`
		Findings []Finding `json:"findings"`
		Waiting  []Finding `json:"waiting"`
		Redacted []node.ID `json:"redacted"`
		Unknown  []node.ID `json:"unknown"`
	}{
		v.OK(), v.Nodes, slices.Concat([]Finding{}, v.Findings), slices.Concat([]Finding{}, v.Waiting),
		idsOf(v.Redacted), idsOf(v.Unknown),
	})
}

// MarshalJSON returns an object with the members node (its ID), kind and detail.
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

// verifier is a Verification in progress.
type verifier struct {
	Verification
	byID   map[node.ID]*node.Node // the nodes so far; of several with one ID, the first
	broken map[*node.Node]bool    // executions with a wrong digest
}

// node checks n. The nodes before it are checked already.
func (v *verifier) node(n *node.Node) {
	if old := v.byID[n.ID()]; old == nil {
		v.byID[n.ID()] = n
	} else if old.Digest() != n.Digest() {
		v.report(n, DuplicateID, "another node has the id "+n.ID().String())
	}

	// These cannot be checked: the rules of an unknown kind, or the content of a redacted node, are missing.
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

	// A results message may repeat a broken execution. That is one fault, and is reported once.
	v.report(n, WrongDigest, digestDetail(n, err))
	if isExecution(n) {
		if v.broken == nil {
			v.broken = map[*node.Node]bool{}
		}
		v.broken[n] = true
	}
	v.shared(n)
}

// shared reports the results in n that come from a broken execution.
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

// saved returns every saved node of d, in the order of saving. It returns both of two nodes with one ID.
func (d DAG) saved() []*node.Node {
	seen := make(map[*node.Node]bool, d.sizeHint())
	h := d.header()
	w := walk{extra: h.loose}
	return w.visit(slices.Concat(d.roots(), h.loose[nil]), func(n *node.Node) bool {
		fresh := !seen[n]
		seen[n] = true
		return fresh
	})
}
