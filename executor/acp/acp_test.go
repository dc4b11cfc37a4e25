package acp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/acp"
	"github.com/plait-dev/plait/store"
)

type none struct{}

// use returns a call without arguments.
func use(name string) content.ToolUse { return with(name, struct{}{}) }

// with returns a call with arguments.
func with(name string, input any) content.ToolUse {
	call := apitest.Use(name, input)
	call.ID = "id-" + name
	return call
}

// editor is a client of the SDK. It records the updates.
type editor struct {
	*sdk.ClientSideConnection
	t      *testing.T
	served func() error // the result of Serve

	mu      sync.Mutex
	updates []sdk.SessionUpdate
	answer  func(ctx context.Context, r sdk.RequestPermissionRequest) (string, error)
	files   map[string]string
	did     []string
}

// edit serves an agent for a new editor over pipes. Both end with the test.
func edit(t *testing.T, agent executor.Agent, o *acp.Options) *editor {
	t.Helper()
	e := begin(t, agent, o)
	can, err := e.Initialize(t.Context(), sdk.InitializeRequest{
		ProtocolVersion: 1, ClientInfo: &sdk.Implementation{Name: "editor", Version: "1"},
		ClientCapabilities: sdk.ClientCapabilities{
			Terminal: true, Fs: sdk.FileSystemCapabilities{ReadTextFile: true, WriteTextFile: true},
		},
	})
	require.NoError(t, err)
	require.Equal(t, sdk.ProtocolVersion(1), can.ProtocolVersion)
	require.True(t, can.AgentCapabilities.LoadSession)
	require.NotNil(t, can.AgentCapabilities.SessionCapabilities.Fork)
	return e
}

// begin is edit without initialize.
func begin(t *testing.T, agent executor.Agent, o *acp.Options) *editor {
	in, out, served := serve(t, agent, o)
	e := &editor{t: t, served: served, files: map[string]string{}}
	e.ClientSideConnection = sdk.NewClientSideConnection(e, out, in)
	e.SetLogger(slog.New(slog.DiscardHandler))
	return e
}

// serve serves an agent over pipes that are closed at the end of the test. served gets the result of Serve.
func serve(t *testing.T, agent executor.Agent, o *acp.Options) (in io.ReadCloser, out io.WriteCloser, served func() error) {
	fromClient, toAgent := io.Pipe()
	fromAgent, toClient := io.Pipe()
	if o == nil {
		o = &acp.Options{}
	}
	if o.Store == nil {
		o.Store = store.New(store.Memory())
	}
	result := make(chan error, 1)
	served = sync.OnceValue(func() error { return <-result })
	go func() { result <- acp.Serve(context.Background(), agent, fromClient, toClient, o) }()
	t.Cleanup(func() {
		_ = toAgent.Close()
		_ = fromAgent.Close()
		_ = served()
	})
	return fromAgent, toAgent, served
}

func (e *editor) open() sdk.SessionId {
	e.t.Helper()
	s, err := e.NewSession(e.t.Context(), sdk.NewSessionRequest{Cwd: "/project", McpServers: []sdk.McpServer{}})
	require.NoError(e.t, err)
	return s.SessionId
}

func (e *editor) ask(id sdk.SessionId, text string) (sdk.StopReason, error) {
	r, err := e.Prompt(e.t.Context(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock(text)}})
	return r.StopReason, err
}

func (e *editor) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.updates = append(e.updates, n.Update)
	return nil
}

func (e *editor) RequestPermission(
	ctx context.Context, r sdk.RequestPermissionRequest,
) (sdk.RequestPermissionResponse, error) {
	e.note("ask %s", *r.ToolCall.Title)
	if e.answer == nil {
		return sdk.RequestPermissionResponse{}, errors.New("nobody is here")
	}
	option, err := e.answer(ctx, r)
	if option == "" {
		return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}, err
	}
	return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeSelected(sdk.PermissionOptionId(option))}, err
}

func (e *editor) note(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.did = append(e.did, fmt.Sprintf(format, args...))
}

