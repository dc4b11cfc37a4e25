package acp

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/front"
	"github.com/plait-dev/plait/internal/unwrap"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// turn is a prompt under way: a run, and further ones after its pauses. Its events come on one goroutine.
type turn struct {
	*session
	agent  executor.Agent
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when it is over

	calling map[string]node.ID    // the message whose calls are executed, by the path of the sub-agent
	shown   map[node.CallKey]bool // the calls that the client has seen; false for a plan
	text    bool                  // a piece of the message's text was sent
}

// errBusy refuses what has to wait for the end of a prompt.
var errBusy = invalid("a prompt of the session is under way")

// busy reports whether a prompt is under way.
func (s *session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn != nil
}

// prompt begins a prompt at once, so that a cancel that follows it finds it.
func (s *server) prompt(ctx context.Context, params json.RawMessage) func() (any, error) {
	r, err := decode[sdk.PromptRequest](params)
	if err != nil {
		return refuse(err)
	}
	open, err := s.session(r.SessionId)
	if err != nil {
		return refuse(err)
	}
	blocks, err := blocksOf(r.Prompt)
	switch {
	case err != nil:
		return refuse(sdk.NewInvalidParams(map[string]any{"error": err.Error()}))
	case blocks.Len() == 0:
		return refuse(sdk.NewInvalidParams(map[string]any{"error": "the prompt is empty"}))
	}

	t := &turn{session: open, done: make(chan struct{}), calling: map[string]node.ID{}, shown: map[node.CallKey]bool{}}
	ctx, t.cancel = context.WithCancelCause(ctx)
	open.mu.Lock()
	defer open.mu.Unlock()
	switch {
	case open.closed:
		t.cancel(nil)
		return refuse(errNoSession)
	case open.turn != nil:
		t.cancel(nil)
		return refuse(errBusy)
	}
	open.turn = t
	return func() (any, error) {
		defer t.over()
		return t.run(ctx, blocks)
	}
}

// over ends the turn.
func (t *turn) over() {
	t.mu.Lock()
	t.turn = nil
	clear(t.keeps)
	t.mu.Unlock()
	t.cancel(nil)
	close(t.done)
}

// cancel cancels the prompt of a session. There may be none: the client has not read its end yet.
func (s *server) cancel(params json.RawMessage) func() (any, error) {
	r, err := decode[sdk.CancelNotification](params)
	if err != nil {
		return refuse(err)
	}
	open, err := s.session(r.SessionId)
	if err != nil {
		return refuse(err)
	}
	open.mu.Lock()
	defer open.mu.Unlock()
	if open.turn != nil {
		open.turn.cancel(errCancelled)
	}
	return func() (any, error) { return nil, nil }
}

// run appends the prompt to the conversation, runs the agent, and asks for approval at each pause.
func (t *turn) run(ctx context.Context, prompt content.Blocks) (sdk.PromptResponse, error) {
	// What has arrived is kept, even if the client has cancelled it or hung up meanwhile.
	c, err := t.newest(context.WithoutCancel(ctx))
	if err != nil {
		return sdk.PromptResponse{}, t.failed(ctx, err)
	}

	// A prompt in place of an answer, after a crash for example, declines the open calls.
	d := c.DAG()
	if len(d.OpenCalls()) > 0 {
		d = d.CloseTools()
	}
	d = t.describe(d, prompt).Append(node.Message{Role: content.User, Blocks: prompt})

	t.prepare(c)
	ctx = context.WithValue(ctx, sessionKey{}, &Session{t.session})
	events := t.agent.Stream(ctx, d)
	for {
		end, err := t.forward(events)
		var paused *executor.PausedError
		if !errors.As(err, &paused) {
			return t.ended(ctx, end, err)
		}
		replies, err := t.ask(ctx, end.DAG)
		if err != nil {
			return t.ended(ctx, end, t.decline(ctx, c, end.DAG, err))
		}
		events = t.agent.ResumeStream(ctx, end.DAG, replies...)
	}
}

// newest returns the conversation as it is stored now: another program may have continued it.
func (t *turn) newest(ctx context.Context) (*store.Conversation, error) {
	c, err := t.conversation.Head(ctx, t.conversation.Name())
	if errors.Is(err, store.ErrNotStored) && !errors.Is(err, store.ErrRecord) {
		key, name := t.conversation.Key(), t.conversation.Name()
		if name != store.Main {
			return nil, err // a fork that was removed
		}
		c, err = t.Store.Conversation(ctx, key)
	}
	if err == nil {
		t.mu.Lock()
		t.conversation = c
		t.mu.Unlock()
	}
	return c, err
}

