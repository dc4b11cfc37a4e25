// Package dag is the conversation as a value: a persistent, immutable graph of nodes that is built, walked, forked, joined,
// validated, saved and loaded.
//
// The smallest whole program:
//
//	d := dag.New().System("Answer briefly.").User("What is a DAG?")
//	fork := d.Assistant("A graph without cycles.").User("And a tree?")
//	fmt.Println(d.Len(), fork.Len()) // 2 4: d is untouched, and fork shares its nodes
//
// A [DAG] is a small value: its heads, and what travels with it. Every method returns a new one and leaves the old one good.
// What was said before a head is reached through the nodes themselves, so that a fork or a rewind copies nothing, and appending
// costs the same at any length.
//
// # From graph to conversation
//
// [DAG.Transcript] puts the graph in order: depth-first and post-order from the heads, parents in their declared order, each
// node once. System prompts, declared tools and messages are sent to a model; executions, sub-graphs, stop reasons and a
// program's own records are not.
//
// # Looking at it
//
// fmt.Println(d) draws the conversation ([DAG.String]); [DAG.Validate] reports everything that is wrong with it; [DAG.Graph] gives
// it to the algorithms of gonum. Package viz draws diagrams.
//
// [DAG.Verify] recomputes every digest; [DAG.Redact] erases what nodes say and leaves them in their places; [DAG.Prune] drops what
// nothing reaches.
//
// # Concurrency
//
// A DAG is safe for concurrent use: any number of goroutines may read and extend the same one, each getting its own result.
//
// # Errors
//
// A fluent chain keeps its first error: the steps after it change nothing, [DAG.Err] returns it, and saving and running
// return it too. It is a *[BuildError], which names the step. What is wrong with a conversation as a whole is found by
// [DAG.Validate], and is not an error: sending repairs it.
package dag