func (e *editor) ReadTextFile(_ context.Context, r sdk.ReadTextFileRequest) (sdk.ReadTextFileResponse, error) {
	e.note("read %s", r.Path)
	text, found := e.files[r.Path]
	if !found {
		return sdk.ReadTextFileResponse{}, &sdk.RequestError{Code: -32002, Message: "no such file"}
	}
	return sdk.ReadTextFileResponse{Content: text}, nil
}

func (e *editor) WriteTextFile(_ context.Context, r sdk.WriteTextFileRequest) (sdk.WriteTextFileResponse, error) {
	e.note("write %s", r.Path)
	e.files[r.Path] = r.Content
	return sdk.WriteTextFileResponse{}, nil
}

func (e *editor) CreateTerminal(_ context.Context, r sdk.CreateTerminalRequest) (sdk.CreateTerminalResponse, error) {
	e.note("run %s %s in %s", r.Command, strings.Join(r.Args, " "), *r.Cwd)
	return sdk.CreateTerminalResponse{TerminalId: "t1"}, nil
}

func (e *editor) KillTerminal(context.Context, sdk.KillTerminalRequest) (sdk.KillTerminalResponse, error) {
	return sdk.KillTerminalResponse{}, nil
}

func (e *editor) TerminalOutput(context.Context, sdk.TerminalOutputRequest) (sdk.TerminalOutputResponse, error) {
	return sdk.TerminalOutputResponse{Output: "ok", Truncated: true}, nil
}

func (e *editor) ReleaseTerminal(_ context.Context, r sdk.ReleaseTerminalRequest) (sdk.ReleaseTerminalResponse, error) {
	e.note("release %s", r.TerminalId)
	return sdk.ReleaseTerminalResponse{}, nil
}

func (e *editor) WaitForTerminalExit(
	context.Context, sdk.WaitForTerminalExitRequest,
) (sdk.WaitForTerminalExitResponse, error) {
	return sdk.WaitForTerminalExitResponse{ExitCode: sdk.Ptr(1)}, nil
}

// log returns the updates, a line each. Pieces of a text are one line.
func (e *editor) log() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var b strings.Builder
	last := ""
	piece := func(kind string, c sdk.ContentBlock) {
		text := "[image]"
		if c.Text != nil {
			text = c.Text.Text
		}
		if last != kind {
			b.WriteString(kind + ": ")
		}
		last = kind
		b.WriteString(text)
	}
	line := func(format string, args ...any) {
		if last != "" {
			b.WriteByte('\n')
		}
		last = ""
		fmt.Fprintf(&b, format+"\n", args...)
	}
	for _, u := range e.updates {
		switch {
		case u.UserMessageChunk != nil:
			piece("user", u.UserMessageChunk.Content)
		case u.AgentMessageChunk != nil:
			piece("agent", u.AgentMessageChunk.Content)
		case u.AgentThoughtChunk != nil:
			piece("thought", u.AgentThoughtChunk.Content)
		case u.ToolCall != nil:
			line("call %s (%s)%s%s", u.ToolCall.Title, u.ToolCall.Kind, places(u.ToolCall.Locations), shown(u.ToolCall.Content))
		case u.ToolCallUpdate != nil:
			status := sdk.ToolCallStatus("")
			if u.ToolCallUpdate.Status != nil {
				status = *u.ToolCallUpdate.Status
			}
			line("  %s%s", status, shown(u.ToolCallUpdate.Content))
		case u.Plan != nil:
			for _, entry := range u.Plan.Entries {
				line("plan %s: %s (%s)", entry.Status, entry.Content, entry.Priority)
			}
		case u.CurrentModeUpdate != nil:
			line("mode %s", u.CurrentModeUpdate.CurrentModeId)
		case u.ConfigOptionUpdate != nil:
			line("options")
		case u.SessionInfoUpdate != nil:
			line("title %s", *u.SessionInfoUpdate.Title)
		}
	}
	if last != "" {
		b.WriteByte('\n')
	}
	return b.String()
}

