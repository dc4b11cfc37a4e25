package dag

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// ErrMerge marks branches that do not fit together, or an unknown strategy.
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

// MergeStrategy selects the parts of the branches to send to a model after a [Merge].
type MergeStrategy string

// Strategies of [Merge]. With each of them, every node of every branch is in the merged conversation, saved and drawn.
const (
	// MergeJoin sends the transcripts of all branches, in order. Shared nodes are sent once. The system prompts and
	// tools of all branches stay in effect.
	MergeJoin MergeStrategy = "join"
	// MergeAnswer sends the transcript of the first branch, and then one message with role user: the Summary, or else
	// the last answer, of each other branch.
	MergeAnswer MergeStrategy = "answer"
	// MergePick sends the transcript of the first branch alone.
	MergePick MergeStrategy = "pick"
)

// Branch is a conversation to merge.
type Branch struct {
	// Name identifies the branch to people and, with MergeAnswer, to the model. Defaults to "branch 1" and so on, in
	// order.
	Name string
	// DAG is the conversation.
	DAG DAG
	// Summary is the text for the branch with MergeAnswer. Defaults to its last answer, [DAG.Text].
	Summary string
}

// mergeRecord is the name of the Custom node at the end of a MergeJoin.
const mergeRecord = describe.MergeRecord

// Merge merges branches, in order, into one conversation with one head. It continues the first branch, with its source,
// metadata, tools and refs. Refs of the other branches are added if their names are free. Merge of no branches returns
// an empty conversation.
//
//   - With MergeJoin the head is a node with the heads of all branches as its parents: a Custom record named
//     "plait.merge". It holds the name of each branch and the IDs of its heads, and is never sent. A branch adds
//     nothing if another branch continues it. Tools travel along as in [DAG.Join].
//   - With MergeAnswer and MergePick each other branch becomes a SubGraph of its name, one after the other. [FromNode]
//     returns it. Nothing of it is sent, neither its system prompts nor its tools. With MergeAnswer the head is the
//     message after them.
//
// Open calls at the heads of the sent transcripts are closed first with an error result, as by [DAG.CloseTools]. The
// merge adds no finding of [DAG.Validate] to those of the branches.
//
// Names and summaries are sent unchanged. If they contain text of others, it can instruct the model.
//
// Errors of the chain, which keeps the first branch:
//
//   - the error of a branch;
//   - ErrMerge for an unknown strategy, and for two executions of one call at the heads;
//   - ErrMerge, with findings of Validate, for transcripts that do not fit together: two branches answer the same calls, or one head of a branch
//     has an open call and another head continues after it;
//   - ErrEmpty for a branch without an answer and a Summary, with MergeAnswer;
//   - ErrDuplicateID for two different nodes with one ID.
func Merge(how MergeStrategy, branches ...Branch) DAG {
	branches = slices.Clone(branches)
	for i, b := range branches {
		if b.DAG.err != nil {
			return New().fail("Merge", b.DAG.err)
		}
		if b.Name == "" {
			branches[i].Name = fmt.Sprintf("branch %d", i+1)
		}
	}

	var merged DAG
	switch {
	case how != MergeJoin && how != MergeAnswer && how != MergePick:
		return New().fail("Merge", fmt.Errorf("%w: %s is not a strategy", ErrMerge, quoted(string(how))))
	case len(branches) == 0:
		return New()
	case how == MergeJoin:
		merged = joinBranches(branches)
	default:
		merged = nestBranches(how, branches)
	}

	if merged.err != nil {
		return branches[0].DAG.fail("Merge", merged.err)
	}

	// The branches may have findings of their own. The merge must not add any.
	if findings := newFindings(merged, branches); len(findings) > 0 {
		return branches[0].DAG.fail("Merge", unmerged(findings))
	}
	return merged
}

// joinBranches merges with MergeJoin.
func joinBranches(branches []Branch) DAG {
	type branchRecord struct {
		Name  string   `json:"name"`
		Heads []string `json:"heads"`
	}
	record := struct {
		Branches []branchRecord `json:"branches"`
	}{}
	var others []DAG

	for i, b := range branches {
		heads := []string{}
		for _, h := range b.DAG.heads() {
			heads = append(heads, h.ID().String())
		}
		record.Branches = append(record.Branches, branchRecord{b.Name, heads})
		if i > 0 {
			others = append(others, b.DAG)
		}
	}

	// Close open phases before the record: a node after open calls ends their phase without results.
	return branches[0].DAG.Join(others...).outerHeads().closePhases().Custom(mergeRecord, record)
}

// nestBranches merges with MergeAnswer or MergePick: all branches but the first become sub-graphs of the first.
func nestBranches(how MergeStrategy, branches []Branch) DAG {
	d := branches[0].DAG.outerHeads().closePhases()
	var answers []content.Block
	for _, b := range branches[1:] {
		summary := b.Summary
		if summary == "" {
			summary = b.DAG.Text()
		}
		if how == MergeAnswer && strings.TrimSpace(summary) == "" {
			return d.fail("Merge", fmt.Errorf("%w in %s", ErrEmpty, quoted(b.Name)))
		}

		// The model must be able to distinguish the answers of several branches.
		text := fmt.Sprintf("From the branch %q:\n\n%s", safetext.UTF8(b.Name), summary)
		answers = append(answers, content.Text{Text: text})
		branch := node.SubGraph{Title: b.Name, Heads: node.ListOf(b.DAG.heads()...), Summary: summary}
		d = d.takeRefs(b.DAG).step("Merge", branch)
	}
	if how == MergeAnswer && len(answers) > 0 {
		d = d.message("Merge", content.User, "", answers)
	}
	return d
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
func newFindings(merged DAG, branches []Branch) []Finding {
	findings := phaseFindings(merged)
	if len(findings) == 0 {
		return nil // the common case: the branches need not be checked
	}

	type key struct {
		id   node.ID
		kind FindingKind
	}
	known := map[key]bool{}
	var own []DAG
	for _, b := range branches {
		own = append(own, b.DAG)
	}
	for _, f := range phaseFindings(own...) {
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
