package live

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// editing serves a conversation. asked is what the last run began with.
func editing(t *testing.T, d dag.DAG, run func(context.Context, dag.DAG) iter.Seq2[executor.Event, error]) (s *site, asked *dag.DAG) {
	t.Helper()
	asked = new(dag.DAG)
	s = serve(t, d, &Options{Run: func(ctx context.Context, d dag.DAG) iter.Seq2[executor.Event, error] {
		*asked = d
		return run(ctx, d)
	}})
	return s, asked
}

// edits edits a message and runs it to the end.
func (s *site) edits(t *testing.T, n *node.Node, text, next string) {
	t.Helper()
	e := s.listen(t)
	e.until(isIdle)
	status, said := s.postEdit(t, n, text, next)
	require.Equal(t, http.StatusAccepted, status, said)
	e.until(isIdle)
}

func (s *site) postEdit(t *testing.T, n *node.Node, text, next string) (int, string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"at": n.ID().String(), "edit": text, "text": next})
	require.NoError(t, err)
	return s.ask(t, http.MethodPost, "fork", string(body))
}

// vouched is a response with all that only its provider may send.
func vouched(more ...content.Block) node.Message {
	extra := content.Extra{API: "anthropic", JSON: `{"citations":[]}`}
	blocks, err := content.Of(append([]content.Block{
		content.Thinking{Text: "Trees …", Signature: "signed"},
		content.Text{Text: "An oak.", Extra: extra},
		content.Opaque{API: "anthropic", JSON: `{"type":"server_tool_use"}`},
		content.Text{Text: "Or a pine."},
	}, more...)...)
	if err != nil {
		panic(err)
	}
	return node.Message{Role: content.Assistant, Blocks: blocks, Answer: node.Answer{
		API: "anthropic", Model: "claude", ResponseID: "r", Stop: content.StopEndTurn, Usage: content.Usage{Output: 9},
	}}
}

func TestEditedResponseIsNoLongerTheProviders(t *testing.T) {
	picture := content.Image{Source: content.Source{URL: "https://example.com/oak.png"}}
	d := start().User("Name a tree.").Append(vouched(picture)).User("Another?").Assistant("A fir.")
	s, asked := editing(t, d, runs(apitest.Say("A yew.")))
	s.edits(t, d.Nodes()[1], "A <b>beech</b>.", "And now?")

	require.Empty(t, asked.Validate())
	said := asked.Messages()
	require.Len(t, said, 3)
	require.Equal(t, []content.Block{content.Text{Text: "A <b>beech</b>."}, picture}, said[1].Blocks.Slice())
	edited, ok := asked.Nodes()[1].Message()
	require.True(t, ok)
	require.Zero(t, edited.Answer, "it has no model, and cost nothing")
	require.Equal(t, "And now?", said[2].Blocks.Text())

	heads := s.DAG().Heads()
	require.Len(t, heads, 2)
	require.Same(t, d.Head(), heads[0], "the branch before is untouched")
	require.Equal(t, "A yew.", s.DAG().WithHeads(heads[1]).Text())
}

func TestCallsOfAnEditedResponseKeepTheirResults(t *testing.T) {
	d := start().Tools(forecast(opened())).User("Weather in Tokyo and Atlantis?")
	d, err := executor.Run(t.Context(), looks("Look.", "Tokyo", "Atlantis"), d)
	require.NoError(t, err)
	s, asked := editing(t, d, runs(apitest.Say("Dry.")))
	caller := d.Nodes()[3]
	s.edits(t, caller, "I look.", "")

	require.Empty(t, asked.Validate())
	require.Equal(t, results(d), results(*asked))
	edited := asked.Messages()[1]
	require.Equal(t, "I look.", edited.Blocks.Text())
	require.Len(t, edited.Blocks.ToolUses(), 2)
	require.Equal(t, 3, edited.Blocks.Len(), "its thinking is left out")

	for _, n := range asked.Nodes() {
		if e, ok := n.Payload().(node.ToolExecution); ok {
			require.True(t, e.Started.IsZero(), "it took no time again")
			require.Zero(t, e.Usage)
		}
	}
	require.Empty(t, s.DAG().WithHeads(s.DAG().Heads()[1]).Validate())
}

