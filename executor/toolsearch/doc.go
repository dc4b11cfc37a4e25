// Package toolsearch gives an agent more tools than fit into a request. The model gets one tool, "find_tools". What it
// finds is declared from then on, by a node in the conversation, and can be called like any other tool.
//
//	agent := toolsearch.Add(executor.Agent{Provider: model}, tools...) // hundreds of them
//	d, err := agent.Run(ctx, dag.New().User("Which invoices are open?"))
//
// This works with every provider. Declared tools stay declared: after a pause, in another process, and beside a
// compaction. A newly found tool changes the beginning of the next request, so a prompt cache begins anew there: let
// models search for what a task needs at its beginning, and declare in Agent.Tools what every task needs.
//
// The names and descriptions of the tools are searched word by word; a rare word counts more.
//
// # Concurrency
//
// The agent is safe for concurrent use, as every agent.
package toolsearch
