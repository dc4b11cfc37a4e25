package dag

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/node"
)

// ErrMerge marks branches that do not fit together.
var ErrMerge = errors.New("the branches cannot be merged")

// unmerged returns the error about transcripts that do not fit together, with the first findings.
func unmerged(findings []Finding) error {
	const shown = 3
	err := ErrMerge
	for _, f := range findings[:min(len(findings), shown)] {
		err = fmt.Errorf("%w: %v", err, f)
	}
	if more := len(findings) - shown; more > 0 {
		err = fmt.Errorf("%w, and %d more", err, more)
	}
	return err
}

// Branch is a conversation to merge.
type Branch struct {
	// Name identifies the branch to people. Defaults to "branch 1" and so on, in order.
	Name string
	// DAG is the conversation.
	DAG DAG
}

// mergeRecord is the name of the Custom node at the end of a [Merge].
const mergeRecord = describe.MergeRecord

// Merge merges branches, in order, into one conversation with one head. It continues the first branch, with its source,
// metadata, tools and refs. Refs of the other branches are added if their names are free. Merge of no branches returns
// an empty conversation.
//
// The head is a node with the heads of all branches as its parents: a Custom record named "plait.merge". It holds the
// name of each branch and the IDs of its heads, and is never sent. The transcripts of all branches are sent, in order,
// and shared nodes once. The system prompts and tools of all branches stay in effect. A branch adds nothing if another
// branch continues it. Tools travel along as in [DAG.Join].
//
// To send one branch and keep the others in the graph, add each of them with [DAG.SubGraph].
//
// Open calls at the heads are closed first with an error result, as by [DAG.CloseTools]. The merge adds no finding of
// [DAG.Validate] to those of the branches.
//
// Errors of the chain, which keeps the first branch:
//
//   - the error of a branch;
//   - ErrMerge for two executions of one call at the heads;
//   - ErrMerge, with findings of Validate, for transcripts that do not fit together: two branches answer the same calls, or one head of a branch
//     has an open call and another head continues after it;
//   - ErrDuplicateID for two different nodes with one ID.
func Merge(branches ...Branch) DAG {
	type branchRecord struct {
		Name  string   `json:"name"`
		Heads []string `json:"heads"`
	}
	record := struct {
		Branches []branchRecord `json:"branches"`
	}{}
	var all []DAG

	for i, b := range branches {
		if b.DAG.err != nil {
			return New().fail("Merge", b.DAG.err)
		}
		heads := []string{}
		for _, h := range b.DAG.heads() {
			heads = append(heads, h.ID().String())
		}
		name := cmp.Or(b.Name, fmt.Sprintf("branch %d", i+1))
		record.Branches = append(record.Branches, branchRecord{name, heads})
		all = append(all, b.DAG)
	}
	if len(all) == 0 {
		return New()
	}

	// Close open phases before the record: a node after open calls ends their phase without results.
	merged := all[0].Join(all[1:]...).outerHeads().closePhases().Custom(mergeRecord, record)
	if merged.err != nil {
		return all[0].fail("Merge", merged.err)
	}

	// The branches may have findings of their own. The merge must not add any.
	if findings := newFindings(merged, all); len(findings) > 0 {
		return all[0].fail("Merge", unmerged(findings))
	}
	return merged
}

// outerHeads returns the conversation with only its outermost heads. It drops heads that are ancestors of another head,
// and unfinished executions that are no longer needed: see leftBehind.
func (d DAG) outerHeads() DAG {
	if d.several == nil {
		return d
	}

	inner := map[node.ID]bool{}
	nodes := postOrder(d.heads())
	for _, n := range nodes {
		for i := range n.NumParents() {
			inner[n.Parent(i).ID()] = true
		}
	}
	behind := leftBehind(nodes)
	return d.WithHeads(slices.DeleteFunc(d.Heads(), func(n *node.Node) bool { return inner[n.ID()] || behind[n.ID()] })...)
}

// leftBehind returns the unfinished executions among nodes that are no longer needed: their call has an execution with
// a result, or another node follows the calls.
func leftBehind(nodes []*node.Node) map[node.ID]bool {
	if !slices.ContainsFunc(nodes, isUnfinished) {
		return nil
	}

	type call struct {
		caller node.ID
		index  int
	}

	// The start and the result of a call are two nodes. The caller and the index identify the call.
	callOf := func(n *node.Node) (call, bool) {
		caller := lineage.CallerOf(n)
		m, _ := caller.Message()
		return call{caller.ID(), lineage.CallsOf(m.Blocks).Of(n.Payload().(node.ToolExecution))}, caller != n
	}

	// A node other than an execution after the calls ends the phase, with or without results.
	finished, followed := map[call]bool{}, map[node.ID]bool{}
	for _, n := range nodes {
		switch {
		case isUnfinished(n):
		case isExecution(n):
			if c, ok := callOf(n); ok {
				finished[c] = true
			}
		default:
			for i := range n.NumParents() {
				followed[n.Parent(i).ID()] = true
			}
		}
	}

	behind := map[node.ID]bool{}
	for _, n := range nodes {
		if isUnfinished(n) {
			c, ok := callOf(n)
			behind[n.ID()] = ok && (finished[c] || followed[c.caller])
		}
	}
	return behind
}

// closePhases returns the conversation with all open tool phases at its heads closed. Each results message is a head in
// place of the first head of its phase.
func (d DAG) closePhases() DAG {
	var heads []*node.Node
	for _, b := range lineage.Branches(d.heads()) {
		one := d.WithHeads(b.Heads...)
		p, open := one.openPhase()
		if !open {
			heads = append(heads, one.heads()...)
			continue
		}

		// Two branches may have executed the same call. Only one result can be sent, and Merge cannot choose.
		if len(p.Spare) > 0 {
			err := fmt.Errorf("%w: %s is not the first execution of a call", ErrMerge, p.Spare[0])
			return d.fail("Merge", err)
		}
		closed := one.CloseTools()
		if closed.err != nil {
			return closed
		}
		heads = append(heads, closed.heads()...)
	}
	return d.WithHeads(heads...)
}

// newFindings returns the findings about tool phases of the merged conversation, except those of a branch.
func newFindings(merged DAG, branches []DAG) []Finding {
	findings := phaseFindings(merged)
	if len(findings) == 0 {
		return nil // the common case: the branches need not be checked
	}

	type key struct {
		id   node.ID
		kind FindingKind
	}
	known := map[key]bool{}
	for _, f := range phaseFindings(branches...) {
		known[key{f.Node.ID(), f.Kind}] = true
	}
	return slices.DeleteFunc(findings, func(f Finding) bool { return known[key{f.Node.ID(), f.Kind}] })
}

// phaseFindings returns the findings of Validate about tool phases.
func phaseFindings(conversations ...DAG) []Finding {
	v := newValidator()
	v.several = len(conversations) > 1
	var heads []*node.Node
	for _, d := range conversations {
		v.phases(d)
		heads = append(heads, d.heads()...)
	}
	return v.findings(func() []*node.Node { return postOrder(heads) })
}
