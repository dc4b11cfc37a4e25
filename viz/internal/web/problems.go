package web

import (
	"fmt"
	"strings"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
)

// problems returns all that is wrong with the conversation, in reading order: what failed, what the rules of a conversation forbid
// ([dag.DAG.Validate]), and calls that nobody has answered. Calls of tools that were never declared are one problem, at the first of
// them: in an imported session every call may be one, and they would bury what failed.
func problems(d dag.DAG, pic placed) []Problem {
	found := map[int][]Problem{}
	add := func(n *node.Node, what string, waits bool) {
		if k, ok := pic.keys[n.ID()]; ok {
			found[k] = append(found[k], Problem{Key: k, What: what, Waits: waits})
		}
	}
	waits := map[node.ID]bool{} // a call at one of several ends waits as one at the only end does
	for _, h := range d.Heads() {
		for _, c := range d.WithHeads(h).OpenCalls() {
			add(h, fmt.Sprintf("call %d, of %s, waits for its result", c.Index+1, c.Name), true)
			waits[h.ID()] = true
		}
	}
	var undeclared []dag.Finding
	for _, f := range d.Validate() {
		if f.Kind == dag.CallWithoutResult && waits[f.Node.ID()] {
			continue
		}
		if f.Kind == dag.UndeclaredTool {
			undeclared = append(undeclared, f)
			continue
		}
		what := string(f.Kind)
		if f.Detail != "" {
			what += ": " + f.Detail
		}
		add(f.Node, what, false)
	}
	if len(undeclared) > 0 {
		add(undeclared[0].Node, undeclaredText(undeclared), false)
	}

	var list []Problem
	for i, b := range pic.Boxes {
		k := pic.key(i)
		if what, grave := describe.Of(b.Node).Failure(); what != "" {
			list = append(list, Problem{Key: k, What: what, Grave: grave})
		}
		list = append(list, found[k]...)
	}
	return list
}

// undeclaredText counts the calls of tools that are not declared, and names the first few tools.
func undeclaredText(findings []dag.Finding) string {
	const most = 5
	var names []string
	seen := map[string]bool{}
	for _, f := range findings {
		if !seen[f.Detail] {
			seen[f.Detail] = true
			names = append(names, f.Detail)
		}
	}

	text := string(dag.UndeclaredTool)
	if len(findings) > 1 {
		text = fmt.Sprintf("undeclared tools in %d calls", len(findings))
	}
	text += ": " + strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
