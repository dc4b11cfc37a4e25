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
// Claude Code, a session as JSON lines. The files of sub-agents may follow in the same reader, as with [io.MultiReader]:
//
//	uuid, parentUuid                 the tree; the newest end is the main conversation
//	user                             node.Message; one with isMeta too, because the model was told it
//	assistant                        node.Message; the lines of one answer are one message
//	tool_result                      a node.ToolExecution for each call, and one message with all results; a call that got none while
//	                                 the conversation went on has the error result that models are told in its place
//	toolUseResult                    the execution's Details
//	isSidechain, agentId             the execution's Child, where the file names the call, or the call asked what the sub-agent was
//	                                 asked; else a node.SubGraph, before the message that the file has next
//	compact_boundary, its summary    node.Compaction of what is before logicalParentUuid, but for the preserved segment
//	model, id, stop_reason, usage    the message's Answer
//	requestId and any other member   metadata "claude-code"; what all lines share, once, metadata of the whole
//	isApiErrorMessage, and lines
//	that only the screen shows       node.Custom
//	system, progress, summary, file-history-snapshot, attachment, and any other type
//	                                 node.Custom "claude-code.TYPE", before the message that the file has next
//
// pi, a session as JSON lines, of any version:
//
//	id, parentId, leaf               the tree; the main conversation ends where the session was left
//	user, custom_message             node.Message
//	assistant                        node.Message; one that failed or was aborted is a node.Custom, because pi does not send it again
//	toolResult                       as with Claude Code; its details are the execution's Details
//	thinkingSignature                the signature of content.Thinking, as the API has it that wrote it
//	thoughtSignature, textSignature  Gemini's, the Extra of the block
//	bashExecution                    a message that tells it in words, unless it is excluded from the context
//	compaction                       node.Compaction of what is before firstKeptEntryId
//	branch_summary                   node.Compaction that replaces nothing
//	model_change, thinking_level_change, label, session_info, custom, and any other type
//	                                 node.Custom "pi.TYPE"
//	any other member                 metadata "pi" and "pi.message"
//	session                          metadata of the whole
//
// Chat messages:
//
//	system, developer                node.System
//	user, assistant                  node.Message
//	tool, function                   as with Claude Code
//	tool_calls, function_call        content.ToolUse, the arguments byte for byte
//	reasoning_content, reasoning     content.Thinking of OpenAI's Chat Completions API
//	tools, functions                 node.Tools
//	anything beside the messages     node.Custom "chat"
//	any other member of a message    metadata "chat"
//
// LangChain and LangGraph, as langchain-core's messages_to_dict, model_dump and load.dumpd write messages:
//
//	human, ai, system                node.Message, node.System
//	tool, function                   as with Claude Code; artifact is the execution's Details
//	tool_calls                       content.ToolUse, at its place in the content where it stands there too
//	invalid_tool_calls               the same, with the arguments as the model wrote them
//	additional_kwargs.tool_calls     the same, where there are neither of the others
//	reasoning, thinking              content.Thinking
//	image, audio, video, file, …     content.Image, content.Document
//	usage_metadata,
//	response_metadata                the message's Answer, and metadata "langchain"
//	values, channel_values           of a state or a checkpoint: what stands beside the messages is node.Custom "langchain"
//	any other member of a message    metadata "langchain"
//
// The system prompt and the tools are in no file of Claude Code or pi. Thinking that its provider binds to them is kept, drawn and saved,
// but not sent again (node.Answer.Seen).
//
// Blocks that are not known are content.Opaque in all formats, and noted. Definitions of tools are in few of these files: a
// conversation of another has a dag.UndeclaredTool finding for each call until DAG.Tools declares them.
//
// # Times and ids
//
// A node has the time of its line, and as its id the line's where that is a UUID. All others are derived of the session's id and what the
// file calls the line, so that importing a file twice gives the same conversation.
//
// # Concurrency
//
// Import may be called by any number of goroutines. What it returns is safe for concurrent use, as every conversation is.
//
// # Errors
//
// Every error is an *[Error], which names the line and why. Nothing of a file with an error is imported, unless
// [Options.Lenient] is set or only its last line is torn. A session without any line that Claude Code or pi writes is ErrShape: it has
// another format. Import does not guess the format; "plait import" does. What a file holds and a conversation cannot is no error but a
// [Note]; nothing is left out in silence.
package transcript
