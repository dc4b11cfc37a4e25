// Package dialect is for authors of an api.Provider; a caller of one does not need it. [Provider] is one for an API with
// JSON over HTTP, to which a program adds the form of a request and of a response:
//
//	model := dialect.Provider{
//		Target: dialect.Target{API: "mine"}, URL: "https://models.example.com/v1",
//		Body: func(req api.Request) any { … },
//		Read: func(body io.Reader, yield func(api.Event) bool) error { … },
//	}
//
// Test it with package conformance, whose examples have whole providers. For anything but JSON over HTTP, three pieces
// make a conversation acceptable that was built by hand, cut, merged or loaded, and in which other models had a part:
//
//   - A [Target] describes the API: its media, its tool names, call IDs and schemas. [Target.Accept] converts a block,
//     [Target.Tool] a tool definition, [Target.Options] the options. [TargetOf] returns those of Anthropic, OpenAI and
//     Gemini.
//   - [Repair] changes messages as little as possible to keep the [Rules] of the API, and reports each change.
//   - An [Encoding] repairs and writes a growing conversation, at the cost of its new messages alone.
//
// # Concurrency
//
// Everything here is safe for concurrent use, if the functions in Rules and Encoding are.
//
// # Errors
//
// Every list of messages can be repaired: an api.RepairNote describes each change. The errors of a [Provider] are those
// of api.Provider.
package dialect
