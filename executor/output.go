package executor

import (
	"context"
	"errors"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
)

// RunFor is [Agent.Run] for an answer in the form of T: it asks for it by api.Output[T], and returns what api.Decode[T] makes of the
// last answer. A model whose answer does not fit is told what is wrong with it, and asked again, up to two times.
//
// Errors beside those of Run: api.ErrOutput, where the last answer does not fit; so does that of a run that a limit ended before
// there was one.
func RunFor[T any](ctx context.Context, a Agent, d dag.DAG) (T, dag.DAG, error) {
	const again = 2
	var none T
	a.Options.Output = api.Output[T]()
	a.Hooks = append(append([]Hook(nil), a.Hooks...), fitting[T](again))
	d, err := a.Run(ctx, d)
	if err != nil {
		return none, d, err
	}
	value, err := api.Decode[T](lastAnswer(d))
	return value, d, err
}

// lastAnswer is what the model said last; "" where the conversation does not end in an answer, and one from before the run does not count.
func lastAnswer(d dag.DAG) string {
	n := lastSaid(d)
	if n == nil {
		return ""
	}
	m, _ := n.Message()
	if m.Role != content.Assistant || len(m.Blocks.ToolUses()) > 0 {
		return ""
	}
	return m.Blocks.Text()
}

// fitting asks again for an answer that is no T.
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

// asked is how often in a row the model was told that its answer does not fit.
func asked(d dag.DAG) (times int) {
	messages := d.Messages()
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
