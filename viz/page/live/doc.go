// Package live shows a conversation in a browser during its runs: nodes as they are added, the text being written by a
// model, the tools being executed, and the tokens used.
//
// The smallest whole program:
//
//	s := live.New(d, nil)
//	defer s.Close()
//	l, err := s.Listen("127.0.0.1:0")
//	fmt.Println(s.URL(l.Addr()))
//	go s.Serve(l)
//	for event, err := range s.Watch(agent.Stream(ctx, d)) { … }
//
// A [Server] is an http.Handler: a program may serve it in its own way. It shows one conversation, set by [New] or
// [Server.Set] and continued by the runs passed through [Server.Watch]. With [Options.Run], a user of the page can
// continue from any node: the conversation gets a new head, and all existing nodes stay. With [Options.Resume], a user
// of the page approves or denies the calls of a paused run, or gives their results, and the run continues in place.
//
// # Security
//
// A conversation may hold confidential text and tool results, and running a model costs money. Therefore:
//
//   - Only clients on this machine are accepted, unless [Options.Remote] is set. Other peers are refused, and so is
//     listening for them.
//   - A request with the Host header of another server is refused. Otherwise a web page could reach the server by
//     resolving its own name to 127.0.0.1.
//   - Requests need a token. It is after the "#" of the address returned by [Server.URL], and therefore in no log and
//     no Referer header. Only the empty page, without any content, is served without it.
//   - Requests of other sites are refused unless they are GET, and GET changes nothing.
//   - Text of the conversation is data to the page, never markup. The page runs no script but its own, loads nothing
//     from other servers, and cannot be put into a frame.
//   - Running and forking are off unless [Options.Run] is set, and answering calls is off unless [Options.Resume] or
//     [Paused].Reply is. An answer only allows calls of the server's own continuation: a page names them, and cannot
//     change them.
//
// # Slow browsers
//
// A run never waits for a browser. If a browser reads too slowly, or not at all, it misses updates; when it reads
// again, it receives the whole state. A browser that reads nothing for 10 seconds is disconnected. At most 100 browsers
// may be connected at once ([Options.Listeners]); further ones are refused.
//
// The conversation of a new page arrives in patches of 1,000 nodes. After a lost connection, a page names the last event
// it has, and receives the changes since then. Of changes beyond 1 MiB it receives the whole again.
//
// # Protocol
//
// All paths are relative to the path of the page. Everything but the page needs the header "Authorization: Bearer
// TOKEN".
//
//	GET  (the page)
//	GET  events                            server-sent events: "patch", the drawing; "activity", the state of the run;
//	                                       with Last-Event-ID, only the changes after that event
//	POST fork   {"at": ID, "text": TEXT}   appends TEXT to the node and runs it: 202; 409 during another run
//	POST fork   {"at": ID, "edit": TEXT}   the same with another text of the message ID, on a branch beside it. After a
//	                                       message of the assistant follow the results of its calls, as they were, and
//	                                       "text" as a message of the user, which is required if there are no calls. A
//	                                       paused sub-agent continues on the branch, and its open calls ask again there
//	POST fork   {"at": ID, "result": TEXT, "failed": BOOL}
//	                                       the same with another result of the executed call ID in place of its own
//	POST answer {"pause": ID, "call": ID, "reply": REPLY}
//	                                       answers an open call, by a reply in the form of executor.Reply: 202; 409 if
//	                                       it was answered before. The last answer resumes the run
//	POST stop   {}                         ends the run started by fork or answer: 202
//	GET  request?node=ID                   the exact request answered by the node, if it is known
//	GET  copy?as=FORM                      the conversation as "mermaid" or "json"
//
// An activity is a JSON object. Each member may be absent if its value is unchanged:
//
//	state      "idle" or "running"
//	turn       the model call, from 1
//	begin      true: the message streamed so far is complete, or void
//	text       a further piece of the message's text, or
//	thinking   of its thinking
//	tools      calls, each whole: id (of the call, in this run), tool, input, started (a time),
//	           note (its reported progress, or the activity of a sub-agent), ended, failed,
//	           state ("in doubt" if nobody knows whether it was executed)
//	tokens     input and output, of the run so far
//	stop       the stop reason of the run
//	error      a problem, as text for people; "" once it is solved
//	paused     all paused runs: id (of the pause), node (the message whose calls are open), takes (it takes answers),
//	           and calls: id, tool, input,
//	           path (the sub-agent), reason, asks ("approval" or "result"; absent while the decisions about other calls
//	           are open), doubt (it was started before, and its outcome is unknown), answer (once it is answered)
//
//	origin     where the conversation comes from ([Origin]): changed (a time), run, and detail of the run; each
//	           absent if unknown
//	canRun     whether fork is allowed at all
//
// An [Index] has two paths more. Each conversation's page is at "c/NAME/", for a NAME of the list.
//
//	GET  list                              {"entries": […]}: key, path, and as in [Entry] state, detail, waits, changed
//
// An error is a JSON object with a code for programs and a sentence for people:
// {"error": "unknown_node", "message": "…"}.
//
// # Errors
//
// The errors of runs, of Options.Save and of the drawing are shown on the page. A panic of a function in [Options],
// [IndexOptions] or [Paused], or in a watched sequence that the page began, is an error as well: the server and its
// other pages are not affected.
//
// # Concurrency
//
// A Server is safe for concurrent use. It has no goroutine while no browser is connected and nothing runs, and none
// after [Server.Close].
package live
