package otel

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// run is a traced run. Only the goroutine of the run uses it.
type run struct {
	*tracer
	id           string
	name         string               // of the agent; "" if it has none
	conversation []attribute.KeyValue // the ID of the conversation; empty for an empty conversation
	ctx          context.Context      // with the span
	span         trace.Span
	began        time.Time

	declared map[string]string // the descriptions of declared tools, by name
	chat     *chat             // the last request, until its outcome is known
	calls    map[int]*call     // the calls under way, by index
	api      string            // of the last response; "" before the first
	usage    content.Usage

	requests, executions int64

	// A hook set on both the agent and the sub-agent gets each event twice, and so on. copies counts the repetitions of
	// each event. skip counts the repetitions of the current event that are still to come.
	copies, skip int
}

// begin starts the span of a run.
func (t *tracer) begin(ctx context.Context, start executor.RunStart) context.Context {
	around := runIn(ctx)
	if around != nil && around.id == start.Run {
		if around.tracer == t {
			around.copies++
		}
		return ctx // another hook traces it already
	}

	r := &run{
		tracer: t, id: start.Run, name: agentName(ctx, t, around), began: time.Now(),
		conversation: conversationID(start.DAG), declared: map[string]string{}, calls: map[int]*call{},
	}
	r.declare(start.DAG.ToolDefs())

	// The span of a run inside a call is below that of the call. After a pause, it is below the span from before it.
	options := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindInternal), trace.WithTimestamp(r.began),
		trace.WithAttributes(r.identity()...), trace.WithAttributes(r.conversation...),
		trace.WithAttributes(runIDKey.String(r.id)),
	}
	if around == nil {
		var links []trace.Link
		ctx, links = resumed(ctx)
		options = append(options, trace.WithLinks(links...))
	}

	ctx, r.span = t.spans.Start(ctx, spanName(semconv.GenAIOperationNameInvokeAgent, r.name), options...)
	r.ctx = context.WithValue(keepTrace(ctx), runKey{}, r)
	return r.ctx
}

// agentName returns the agent's name: the hook's, or for a sub-agent without a hook of its own the name of its tool.
func agentName(ctx context.Context, t *tracer, around *run) string {
	if around == nil || around.tracer != t && t.agent != "" {
		return clean(t.agent)
	}
	call, _ := executor.CallOf(ctx)
	return clean(call.Name)
}

// identity returns the attributes common to the run's span and its metrics.
func (r *run) identity() []attribute.KeyValue {
	attributes := []attribute.KeyValue{semconv.GenAIOperationNameInvokeAgent}
	if r.name != "" {
		attributes = append(attributes, semconv.GenAIAgentName(r.name))
	}
	return attributes
}

// conversationID returns the ID of the first node of a conversation, or nothing if it is empty.
func conversationID(d dag.DAG) []attribute.KeyValue {
	heads := d.Heads()
	if len(heads) == 0 {
		return nil
	}

	n := heads[0]
	for n.NumParents() > 0 {
		n = n.Parent(0)
	}
	return []attribute.KeyValue{semconv.GenAIConversationID(n.ID().String())}
}

// declare remembers declared tools. A call of any other tool was invented by the model.
func (r *run) declare(tools []content.Tool) {
	for _, tool := range tools {
		r.declared[tool.Name] = tool.Description
	}
}

// observe records an event after the RunStart.
func (r *run) observe(ctx context.Context, event executor.Event, err error) context.Context {
	if r.skip > 0 {
		r.skip--
		return ctx
	}
	r.skip = r.copies

	switch e := event.(type) {
	case executor.TurnStart:
		// The run continues, so a cut-off or an empty response was no failure of its request.
		r.endChat("", "")
	case executor.MessageStart:
		if e.Role == content.Assistant {
			return r.beginChat(ctx, e.Request, e.Model)
		}
	case executor.MessageDelta:
		r.chat.delta(e.Event)
	case executor.Retry:
		r.chat.retry(e.Retry)
	case executor.MessageEnd:
		r.answer(e.Node)
	case executor.TurnEnd:
		r.chat.take(e)
	case executor.ToolStart:
		return r.beginCall(ctx, e)
	case executor.ToolEnd:
		r.endCall(e.Execution)
	case executor.Paused:
		c := e.Continuation
		r.span.AddEvent("plait.pause", trace.WithAttributes(
			pauseReasonKey.String(string(c.Reason)), pauseCallsKey.Int(len(c.Calls))))

		// A call with a paused sub-agent has no ToolEnd here. It has another ToolStart in the resumed run.
		r.endCalls("")
	case executor.End:
		r.end(e, err)
	}
	return ctx
}

// end ends the span of the run and the open spans below it.
func (r *run) end(e executor.End, err error) {
	// Inner spans end before the span of the run. endChat does nothing if the request has ended already.
	failure, text := r.failure(e.Stop, err)
	if e.Stop.Reason == content.StopTimeLimit {
		r.endChat(string(e.Stop.Reason), "") // the limit ends a request, and is no error of the run
	}
	r.endChat(failure, text)
	r.endCalls(cmp.Or(failure, "cancelled"))

	ended, attributes := time.Now(), r.identity()
	if failure != "" {
		setError(r.span, failure, text)
		attributes = append(attributes, semconv.ErrorTypeKey.String(failure))
	}
	if e.Stop.Reason != "" {
		r.span.SetAttributes(stopReasonKey.String(string(e.Stop.Reason)))
	}
	if r.api != "" {
		r.span.SetAttributes(providerName(r.api))
	}
	r.span.SetAttributes(usageAttributes(r.usage)...)
	r.span.End(trace.WithTimestamp(ended))

	set := metric.WithAttributes(attributes...)
	r.metrics.runDuration.Record(r.ctx, ended.Sub(r.began).Seconds(), set)
	set = metric.WithAttributes(r.identity()...)
	r.metrics.runRequests.Record(r.ctx, r.requests, set)
	r.metrics.runCalls.Record(r.ctx, r.executions, set)
}

// failure returns the error.type of a run and the error's text, "" if it did not fail. A pause is no failure.
func (r *run) failure(stop node.StopReason, err error) (kind, text string) {
	switch {
	case err == nil, stop.Reason == content.StopApproval, stop.Reason == content.StopResults:
		return "", ""
	case stop.Reason == "": // the consumer left, or a provider panicked
		return "cancelled", ""
	}
	return errorType(err), r.text(err)
}

// text returns the text of an error if texts may be recorded.
func (t *tracer) text(err error) string {
	if !t.content {
		return ""
	}
	return err.Error()
}

// setError marks a span as failed.
func setError(span trace.Span, kind, text string) {
	span.SetStatus(codes.Error, cmp.Or(clean(text), kind))
	span.SetAttributes(semconv.ErrorTypeKey.String(kind))
}
