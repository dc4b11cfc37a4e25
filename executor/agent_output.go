package executor

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/internal/shared"
)

// WithOutput returns a copy of the agent with structured output: its requests ask for a T by api.Output[T]. If a
// response is not a valid T, the model gets the problems and responds again, up to two times; after that the run ends
// with an *api.OutputError and content.StopError, so that a report counts it as failed. [FinalOutput] reads the T from
// the conversation.
//
// Use it with [Agent.Stream] and [Agent.ResumeStream]. For [Agent.Run] and [Agent.Resume], [RunFor] and [ResumeFor] are
// shorter.
func WithOutput[T any](a Agent) Agent {
	const again = 2
	a.Options.Output = api.Output[T]()
	a.Hooks = append(append([]Hook(nil), a.Hooks...), fitting[T](again))
	return a
}

// FinalOutput decodes the last response of a run to a T, by api.Decode[T]. The error is an *api.OutputError if the
// response is no valid T, or if the conversation does not end in a response, for example because a limit ended the run.
func FinalOutput[T any](d dag.DAG) (T, error) { return api.Decode[T](lastAnswer(d)) }

// PartialOutput returns the events of a run, and calls show with the T of the response as far as it is known: see
// [api.Partial]. The run is one of [WithOutput]; its events are those of [Agent.Stream] or [Agent.ResumeStream].
// [FinalOutput] reads the whole T, which is checked.
func PartialOutput[T any](events iter.Seq2[Event, error], show func(T)) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var part api.Partial[T]
		for event, err := range events {
			switch e := event.(type) {
			case MessageStart, Retry:
				part = api.Partial[T]{} // a new response begins
			case MessageDelta:
				if value, ok := part.Add(e.Text()); ok {
					show(value)
				}
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

// RunFor is [Agent.Run] with structured output, as configured by [WithOutput]. Its errors are those of Run and
// [FinalOutput]. To resume a run that pauses, use [ResumeFor].
func RunFor[T any](ctx context.Context, a Agent, d dag.DAG) (T, dag.DAG, error) {
	d, err := WithOutput[T](a).Run(ctx, d)
	return finalOutput[T](d, err)
}

// ResumeFor is [Agent.Resume] with structured output, as [RunFor] is [Agent.Run].
func ResumeFor[T any](
	ctx context.Context, a Agent, d dag.DAG, replies ...Reply,
) (T, dag.DAG, error) {
	d, err := WithOutput[T](a).Resume(ctx, d, replies...)
	return finalOutput[T](d, err)
}

func finalOutput[T any](d dag.DAG, err error) (T, dag.DAG, error) {
	if err != nil {
		var none T
		return none, d, err
	}
	value, err := FinalOutput[T](d)
	return value, d, err
}

// lastAnswer returns the text of the model's response at the end of the conversation. It returns "" if the last message
// is not the model's, has calls, or was cut off.
func lastAnswer(d dag.DAG) string {
	n := lineage.LastMessage(d.Head())
	if n == nil {
		return ""
	}
	m, _ := n.Message()
	if m.Role != content.Assistant || lineage.Has[content.ToolUse](m.Blocks) || m.Answer.Stop == content.StopCut {
		return ""
	}
	return m.Blocks.Text()
}

// fitting returns a hook that requests a new response after one that is not a T, up to a number of times, and then ends
// the run with an error.
func fitting[T any](times int) Hook {
	return Hook{Next: func(_ context.Context, turn Turn) (Turn, error) {
		if turn.Stop != content.StopEndTurn && turn.Stop != content.StopSequence {
			return turn, nil
		}

		text := ""
		if turn.Message != nil {
			message, _ := turn.Message.Message()
			text = message.Blocks.Text()
		}
		_, err := api.Decode[T](text)
		var misfit *api.OutputError
		if !errors.As(err, &misfit) {
			return turn, nil
		}
		if asked(turn.DAG) >= times {
			return turn, err
		}

		// The empty stop reason lets the run continue, with the problems as the next message.
		turn.DAG, turn.Stop = turn.DAG.User(misfitText+"\n- "+strings.Join(misfit.Problems, "\n- ")), ""
		return turn, nil
	}}
}

// misfitText begins the message that requests a new response. asked counts messages by it.
const misfitText = "Your answer is not in the form that was asked for. Answer again, with the JSON alone:"

// asked returns how many of the last user messages in a row requested a new response.
func asked(d dag.DAG) (times int) {
	messages := shared.Of(&d).Messages
	for i := len(messages) - 1; i >= 0; i-- {
		if m := messages[i]; m.Role == content.User && len(m.Blocks.ToolResults()) == 0 {
			if !strings.HasPrefix(m.Blocks.Text(), misfitText) {
				break
			}
			times++
		}
	}
	return times
}
