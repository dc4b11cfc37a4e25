package acp

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/unwrap"
)

// Session is the session of a run, for its tools and hooks. It is safe for concurrent use.
type Session struct{ s *session }

type sessionKey struct{}

// SessionOf returns the session of a run. ctx is the context of a tool or a hook of the run. It returns nil outside a run
// of [Serve].
func SessionOf(ctx context.Context) *Session {
	s, _ := ctx.Value(sessionKey{}).(*Session)
	return s
}

// Dir returns the working directory of the session, an absolute path of the client's machine.
func (s *Session) Dir() string { return s.s.dir }

// Show shows content at the tool call of ctx, such as a diff, in place of what was shown before. It stays when the call
// has its result. It does nothing outside a tool call.
func (s *Session) Show(ctx context.Context, content ...sdk.ToolCallContent) error {
	call, ok := executor.CallOf(ctx)
	if !ok {
		return nil
	}
	s.s.keep(call.Key())
	return s.s.update(sdk.UpdateToolCall(callID(call.Key()), sdk.WithUpdateContent(content)))
}

// Ask passes on a question for permission, of another agent for example, to the client's user. It is meant for
// [Remote].Permit.
func (s *Session) Ask(
	ctx context.Context, r sdk.RequestPermissionRequest,
) (sdk.RequestPermissionResponse, error) {
	r.SessionId = sdk.SessionId(s.s.id)
	return call[sdk.RequestPermissionResponse](ctx, s.s.conn, sdk.ClientMethodSessionRequestPermission, r)
}

// path returns an absolute path in the session.
func (s *session) path(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(s.dir, name)
}

// own is a tool of this package.
type own struct {
	executor.Tool
	needs func(capabilities) bool // nil for a tool that needs nothing of the client
	view  func(call executor.Call) View
}

// Unwrap returns the tool with its further methods.
func (o *own) Unwrap() executor.Tool { return o.Tool }

// The names of the tools of this package.
const (
	toolRead    = "read_file"
	toolWrite   = "write_file"
	toolEdit    = "edit_file"
	toolCommand = "run_command"
	toolPlan    = "update_plan"
)

// The arguments of the tools.
type (
	readArguments struct {
		Path string `json:"path" jsonschema:"the file, relative to the working directory or absolute"`
		Line *int   `json:"line,omitempty" jsonschema:"the first line to read, from 1"`
		// Limit is the number of lines.
		Limit *int `json:"limit,omitempty" jsonschema:"how many lines to read"`
	}
	writeArguments struct {
		Path    string `json:"path" jsonschema:"the file, relative to the working directory or absolute"`
		Content string `json:"content" jsonschema:"the whole new content"`
	}
	editArguments struct {
		Path string `json:"path" jsonschema:"the file, relative to the working directory or absolute"`
		Old  string `json:"old_text" jsonschema:"the text to replace; it is in the file exactly once"`
		New  string `json:"new_text" jsonschema:"the text in its place"`
	}
	commandArguments struct {
		Command   string   `json:"command" jsonschema:"the program"`
		Arguments []string `json:"arguments,omitempty" jsonschema:"its arguments"`
		Dir       string   `json:"dir,omitempty" jsonschema:"where it runs, relative to the working directory"`
	}
	planArguments struct {
		Entries []planEntry `json:"entries" jsonschema:"the whole plan, in order"`
	}
	planEntry struct {
		Content  string `json:"content" jsonschema:"what to do"`
		Status   string `json:"status" enum:"pending,in_progress,completed"`
		Priority string `json:"priority,omitempty" enum:"high,medium,low"`
	}
)

