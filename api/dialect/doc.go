// Package dialect makes requests acceptable to a model's API. It is for authors of an api.Provider; a caller of one
// does not need it.
//
// The smallest whole program:
//
//	target, _ := dialect.TargetOf("anthropic")
//	messages, notes := dialect.Repair(req.Messages, dialect.Rules{Accept: target.Accept})
//	if len(notes) > 0 && !yield(api.Repaired{Repairs: notes}, nil) {
//		return
//	}
//	// … write messages as the API's JSON …
//
// A conversation may have been built by hand, cut, merged or loaded, and other models may have had a part in it. Three
// pieces make it acceptable to one API:
//
//   - A [Target] describes the API: its media, its tool names, call IDs and schemas. [Target.Accept] converts a block, [Target.Tool] a tool
//     definition. [TargetOf] returns those of Anthropic, OpenAI and Gemini.
//   - [Repair] changes messages as little as possible to keep the [Rules] of the API, and reports each change.
//   - An [Encoding] repairs and writes a growing conversation, at the cost of its new messages alone.
//
// # Concurrency
//
// Everything here is safe for concurrent use, if the functions in Rules and Encoding are.
//
// # Errors
//
// There are none: every list of messages can be repaired. An api.RepairNote describes each change.
package dialect
