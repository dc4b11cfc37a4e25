package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/acp"
	"github.com/plait-dev/plait/executor/mcp"
	"github.com/plait-dev/plait/store"
)

// editor holds the flags of acp.
type editor struct {
	runner
	system string
	offers []string // the values of --offer
}

func acpCommand(s *streams) *cobra.Command {
	e := &editor{runner: runner{streams: s}}
	cmd := &cobra.Command{
		Use:   "acp [DATABASE] --model M",
		Short: "Serve an agent to an editor",
		Long: `Serves an agent to an editor on standard input and output, by the Agent Client
Protocol: Zed, the IDEs of JetBrains, neovim and others start it. Sessions are
conversations in DATABASE, which is made if it does not exist. Without DATABASE
they are forgotten at the end.

The model may read and change files and run commands by the editor, and call the
tools of the MCP servers of --mcp and of those set up in the editor. The user
chooses a mode:

  ask    asks before each call, except to read files; the first mode
  edit   asks before each call, except to read and change files
  auto   executes calls without asking
  read   declines calls, except to read files

The provider's key is in the environment: ANTHROPIC_API_KEY, OPENAI_API_KEY,
GEMINI_API_KEY.`,
		Example: `  plait acp sessions.db --model claude-sonnet-4-5 --offer claude-haiku-4-5
  plait acp --provider ollama --model qwen3`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return e.serve(cmd.Context(), args) },
	}
	e.endpointFlags(cmd)
	e.mcpFlag(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&e.offers, "offer", nil, "another `MODEL` that the user can choose; may be given\nseveral times")
	f.StringVar(&e.system, "system", "", "the system prompt, a `TEXT`")
	return cmd
}

// editorPrompt is the system prompt without --system.
const editorPrompt = "You help with the files in the working directory of an editor."

// serve serves until the editor ends.
func (e *editor) serve(ctx context.Context, args []string) (err error) {
	if err := e.begin(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.end()) }()

	o := &acp.Options{Modes: editorModes(), MCP: &mcp.Options{}, Log: slog.New(slog.NewTextHandler(e.err, nil))}
	o.Store = store.New(store.Memory())
	if len(args) > 0 {
		if o.Store, err = e.store(args[0], true); err != nil {
			return err
		}
	}

	// A wrong flag is an error now, not after the first prompt.
	first, err := e.withModel(e.model)
	if err != nil {
		return err
	}
	if len(e.offers) > 0 {
		for _, model := range append([]string{e.model}, e.offers...) {
			agent, err := e.withModel(model)
			if err != nil {
				return fmt.Errorf("--offer: %w", err)
			}
			o.Models = append(o.Models, acp.Choice{ID: model, Agent: func(executor.Agent) executor.Agent { return agent }})
		}
	}
	return acp.Serve(ctx, first, io.NopCloser(e.in), unclosed{e.out}, o)
}

// withModel returns the agent with a model.
func (e *editor) withModel(model string) (executor.Agent, error) {
	one := e.runner
	one.model, one.leavesOut = model, true
	agent, _, err := one.agent(dag.New())
	agent.Name, agent.System = "plait", cmp.Or(e.system, editorPrompt)
	agent.Tools = append(agent.Tools, append(acp.ClientTools(), acp.PlanTool())...)

	// Of --mcp servers or not: the editor may name some.
	if len(one.servers) == 0 {
		agent.Hooks = append(agent.Hooks, executor.OutputLimit{MaxBytes: serverToolOutput, KeepFull: true}.Hook())
		agent.ToolTimeout = serverToolTimeout
	}
	return agent, err
}

// editorModes returns the modes that an editor's user chooses from. The first one asks.
func editorModes() []acp.Choice {
	reads := []string{"read_file", "update_plan"}
	edits := append(slices.Clone(reads), "write_file", "edit_file")
	ask, decline := executor.AskApproval(""), executor.Deny("the user allows reading only")
	return []acp.Choice{
		{ID: "ask", Name: "Ask", Description: "Asks before each call, except to read files", Agent: except(reads, ask)},
		{ID: "edit", Name: "Edit", Description: "Asks before each call, except to read and change files", Agent: except(edits, ask)},
		{ID: "auto", Name: "Auto", Description: "Executes calls without asking"},
		{ID: "read", Name: "Read", Description: "Declines calls, except to read files", Agent: except(reads, decline)},
	}
}

// except returns a mode that decides about all calls but those of the named tools.
func except(tools []string, decide executor.Decision) func(executor.Agent) executor.Agent {
	hook := executor.Hook{Before: func(_ context.Context, call executor.Call) (executor.Decision, error) {
		if slices.Contains(tools, call.Name) {
			return executor.Allow(), nil
		}
		return decide, nil
	}}
	return func(a executor.Agent) executor.Agent {
		a.Hooks = append(slices.Clip(a.Hooks), hook)
		return a
	}
}

// unclosed is a writer that stays open.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
