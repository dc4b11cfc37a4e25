// Package transcript imports conversations as other programs keep them.
//
// The smallest whole program:
//
//	in, err := transcript.Import(transcript.NanoAgent, file, nil)
//	fmt.Println(in.Main(), in.Notes)
//
// # What becomes of what
//
// nano-agent, a graph as one JSON object:
//
//	system_prompt, tool_definitions  node.System, node.Tools
//	message                          node.Message
//	tool_execution                   node.ToolExecution of the call with its id
//	sub_graph before an execution    the execution's Child; its other members are the execution's Details
//	any other sub_graph              node.SubGraph
//	stop_reason                      node.StopReason
//	an unknown type                  node.Custom "nano-agent.TYPE"
//	thinking, redacted_thinking      content.Thinking; Anthropic's where it has a signature
//	reasoning                        content.Thinking of OpenAI's Responses API
//	compaction                       content.Opaque of the same
//	an unknown block                 content.Opaque "nano-agent"
//	head_ids                         the heads, and after them what they do not reach
//	metadata                         metadata, of the node or of the whole
//
// # Concurrency
//
// Import may be called by any number of goroutines. What it returns is safe for concurrent use, as every conversation is.
//
// # Errors
//
// Every error is an *[Error], which names the line and why. Nothing of a file with an error is imported, unless
// [Options.Lenient] is set. What a file holds and a conversation cannot is no error but a [Note]; nothing is left out in silence.
package transcript
