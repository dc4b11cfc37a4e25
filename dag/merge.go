package dag

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// ErrMerge marks branches that cannot be merged in the way that was asked for.
var ErrMerge = errors.New("the branches cannot be merged")

// MergeError says why transcripts do not fit together: what [DAG.Validate] would find in the merged conversation and does not find
// in a branch. Its chain holds ErrMerge.
type MergeError struct {
	Findings []Finding
}

// Error returns the first findings.
func (e *MergeError) Error() string {
	text := ErrMerge.Error()
	for i, f := range e.Findings {
		if i == 3 {
			return text + fmt.Sprintf(", and %d more", len(e.Findings)-i)
		}
		text += ": " + f.String()
	}
	return text
}

// Unwrap returns ErrMerge.
func (e *MergeError) Unwrap() error { return ErrMerge }

// MergeStrategy says what becomes of branches that are merged.
type MergeStrategy string

// The ways to merge. With all of them every node of every branch is in the merged conversation, is saved and is drawn.
const (
	// MergeJoin sends the transcripts of all branches, in order; what they share, once. System prompts and tools of all hold on.
	MergeJoin MergeStrategy = "join"
	// MergeAnswer sends the transcript of the first branch, and then one message of the user's side with what came of each of the
	// others: its Summary, or its last answer.
	MergeAnswer MergeStrategy = "answer"
	// MergePick sends the transcript of the first branch alone.
	MergePick MergeStrategy = "pick"
)

// Branch is a conversation that is merged.
type Branch struct {
	// Name tells people and, with MergeAnswer, the model which branch it is. Defaults to "branch 1" and so on, by place.
	Name string
	// DAG is the conversation.
	DAG DAG
	// Summary is what MergeAnswer says of the branch. Defaults to its last answer, [DAG.Text].
	Summary string
}

// mergeRecord is the name of the Custom node that MergeJoin ends in.
const mergeRecord = "plait.merge"

// Merge makes one conversation of several branches, in order, with one head. It is the first branch that goes on: its source,
// metadata, tools and refs are those of the merged conversation, which takes refs of the others where their names are free.
//
// With MergeJoin the head is a node with the heads of all branches as its parents: a Custom record named "plait.merge", which is
// never sent and names each branch with the digests of its heads. A branch that another one goes on from adds nothing.
//
// With MergeAnswer and MergePick each branch but the first hangs on a SubGraph of its name, one after the other, which [FromNode]
// returns; nothing of it is sent, neither its system prompts nor its tools. With MergeAnswer the head is the message after them.
//
// Calls that are open at the heads of what is sent are closed first, as [DAG.CloseTools] does, with the error that no result came.
// What is sent has no finding ([DAG.Validate]) that a branch does not have. A name and a summary are sent as they are: text of
// somebody else's in them speaks to the model.
//
// Errors of the chain: a branch's own; ErrMerge for another strategy, and for two executions of one call at the heads; *MergeError
// where what is sent does not fit together, such as two branches that answer the same calls, or heads of one branch of which one
// waits for a result and another has gone on; ErrEmpty for MergeAnswer where a branch has no answer and no Summary; ErrDuplicateID for
// two nodes with one id that do not say the same. Beside an error is the first branch. No branches make an empty conversation.
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
		return New().fail("Merge", fmt.Errorf("%w: %s is no strategy", ErrMerge, quoted(string(how))))
	case len(branches) == 0:
		return New()
	case how == MergeJoin:
		merged = joined(branches)
	default:
		merged = hung(how, branches)
	}
	if merged.err != nil {
		return branches[0].DAG.fail("Merge", merged.err)
	}
	if found := foundOnlyIn(merged, branches); len(found) > 0 {
		return branches[0].DAG.fail("Merge", &MergeError{Findings: found})
	}
	return merged
}

