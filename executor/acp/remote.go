package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// Limits for a remote agent.
const (
	maxUpdates  = 32 << 20 // bytes of all updates of a task
	remoteGrace = 500 * time.Millisecond
)

// Dial starts an agent, or connects to one. It is called once for each task, and the connection is closed at its end.
type Dial func(ctx context.Context) (io.ReadWriteCloser, error)

// Remote is an agent of another program, which speaks the protocol. It is safe for concurrent use.
type Remote struct {
	// Dial starts the agent. Required.
	Dial Dial
	// Dir is the working directory of the agent, an absolute path. Defaults to that of the [Session] of the run, or to
	// that of the program.
	Dir string
	// Mode is the mode of the agent, by its ID. Defaults to the agent's own.
	Mode string
	// Servers are MCP servers for the agent. Defaults to none.
	Servers []sdk.McpServer
	// Permit answers the agent's questions for permission. ctx is that of the tool call, so that
	// SessionOf(ctx).Ask can pass them on. Defaults to declining all of them.
	Permit func(ctx context.Context, r sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error)
}

// Tool returns a tool that gives the agent a task. Its result is the text of the agent's last message, and the child of
// the call is the conversation of [Remote.Run]. The titles of the agent's calls are the progress of the call. The tool has
// no timeout: set one by executor.WithTimeout.
func (r *Remote) Tool(name, description string) executor.Tool {
	return executor.WithTimeout(executor.Func(name, description,
		func(ctx context.Context, in executor.Task) (executor.Result, error) {
			d, response, err := r.run(ctx, in.Task)
			result := executor.Result{Child: d, Usage: usageOf(response.Usage)}
			if err != nil {
				return result, err
			}

			text := d.Text()
			if response.StopReason != sdk.StopReasonEndTurn {
				text = strings.TrimSpace(text + "\n\n[Agent stopped: " + safetext.Escape(string(response.StopReason), 40) + "]")
			}
			if text == "" {
				text = "(sub-agent produced no text output)"
			}
			result.Content = content.Words(text)
			return result, nil
		}), 0)
}

// Run gives the agent a task, in a session of its own, and returns the conversation: the task, the agent's messages, its
// calls and their results. The conversation is valid beside any error, as far as it got. Errors:
//
//   - that of Dial;
//   - [ErrGone] if the agent ends before its answer;
//   - an *sdk.RequestError of the agent, if it needs a login for example;
//   - dag.ErrLimit if it sends more than 32 MiB, and the cause of ctx.
func (r *Remote) Run(ctx context.Context, task string) (dag.DAG, error) {
	d, _, err := r.run(ctx, task)
	return d, err
}

func (r *Remote) run(ctx context.Context, task string) (dag.DAG, sdk.PromptResponse, error) {
	work := &remoteTask{Remote: r, ctx: ctx, d: dag.New().User(task), byID: map[string]int{}}
	link, err := r.Dial(ctx)
	if err != nil {
		return work.d, sdk.PromptResponse{}, fmt.Errorf("acp: starting the agent: %w", err)
	}

	// The connection lives as long as the task needs to end well, which may be longer than ctx.
	work.conn = newConn(work.begin)
	alive, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- work.conn.run(alive, link, link) }()

	response, err := work.prompt(ctx, task)
	hangUp()
	reason := <-ended
	if errors.Is(err, ErrGone) {
		err = errors.Join(err, trouble(reason, link))
	}
	return work.conversation(), response, err
}

// trouble returns why a connection was lost, as far as it is known.
func trouble(reason error, link io.ReadWriteCloser) error {
	if errors.Is(reason, context.Canceled) {
		reason = nil // it was hung up after it was lost
	}
	if p, is := link.(*process); is && p.printed.String() != "" {
		return errors.Join(reason, fmt.Errorf("the agent printed: %s", safetext.Escape(p.printed.String(), 1000)))
	}
	return reason
}

// remoteTask is a task of a remote agent.
type remoteTask struct {
	*Remote
	ctx  context.Context // of the tool call
	conn *conn

	mu     sync.Mutex // guards the fields below
	d      dag.DAG
	size   int // bytes of the updates so far
	err    error
	blocks []content.Block // of the message that is not in d yet
	text   strings.Builder // the text after them, which may continue
	thinks bool            // it is thinking
	calls  []remoteCall    // its calls
	byID   map[string]int  // their indices in calls; -1 for a call in d
	open   int             // how many of them have no result
}