// describe stores the title and the model of the session in the conversation.
func (t *turn) describe(d dag.DAG, prompt content.Blocks) dag.DAG {
	t.mu.Lock()
	title := ""
	if t.chosen.Title == "" {
		title = titleOf(prompt)
		t.chosen.Title = title
	}
	chosen := t.chosen
	t.mu.Unlock()

	// The run finds out if the client is gone.
	if title != "" {
		_ = t.update(sdk.SessionUpdate{SessionInfoUpdate: &sdk.SessionSessionInfoUpdate{Title: &title}})
	}
	return d.WithMetadata(metaKey, chosen)
}

// prepare sets the agent of the turn: with the session's choices, and the tools that the client has.
func (t *turn) prepare(c *store.Conversation) {
	t.mu.Lock()
	chosen := t.chosen
	t.mu.Unlock()
	a := t.server.agent
	model, _ := choice(t.Models, chosen.Model)
	mode, _ := choice(t.Modes, chosen.Mode)
	for _, c := range []Choice{model, mode} {
		if c.Agent != nil {
			a = c.Agent(a)
		}
	}

	var tools []dag.Tool
	for _, tool := range a.Tools {
		if o, is := unwrap.As[*own, executor.Tool](tool); !is || o.needs == nil || o.needs(t.client.Capabilities) {
			tools = append(tools, tool)
		}
	}
	a.Tools = append(tools, t.tools.list()...)
	a.Hooks = append(a.Hooks[:len(a.Hooks):len(a.Hooks)], t.tools.hooks()...)
	a.Save = front.Save(a.Save, c.Append)
	t.agent = a
}

// forward sends the events of a run to the client. It returns the last one and the run's error.
func (t *turn) forward(events iter.Seq2[executor.Event, error]) (executor.End, error) {
	for e, err := range events {
		if end, is := e.(executor.End); is {
			return end, err
		}
		// A client that is gone ends the connection, and with it the run: see conn.
		t.event("", nil, e)
	}
	return executor.End{}, ErrGone
}

// event sends an event of the agent, or of a sub-agent below the calls of a path. Only the calls of sub-agents are sent:
// their texts are for the agent.
func (t *turn) event(path string, parent *node.CallKey, e executor.Event) {
	switch e := e.(type) {
	case executor.MessageDelta:
		if path == "" {
			t.delta(e.Event)
		}
	case executor.Retry:
		if path == "" && t.text {
			_ = t.update(sdk.UpdateAgentThoughtText("The response broke off, and is requested again."))
		}
	case executor.MessageEnd:
		t.message(path, parent, e.Node)

	case executor.ToolStart:
		t.calling[path] = e.Call.Message
		t.call(e.Call, parent)
		options := []sdk.ToolCallUpdateOpt{sdk.WithUpdateStatus(sdk.ToolCallStatusInProgress)}
		if e.Ran.Input != e.Call.Input {
			options = append(options, sdk.WithUpdateRawInput(rawOf(e.Ran.Input)))
		}
		t.change(e.Call.Key(), options...)
	case executor.ToolUpdate:
		t.change(e.Call.Key(), sdk.WithUpdateContent(contentOf(e.Content)))
	case executor.ToolEnd:
		key := node.CallKey{Message: t.calling[path], Index: e.Execution.Index}
		t.change(key, t.result(key, e.Execution.Result, e.Execution.IsError)...)

	case executor.Child:
		inner, last := "", node.CallKey{}
		for _, call := range e.Path {
			last = call.Key()
			inner += "/" + last.String()
		}
		t.event(inner, &last, e.Event)
	}
}

// delta sends a piece of text or thinking.
func (t *turn) delta(e api.Event) {
	d, ok := e.(api.Delta)
	switch {
	case !ok || d.Text == "":
	case d.Kind == api.DeltaText:
		t.text = true
		_ = t.update(sdk.UpdateAgentMessageText(d.Text))
	case d.Kind == api.DeltaThinking:
		_ = t.update(sdk.UpdateAgentThoughtText(d.Text))
	}
}

