package dag

import (
	"slices"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/node"
)

// Run is a run of an agent, as the conversation records it.
type Run struct {
	// Start names the run and its agent. It is zero if the conversation does not say who ran, such as an import.
	Start node.RunStart
	// Stop has the stop reason and the totals of the run. If the run is not over:
	//
	//   - Reason is content.StopApproval or content.StopResults for a paused run, and empty for one that was
	//     interrupted or is still running.
	//   - The totals are those of the nodes so far: usage of failed attempts is in none of them, the cost is unknown,
	//     and Elapsed includes pauses.
	Stop node.StopReason
	// Final reports that the run is over: Stop is in the conversation.
	Final bool
}

// LastRun returns the newest run before the head, and whether there is one. Of several branches, it is that of the last
// head. LastRun visits the nodes of that run only.
func (d DAG) LastRun() (Run, bool) {
	branches := lineage.Branches(d.heads())
	if len(branches) == 0 {
		return Run{}, false
	}
	d = d.atAll(branches[len(branches)-1].Heads)

	var run Run
	for n := range d.backward {
		start, begins := n.Payload().(node.RunStart)
		stop, ends := n.Payload().(node.StopReason)
		switch {
		case begins:
			run.Start = start
			if !run.Final {
				run.Stop.Reason, run.Stop.Elapsed = pausedFor(d.heads()), max(newestTime(d.heads()).Sub(n.Time()), 0)
			}
			return run, true
		case ends && run.Final:
			return run, true // of a run without a start; this is the end of an earlier one
		case ends:
			run = Run{Stop: stop, Final: true}
		case !run.Final:
			run.add(n)
		}
	}
	if !run.Final {
		return Run{}, false // nothing says that there was a run
	}
	return run, true
}

// pausedFor returns the stop reason of a run that is paused at the heads, or "".
func pausedFor(heads []*node.Node) (reason content.Stop) {
	for _, h := range heads {
		// One call that needs approval is enough: see executor.Continuation.
		if e, ok := h.Payload().(node.ToolExecution); ok && e.State.Paused() && reason != content.StopApproval {
			reason = content.Stop(e.State)
		}
	}
	return reason
}

// newestTime returns the time of the newest of nodes.
func newestTime(nodes []*node.Node) time.Time {
	return slices.MaxFunc(nodes, func(a, b *node.Node) int { return a.Time().Compare(b.Time()) }).Time()
}

// add adds n to the totals of a run that is not over.
func (r *Run) add(n *node.Node) {
	switch p := n.Payload().(type) {
	case node.Message:
		if p.Role == content.Assistant {
			r.Stop.Turns++
			r.Stop.Usage = r.Stop.Usage.Plus(p.Answer.Usage)
		}
	case node.ToolExecution:
		r.Stop.ToolUsage = r.Stop.ToolUsage.Plus(p.Usage)
		if !p.State.Unfinished() {
			r.Stop.ToolCalls++
		}
	}
}
