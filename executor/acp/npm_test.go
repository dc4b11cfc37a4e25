package acp_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/acp"
)

// TestAgentOfTheProtocolsOwnSDK runs an agent of the TypeScript SDK as a sub-agent. Package main of cmd/plait tests its
// client.
func TestAgentOfTheProtocolsOwnSDK(t *testing.T) {
	if os.Getenv("PLAIT_ACP") == "" {
		t.Skip("SKIPPED: PLAIT_ACP=1 runs agents of the protocol's own SDK; .ci/acp/install.sh installs it")
	}
	script, err := filepath.Abs(filepath.Join("..", "..", ".ci", "acp", "agent.mjs"))
	require.NoError(t, err)
	require.DirExists(t, filepath.Join(filepath.Dir(script), "node_modules"), "install the SDK by .ci/acp/install.sh")

	remote := &acp.Remote{
		Dial: acp.Command("node", script), Dir: "/project",
		Permit: func(_ context.Context, r sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
			outcome := sdk.NewRequestPermissionOutcomeSelected(r.Options[0].OptionId)
			return sdk.RequestPermissionResponse{Outcome: outcome}, nil
		},
	}
	d, err := remote.Run(t.Context(), "edit")
	require.NoError(t, err)
	require.Empty(t, d.Validate())
	require.Equal(t, `user: edit
assistant: (Hm.) I edit it. edit{"input":null,"title":"Edit a.go"}
user: [Now in /project/a.go:
b]
assistant: Done.
`, lines(d))

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	agent := executor.Agent{
		Provider: apitest.NewScript(apitest.Call(with("coder", executor.Task{Task: "wait"}))),
		Tools:    []dag.Tool{remote.Tool("coder", "Writes code.")},
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