// message ends a message, and sends its calls. A text that was not streamed is sent as a whole.
func (t *turn) message(path string, parent *node.CallKey, n *node.Node) {
	streamed := t.text
	if path == "" {
		t.text = false
	}
	if n == nil {
		return
	}
	m, _ := n.Message()
	if text := m.Blocks.Text(); path == "" && m.Role == content.Assistant && text != "" && !streamed {
		_ = t.update(sdk.UpdateAgentMessageText(text))
	}
	for index, block := range m.Blocks.All() {
		if use, is := block.(content.ToolUse); is {
			t.call(executor.Call{Name: use.Name, Input: use.Input, Message: n.ID(), Index: index, ID: use.ID}, parent)
		}
	}
}

// call sends a call, once.
func (t *turn) call(call executor.Call, parent *node.CallKey) {
	key := call.Key()
	if _, known := t.shown[key]; known {
		return
	}
	u := t.started(call, parent)
	t.shown[key] = u.ToolCall != nil
	_ = t.update(u)
}

// change sends a change of a call that the client has seen.
func (t *turn) change(key node.CallKey, options ...sdk.ToolCallUpdateOpt) {
	if t.shown[key] {
		_ = t.update(sdk.UpdateToolCall(callID(key), options...))
	}
}

// started returns the update that shows a call. A call of the plan tool is a plan instead.
func (s *session) started(call executor.Call, parent *node.CallKey) sdk.SessionUpdate {
	if entries, is := s.planOf(call); is {
		return sdk.UpdatePlan(entries...)
	}
	view := s.view(call)
	if len(view.Content) > 0 {
		s.keep(call.Key())
	}
	u := sdk.SessionUpdateToolCall{
		ToolCallId: callID(call.Key()), Title: view.Title, Kind: view.Kind, Status: sdk.ToolCallStatusPending,
		Locations: view.Locations, Content: view.Content, RawInput: rawOf(call.Input),
	}
	if parent != nil {
		u.Meta = map[string]any{"plait": map[string]any{"parentToolCallId": callID(*parent)}}
	}
	return sdk.SessionUpdate{ToolCall: &u}
}

// keep keeps the content that is shown of a call, such as a diff, when its result comes.
func (s *session) keep(key node.CallKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keeps[key] = true
}

// result returns the change of a call by its result.
func (s *session) result(key node.CallKey, blocks content.Blocks, failed bool) []sdk.ToolCallUpdateOpt {
	s.mu.Lock()
	keeps := s.keeps[key]
	delete(s.keeps, key)
	s.mu.Unlock()

	options := []sdk.ToolCallUpdateOpt{sdk.WithUpdateStatus(sdk.ToolCallStatusCompleted)}
	if failed {
		options[0] = sdk.WithUpdateStatus(sdk.ToolCallStatusFailed)
	}
	if blocks.Len() > 0 && (failed || !keeps) {
		options = append(options, sdk.WithUpdateContent(contentOf(blocks)))
	}
	return options
}

// ended returns the response to the prompt, or the error of the run.
func (t *turn) ended(ctx context.Context, end executor.End, err error) (sdk.PromptResponse, error) {
	usage := end.Stop.Usage
	response := sdk.PromptResponse{Usage: &sdk.Usage{
		InputTokens: int(usage.Input), OutputTokens: int(usage.Output), TotalTokens: int(usage.Total()),
		CachedReadTokens: sdk.Ptr(int(usage.CacheRead)), CachedWriteTokens: sdk.Ptr(int(usage.CacheWrite)),
		ThoughtTokens: sdk.Ptr(int(usage.Reasoning)),
	}}

	// The run of a cancelled prompt may have ended by itself at the same time. To the client it is cancelled.
	if errors.Is(context.Cause(ctx), errCancelled) {
		response.StopReason = sdk.StopReasonCancelled
		return response, nil
	}
	if err != nil {
		return sdk.PromptResponse{}, t.failed(ctx, err)
	}
	switch end.Stop.Reason {
	case content.StopMaxTokens, content.StopContext:
		response.StopReason = sdk.StopReasonMaxTokens
	case content.StopRefusal:
		response.StopReason = sdk.StopReasonRefusal
	case content.StopMaxTurns, content.StopTokenLimit, content.StopCostLimit, content.StopTimeLimit, content.StopCallLimit,
		content.StopLoop:
		response.StopReason = sdk.StopReasonMaxTurnRequests
	default:
		response.StopReason = sdk.StopReasonEndTurn
	}
	return response, nil
}

// failed logs the error of a run, and returns its kind for the client.
func (t *turn) failed(ctx context.Context, err error) error {
	t.Log.ErrorContext(ctx, "acp: a prompt failed", "session", t.id, "error", err)
	return &sdk.RequestError{Code: -32603, Message: "the prompt failed: " + front.Kind(err)}
}