// remoteCall is a call of a remote agent.
type remoteCall struct {
	id     string
	index  int // of its block
	title  string
	input  json.RawMessage
	done   bool
	failed bool
	result []content.Block
}

// prompt opens a session and sends the task. If ctx ends, the agent may end its turn first.
func (t *remoteTask) prompt(ctx context.Context, task string) (response sdk.PromptResponse, err error) {
	info := &sdk.Implementation{Name: "plait", Version: "v0"}
	hello, err := call[struct{ ProtocolVersion int }](ctx, t.conn, sdk.AgentMethodInitialize, sdk.InitializeRequest{
		ProtocolVersion: sdk.ProtocolVersionNumber, ClientInfo: info,
	})
	if err == nil && hello.ProtocolVersion != sdk.ProtocolVersionNumber {
		err = fmt.Errorf("acp: the agent speaks version %d of the protocol", hello.ProtocolVersion)
	}
	if err != nil {
		return response, err
	}
	dir := t.Dir
	if s := SessionOf(ctx); dir == "" && s != nil {
		dir = s.Dir()
	}
	if dir == "" {
		if dir, err = os.Getwd(); err != nil {
			return response, err
		}
	}
	session, err := call[sdk.NewSessionResponse](ctx, t.conn, sdk.AgentMethodSessionNew, sdk.NewSessionRequest{
		Cwd: dir, McpServers: append([]sdk.McpServer{}, t.Servers...),
	})
	if err == nil && t.Mode != "" {
		_, err = call[struct{}](ctx, t.conn, sdk.AgentMethodSessionSetMode, sdk.SetSessionModeRequest{
			SessionId: session.SessionId, ModeId: sdk.SessionModeId(t.Mode),
		})
	}
	if err != nil {
		return response, err
	}

	patient, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	defer context.AfterFunc(ctx, func() {
		_ = t.conn.notify(sdk.AgentMethodSessionCancel, sdk.CancelNotification{SessionId: session.SessionId})
		time.AfterFunc(remoteGrace, func() { end(context.Cause(ctx)) })
	})()
	response, err = call[sdk.PromptResponse](patient, t.conn, sdk.AgentMethodSessionPrompt, sdk.PromptRequest{
		SessionId: session.SessionId, Prompt: []sdk.ContentBlock{sdk.TextBlock(task)},
	})

	t.mu.Lock()
	limit := t.err
	t.mu.Unlock()
	switch {
	case limit != nil:
		return response, limit
	case ctx.Err() != nil:
		return response, context.Cause(ctx)
	}
	return response, err
}

// begin implements handler.
func (t *remoteTask) begin(ctx context.Context, method string, params json.RawMessage) func() (any, error) {
	switch method {
	case sdk.ClientMethodSessionUpdate:
		return func() (any, error) { return nil, t.update(params) }
	case sdk.ClientMethodSessionRequestPermission:
		return do(ctx, params, t.permit)
	}
	return refuse(sdk.NewMethodNotFound(method))
}

// permit answers a question for permission.
func (t *remoteTask) permit(
	ctx context.Context, r sdk.RequestPermissionRequest,
) (response sdk.RequestPermissionResponse, err error) {
	if t.Permit != nil {
		with, end := context.WithCancel(t.ctx)
		defer end()
		defer context.AfterFunc(ctx, end)()
		return t.Permit(with, r)
	}

	response.Outcome = sdk.NewRequestPermissionOutcomeCancelled()
	for _, kind := range []sdk.PermissionOptionKind{sdk.PermissionOptionKindRejectOnce, sdk.PermissionOptionKindRejectAlways} {
		i := slices.IndexFunc(r.Options, func(o sdk.PermissionOption) bool { return o.Kind == kind })
		if i >= 0 {
			response.Outcome = sdk.NewRequestPermissionOutcomeSelected(r.Options[i].OptionId)
			break
		}
	}
	return response, nil
}

// remoteUpdate is an update of a session, with the members that are used. The SDK's own type refuses kinds that it does
// not know.
type remoteUpdate struct {
	Update struct {
		Kind      string          `json:"sessionUpdate"`
		Content   json.RawMessage `json:"content"` // a block, or a list for a call
		ID        string          `json:"toolCallId"`
		Title     string          `json:"title"`
		ToolKind  string          `json:"kind"`
		Status    string          `json:"status"`
		RawInput  json.RawMessage `json:"rawInput"`
		RawOutput json.RawMessage `json:"rawOutput"`
	} `json:"update"`
}

