package executor

import (
	"fmt"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/node"
)

// agentPause is the pause of a sub-agent's run.
type agentPause struct {
	dag    dag.DAG // the sub-agent's conversation, with what waits
	reason content.Stop
}

// pausedError is the error that a [SubAgent] returns when its run pauses. The call can be resumed with it.
type pausedError struct {
	agentPause
	call *toolCall
}

// Error returns the text for the model. It is used if the sub-agent cannot be resumed, because a program's own tool
// wraps it.
func (e *pausedError) Error() string { return cannotResume(e.reason) }

func cannotResume(reason content.Stop) string {
	return fmt.Sprintf("the sub-agent waits (%s), and cannot be resumed", reason)
}

// continueAgent decides about the call of a paused sub-agent that gets replies: it goes on in its conversation.
func (r *run) continueAgent(c *toolCall, e *node.ToolExecution, inside *insideReplies) {
	c.ran = startedAs(c.call, e)
	c.decided = e.Decided
	if err := r.findAgent(c); err != nil {
		c.fail(err) // it was found when the replies were checked: a hook has changed the tools since
		return
	}

	// The time and the usage before the pause count for the sub-agent's limits.
	s := spentIn(lineage.OpenAt(e.Child.Slice()).Phases)
	c.resume, c.spent, c.innerRun().usage = inside, s.Elapsed, s.Usage.Plus(s.ToolUsage)
}
