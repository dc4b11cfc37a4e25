// Package sessions imports the saved conversations of other programs, and writes such.
//
// The smallest whole program:
//
//	in, err := sessions.Import(sessions.NanoAgent, file, nil)
//	fmt.Println(in.Main(), in.Notes)
//
// # What each part of a file becomes
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
//	thinking, redacted_thinking      content.Thinking; marked as Anthropic's if it has a signature
//	reasoning                        content.Thinking of OpenAI's Responses API
//	compaction                       content.Opaque of the same
//	an unknown block                 content.Opaque "nano-agent"
//	head_ids                         the heads, and then the nodes without children that those do not reach
//	metadata                         metadata of the node or of the conversation
//
// Claude Code, a session as JSON lines. The files of sub-agents may follow in the same reader, as with
// [io.MultiReader]:
//
//	uuid, parentUuid                 the tree; the branch with the newest line is the main conversation
//	user                             node.Message; also with isMeta, because it was sent to the model
//	assistant                        node.Message; the lines of one response are one message
//	tool_result                      a node.ToolExecution for each call, and one message with all results; a call without a result gets
//	                                 the error result content.NoResult if the conversation continues
//	toolUseResult                    the execution's Details
//	isSidechain, agentId             the execution's Child, if the file names the call or a call has the sub-agent's prompt; otherwise a
//	                                 node.SubGraph before the next message of the file
//	compact_boundary, its summary    node.Compaction of the messages up to logicalParentUuid, without the preserved segment
//	model, id, stop_reason, usage    the message's Answer
//	requestId and any other member   metadata "claude-code"; members that all lines share are metadata of the conversation
//	isApiErrorMessage, and lines
//	that are only displayed          node.Custom
//	system, progress, summary, file-history-snapshot, attachment, and any other type
//	                                 node.Custom "claude-code.TYPE", before the next message of the file
//
// pi, a session as JSON lines, of any version:
//
//	id, parentId, leaf               the tree; the main conversation ends at the current entry of the session
//	user, custom_message             node.Message
//	assistant                        node.Message; one that failed or was aborted is a node.Custom, because pi does not send it again
//	toolResult                       as with Claude Code; its details are the execution's Details
//	thinkingSignature                the signature of content.Thinking, in the form of the response's API
//	thoughtSignature, textSignature  the Extra of the block, for Gemini
//	bashExecution                    a user message with the command and its output, unless it is excluded from the context
//	compaction                       node.Compaction of the messages before firstKeptEntryId
//	branch_summary                   node.Compaction that replaces nothing
//	model_change, thinking_level_change, label, session_info, custom, and any other type
//	                                 node.Custom "pi.TYPE"
//	any other member                 metadata "pi" and "pi.message"
//	session                          metadata of the conversation
//
// Codex, a rollout as JSON lines, as version 0.171 writes it:
//
//	session_meta                     metadata of the conversation; base_instructions are a node.System
//	message                          node.Message; of a developer node.System
//	reasoning, function_call         blocks of the response; the items between two token counts are one response
//	function_call_output             as tool_result of Claude Code
//	token_usage_record               the message's Answer, with the model of the turn_context before it
//	any other item                   content.Opaque of the Responses API
//	any other line                   node.Custom "codex.TYPE"; also compacted: its messages stay
//
// OpenCode, a session as version 1.18 exports it:
//
//	info                             metadata of the conversation, and of each message
//	text, file, reasoning, tool      blocks of the message, and the results of its calls as a message behind it
//	tokens, modelID, finish          the message's Answer
//	step-start, step-finish, patch   metadata "opencode.steps"
//	any other part                   content.Opaque
//
// # Writing
//
// [Export] writes sessions of Claude Code, Codex, OpenCode and pi, which these programs continue, and ATIF. What a format
// cannot express is returned as losses, each kind under a code. What is not in the list comes back when the session is
// imported.
//
// Files of Claude Code, Codex, OpenCode and pi lack the tools, and most the system prompt. Some providers bind thinking to both. Such thinking
// is kept, drawn and saved, but not sent again (node.Answer.Seen).
//
// In all formats, an unknown block becomes a content.Opaque, with a note. Most files lack the definitions of the tools.
// Until DAG.Tools declares them, the conversation has a dag.UndeclaredTool finding for each call.
//
// # Times and IDs
//
// A node has the time of its line. If the line's ID is a UUID, the node has the same ID. Other IDs are derived from the
// session's ID and the name of the line. Importing a file twice returns the same conversation. A file without a session
// ID needs [Options.Session] for that. An ID never depends on content.
//
// # Concurrency
//
// Import may be called from any number of goroutines. The returned conversations are safe for concurrent use.
//
// # Errors
//
// Every error is an *[Error] with the line and the reason. A file with an error is not imported, unless only its last
// line is cut off. A file without any known line of its format is an error, because it has another format. Import
// does not guess the format.
//
// If a conversation cannot hold some content, the result is a [Note], not an error. Nothing is left out without one.
package sessions
