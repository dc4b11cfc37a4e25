package web

import (
	"fmt"
	"strings"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/node"
)

// problems returns the problems of the conversation, in reading order: failures, violations of the rules of a
// conversation ([dag.DAG.Validate]), and open calls. All calls of undeclared tools are one problem, at the first of
// them: in an imported session every call may be one, and they would hide the failures.
func problems(v *view, findings []dag.Finding) []Problem {
	found := map[int][]Problem{}
	add := func(n *node.Node, what string, waits bool) {
		if k, ok := v.key(n.ID()); ok {
			found[k] = append(found[k], Problem{Key: k, What: what, Waits: waits})
		}
	}

	// Open calls first: Validate reports them too, as calls without a result. They only wait for it.
	waits := map[node.ID]bool{}
	for _, open := range shared.OpenCalls(v.d.Heads()) {
		waits[open.Caller.ID()] = true

		// In place of the call of a paused sub-agent, those in its conversation are listed.
		if open.Started == nil || !open.Started.Payload().(node.ToolExecution).State.Paused() {
			m, _ := open.Caller.Message()
			number := lineage.CallsOf(m.Blocks).Number(open.Index) + 1
			add(open.Caller, fmt.Sprintf("call %d, of %s, waits for its result", number, open.Use.Name), true)
		}
	}

	var undeclared []dag.Finding
	for _, f := range findings {
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
	for i := range v.nodes {
		k := v.nodes[i].place.Key
		if what, grave := describe.Of(v.nodes[i].node).Failure(); what != "" {
			list = append(list, Problem{Key: k, What: what, Grave: grave})
		}
		list = append(list, found[k]...)
	}
	return list
}

// undeclaredText returns the number of calls of undeclared tools, and the names of the first few tools.
func undeclaredText(findings []dag.Finding) string {
	const maxNames = 5
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
	text += ": " + strings.Join(names[:min(len(names), maxNames)], ", ")
	if more := len(names) - maxNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
