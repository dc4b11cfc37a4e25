package contextedit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

const toolName = "read_result"

// ReadResult returns the tool "read_result", with which a model reads a result that was left out. The hook of [Results]
// must be among the run's hooks.
func ReadResult() executor.Tool {
	type input struct {
		Result string `json:"result" jsonschema:"the name in the note"`
	}
	tool := executor.Func(toolName, "Returns the result of an earlier call that was left out to save space.",
		func(ctx context.Context, in input) (content.Blocks, error) { return read(ctx, in.Result) })
	return executor.WithEffect(tool, executor.EffectReadOnly)
}

// conversationKey is the context key of the conversation of a run, an *atomic.Pointer[dag.DAG].
type conversationKey struct{}

// remember keeps the conversation of a run in its context, for ReadResult.
func remember(ctx context.Context, event executor.Event, _ error) context.Context {
	switch event := event.(type) {
	case executor.RunStart:
		kept := new(atomic.Pointer[dag.DAG])
		kept.Store(&event.DAG)
		return context.WithValue(ctx, conversationKey{}, kept)
	case executor.TurnEnd:
		if kept, ok := ctx.Value(conversationKey{}).(*atomic.Pointer[dag.DAG]); ok {
			kept.Store(&event.DAG)
		}
	}
	return ctx
}

var (
	errNoHook   = errors.New("no conversation is known: the hook of contextedit.Results is missing")
	errNoResult = errors.New("there is no such result")
)

// read returns the content of the named result.
func read(ctx context.Context, name string) (content.Blocks, error) {
	kept, ok := ctx.Value(conversationKey{}).(*atomic.Pointer[dag.DAG])
	if !ok {
		return content.Blocks{}, errNoHook
	}

	of, at, _ := strings.Cut(name, "/")
	index, err := strconv.Atoi(at)
	if err != nil {
		return content.Blocks{}, fmt.Errorf("%q: %w", name, errNoResult)
	}
	n, err := kept.Load().Find(of)
	if err != nil {
		return content.Blocks{}, err
	}
	m, ok := n.Message()
	if !ok || index < 0 || index >= m.Blocks.Len() {
		return content.Blocks{}, fmt.Errorf("%q: %w", name, errNoResult)
	}
	result, ok := m.Blocks.At(index).(content.ToolResult)
	if !ok {
		return content.Blocks{}, fmt.Errorf("%q: %w", name, errNoResult)
	}
	return result.Content, nil
}

// nameOf returns the name of a result: that of its message, and its index in it.
func nameOf(message string, index int) string { return message + "/" + strconv.Itoa(index) }
