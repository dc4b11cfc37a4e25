package executor

import (
	"context"
	"fmt"
	"maps"
)

// Progress emits a [ToolUpdate] with the progress of a tool. ctx is the context that the tool was called with, or one
// made of it. Value becomes content as by [ResultOf].
//
// It may be called from any goroutine. While 64 updates of the message's calls wait to be emitted, it waits too. It
// does nothing outside a tool call, in a run without a consumer of events, and once the call is over, whether the tool
// has returned or was given up. Errors: those of ResultOf.
func Progress(ctx context.Context, value any) error {
	made, err := ResultOf(value)
	if err != nil {
		return fmt.Errorf("executor: progress: %w", err)
	}
	if c := callIn(ctx); c != nil {
		c.phase.update(c, ToolUpdate{Turn: c.phase.turn, Call: c.call, Content: made.Content})
	}
	return nil
}

// CallOf returns the tool call that ctx belongs to, as it is executed.
func CallOf(ctx context.Context) (Call, bool) {
	c := callIn(ctx)
	if c == nil {
		return Call{}, false
	}
	return c.ran, true
}

type attributesKey struct{}

// WithAttributes returns a context with attributes of the run, for its tools and hooks: who it is for, say. A pause
// takes them along in its [Continuation], and the run that resumes it has them again; a [ContinuationCodec] writes only
// those of its Keys. They are added to those that ctx has already.
func WithAttributes(ctx context.Context, attributes map[string]any) context.Context {
	all := map[string]any{}
	maps.Copy(all, Attributes(ctx))
	maps.Copy(all, attributes)
	return context.WithValue(ctx, attributesKey{}, all)
}

// Attributes returns the attributes of the run that ctx belongs to. They must not be changed.
func Attributes(ctx context.Context) map[string]any {
	found, _ := ctx.Value(attributesKey{}).(map[string]any)
	return found
}
