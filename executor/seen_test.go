package executor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// seen is what is known of what the model of each answer had seen, as said by the transcript before it: "yes", "no" where something
// else is known, and "" where nothing is.
func seen(d dag.DAG) (all []string) {
	for _, n := range d.Nodes() {
		m, ok := n.Message()
		if !ok || m.Role != content.Assistant {
			continue
		}
		switch m.Answer.Seen {
		case node.Seen{}:
			all = append(all, "")
		case d.WithHeads(n.Parents()...).Seen():
			all = append(all, "yes")
		default:
			all = append(all, "no")
		}
	}
	return all
}

func TestAnAnswerThatThinksKnowsWhatItsModelHadSeen(t *testing.T) {
	run := func(d dag.DAG, a executor.Agent, turns ...apitest.Turn) dag.DAG {
		a.Provider = apitest.NewScript(turns...)
		d, err := a.Run(t.Context(), d)
		require.NoError(t, err)
		return d
	}
	hm := func(turn apitest.Turn) apitest.Turn { return turn.Think("hm", "s") }
	d := run(ask(fast), executor.Agent{System: "Be brief."}, hm(apitest.Call(call("fast"))), apitest.Call(call("fast")), hm(apitest.Say("Done.")))
	require.Equal(t, []string{"yes", "", "yes"}, seen(d))
	d = run(d.System("Be kind.").User("And?"), executor.Agent{}, hm(apitest.Say("Done.")))
	require.Equal(t, []string{"yes", "", "yes", "yes"}, seen(d), "after thinking that was left out")

	for name, c := range map[string]struct {
		first apitest.Turn
		notes []api.RepairNote
		want  string
	}{
		"paused":                {apitest.Say("So").Stop(content.StopPause), nil, "yes"},
		"cut off":               {apitest.Say("So").Stop(content.StopMaxTokens), nil, "no"},
		"paused, told to go on": {apitest.Say("So").Stop(content.StopPause), []api.RepairNote{{Kind: "end", Message: 2}}, "no"},
		"a user put first":      {apitest.Say("So").Stop(content.StopPause), []api.RepairNote{{Kind: "end", Message: 0}}, "yes"},
	} {
		second := hm(apitest.Say(" it is."))
		if c.notes != nil {
			second = second.Repaired(c.notes...)
		}
		d := ask(fast)
		if c.want == "no" && c.notes == nil {
			d = run(d, executor.Agent{}, c.first)
			d = run(d, executor.Agent{}, second)
		} else {
			d = run(d, executor.Agent{}, c.first, second)
		}
		require.Equal(t, []string{"", c.want}, seen(d), name)
	}

	// What a hook changes in a request is not in the conversation.
	d = run(ask(fast), executor.Agent{Hooks: []executor.Hook{{Send: func(_ context.Context, req api.Request) (api.Request, error) {
		req.System = append(req.System, "Today is Monday.")
		return req, nil
	}}}}, hm(apitest.Say("Done.")))
	require.Equal(t, []string{"yes"}, seen(d))
}

func TestAnAnswerAfterThinkingAloneHadSeenThatItIsToGoOn(t *testing.T) {
	for want, thinking := range map[string]content.Thinking{
		"yes": {Text: "hm"},                 // unsigned, so no API is sent it: the user speaks last
		"no":  {Text: "hm", Signature: "s"}, // sent, and followed by words that the conversation does not hold
	} {
		blocks, err := content.Of(thinking)
		require.NoError(t, err)
		d := ask(fast).Append(node.Message{Role: content.Assistant, Blocks: blocks, Answer: node.Answer{Stop: content.StopMaxTokens}})
		d, err = executor.Run(t.Context(), apitest.NewScript(apitest.Say("Done.").Think("hm", "s")), d)
		require.NoError(t, err)
		require.Equal(t, []string{"", want}, seen(d))
	}
}