// ClientTools returns tools that work with the files and terminals of the client, such as files with changes that are
// not saved in the editor: read_file, write_file, edit_file and run_command. A session has those that its client
// supports. Add executor.RequireApproval("write_file", "edit_file", "run_command") unless the model may call them
// without a question.
func ClientTools() []dag.Tool {
	reads := func(c capabilities) bool { return c.Fs.ReadTextFile }
	writes := func(c capabilities) bool { return c.Fs.WriteTextFile }

	// A tool, what the client must support for it, and how a call is shown.
	return []dag.Tool{
		&own{executor.WithEffect(inSession(toolRead, "Reads a text file.", readFile), executor.EffectReadOnly), reads,
			func(call executor.Call) View {
				in := argumentsOf[readArguments](call)
				return View{"Read " + in.Path, sdk.ToolKindRead, []sdk.ToolCallLocation{{Path: in.Path, Line: in.Line}}, nil}
			}},
		&own{inSession(toolWrite, "Writes a text file, new or in place of an old one.", writeFile), writes,
			func(call executor.Call) View {
				in := argumentsOf[writeArguments](call)
				return edited("Write ", in.Path, sdk.ToolDiffContent(in.Path, in.Content))
			}},
		&own{inSession(toolEdit, "Replaces a text in a file.", editFile),
			func(c capabilities) bool { return reads(c) && writes(c) },
			func(call executor.Call) View {
				in := argumentsOf[editArguments](call)
				return edited("Edit ", in.Path, sdk.ToolDiffContent(in.Path, in.New, in.Old))
			}},
		&own{executor.WithTimeout(inSession(toolCommand, "Runs a program and returns its output.", runCommand), 0),
			func(c capabilities) bool { return c.Terminal },
			func(call executor.Call) View {
				in := argumentsOf[commandArguments](call)
				return View{Title: strings.Join(append([]string{in.Command}, in.Arguments...), " "), Kind: sdk.ToolKindExecute}
			}},
	}
}

// edited returns the view of a call that changes a file.
func edited(title, path string, diff sdk.ToolCallContent) View {
	return View{title + path, sdk.ToolKindEdit, []sdk.ToolCallLocation{{Path: path}}, []sdk.ToolCallContent{diff}}
}

// PlanTool returns a tool with which the model shows the user its plan. A client of [Serve] shows its calls as a plan.
func PlanTool() dag.Tool {
	return &own{Tool: executor.WithEffect(executor.Func(toolPlan, "Shows the user your plan, or what has changed in it.",
		func(context.Context, planArguments) (string, error) { return "The user sees the plan.", nil }), executor.EffectReadOnly)}
}

// planOf returns the plan in a call of PlanTool, if the agent has that tool.
func (s *session) planOf(call executor.Call) ([]sdk.PlanEntry, bool) {
	isPlan := func(t dag.Tool) bool {
		o, is := unwrap.As[*own, executor.Tool](t)
		return is && o.Definition().Name == toolPlan
	}
	if call.Name != toolPlan || !slices.ContainsFunc(s.agent.Tools, isPlan) {
		return nil, false
	}

	// The model may have written anything.
	entries := []sdk.PlanEntry{}
	for _, e := range argumentsOf[planArguments](call).Entries {
		entry := sdk.PlanEntry{Content: e.Content, Status: sdk.PlanEntryStatusPending, Priority: sdk.PlanEntryPriorityMedium}
		switch status := sdk.PlanEntryStatus(e.Status); status {
		case sdk.PlanEntryStatusInProgress, sdk.PlanEntryStatusCompleted:
			entry.Status = status
		}
		switch priority := sdk.PlanEntryPriority(e.Priority); priority {
		case sdk.PlanEntryPriorityHigh, sdk.PlanEntryPriorityLow:
			entry.Priority = priority
		}
		entries = append(entries, entry)
	}
	return entries, true
}

// viewOf returns how a call of this package's own tools is shown.
func viewOf(tools []dag.Tool, call executor.Call) (View, bool) {
	for _, t := range tools {
		if o, is := unwrap.As[*own, executor.Tool](t); is && o.view != nil && o.Definition().Name == call.Name {
			return o.view(call), true
		}
	}
	return View{}, false
}

