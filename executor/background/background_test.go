package background_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/background"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type subject struct {
	Subject string `json:"subject"`
}

// research takes as long as it is given.
func research(takes time.Duration) executor.Tool {
	return executor.Func("research", "Finds out.", func(ctx context.Context, in subject) (string, error) {
		select {
		case <-time.After(takes):
			return "all about " + in.Subject, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
}

func about(what string) content.ToolUse { return apitest.Use("research", subject{what}) }

// endings returns the texts of the messages that end work.
func endings(d dag.DAG) (texts []string) {
	for _, n := range d.Nodes() {
		m, is := n.Message()
		if is && n.Meta().Get("plait.background") != "" {
			texts = append(texts, m.Blocks.Text())
		}
	}
	return texts
}

func lastText(req api.Request) string { return req.Messages[len(req.Messages)-1].Blocks.Text() }

func TestACallIsAnsweredAtOnceAndItsResultComesOnceAsAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := apitest.NewScript(
			apitest.Call(about("ants"), about("bee")), apitest.Say("I have begun."), apitest.Say("Bees."), apitest.Say("Ants."))
		agent := executor.Agent{Provider: model}
		var middle dag.DAG
		agent.Save = func(_ context.Context, d dag.DAG) error {
			if len(background.Open(d)) == 2 {
				middle = d
			}
			return nil
		}
		agent = background.Add(agent, executor.Func("research", "Finds out.", func(_ context.Context, in subject) (string, error) {
			time.Sleep(time.Hour * time.Duration(len(in.Subject)))
			return "all about " + in.Subject, nil
		}))
		d, err := agent.Run(t.Context(), dag.New().User("Find out."))
		require.NoError(t, err)
		require.Empty(t, d.Validate())

		requests := model.Requests()
		require.Len(t, requests, 4)
		for i, r := range requests[1].Messages[2].Blocks.ToolResults() {
			require.Contains(t, r.Content.Text(), []string{"Background work 1 (research) was started", "Background work 2"}[i])
		}
		require.Contains(t, lastText(requests[2]), "Background work 2 (research) is done")
		require.Contains(t, lastText(requests[2]), "all about bee")
		require.Contains(t, lastText(requests[3]), "all about ants")
		require.Len(t, endings(d), 2)
		require.Empty(t, background.Open(d))

		// Saved in the middle and loaded.
		text, err := middle.MarshalJSON()
		require.NoError(t, err)
		var loaded dag.DAG
		require.NoError(t, loaded.UnmarshalJSON(text))
		open := background.Open(loaded)
		require.Len(t, open, 2)
		require.Equal(t, "research", open[1].Tool)
		require.JSONEq(t, `{"subject":"bee"}`, string(open[1].Input))
		require.Equal(t, 2, open[1].ID)
	})
}

func TestTheModelWorksOnMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quick := executor.Func("quick", "Quick.", func(context.Context, struct{}) (string, error) {
			time.Sleep(10 * time.Minute)
			return "quick", nil
		})
		use := apitest.Use("quick", struct{}{})
		model := apitest.NewScript(apitest.Call(about("bees")), apitest.Call(use), apitest.Call(use), apitest.Say("Done."))
		agent := background.Add(executor.Agent{Provider: model, Tools: []dag.Tool{quick}, ToolTimeout: time.Hour}, research(15*time.Minute))
		d, err := agent.Run(t.Context(), dag.New().User("Find out."))
		require.NoError(t, err)
		require.Len(t, endings(d), 1)
		require.Contains(t, lastText(model.Requests()[3]), "all about bees")
		require.NotContains(t, lastText(model.Requests()[2]), "all about bees")
	})
}

func TestWaitReturnsWhenWorkIsDoneOrAfterATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		wait := func(input map[string]int) apitest.Turn {
			return apitest.Func(func(api.Request) apitest.Turn {
				at = append(at, time.Since(began))
				return apitest.Call(apitest.Use("wait_for_work", input))
			})
		}
		model := apitest.NewScript(apitest.Call(about("bees")), wait(map[string]int{"seconds": 90}), wait(nil),
			wait(map[string]int{"id": 1, "seconds": 3000}), wait(map[string]int{"id": 1}), apitest.Say("Done."))
		agent := background.Add(executor.Agent{Provider: model}, research(10*time.Minute))
		d, err := agent.Run(t.Context(), dag.New().User("Find out."))
		require.NoError(t, err)
		require.Equal(t, []time.Duration{0, 90 * time.Second, 150 * time.Second, 10 * time.Minute}, at)
		requests := model.Requests()
		require.Contains(t, results(requests[2]), "Still not done after 90 seconds")
		require.Contains(t, results(requests[3]), "Still not done after 60 seconds")
		require.Contains(t, results(requests[4]), "has ended")
		require.Contains(t, lastText(requests[4]), "all about bees")
		require.Contains(t, results(requests[5]), "no background work is open")
		require.Len(t, endings(d), 1)
	})
}

