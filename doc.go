// Package plait is the map of the module: a persistent, immutable conversation graph for LLM agents. It holds no code;
// import the packages below. In a module of your own, write the imports and run
//
//	go mod tidy
//
// or get them with "go get github.com/plait-dev/plait/executor". This is a whole program; a script plays the model, so
// that it runs without a key:
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"log"
//
//		"github.com/plait-dev/plait/api/apitest"
//		"github.com/plait-dev/plait/dag"
//		"github.com/plait-dev/plait/executor"
//	)
//
//	type Place struct {
//		City string `json:"city" jsonschema:"the city's name"`
//	}
//
//	func lookUp(ctx context.Context, in Place) (string, error) { return "22°C in " + in.City, nil }
//
//	func main() {
//		weather := executor.Func("get_weather", "Current weather for one city.", lookUp)
//		d := dag.New().Tools(weather).User("What is the weather in Tokyo?")
//
//		// A script plays the model: no key, no network.
//		model := apitest.NewScript(apitest.Say("").Call(apitest.Use("get_weather", Place{"Tokyo"})), apitest.Say("It is 22°C."))
//		d, err := executor.Run(context.Background(), model, d)
//		if err != nil {
//			log.Fatal(err)
//		}
//		fmt.Println(d)        // the whole conversation, as a log
//		fmt.Println(d.Text()) // the answer
//	}
//
// With openai.NewChat("qwen3:8b", nil) of [api/openai] the model is one on your machine or GPT, with
// anthropic.New("claude-sonnet-4-5", nil) it is Claude, with gemini.New("gemini-2.5-flash", nil) it is Gemini.
// docs/first-hour.md continues from here: approval, saving, a picture.
//
// # Packages
//
// A package imports only packages above it in this list; a test checks that.
//
//	content    messages: blocks of text, images, thinking, tool calls, tool results
//	node       one immutable vertex: payload, parents, id
//	api        the boundary to models: Provider, Client, typed errors, prices
//	  dialect    a provider of your own, and what an API accepts: the rules for switching the provider
//	  compatible names of servers that implement the APIs of others
//	  batch      requests of many runs together, through a provider's batch API, at half the price
//	dag        the conversation as a value: build, walk, fork, edit, merge, compare, verify, save, load
//	  sessions   sessions of other programs, read and written: Claude Code, Codex, OpenCode, pi, nano-agent
//	store      conversations by key, shared by many programs: the interface of a database, and one in memory
//	report     what many conversations have in common: outcomes, costs, failures, where their paths part
//	  promptcache which tokens of a request were in the provider's prompt cache, and why others were not
//	executor   tools, one tool phase, the loop, pause and resume, compaction
//	  replay     recorded calls executed again, and recorded results for another model
//	  registry   one tool call at a time, for other loops
//	  agui       an HTTP handler for web front ends (AG-UI)
//	  progress   a line on a terminal that says how far a run is
//	  contextedit old results of tools left out of requests
//	  toolsearch tools that are declared when they are found
//	  background calls that continue while the model does something else
//	viz        drawings: Mermaid, DOT, SVG, and the layout they stand on
//	  page       a conversation as one HTML file, to look around in
//	  page/live  the same page during a run
//
// Beside api stands api/apitest: a scripted model. api/apitest/conformance has the suite that a provider of your own
// can run, api/apitest/fake strict fakes of the real APIs, and api/apitest/tape records real traffic and plays it back.
//
// What needs more than the core is a module of its own, so that a program downloads only what it uses: the providers
// api/anthropic, api/openai and api/gemini over the official SDKs, store/sqlite and store/postgres, executor/durable,
// executor/mcp, executor/acp, executor/otel, viz/png, the command cmd/plait, and the examples.
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
//
// [api/openai]: https://pkg.go.dev/github.com/plait-dev/plait/api/openai
package plait
