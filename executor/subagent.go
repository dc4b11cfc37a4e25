package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
)

// Task is the arguments of a [SubAgent].
type Task struct {
	// Task is what the sub-agent is to do.
	Task string `json:"task" jsonschema:"what to do, with everything that has to be known for it"`
}

// SubAgent returns a tool that runs an agent on a task, in a conversation of its own that begins with the task. The
// tool's result is the whole text of the last response.
//
//   - The conversation hangs on the call's execution, as far as it got: also where the sub-agent failed, was cancelled
//     or ran out of time.
//   - What it takes counts in the limits of the run that called it, and in its totals as ToolUsage.
//   - Its events come out of that run as [Child] events.
//   - When the call is cancelled, so is the sub-agent, with all that it called.
//   - If a sub-agent reaches a limit, its result is its text so far, with a note about the limit. If it fails, is
//     stopped for a loop, or pauses, the result is an error.
//   - Runs inside tools nest no deeper than Limits.Depth of each run around them allows.
//
// The call has no timeout of its own, because agents take long: Limits.Time of the agent limits it, and [WithTimeout]
// does.
func SubAgent(name, description string, agent Agent) Tool {
	s := subAgent{agent: agent}
	return WithTimeout(Func(name, description, s.run), 0)
}

type subAgent struct{ agent Agent }

func (s subAgent) run(ctx context.Context, in Task) (Result, error) {
	if strings.TrimSpace(in.Task) == "" {
		return Result{}, refused("Missing required 'task' parameter")
	}
	var end End
	var failure error
	for event, err := range s.agent.Stream(ctx, dag.New().User(in.Task)) {
		if around := callIn(ctx); around != nil {
			around.forward(event)
		}
		if e, ok := event.(End); ok {
			end, failure = e, err
		}
	}
	return childResult(end, failure)
}

// childResult returns the result of a sub-agent whose run ended.
func childResult(end End, err error) (Result, error) {
	result := Result{Child: end.DAG}
	text := end.DAG.Text()
	switch reason := end.Stop.Reason; reason {
	case content.StopMaxTurns, content.StopTokenLimit, content.StopCostLimit, content.StopTimeLimit, content.StopCallLimit:
		text = strings.TrimSpace(text + "\n\n[Agent stopped: " + string(reason) + "]")
	case content.StopLoop:
		err = errors.New("the sub-agent was stopped for repeating a tool call")
	}
	var paused *PausedError
	if errors.As(err, &paused) {
		err = fmt.Errorf("the sub-agent waits (%s), and cannot be resumed", paused.Continuation.Reason)
	}
	if err != nil {
		return result, err
	}
	if text == "" {
		text = "(sub-agent produced no text output)"
	}
	result.Content = content.Words(text)
	return result, nil
}

// tooDeep returns an error if a run inside the call would nest deeper than a run around it allows.
func tooDeep(c *toolCall) error {
	for below := 1; c != nil; below++ {
		r := c.phase.r
		if below > r.agent.Limits.Depth {
			return fmt.Errorf("sub-agents may nest no deeper than %d", max(r.agent.Limits.Depth, 0))
		}
		c = r.inside
	}
	return nil
}