// results returns the texts of all tool results of a request.
func results(req api.Request) string {
	var texts []string
	for _, m := range req.Messages {
		for _, r := range m.Blocks.ToolResults() {
			texts = append(texts, r.Content.Text())
		}
	}
	return strings.Join(texts, "\n")
}

func TestStopCancelsWorkAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := func(id int) content.ToolUse { return apitest.Use("stop_work", map[string]int{"id": id}) }
		model := apitest.NewScript(apitest.Call(about("bees"), about("ants")), apitest.Call(stop(1), stop(7)), apitest.Say("Done."), apitest.Say("Ants."))
		began := time.Now()
		d, err := background.Add(executor.Agent{Provider: model}, research(time.Hour)).Run(t.Context(), dag.New().User("Find out."))
		require.NoError(t, err)
		require.Equal(t, time.Hour, time.Since(began), "of the other work")
		require.Contains(t, results(model.Requests()[2]), "Background work 1 (research) was stopped.")
		require.Contains(t, results(model.Requests()[2]), "there is no open work 7; open: 1, 2")
		require.Equal(t, "Background work 1 (research) was stopped.", endings(d)[0])
		require.Contains(t, endings(d)[1], "all about ants")
		require.Len(t, endings(d), 2)
	})
}

func TestWorkThatFailsOrPanicsSaysSo(t *testing.T) {
	bad := func(name string, fail func() error) executor.Tool {
		return executor.Func(name, "Fails.", func(context.Context, struct{}) (string, error) { return "", fail() })
	}
	model := apitest.NewScript(apitest.Call(apitest.Use("errs", struct{}{}), apitest.Use("panics", struct{}{}), about("x"), apitest.Use("research", map[string]int{"subject": 7})),
		apitest.Say("…"), apitest.Say("…"), apitest.Say("…"), apitest.Say("…"), apitest.Say("…"))
	agent := background.Add(executor.Agent{Provider: model, Hooks: []executor.Hook{executor.OutputLimit{MaxBytes: 25}.Hook()}},
		bad("errs", func() error { return errors.New("no such thing") }), bad("panics", func() error { panic("ouch") }), research(0))
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	all := strings.Join(endings(d), "\n")
	require.Contains(t, all, "1 (errs) failed. The error of the tool, not a message of the user:\nno such thing")
	require.Contains(t, all, "2 (panics) failed")
	require.Contains(t, all, "[truncated]", "the After hooks see the results")
	require.Contains(t, all, "all about x")
	require.Contains(t, all, "4 (research) failed")
	require.Len(t, endings(d), 4)
}

func TestARunThatEndsStopsItsWorkAndTheNextOneSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := apitest.NewScript(apitest.Call(about("bees")), apitest.Say("Stopped, I see."), apitest.Say("Yes."))
		agent := background.Add(executor.Agent{Provider: model, Limits: executor.Limits{Turns: 1}}, research(time.Hour))
		began := time.Now()
		d, err := agent.Run(t.Context(), dag.New().User("Find out."))
		require.NoError(t, err)
		require.Zero(t, time.Since(began))
		require.Len(t, background.Open(d), 1)

		agent.Limits = executor.Limits{}
		d, err = agent.Run(t.Context(), d.User("And?"))
		require.NoError(t, err)
		require.Equal(t, []string{"Background work 1 (research) was stopped, because the run that started it had ended."}, endings(d))
	})
}

func TestACancelledRunStopsItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		model := apitest.NewScript(apitest.Call(about("bees")), apitest.Say("I wait."))
		d, err := background.Add(executor.Agent{Provider: model}, research(time.Hour)).Run(ctx, dag.New().User("Find out."))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, background.Open(d), 1)
		require.Empty(t, d.Validate())
	})
}

func TestAMessageOfTheUserEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := executor.NewQueue()
		model := apitest.NewScript(apitest.Call(about("bees")), apitest.Say("I wait."), apitest.Say("Still waiting."), apitest.Say("Bees."))
		agent := background.Add(executor.Agent{Provider: model, Steering: queue}, research(time.Hour))
		time.AfterFunc(time.Minute, func() { require.NoError(t, queue.Add("How is it going?")) })
		d, err := agent.Run(t.Context(), dag.New().User("Find out."))
		require.NoError(t, err)
		require.Equal(t, "How is it going?", lastText(model.Requests()[2]))
		require.Contains(t, lastText(model.Requests()[3]), "all about bees")
		require.Len(t, endings(d), 1)
	})
}

func TestWorkGoesOnWhileItsRunIsPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		tool := executor.Func("research", "Finds out.", func(context.Context, subject) (string, error) {
			calls.Add(1)
			time.Sleep(time.Hour)
			return "all", nil
		})
		pay := executor.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) { return "paid", nil })
		model := apitest.NewScript(apitest.Call(about("bees")), apitest.Call(apitest.Use("pay", struct{}{})), apitest.Say("Paid."), apitest.Say("All."))
		agent := background.Add(executor.Agent{
			Provider: model, Tools: []dag.Tool{pay}, Hooks: []executor.Hook{executor.RequireApproval("pay")},
		}, tool)
		d, err := agent.Run(t.Context(), dag.New().User("Go."))
		require.ErrorIs(t, err, executor.ErrPaused)
		require.Len(t, background.Open(d), 1)
		time.Sleep(2 * time.Hour)

		resumed, err := agent.Resume(t.Context(), d, executor.Approved(d.Pending()[0]))
		require.NoError(t, err)
		require.Len(t, endings(resumed), 1)
		require.Contains(t, endings(resumed)[0], "is done")
		require.EqualValues(t, 1, calls.Load())
	})
}

func TestWorkThatNeedsApprovalIsApprovedBeforeItStarts(t *testing.T) {
	model := apitest.NewScript(apitest.Call(about("bees")), apitest.Say("I wait."), apitest.Say("Bees."))
	agent := background.Add(executor.Agent{Provider: model, Hooks: []executor.Hook{executor.RequireApproval("research")}}, research(0))
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.ErrorIs(t, err, executor.ErrPaused)
	require.Empty(t, background.Open(d))
	d, err = agent.Resume(t.Context(), d, executor.Approved(d.Pending()[0]))
	require.NoError(t, err)
	require.Contains(t, endings(d)[0], "all about bees")
}

func TestASubAgentInTheBackgroundKeepsItsConversation(t *testing.T) {
	inner := apitest.NewScript(apitest.Say("Bees dance."))
	model := apitest.NewScript(apitest.Call(apitest.Use("expert", executor.Task{Task: "Bees?"})), apitest.Say("I wait."), apitest.Say("They dance."))
	agent := background.Add(executor.Agent{Provider: model}, executor.SubAgent("expert", "Knows.", executor.Agent{Provider: inner}))
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	require.Empty(t, d.Validate())
	require.Contains(t, endings(d)[0], "Bees dance.")
	var child dag.DAG
	for _, n := range d.Nodes() {
		if n.Kind() == "sub_graph" {
			child = dag.FromNode(n)
		}
	}
	require.Contains(t, child.Text(), "Bees dance.")
}

func TestASubAgentInTheBackgroundCannotPause(t *testing.T) {
	inner := apitest.NewScript(apitest.Call(about("bees")))
	model := apitest.NewScript(apitest.Call(apitest.Use("expert", executor.Task{Task: "Bees?"})), apitest.Say("I wait."), apitest.Say("A pity."))
	agent := background.Add(executor.Agent{Provider: model}, executor.SubAgent("expert", "Knows.", executor.Agent{
		Provider: inner, Tools: []dag.Tool{research(0)}, Hooks: []executor.Hook{executor.RequireApproval()},
	}))
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	require.Len(t, endings(d), 1)
	require.Contains(t, endings(d)[0], "failed")
}

func TestOutsideARunItIsAnOrdinaryTool(t *testing.T) {
	agent := background.Add(executor.Agent{}, research(0))
	d, err := agent.ExecuteTools(t.Context(), dag.New().User("Go.").Assistant("", about("bees")))
	require.NoError(t, err)
	require.Equal(t, "all about bees", d.Messages()[2].Blocks.ToolResults()[0].Content.Text())
}

func TestToolsThatCannotBeDeclaredAreReported(t *testing.T) {
	for name, tool := range map[string]executor.Tool{
		"nil": nil, "a bad name": executor.NewTool(content.Tool{Name: "no spaces", Schema: `{}`}, nil),
	} {
		model := apitest.NewScript(apitest.Say("Hi."))
		_, err := background.Add(executor.Agent{Provider: model}, tool).Run(t.Context(), dag.New().User("Go."))
		require.Error(t, err, name)
		require.Empty(t, model.Requests(), name)
	}
}