func TestOpenCallsOfAnEditedResponseAreExecuted(t *testing.T) {
	d := start().Tools(forecast(opened())).User("Weather?").Append(vouched(
		content.ToolUse{ID: "1", Name: "get_weather", Input: `{"city":"Tokyo"}`}, content.ToolUse{
			ID: "2", Name: "get_weather", Input: `{"city":"Atlantis"}`, Extra: content.Extra{API: "gemini", JSON: `{"thoughtSignature":"eA=="}`},
		}))
	caller := d.Head()
	d = d.AppendExecutions(node.ToolExecution{Index: 5, Result: content.Words("it sank long ago")})
	s, asked := editing(t, d, func(ctx context.Context, d dag.DAG) iter.Seq2[executor.Event, error] {
		return executor.Stream(ctx, apitest.NewScript(apitest.Say("Dry.")), d)
	})
	s.edits(t, caller, "", "")

	require.Len(t, asked.OpenCalls(), 1, "one has its result")
	branch := s.DAG().WithHeads(s.DAG().Heads()[len(s.DAG().Heads())-1])
	require.Empty(t, branch.Validate())
	require.Equal(t, []string{"22°C", "it sank long ago"}, results(branch))
	require.Equal(t, "Dry.", branch.Text())
	for _, use := range branch.Messages()[1].Blocks.ToolUses() {
		require.Zero(t, use.Extra)
	}
}

// The branch keeps what a paused sub-agent has done, and pauses anew: each pause is answered for its own branch.
func TestPausedSubAgentOfAnEditedResponseAsksOnItsBranch(t *testing.T) {
	inner, removed := remover(
		apitest.Call(apitest.Use("look", none{})), removes("Rome"), apitest.Say("Removed."), apitest.Say("Kept."))
	looked := 0
	inner.Tools = append(inner.Tools, executor.Func("look", "Looks.", func(context.Context, none) (string, error) {
		looked++
		return "Rome is there", nil
	}))
	outer := executor.Agent{
		Provider: apitest.NewScript(
			apitest.Say("I ask.").Call(apitest.Use("helper", executor.Task{Task: "Go."})), apitest.Say("Edited."), apitest.Say("As before.")),
		Tools: []dag.Tool{executor.SubAgent("helper", "Helps.", inner)},
	}
	d, c := pauseOf(t, outer)
	s, asked := editing(t, d, outer.Stream)
	s.options.Resume = outer.ResumeStream
	s.SetPaused(Paused{Continuation: c})
	e := s.listen(t)
	before := pausedIn(t, e.until(isIdle))

	status, said := s.postEdit(t, d.Node(topOf(d, c)), "I ask politely.", "")
	require.Equal(t, http.StatusAccepted, status, said)
	e.until(isIdle)
	require.Empty(t, asked.Validate())
	pauses := *s.paused()
	require.Len(t, pauses, 2)
	require.Equal(t, before, pauses[0])
	branch := pauses[1]
	require.NotEqual(t, before.ID, branch.ID)
	edited, ok := s.DAG().Node(branch.Node).Message()
	require.True(t, ok)
	require.Equal(t, "I ask politely.", edited.Blocks.Text())
	require.Equal(t, asksApproval, branch.Calls[0].Asks)
	require.Equal(t, 1, looked, "what the sub-agent has done is not done again")
	require.Empty(t, *removed)

	s.accepts(t, branch, 0, `{"approve":true}`)
	e.until(func(a activity) bool { return a.State == running })
	e.until(isIdle)
	require.Equal(t, []string{"Rome"}, *removed)
	require.Equal(t, []pausedRun{before}, *s.paused(), "the branch before still waits")

	s.accepts(t, before, 0, `{"approve":false}`)
	e.until(func(a activity) bool { return a.State == running })
	e.until(isIdle)
	require.Equal(t, []string{"Rome"}, *removed)
	require.Equal(t, 1, looked)
	var texts []string
	for _, h := range s.DAG().Heads() {
		own := s.DAG().WithHeads(h)
		require.Empty(t, own.Validate())
		texts = append(texts, own.Text())
	}
	require.Equal(t, []string{"As before.", "Edited."}, texts)
}

