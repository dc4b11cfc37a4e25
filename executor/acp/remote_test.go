package acp_test

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/acp"
	"github.com/plait-dev/plait/node"
)

// program returns the agent of main_test.go.
func program(t *testing.T) *acp.Remote {
	t.Setenv(agentVariable, "1")
	return &acp.Remote{Dial: acp.Command(os.Args[0]), Dir: t.TempDir()}
}

// lines returns the messages of a conversation, a line each.
func lines(d dag.DAG) (text string) {
	for _, m := range d.Messages() {
		text += string(m.Role) + ":"
		for _, b := range m.Blocks.All() {
			switch b := b.(type) {
			case content.Text:
				text += " " + b.Text
			case content.Thinking:
				text += " (" + b.Text + ")"
			case content.ToolUse:
				text += " " + b.Name + string(b.Input)
			case content.ToolResult:
				text += " [" + b.Content.Text() + "]"
				if b.IsError {
					text += "!"
				}
			}
		}
		text += "\n"
	}
	return text
}

func TestRemoteAgentIsASubAgent(t *testing.T) {
	remote := program(t)
	model := apitest.NewScript(apitest.Call(with("coder", executor.Task{Task: "edit it"})), apitest.Say("The coder is done."))
	agent := executor.Agent{Provider: model, Tools: []dag.Tool{remote.Tool("coder", "Writes code.")}}

	var progress []string
	var end executor.End
	for e, err := range agent.Stream(t.Context(), dag.New().User("Go.")) {
		switch e := e.(type) {
		case executor.ToolUpdate:
			progress = append(progress, e.Content.Text())
		case executor.End:
			require.NoError(t, err)
			end = e
		}
	}
	require.Equal(t, []string{"Read a.go", "Edit a.go"}, progress)
	require.Empty(t, end.DAG.Validate())

	var execution node.ToolExecution
	for _, n := range end.DAG.Nodes() {
		if e, is := n.Payload().(node.ToolExecution); is {
			execution = e
		}
	}
	require.Equal(t, "Done.", execution.Result.Text())
	require.Equal(t, content.Usage{Input: 3, Output: 4}, execution.Usage)
	require.Equal(t, `user: edit it
assistant: (Hm.) I look at it. read{"input":{"path":"a.go"},"title":"Read a.go"} edit{"input":null,"title":"Edit a.go"}
user: [package a] []!
assistant: Done.
`, lines(dag.New().WithHeads(execution.Child.Slice()...)))
}

func TestRemoteAgentAsks(t *testing.T) {
	remote := program(t)
	remote.Permit = func(ctx context.Context, r sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
		return acp.SessionOf(ctx).Ask(ctx, r)
	}
	agent := executor.Agent{
		Provider: apitest.NewScript(apitest.Call(with("coder", executor.Task{Task: "edit it"})), apitest.Say("Good.")),
		Tools:    []dag.Tool{remote.Tool("coder", "Writes code.")},
	}
	e := edit(t, agent, nil)
	e.answer = func(context.Context, sdk.RequestPermissionRequest) (string, error) { return "y", nil }
	_, err := e.ask(e.open(), "Go.")
	require.NoError(t, err)
	require.Equal(t, []string{"ask Edit a.go"}, e.did)
	require.Contains(t, e.log(), "completed \"Done.\"\nagent: Good.\n")
}

// TestRemoteAgentKilledInMidCall kills the program: the error is typed, and the conversation is valid as far as it got.
func TestRemoteAgentKilledInMidCall(t *testing.T) {
	remote := program(t)
	d, err := remote.Run(t.Context(), "die now")
	require.ErrorIs(t, err, acp.ErrGone)
	require.ErrorContains(t, err, "out of memory")
	require.Empty(t, d.Validate())
	require.Equal(t, `user: die now
assistant: (Hm.) I look at it. read{"input":{"path":"a.go"},"title":"Read a.go"} edit{"input":null,"title":"Edit a.go"}
user: [package a] [`+content.NoResult+`]!
`, lines(d))

	// For the model it is an error, and the run goes on.
	model := apitest.NewScript(apitest.Call(with("coder", executor.Task{Task: "die now"})), apitest.Say("It died."))
	d, err = executor.Agent{Provider: model, Tools: []dag.Tool{remote.Tool("coder", "Writes code.")}}.
		Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	require.Empty(t, d.Validate())
	require.Contains(t, lines(d), acp.ErrGone.Error())
}

func TestRemoteAgentIsCancelled(t *testing.T) {
	remote := program(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	coder := remote.Tool("coder", "Writes code.")
	agent := executor.Agent{
		Provider: apitest.NewScript(apitest.Call(with("coder", executor.Task{Task: "wait here"}))), Tools: []dag.Tool{coder},
	}
	for e, err := range agent.Stream(ctx, dag.New().User("Go.")) {
		switch e := e.(type) {
		case executor.ToolUpdate:
			cancel()
		case executor.End:
			require.ErrorIs(t, err, context.Canceled)
			require.Empty(t, e.DAG.Validate())
		}
	}
}

func TestRemoteAgentThatSendsTooMuch(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short, as with the race detector, for which JSON of 32 MB takes minutes")
	}
	remote := program(t)
	d, err := remote.Run(t.Context(), "flood me")
	require.ErrorIs(t, err, dag.ErrLimit)
	require.Empty(t, d.Validate())
}

func TestRemoteAgentThatNeedsALogin(t *testing.T) {
	var refused *sdk.RequestError
	_, err := program(t).Run(t.Context(), "login please")
	require.ErrorAs(t, err, &refused)
	require.Equal(t, -32000, refused.Code)

	_, err = (&acp.Remote{Dial: acp.Command("/does/not/exist")}).Run(t.Context(), "Hi.")
	require.ErrorIs(t, err, os.ErrNotExist)

	// A program that is no agent: it prints the names of tests, and ends.
	t.Setenv(agentVariable, "")
	_, err = (&acp.Remote{Dial: acp.Command(os.Args[0], "-test.list", "Login")}).Run(t.Context(), "Hi.")
	require.ErrorIs(t, err, acp.ErrGone)
}

// pair connects an agent of Serve with a Remote.
type pair struct {
	io.Reader
	io.WriteCloser
}

// TestPlaitAgentIsASubAgentOfAnother joins both directions of this package.
func TestPlaitAgentIsASubAgentOfAnother(t *testing.T) {
	say := executor.Func("say", "Says it.", func(context.Context, none) (string, error) { return "said", nil })
	inner := executor.Agent{Provider: apitest.NewScript(apitest.Call(use("say")), apitest.Say("Said.")), Tools: []dag.Tool{say}}
	remote := &acp.Remote{Dir: "/project", Dial: func(context.Context) (io.ReadWriteCloser, error) {
		in, out, _ := serve(t, inner, nil)
		return pair{in, out}, nil
	}}
	d, err := remote.Run(t.Context(), "Say it.")
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(`
user: Say it.
assistant: other{"input":{},"title":"say"}
user: [said]
assistant: Said.`), strings.TrimSpace(lines(d)))
}
