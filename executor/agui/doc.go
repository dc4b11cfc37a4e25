// Package agui runs agents for AG-UI clients (https://docs.ag-ui.com), such as a web front end, by version 1.0 of the
// protocol.
//
//	http.Handle("POST /agent", agui.Handler(agent, &agui.Options{Store: sessions, Thread: ownThread}))
//
// # What is translated
//
//   - A thread is a conversation of a [store.Store], saved step by step. Of a client's messages, the new ones of the
//     user are appended; the store has all others. If it has messages that the client lacks, the client gets them
//     (MESSAGES_SNAPSHOT).
//   - Texts and thinking arrive as they are written. Tool calls and results arrive as a whole. When a request is
//     retried, a snapshot of the messages replaces what was shown of the first attempt.
//   - A call that needs approval (executor.AskApproval) ends the run with an interrupt. Its answer has the payload
//     {"approved": true}, with "input" for other arguments, or {"approved": false, "reason": "…"}. Everything else
//     declines the call. Other messages in place of an answer decline all of them. A request with answers takes no new
//     messages: they are appended with the next one, because a client sends all of its messages each time.
//   - Tools of the client are declared to the model as deferred ones: their calls end the run with their IDs, and the
//     client's next request has the results. A tool of the agent with the same name comes first.
//   - A call of a deferred tool of the agent's own ends the run with an interrupt of the reason "tool_result". The
//     client cannot answer it: the program resumes the conversation with the result.
//   - The client's state is in the context of tools and hooks: see [State].
//   - Of sub-agents only the results are sent. With [Options].SubAgents, their texts, thinking, calls and results are sent
//     too: with the ID of the sub-agent's run, between the events that report its beginning and its end.
//   - While nothing happens, a comment every 15 seconds keeps the connection open.
//
// # Reconnect
//
// A request that is sent again, after a lost connection or a crash of the program, continues the conversation where it
// is saved: no message is appended twice, no finished call is executed again, and open interrupts are asked again. A
// client that knows nothing but the thread's ID gets its messages. The run ends with its connection.
//
// # Trust
//
// A thread's ID is chosen by the client: with [Options].Thread the program decides which conversation it is, and
// whether the user may have it. What is approved comes from the store, and never from the client, except for arguments
// that it changes. Errors of a run reach the client as their kind alone.
//
// A request has to be of the type application/json, so that a page of another site cannot send one with the user's
// cookies unless the program allows it (CORS).
package agui
