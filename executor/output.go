package executor

import (
	"context"
	"errors"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/shared"
)

// WithOutput returns the agent with answers in the form of T: it asks for it by api.Output[T]. If a response does not
// fit, the model gets the problems and answers again, up to two times. [FinalOutput] reads the answer from the
// conversation. Use it with [Agent.Stream] and [Agent.ResumeStream]; beside [Agent.Run] and [Agent.Resume] there are
// [RunFor] and [ResumeFor].
func WithOutput[T any](a Agent) Agent {
	const again = 2
	a.Options.Output = api.Output[T]()
	a.Hooks = append(append([]Hook(nil), a.Hooks...), fitting[T](again))
	return a
}

// FinalOutput returns the last answer of a run as a T, by api.Decode[T]. The error is api.ErrOutput if the answer does
// not fit; so is that of a conversation which does not end in an answer, because a limit ended the run say.
func FinalOutput[T any](d dag.DAG) (T, error) { return api.Decode[T](lastAnswer(d)) }

// RunFor is [Agent.Run] for an answer in the form of T, as [WithOutput] asks for it. Errors beside those of Run: that
// of [FinalOutput]. A run that pauses is resumed by [ResumeFor].
func RunFor[T any](ctx context.Context, a Agent, d dag.DAG) (T, dag.DAG, error) {
	d, err := WithOutput[T](a).Run(ctx, d)
	return finalOutput[T](d, err)
}

// ResumeFor is [Agent.Resume] for an answer in the form of T, as [RunFor] is Run.
func ResumeFor[T any](
	ctx context.Context, a Agent, d dag.DAG, c Continuation, replies map[string]Reply,
) (T, dag.DAG, error) {
	d, err := WithOutput[T](a).Resume(ctx, d, c, replies)
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

// lastAnswer returns the text of the model's last message; "" if the conversation does not end in one. A message from
// before the run does not count.
func lastAnswer(d dag.DAG) string {
	n := lastSaid(d)
	if n == nil {
		return ""
	}
	m, _ := n.Message()
	if m.Role != content.Assistant || len(m.Blocks.ToolUses()) > 0 || m.Answer.Stop == content.StopCut {
		return ""
	}
	return m.Blocks.Text()
}

// fitting returns a hook that asks again for a response that is no T, up to a number of times.
func fitting[T any](times int) Hook {
	return Hook{Next: func(_ context.Context, turn Turn) (Turn, error) {
		if turn.Stop != content.StopEndTurn && turn.Stop != content.StopSequence || asked(turn.DAG) >= times {
			return turn, nil
		}
		text := ""
		if turn.Message != nil {
			said, _ := turn.Message.Message()
			text = said.Blocks.Text()
		}
		_, err := api.Decode[T](text)
		var misfit *api.OutputError
		if errors.As(err, &misfit) {
			turn.DAG, turn.Stop = turn.DAG.User(misfitWords+"\n- "+strings.Join(misfit.Problems, "\n- ")), ""
		}
		return turn, nil
	}}
}

const misfitWords = "Your answer is not in the form that was asked for. Answer again, with the JSON alone:"

// asked returns how often in a row the model was asked again because its answer does not fit.
func asked(d dag.DAG) (times int) {
	messages := shared.Of(d.Heads()).Messages
	for i := len(messages) - 1; i >= 0; i-- {
		if m := messages[i]; m.Role == content.User && len(m.Blocks.ToolResults()) == 0 {
			if !strings.HasPrefix(m.Blocks.Text(), misfitWords) {
				break
			}
			times++
		}
	}
	return times
}
