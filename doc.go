// Package plait is the map of the module: a persistent, immutable conversation graph for LLM agents. It holds no code; import
// the packages below.
//
// You build a conversation fluently, run the tool loop, and get back a new graph: always valid to send, saved without loss,
// free to fork, and easy to look at.
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
// Imports point down this list only; a test keeps it so.
//
//	content    what is said: blocks of text, images, thinking, tool calls, tool results
//	node       one immutable vertex: payload, parents, id, digest
//	api        the boundary to models: Provider, Client, typed errors, Repair
//	dag        the conversation as a value: build, walk, fork, join, validate, save, load
//	executor   tools, one tool phase, and the loop
//	viz        drawings: Mermaid
//
// Beside api stands api/apitest: a scripted model, strict fakes of the real APIs, and the suite that a provider of your own
// can run.
//
// Providers are modules of their own, so that a program downloads only the SDK it uses: api/anthropic.
//
// # The shape of a conversation
//
// A conversation is a directed acyclic graph. Most of it is a line: system prompt, tools, user, assistant. Where the assistant
// calls tools the line fans out, into one ToolExecution node for each call, and closes in one message that has all of them as
// parents and owns every result, in call order:
//
//	◆ system ─ ○ user ─ ● assistant ┬ ▪ get_weather ┬ ◇ results ─ ● assistant ─ ■ stop
//	                                ├ ▪ get_weather ┤
//	                                └ ▪ get_weather ┘
//
// Every value stays good for ever. Keeping an older one is a fork, and costs nothing.
package plait
