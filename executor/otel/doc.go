// Package otel traces and measures agents with OpenTelemetry (https://opentelemetry.io), by its conventions for
// generative AI.
//
// One hook is all:
//
//	agent := executor.Agent{Provider: model, Tools: tools, Hooks: []executor.Hook{otel.Hook(nil)}}
//
// It makes these spans. Spans of a tool or an HTTP client are below the span of the call or the request:
//
//	invoke_agent {agent}           a run, or a sub-agent's run
//	├── chat {model}               a request with all its retries, until the response is complete
//	└── execute_tool {tool}        a tool call
//	    └── invoke_agent {tool}    the run of a sub-agent
//
// A retry is an event on its request's span (plait.retry), and a pause one on its run's (plait.pause). Sub-agents need
// no hook of their own.
//
// # Conventions
//
// Names, types and units are those of the GenAI semantic conventions v0.1.0
// (https://github.com/open-telemetry/semantic-conventions-genai). Their status is "development", and later versions of
// this package follow their changes. These metrics are recorded:
//
//   - gen_ai.client.inference.duration and gen_ai.client.inference.time_to_first_chunk, of each request.
//   - gen_ai.client.inference.operation.input_tokens and .output_tokens, the tokens of each request, and the counters
//     gen_ai.client.inference.usage.input_tokens, .output_tokens, .cache_read.input_tokens, .cache_write.input_tokens
//     and .reasoning.output_tokens.
//   - gen_ai.invoke_agent.duration, .inference_calls and .tool_calls, of each run.
//   - gen_ai.execute_tool.duration, of each call of a declared tool.
//
// Tool calls are counted in .tool_calls if their tool is declared, or if the Handler of an [executor.Agent] has executed
// them successfully.
//
// gen_ai.conversation.id is the ID of the conversation's first node. Forks and saved copies share it.
// gen_ai.request.model is the provider's model ([api.ModelOf]). If the provider names none, a request's span gets the
// model of the response in its name when it ends. The conventions define events as log records. None are written: a
// conversation is recorded on the spans. This module's own attributes begin with "plait.": plait.run.id,
// plait.stop_reason and those of the events.
//
// error.type is the kind of an [api.Error] ("rate_limited", "context_too_long"), "cancelled", "timeout", the stop
// reason of a run that was stopped in a request ("time_limit"), "tool_error" for a failed call, "unknown_tool" for one
// of a tool that is not declared, "in_doubt" for a call whose outcome is unknown, or else the Go type of the error.
//
// # Runs that are resumed
//
// A paused run keeps its trace: its continuation has the trace context among its attributes, under [Attributes]. The
// resumed run, in whatever process, is a child of the paused one, with a link to the span that resumed it. A codec
// and an engine write only the attributes that are named to them:
//
//	codec := executor.ContinuationCodec{Keys: otel.Attributes()}
//
// A run that continues after a crash, without a continuation, begins a trace of its own; gen_ai.conversation.id joins
// the two.
//
// # What is recorded of a conversation
//
// By default: names of tools and models, IDs of calls, counts, times. No text of a user, model, tool or error is
// recorded unless [Options].Content is set.
package otel
