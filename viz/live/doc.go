// Package live shows a conversation in a browser while it goes on: nodes as they land, the text that a model is writing, the tools that
// run, and the tokens that all of it takes.
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
// A [Server] is an http.Handler, so that a program can serve it in its own way. It shows one conversation: that of [New] or [Server.Set],
// and what the runs that go through [Server.Watch] make of it. With [Options.Run], whoever sees the page can go on from any node: the
// conversation gets a new head, and what was said stays.
//
// # Who may look
//
// A conversation holds what people said and what tools found, and a page that runs a model spends money. Therefore:
//
//   - Only this machine may ask, unless [Options.Remote] says otherwise: other peers are refused, and so is listening for them.
//   - Only for this server: a Host header that names another one is refused, so that no page of the internet can reach it by having its
//     name resolve to 127.0.0.1.
//   - Only with the token, which is in the address that [Server.URL] returns, after the "#", and so in no log and no Referer header. The
//     empty page itself holds nothing and comes without it.
//   - Pages of other sites are refused what is not GET, and GET changes nothing.
//   - What was said is data to the page, never markup: it has no other script than its own, loads nothing from anywhere, and cannot be
//     put into a frame.
//   - Running and forking are off unless [Options.Run] is set.
//
// # Who cannot disturb
//
// A run waits for nobody who looks. A browser that reads slowly, or not at all, misses what it has no room for and is told the whole
// again when it reads on; one that takes nothing for 10 seconds is let go. 100 may listen at once ([Options.Listeners]); further ones
// are refused.
//
// # The protocol
//
// All paths are beside the page's own. Everything but the page wants the header "Authorization: Bearer TOKEN".
//
//	GET  (the page)
//	GET  events                            server-sent events: "patch", the drawing; "activity", what is going on
//	POST fork   {"at": ID, "text": TEXT}   says TEXT after the node and runs it: 202; 409 while a run goes on
//	POST stop   {}                         ends the run that fork began: 202
//	GET  request?node=ID                   the exact request that the node answered, where it is known
//	GET  copy?as=FORM&node=ID              the conversation up to the node, or all of it, as "mermaid", "json" or "go"
//
// An activity is a JSON object; each member may be absent, which means that nothing is new there:
//
//	state      "idle" or "running"
//	turn       the model call, from 1
//	begin      true: what was streamed of a message is over, or void
//	text       a further piece of the message's text, or
//	thinking   of its thinking
//	tools      calls, each whole: id (of the call, in this run), tool, input, started (a time), note (what it said of its progress, or
//	           what a sub-agent does), ended, failed
//	tokens     input and output, of the run so far
//	stop       why the run ended
//	error      what is wrong, for people; "" where nothing is any more
//
// An error is a JSON object with a word for programs and a sentence for people: {"error": "unknown_node", "message": "…"}.
//
// # Concurrency
//
// A Server is safe for concurrent use. It has no goroutine while nobody looks and nothing runs, and none after [Server.Close].
package live