// joined is branches after each other.
func joined(branches []Branch) DAG {
	type named struct {
		Name  string   `json:"name"`
		Heads []string `json:"heads"`
	}
	record := struct {
		Branches []named `json:"branches"`
	}{}
	var others []DAG
	for i, b := range branches {
		heads := []string{}
		for _, h := range b.DAG.heads {
			heads = append(heads, h.Digest().String())
		}
		record.Branches = append(record.Branches, named{b.Name, heads})
		if i > 0 {
			others = append(others, b.DAG)
		}
	}
	return branches[0].DAG.Join(others...).outer().closed().Custom(mergeRecord, record)
}

// hung is the first branch with the others hanging on it.
func hung(how MergeStrategy, branches []Branch) DAG {
	d := branches[0].DAG.outer().closed()
	var says []content.Block
	for _, b := range branches[1:] {
		summary := b.Summary
		if summary == "" {
			summary = b.DAG.Text()
		}
		if how == MergeAnswer && strings.TrimSpace(summary) == "" {
			return d.fail("Merge", fmt.Errorf("%w in %s", ErrEmpty, quoted(b.Name)))
		}
		says = append(says, content.Text{Text: fmt.Sprintf("From the branch %q:\n\n%s", content.Clean(b.Name), summary)})
		d = d.takeRefs(b.DAG).step("Merge", node.SubGraph{Title: b.Name, Heads: node.ListOf(b.DAG.heads...), Summary: summary})
	}
	if how == MergeAnswer && len(says) > 0 {
		d = d.say("Merge", content.User, "", says)
	}
	return d
}

// outer returns the conversation without those heads that others of its heads go on from.
func (d DAG) outer() DAG {
	if len(d.heads) < 2 {
		return d
	}
	inner := map[node.ID]bool{}
	for _, n := range postOrder(d.heads) {
		for i := range n.NumParents() {
			inner[n.Parent(i).ID()] = true
		}
	}
	return d.WithHeads(slices.DeleteFunc(d.Heads(), func(n *node.Node) bool { return inner[n.ID()] })...)
}

// closed returns the conversation with every tool phase closed that is open at its heads. The message that closes one takes the
// place of its first head.
func (d DAG) closed() DAG {
	phases := map[node.ID][]*node.Node{} // heads, by the assistant's message
	said := func(h *node.Node) node.ID {
		if h.NumParents() == 1 && isExecution(h) {
			return h.Parent(0).ID()
		}
		return h.ID()
	}
	for _, h := range d.heads {
		phases[said(h)] = append(phases[said(h)], h)
	}
	var heads []*node.Node
	for _, h := range d.heads {
		group := phases[said(h)]
		delete(phases, said(h))
		p, open := d.WithHeads(group...).openPhase()
		switch {
		case len(group) == 0:
		case !open:
			heads = append(heads, group...)
		case len(p.spare) > 0:
			return d.fail("Merge", fmt.Errorf("%w: %s is no execution of a call, or the second of one", ErrMerge, p.spare[0]))
		default:
			d2 := d.WithHeads(group...).CloseTools()
			if d2.err != nil {
				return d2
			}
			heads = append(heads, d2.heads...)
		}
	}
	return d.WithHeads(heads...)
}

// foundOnlyIn returns what is wrong with the merged transcript and with none of the branches.
func foundOnlyIn(merged DAG, branches []Branch) []Finding {
	found := unpaired(merged)
	if len(found) == 0 {
		return nil // the branches may share most of what they say, and need not be read
	}

	type what struct {
		id   node.ID
		kind FindingKind
	}
	known := map[what]bool{}
	for _, b := range branches {
		for _, f := range unpaired(b.DAG) {
			known[what{f.Node.ID(), f.Kind}] = true
		}
	}
	return slices.DeleteFunc(found, func(f Finding) bool { return known[what{f.Node.ID(), f.Kind}] })
}

// unpaired returns what Validate finds about calls and results, in order.
func unpaired(d DAG) []Finding {
	v := validator{found: map[node.ID][]Finding{}}
	v.phases(d)
	var found []Finding
	if len(v.found) > 0 {
		for _, n := range d.Nodes() {
			found = append(found, v.found[n.ID()]...)
		}
	}
	return found
}
