package acp_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"go.uber.org/goleak"
)

// agentVariable makes the test binary an agent of the SDK on standard input and output.
const agentVariable = "PLAIT_TEST_ACP"

// serverVariable makes the test binary an MCP server there.
const serverVariable = "PLAIT_TEST_ACP_SERVER"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(serverVariable) != "":
		_ = greeter()
		return
	case os.Getenv(agentVariable) == "":
		goleak.VerifyTestMain(m)
		return
	}
	a := &coder{cancelled: make(chan struct{})}
	a.conn = sdk.NewAgentSideConnection(a, os.Stdout, os.Stdin)
	<-a.conn.Done()
}

// coder is an agent of the SDK. The first word of a prompt says what it does.
type coder struct {
	conn      *sdk.AgentSideConnection
	cancelled chan struct{}
}

func (a *coder) say(u ...sdk.SessionUpdate) {
	for _, u := range u {
		if err := a.conn.SessionUpdate(context.Background(), sdk.SessionNotification{SessionId: "s", Update: u}); err != nil {
			panic(err)
		}
	}
}

func (a *coder) Prompt(ctx context.Context, r sdk.PromptRequest) (sdk.PromptResponse, error) {
	a.say(
		sdk.UpdateAgentThoughtText("H"), sdk.UpdateAgentThoughtText("m."),
		sdk.UpdateAgentMessageText("I look "), sdk.UpdateAgentMessageText("at it."),
		sdk.StartToolCall("c1", "Read a.go", sdk.WithStartKind(sdk.ToolKindRead), sdk.WithStartRawInput(map[string]string{"path": "a.go"})),
		sdk.StartToolCall("c2", "Edit a.go", sdk.WithStartKind(sdk.ToolKindEdit)),
		sdk.UpdateToolCall("c1", sdk.WithUpdateStatus(sdk.ToolCallStatusCompleted),
			sdk.WithUpdateContent([]sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock("package a"))})),
	)
	switch word, _, _ := strings.Cut(r.Prompt[0].Text.Text, " "); word {
	case "die":
		fmt.Fprintln(os.Stderr, "out of memory")
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		select {}
	case "wait":
		<-ctx.Done()
		a.say(sdk.UpdateAgentMessageText("Stopped."))
		return sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
	case "flood":
		for {
			fmt.Printf(`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk",`+
				`"content":{"type":"text","text":"%s"}}}}`+"\n", strings.Repeat("x", 1<<20))
		}
	case "login":
		return sdk.PromptResponse{}, sdk.NewAuthRequired(nil)
	}

	answer, err := a.conn.RequestPermission(ctx, sdk.RequestPermissionRequest{
		SessionId: "s", ToolCall: sdk.ToolCallUpdate{ToolCallId: "c2", Title: sdk.Ptr("Edit a.go")},
		Options: []sdk.PermissionOption{
			{OptionId: "y", Kind: sdk.PermissionOptionKindAllowOnce, Name: "Yes"},
			{OptionId: "n", Kind: sdk.PermissionOptionKindRejectOnce, Name: "No"},
		},
	})
	if err != nil {
		return sdk.PromptResponse{}, err
	}
	if answer.Outcome.Selected != nil && answer.Outcome.Selected.OptionId == "y" {
		a.say(sdk.UpdateToolCall("c2", sdk.WithUpdateStatus(sdk.ToolCallStatusCompleted),
			sdk.WithUpdateContent([]sdk.ToolCallContent{sdk.ToolDiffContent("/a.go", "package b")})))
	} else {
		a.say(sdk.UpdateToolCall("c2", sdk.WithUpdateStatus(sdk.ToolCallStatusFailed)))
	}
	a.say(sdk.UpdateAgentMessageText("Done."))
	return sdk.PromptResponse{StopReason: sdk.StopReasonEndTurn, Usage: &sdk.Usage{InputTokens: 3, OutputTokens: 4}}, nil
}

func (a *coder) Initialize(context.Context, sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	return sdk.InitializeResponse{ProtocolVersion: 1, AuthMethods: []sdk.AuthMethod{}}, nil
}

func (a *coder) NewSession(_ context.Context, r sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	return sdk.NewSessionResponse{SessionId: "s"}, nil
}

func (a *coder) Cancel(context.Context, sdk.CancelNotification) error { return nil }

func (a *coder) Authenticate(context.Context, sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
	return sdk.AuthenticateResponse{}, nil
}

func (a *coder) CloseSession(context.Context, sdk.CloseSessionRequest) (sdk.CloseSessionResponse, error) {
	return sdk.CloseSessionResponse{}, nil
}

func (a *coder) ListSessions(context.Context, sdk.ListSessionsRequest) (sdk.ListSessionsResponse, error) {
	return sdk.ListSessionsResponse{}, nil
}

func (a *coder) ResumeSession(context.Context, sdk.ResumeSessionRequest) (sdk.ResumeSessionResponse, error) {
	return sdk.ResumeSessionResponse{}, nil
}

func (a *coder) SetSessionConfigOption(
	context.Context, sdk.SetSessionConfigOptionRequest,
) (sdk.SetSessionConfigOptionResponse, error) {
	return sdk.SetSessionConfigOptionResponse{}, nil
}

func (a *coder) SetSessionMode(context.Context, sdk.SetSessionModeRequest) (sdk.SetSessionModeResponse, error) {
	return sdk.SetSessionModeResponse{}, nil
}