// update adds an update to the conversation. It is called for one after the other.
func (t *remoteTask) update(params json.RawMessage) error {
	var u remoteUpdate
	if err := json.Unmarshal(params, &u); err != nil {
		return err
	}

	t.mu.Lock()
	t.size += len(params)
	if t.size > maxUpdates {
		t.err = fmt.Errorf("acp: the agent sent more than %d bytes: %w", maxUpdates, dag.ErrLimit)
		t.conn.end(t.err)
	}
	if t.err != nil {
		t.mu.Unlock()
		return t.err
	}
	title := ""
	switch u.Update.Kind {
	case "agent_message_chunk", "agent_thought_chunk":
		t.piece(u)
	case "tool_call", "tool_call_update":
		title = t.change(u)
	}
	t.mu.Unlock()

	// The run may not take the progress at once: hold no lock.
	if title != "" {
		return executor.Progress(t.ctx, title)
	}
	return nil
}

// piece adds a piece of a message. t.mu must be held.
func (t *remoteTask) piece(u remoteUpdate) {
	var text struct{ Type, Text string }
	if json.Unmarshal(u.Update.Content, &text) != nil {
		return
	}
	t.endPhase()
	if text.Type != "text" {
		var c sdk.ContentBlock // the SDK reads each block many times over
		if json.Unmarshal(u.Update.Content, &c) == nil {
			t.endText()
			t.blocks = append(t.blocks, checked(blockOf(c)))
		}
		return
	}

	// Pieces of one text follow each other.
	thinks := u.Update.Kind == "agent_thought_chunk"
	if thinks != t.thinks {
		t.endText()
	}
	t.thinks = thinks
	t.text.WriteString(text.Text)
}

// endText ends the text or the thinking whose pieces have arrived. t.mu must be held.
func (t *remoteTask) endText() {
	switch text := t.text.String(); {
	case text == "":
	case t.thinks:
		t.blocks = append(t.blocks, content.Thinking{Text: text})
	default:
		t.blocks = append(t.blocks, content.Text{Text: text})
	}
	t.text.Reset()
}

// checked returns the block, or a text with the error if the block is not valid in a conversation.
func checked(b content.Block) content.Block {
	if _, err := content.Of(b); err != nil {
		return content.Text{Text: "[" + err.Error() + "]"}
	}
	return b
}

// change adds or changes a call. It returns the title of a new one. t.mu must be held.
func (t *remoteTask) change(u remoteUpdate) (title string) {
	i, known := t.byID[u.Update.ID]
	if known && i < 0 {
		if u.Update.Kind == "tool_call_update" {
			return "" // the call has its result already
		}
		known = false // the ID is used again
	}
	if !known {
		t.endPhase()
		t.endText()
		i = len(t.calls)
		t.calls = append(t.calls, remoteCall{id: u.Update.ID, index: len(t.blocks)})
		t.byID[u.Update.ID] = i
		t.open++
		name := u.Update.ToolKind
		if !slices.Contains(toolKinds, sdk.ToolKind(name)) {
			name = string(sdk.ToolKindOther)
		}
		t.blocks = append(t.blocks, content.ToolUse{ID: u.Update.ID, Name: name})
		title = u.Update.Title
	}

	c := &t.calls[i]
	if u.Update.Title != "" {
		c.title = u.Update.Title
	}
	if len(u.Update.RawInput) > 0 {
		c.input = u.Update.RawInput
	}
	if blocks := resultBlocks(u); len(blocks) > 0 {
		c.result = blocks
	}
	c.failed = u.Update.Status == string(sdk.ToolCallStatusFailed)
	if !c.done && (c.failed || u.Update.Status == string(sdk.ToolCallStatusCompleted)) {
		c.done = true
		t.open--
	}
	return title
}

var toolKinds = []sdk.ToolKind{
	sdk.ToolKindRead, sdk.ToolKindEdit, sdk.ToolKindDelete, sdk.ToolKindMove, sdk.ToolKindSearch, sdk.ToolKindExecute,
	sdk.ToolKindThink, sdk.ToolKindFetch, sdk.ToolKindSwitchMode,
}

