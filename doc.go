// Package plait is the map of the module: a persistent, immutable conversation graph for LLM agents. It holds no code;
// import the packages below.
//
// You build a conversation fluently, run the tool loop, and get back a new graph: always valid to send, saved without
// loss, free to fork, and easy to look at.
//
//	d := dag.New().
//		System("Answer briefly. Call tools in parallel when you can.").
//		Tools(weather).
//		User("Weather in Tokyo, Paris and New York?")
//
//	d, err := executor.Run(ctx, model, d) // d is valid even when err is not nil
//	fmt.Println(d)                        // the graph, as a terminal log
//	fmt.Println(d.Text())                 // the last answer
//
// # Packages
//
// A package imports only packages above it in this list; a test checks that.
//
//	content    messages: blocks of text, images, thinking, tool calls, tool results
//	node       one immutable vertex: payload, parents, id
//	api        the boundary to models: Provider, Client, typed errors, prices
//	  dialect    what an API accepts: Repair, and the rules for switching the provider
//	dag        the conversation as a value: build, walk, fork, edit, merge, compare, verify, save, load
//	  promptcache which tokens of a request were in the provider's prompt cache, and why others were not
//	store      conversations by key, shared by many programs: the interface of a database, and one in memory
//	transcript what other programs kept: sessions of nano-agent, Claude Code, pi, LangChain, chat messages
//	report     what many conversations have in common: outcomes, costs, failures, where their paths part
//	executor   tools, one tool phase, the loop, pause and resume, compaction
//	  replay     recorded calls executed again, and recorded results for another model
//	  registry   one tool call at a time, in the shape of any provider, for other loops
//	viz        drawings: Mermaid, DOT, SVG, and the layout they stand on
//	  page       a conversation as one HTML file, to look around in
//	  live       the same page during a run
//	  progress   a line on a terminal that says how far a run is
//
// Beside api stands api/apitest: a scripted model. api/apitest/conformance has the suite that a provider of your own
// can run, api/apitest/fake strict fakes of the real APIs, and api/apitest/tape records real traffic and plays it back.
//
// What needs more than the core is a module of its own, so that a program downloads only what it uses: the providers
// api/anthropic, api/openai and api/gemini over the official SDKs, store/sqlite and store/postgres, executor/durable,
// viz/png, the command cmd/plait, and the examples.
//
// # The shape of a conversation
//
// A conversation is a directed acyclic graph. Most of it is a line: system prompt, tools, user, assistant. Where the
// assistant calls tools the line fans out, into one ToolExecution node for each call, and closes in one message that
// has all of them as parents and owns every result, in call order:
//
//	◆ system ─ ○ user ─ ● assistant ┬ ▪ get_weather ┬ ◇ results ─ ● assistant ─ ■ stop
//	                                ├ ▪ get_weather ┤
//	                                └ ▪ get_weather ┘
//
// Every value stays good for ever. Keeping an older one is a fork, and costs nothing.
package plait
