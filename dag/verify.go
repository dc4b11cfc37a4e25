package dag

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/memo"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/node"
)

// Findings of Verify, beside wrongSum and duplicateID.
const (
	// falseRedaction: a node is marked as redacted but still has content.
	falseRedaction FindingKind = "marked as redacted but has content"
	// callWaits: a call at a head has no result yet. If it is sent as it is, it gets an error result.
	callWaits FindingKind = "call has no result yet"
)

// Verification is the result of [DAG.Verify].
type Verification struct {
	// Nodes is the number of nodes, and Checked the number of nodes with a checksum.
	Nodes, Checked int
	// Findings lists the faults, in the order in which the nodes are saved.
	Findings []Finding
	// Waiting lists the calls without a result, at all heads. They are not a fault: a paused conversation has some.
	Waiting []Finding
	// Redacted lists the redacted nodes. They are checked as all others.
	Redacted []*node.Node
	// Unknown lists the nodes of unknown kinds. Their lines are checked; only a newer version can check their content.
	Unknown []*node.Node
	// Unsummed lists the nodes without a checksum, written by another program. They cannot be checked.
	Unsummed []*node.Node
}

// Verify checks the checksum of every saved node of the conversation, each once: nodes reachable from the heads and the
// refs, nodes of child conversations, and unreachable nodes of the file. It takes time in proportion to the content,
// without recursion.
//
// A checksum covers the whole line of a node, with its time, usage and metadata, and the IDs of the nodes it refers to.
// Redacted nodes and nodes of unknown kinds are checked too. A changed node is reported itself, and no other.
//
// Verify finds damage. It cannot detect a change by somebody who computes the checksums again: to detect that, sign the
// file.
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
	return Finding{Node: c.Caller, Kind: callWaits, Detail: safetext.Line(text, 200)}
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
	for _, p := range d.open().Phases {
		if seen[p.Caller.ID()] {
			continue
		}
		seen[p.Caller.ID()] = true
		for i := range p.List {
			if p.Done(i) == nil {
				calls = append(calls, shared.OpenCall{Caller: p.Caller, Index: p.At[i], Use: p.Call(i), Started: p.Started(i)})
			}
		}
	}
	return calls
}

// OK reports whether at least one node was checked and there are no findings. Waiting calls, redacted nodes, unknown
// nodes and nodes without a checksum do not count.
func (v Verification) OK() bool { return len(v.Findings) == 0 && v.Checked > 0 }

// String returns a line with the counts, and a line for each finding, each waiting call and each redacted, unknown or
// unchecked node.
func (v Verification) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %s checked, %s redacted, %s unknown, %s", count(v.Nodes, "node"), number(v.Checked),
		number(len(v.Redacted)), number(len(v.Unknown)), count(len(v.Findings), "finding"))
	if v.Checked == 0 {
		out.WriteString("; nothing was checked")
	}

	for _, f := range slices.Concat(v.Findings, v.Waiting) {
		out.WriteString("\n" + f.String())
	}
	for _, list := range []struct {
		nodes []*node.Node
		text  string
	}{
		{v.Redacted, "redacted"}, {v.Unknown, "a kind that this version does not know"}, {v.Unsummed, "no checksum: not checked"},
	} {
		for _, n := range list.nodes {
			out.WriteString("\n" + n.String() + ": " + list.text)
		}
	}
	return out.String()
}

// MarshalJSON returns an object with the members ok, nodes, checked, findings, waiting, redacted, unknown and unsummed.
// The last three hold node IDs.
func (v Verification) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		OK       bool      `json:"ok"`
		Nodes    int       `json:"nodes"`
		Checked  int       `json:"checked"`
		Findings []Finding `json:"findings"`
		Waiting  []Finding `json:"waiting"`
		Redacted []node.ID `json:"redacted"`
		Unknown  []node.ID `json:"unknown"`
		Unsummed []node.ID `json:"unsummed"`
	}{
		v.OK(), v.Nodes, v.Checked, slices.Concat([]Finding{}, v.Findings), slices.Concat([]Finding{}, v.Waiting),
		idsOf(v.Redacted), idsOf(v.Unknown), idsOf(v.Unsummed),
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
	byID map[node.ID]*node.Node // the nodes so far; of several with one ID, the first
}

// node checks n.
func (v *verifier) node(n *node.Node) {
	if old := v.byID[n.ID()]; old == nil {
		v.byID[n.ID()] = n
	} else if !memo.SameNode(old, n) {
		v.report(n, duplicateID, "another node has the id "+n.ID().String())
	}

	if _, unknown := n.Payload().(node.Unknown); unknown {
		v.Unknown = append(v.Unknown, n)
	}
	if n.Redacted() {
		v.Redacted = append(v.Redacted, n)
	}

	err := n.Verify()
	if errors.Is(err, node.ErrNoSum) {
		v.Unsummed = append(v.Unsummed, n)
	} else {
		v.Checked++
	}
	if errors.Is(err, node.ErrSum) {
		v.report(n, wrongSum, "")
	}
	if errors.Is(err, node.ErrRedaction) {
		v.report(n, falseRedaction, "")
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
	return visit(slices.Concat(d.roots(), h.loose[nil]), w.before, func(n *node.Node) bool {
		fresh := !seen[n]
		seen[n] = true
		return fresh
	})
}