// inSession returns a tool that needs the session.
func inSession[In any](
	name, description string, f func(ctx context.Context, s *Session, in In) (string, error),
) executor.Tool {
	return executor.Func(name, description, func(ctx context.Context, in In) (string, error) {
		s := SessionOf(ctx)
		if s == nil {
			return "", errors.New("there is no client with files and terminals")
		}
		return f(ctx, s, in)
	})
}

// argumentsOf returns the arguments of a call as far as they can be read: the model wrote them.
func argumentsOf[In any](call executor.Call) (in In) {
	_ = call.Input.Decode(&in)
	return in
}

func readFile(ctx context.Context, s *Session, in readArguments) (string, error) {
	response, err := call[sdk.ReadTextFileResponse](ctx, s.s.conn, sdk.ClientMethodFsReadTextFile, sdk.ReadTextFileRequest{
		SessionId: sdk.SessionId(s.s.id), Path: s.s.path(in.Path), Line: in.Line, Limit: in.Limit,
	})
	return response.Content, err
}

func writeFile(ctx context.Context, s *Session, in writeArguments) (string, error) {
	_, err := call[sdk.WriteTextFileResponse](ctx, s.s.conn, sdk.ClientMethodFsWriteTextFile, sdk.WriteTextFileRequest{
		SessionId: sdk.SessionId(s.s.id), Path: s.s.path(in.Path), Content: in.Content,
	})
	return "The file is written.", err
}

func editFile(ctx context.Context, s *Session, in editArguments) (string, error) {
	text, err := readFile(ctx, s, readArguments{Path: in.Path})
	if err != nil {
		return "", err
	}
	if n := strings.Count(text, in.Old); in.Old == "" || n != 1 {
		return "", fmt.Errorf("old_text is %d times in the file, not once: nothing was changed", n)
	}
	return writeFile(ctx, s, writeArguments{in.Path, strings.Replace(text, in.Old, in.New, 1)})
}

// maxOutput is how much of the output of a command the client keeps, in bytes.
const maxOutput = 64 << 10

// runCommand runs a program in a terminal of the client, which shows it.
func runCommand(ctx context.Context, s *Session, in commandArguments) (output string, err error) {
	id := sdk.SessionId(s.s.id)
	terminal, err := call[sdk.CreateTerminalResponse](ctx, s.s.conn, sdk.ClientMethodTerminalCreate, sdk.CreateTerminalRequest{
		SessionId: id, Command: in.Command, Args: in.Arguments, Cwd: sdk.Ptr(s.s.path(in.Dir)), OutputByteLimit: sdk.Ptr(maxOutput),
	})
	if err != nil {
		return "", err
	}

	// The program ends with the call. After that the client keeps what it shows.
	defer func() {
		_, released := call[sdk.ReleaseTerminalResponse](context.WithoutCancel(ctx), s.s.conn,
			sdk.ClientMethodTerminalRelease, sdk.ReleaseTerminalRequest{SessionId: id, TerminalId: terminal.TerminalId})
		err = errors.Join(err, released)
	}()
	if err := s.Show(ctx, sdk.ToolTerminalRef(terminal.TerminalId)); err != nil {
		return "", err
	}
	status, err := call[sdk.WaitForTerminalExitResponse](ctx, s.s.conn, sdk.ClientMethodTerminalWaitForExit,
		sdk.WaitForTerminalExitRequest{SessionId: id, TerminalId: terminal.TerminalId})
	if err != nil {
		return "", err
	}
	printed, err := call[sdk.TerminalOutputResponse](ctx, s.s.conn, sdk.ClientMethodTerminalOutput,
		sdk.TerminalOutputRequest{SessionId: id, TerminalId: terminal.TerminalId})
	if err != nil {
		return "", err
	}

	output = printed.Output
	if printed.Truncated {
		output = "[the beginning is left out]\n" + output
	}
	switch {
	case status.Signal != nil && *status.Signal != "":
		output += "\n[ended by " + *status.Signal + "]"
	case status.ExitCode != nil:
		output += fmt.Sprintf("\n[exit code %d]", *status.ExitCode)
	}
	return output, nil
}