func TestCallInDoubtOfAnEditedResponseIsInDoubt(t *testing.T) {
	agent, removed := remover(removes("Rome"))
	agent.Hooks = append(agent.Hooks, executor.Hook{InDoubt: func(context.Context, executor.Call) (executor.Decision, error) {
		return executor.AskApproval("Was it removed?"), nil
	}})
	d, c := pauseOf(t, agent)
	caller := topOf(d, c)
	d = d.AppendExecutions(node.ToolExecution{Index: c.Calls[0].Index, State: node.ExecutionStarted, Started: time.Unix(7, 0).UTC()})
	s, asked := editing(t, d, agent.Stream)
	e := s.listen(t)
	e.until(isIdle)

	status, said := s.postEdit(t, d.Node(caller), "I remove it.", "")
	require.Equal(t, http.StatusAccepted, status, said)
	p := pausedIn(t, e.until(isIdle))
	require.Empty(t, asked.Validate())
	require.True(t, p.Calls[0].Doubt, "it may have been executed")
	require.Contains(t, p.Calls[0].Reason, "it was started at 1970-01-01T00:00:07Z")
	require.Empty(t, *removed)
}

func TestEditedUserMessageKeepsItsAttachments(t *testing.T) {
	picture := content.Image{Source: content.Source{URL: "https://example.com/oak.png"}}
	d := start().User("What is this?", picture).Assistant("A tree.")
	s, asked := editing(t, d, runs(apitest.Say("An oak.")))
	s.edits(t, d.Nodes()[0], "Which tree is this?", "")

	require.Len(t, asked.Messages(), 1)
	require.Equal(t, []content.Block{content.Text{Text: "Which tree is this?"}, picture}, asked.Messages()[0].Blocks.Slice())
	require.Len(t, s.DAG().Heads(), 2)
}

func TestEditIsRefused(t *testing.T) {
	d := start().System("Be brief.").User("Weather in Tokyo?").Append(vouched(apitest.Use("get_weather", place{"Tokyo"})))
	d = d.CloseTools(node.ToolExecution{Index: 4, Result: content.Words("22°C")}).Append(vouched())
	nodes := d.Nodes()
	s, _ := editing(t, d, runs())

	for name, c := range map[string]struct {
		at         *node.Node
		text, next string
		want       string
	}{
		"a prompt":         {nodes[0], "Talk.", "", errNoMessage.Error()},
		"an execution":     {nodes[3], "23°C", "", errNoMessage.Error()},
		"results":          {nodes[4], "23°C", "", errNoMessage.Error()},
		"no user's text":   {nodes[1], " \n", "", errNoText.Error()},
		"no response":      {nodes[5], "", "And?", errNoText.Error()},
		"nothing after it": {nodes[5], "A beech.", " ", errNoNext.Error()},
	} {
		status, text := s.postEdit(t, c.at, c.text, c.next)
		require.Equal(t, http.StatusUnprocessableEntity, status, name)
		var said refusal
		require.NoError(t, json.Unmarshal([]byte(text), &said))
		require.Equal(t, c.want, said.Message, name)
	}
	require.True(t, dag.Equal(d, s.DAG()))
}

// topOf returns the message of d that leads to the first call of a pause.
func topOf(d dag.DAG, _ executor.Continuation) node.ID { return messageOf(d.Pending()[0]) }