// clear forgets the updates.
func (e *editor) clear() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.updates, e.did = nil, nil
}

func places(list []sdk.ToolCallLocation) (text string) {
	for _, l := range list {
		text += " @" + l.Path
	}
	return text
}

func shown(list []sdk.ToolCallContent) (text string) {
	for _, c := range list {
		switch {
		case c.Content != nil && c.Content.Content.Text != nil:
			text += fmt.Sprintf(" %q", c.Content.Content.Text.Text)
		case c.Diff != nil && c.Diff.OldText != nil:
			text += fmt.Sprintf(" %s: %q -> %q", c.Diff.Path, *c.Diff.OldText, c.Diff.NewText)
		case c.Diff != nil:
			text += fmt.Sprintf(" %s: %q", c.Diff.Path, c.Diff.NewText)
		case c.Terminal != nil:
			text += " terminal " + c.Terminal.TerminalId
		}
	}
	return text
}

func TestPromptStreamsAndIsStored(t *testing.T) {
	say := executor.Func("say", "Says it.", func(ctx context.Context, _ none) (string, error) {
		require.Equal(t, "/project", acp.SessionOf(ctx).Dir())
		return "said", executor.Progress(ctx, "half")
	})
	kept := store.New(store.Memory())
	e := edit(t, executor.Agent{
		Provider: apitest.NewScript(
			apitest.Answer(content.Text{Text: "I say it."}, use("say")).Think("Hm.", "s"), apitest.Say("Done, as you see.")),
		Tools: []dag.Tool{say},
	}, &acp.Options{Store: kept})
	id := e.open()

	// What is not stored yet is in no list.
	list, err := e.ListSessions(t.Context(), sdk.ListSessionsRequest{})
	require.NoError(t, err)
	require.Empty(t, list.Sessions)

	stop, err := e.ask(id, "Say it.\nPlease.")
	require.NoError(t, err)
	require.Equal(t, sdk.StopReasonEndTurn, stop)
	require.Equal(t, `title Say it.
thought: Hm.agent: I say it.
call say (other)
  in_progress
   "half"
  completed "said"
agent: Done, as you see.
`, e.log())

	c, err := kept.Conversation(t.Context(), string(id))
	require.NoError(t, err)
	require.Equal(t, "Done, as you see.", c.DAG().Text())
	require.Empty(t, c.DAG().Validate())
}

func TestPromptOfImagesAndFiles(t *testing.T) {
	model := apitest.NewScript(apitest.Say("Seen."))
	e := edit(t, executor.Agent{Provider: model}, nil)
	_, err := e.Prompt(t.Context(), sdk.PromptRequest{SessionId: e.open(), Prompt: []sdk.ContentBlock{
		sdk.TextBlock("Look."), sdk.ImageBlock("aGk=", "image/png"), sdk.AudioBlock("aGk=", "audio/wav"),
		sdk.ResourceLinkBlock("a.go", "file:///a.go"),
		sdk.ResourceBlock(sdk.EmbeddedResourceResource{
			TextResourceContents: &sdk.TextResourceContents{Uri: "file:///b.txt", Text: "b"},
		}),
		sdk.ResourceBlock(sdk.EmbeddedResourceResource{
			BlobResourceContents: &sdk.BlobResourceContents{Uri: "file:///c.pdf", Blob: "aGk=", MimeType: sdk.Ptr("application/pdf")},
		}),
	}})
	require.NoError(t, err)
	sent := model.Requests()[0].Messages[0].Blocks.Slice()
	require.Equal(t, []content.Block{
		content.Text{Text: "Look."},
		content.Image{Source: content.Source{MediaType: "image/png", Data: "aGk="}},
		content.Document{Source: content.Source{MediaType: "audio/wav", Data: "aGk="}},
		content.Text{Text: "Resource file:///a.go, a.go"},
		content.Text{Text: "Resource file:///b.txt:\nb"},
		content.Document{Title: "file:///c.pdf", Source: content.Source{MediaType: "application/pdf", Data: "aGk="}},
	}, sent)
}