// resultBlocks returns what an update has of the content of a call.
func resultBlocks(u remoteUpdate) (blocks []content.Block) {
	var list []json.RawMessage
	_ = json.Unmarshal(u.Update.Content, &list) // no content
	for _, item := range list {
		var c sdk.ToolCallContent
		switch err := json.Unmarshal(item, &c); {
		case err != nil:
		case c.Content != nil:
			blocks = append(blocks, checked(blockOf(c.Content.Content)))
		case c.Diff != nil:
			blocks = append(blocks, content.Text{Text: "Now in " + c.Diff.Path + ":\n" + c.Diff.NewText})
		}
	}
	if len(blocks) == 0 && len(u.Update.RawOutput) > 0 {
		blocks = append(blocks, content.Text{Text: string(u.Update.RawOutput)})
	}
	return blocks
}

// endPhase moves the message to the conversation if it has calls and all of them have results. t.mu must be held.
func (t *remoteTask) endPhase() {
	if len(t.calls) > 0 && t.open == 0 {
		t.flush()
	}
}

// flush moves the message to the conversation, with the results of its calls. A call without one gets an error. t.mu must
// be held.
func (t *remoteTask) flush() {
	t.endText()
	if len(t.blocks) == 0 {
		return
	}

	// The agent's own tools have no names in the protocol, only kinds.
	var executions []node.ToolExecution
	for _, c := range t.calls {
		use := t.blocks[c.index].(content.ToolUse)
		use.Input, _ = content.ToJSON(map[string]any{"title": c.title, "input": c.input}) // both came as JSON
		t.blocks[c.index] = use
		if !slices.ContainsFunc(t.d.ToolDefs(), func(def content.Tool) bool { return def.Name == use.Name }) {
			t.d = t.d.Tools(content.Tool{Name: use.Name, Description: "A tool of the agent.", Schema: `{"type":"object"}`})
		}
		if c.done {
			result, _ := content.Of(c.result...) // each was checked
			executions = append(executions, node.ToolExecution{Index: c.index, Result: result, IsError: c.failed})
		}
	}
	t.d = t.d.Assistant("", t.blocks...)
	if len(t.calls) > 0 {
		t.d = t.d.CloseTools(executions...)
	}
	for _, c := range t.calls {
		t.byID[c.id] = -1
	}
	t.blocks, t.calls, t.open = nil, nil, 0
}

// conversation returns the conversation at the end of the task.
func (t *remoteTask) conversation() dag.DAG {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flush()
	return t.d
}

// usageOf returns the tokens that the agent has used, as far as it says so.
func usageOf(u *sdk.Usage) (usage content.Usage) {
	if u == nil {
		return content.Usage{Incomplete: true}
	}
	usage.Input, usage.Output = int64(u.InputTokens), int64(u.OutputTokens)
	for _, count := range []struct {
		from *int
		to   *int64
	}{{u.CachedReadTokens, &usage.CacheRead}, {u.CachedWriteTokens, &usage.CacheWrite}, {u.ThoughtTokens, &usage.Reasoning}} {
		if count.from != nil {
			*count.to = int64(*count.from)
		}
	}
	return usage
}

// Command returns a Dial for a program that serves on its standard input and output. At the end of a task its input is
// closed, and it is killed if it does not end soon. The end of its standard error is part of [ErrGone].
func Command(name string, args ...string) Dial {
	return func(context.Context) (io.ReadWriteCloser, error) {
		p := &process{cmd: exec.Command(name, args...)}
		p.cmd.Stderr = &p.printed
		p.cmd.WaitDelay = remoteGrace // a child of the program may hold its output open
		var err error
		if p.WriteCloser, err = p.cmd.StdinPipe(); err != nil {
			return nil, err
		}
		if p.Reader, err = p.cmd.StdoutPipe(); err != nil {
			return nil, err
		}
		return p, p.cmd.Start()
	}
}

// process is a started agent.
type process struct {
	io.Reader
	io.WriteCloser
	cmd     *exec.Cmd
	printed tail
	close   sync.Once
}

// Close closes the input, and ends the program. How it ends does not matter any more.
func (p *process) Close() error {
	p.close.Do(func() {
		_ = p.WriteCloser.Close()
		kill := time.AfterFunc(remoteGrace, func() { _ = p.cmd.Process.Kill() })
		defer kill.Stop()
		_ = p.cmd.Wait()
	})
	return nil
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	const kept = 600
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = bytes.Clone(t.text[max(len(t.text)-kept, 0):])
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
