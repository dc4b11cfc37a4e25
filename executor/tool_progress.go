package executor

import (
	"context"
	"fmt"
	"maps"
)

// Progress emits a [ToolUpdate] with the progress of a tool. ctx is the tool's context, or one made from it. value is
// converted to content by [ResultOf].
//
// It may be called from any goroutine. While 64 updates of the message's calls wait to be emitted, it blocks. It does
// nothing outside a tool call, in a run without a consumer of events, and after the call is over, whether the tool has
// returned or was given up. Errors: those of ResultOf.
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

// CallOf returns the tool call of ctx, as it is executed, and whether there is one.
func CallOf(ctx context.Context) (Call, bool) {
	c := callIn(ctx)
	if c == nil {
		return Call{}, false
	}
	return c.ran, true
}

type attributesKey struct{}

// WithAttributes returns a context with attributes of the run for its tools and hooks, such as the ID of a user. They
// are added to the attributes of ctx. A pause keeps them in its [Continuation], and the resumed run has them again. A
// [ContinuationCodec] writes only those of its Keys.
func WithAttributes(ctx context.Context, attributes map[string]any) context.Context {
	all := map[string]any{}
	maps.Copy(all, Attributes(ctx))
	maps.Copy(all, attributes)
	return context.WithValue(ctx, attributesKey{}, all)
}

// Attributes returns the attributes of the run of ctx. They must not be changed.
func Attributes(ctx context.Context) map[string]any {
	found, _ := ctx.Value(attributesKey{}).(map[string]any)
	return found
}
