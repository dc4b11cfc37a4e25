// Package agui runs agents for AG-UI clients (https://docs.ag-ui.com), such as a web front end, by version 1.0 of the
// protocol.
//
//	http.Handle("POST /agent", agui.Handler(agent, &agui.Options{
//		Store: sessions, Thread: ownThread, Hosts: []string{"app.example.com"},
//	}))
//
// # What is translated
//
//   - A thread is a conversation of a [store.Store], saved step by step. New user messages of the client are appended;
//     the store has all others. If the client lacks messages of the store, it gets them (MESSAGES_SNAPSHOT).
//   - Texts and thinking arrive in pieces. Tool calls and results arrive as a whole. When a request is retried, a
//     snapshot of the messages replaces the pieces of the first attempt.
//   - A call that needs approval (executor.AskApproval) ends the run with an interrupt. Its answer has the payload
//     {"approved": true}, with "input" for other arguments, or {"approved": false, "reason": "…"}. Everything else
//     declines the call. Other messages in place of an answer decline all calls. New messages in a request with answers
//     are appended with the next request, because a client sends all of its messages each time.
//   - Tools of the client are declared to the model as deferred tools. Their calls end the run with their IDs, and the
//     client's next request has the results. A tool of the agent with the same name has priority.
//   - A call of the agent's own deferred tool ends the run with an interrupt of the reason "tool_result". The client
//     cannot answer it: the program resumes the conversation with the result.
//   - The client's state is in the context of tools and hooks: see [State].
//   - Only the results of sub-agents are sent: their messages may not be meant for the user.
//   - While nothing happens, a comment every 15 seconds keeps the connection open.
//
// # Reconnect
//
// After a lost connection or a crash of the program, a client may send its request again. It continues the saved
// conversation: no message is appended twice, no finished call is executed again, and open interrupts are asked again.
// A client that knows only the thread's ID gets all messages. The run ends with its connection.
//
// With [Durable], the run does not: it is executed by processes of executor/durable, and clients start, follow, answer
// and cancel it.
//
// # Trust
//
// The client chooses a thread's ID. With [Options].Thread, the program maps it to a conversation, and decides whether
// the user may have it. The approved calls come from the store, never from the client, except for changed arguments.
// Errors of a run reach the client as their kind only.
//
// A request must name the handler's host: localhost, an IP address, or one of [Options].Hosts. Behind a proxy, list the
// public name. A page of another site is refused, unless it is one of [Options].Origins.
//
// A body must arrive within a minute. A client that reads nothing for 10 seconds loses its connection, and with Handler
// its run. Both need a ResponseWriter of net/http, or one with an Unwrap method.
//
// A request must have the type application/json. A page of another site then cannot send one with the user's cookies
// unless the program allows it (CORS).
package agui
