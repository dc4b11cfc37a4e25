// Package dag holds conversations as values: persistent, immutable graphs of nodes. It builds, walks, forks, joins,
// validates, saves and loads them.
//
// The smallest whole program:
//
//	d := dag.New().System("Answer briefly.").User("What is a DAG?")
//	fork := d.Assistant("A graph without cycles.").User("And a tree?")
//	fmt.Println(d.Len(), fork.Len()) // 2 4: d is untouched, and fork shares its nodes
//
// A [DAG] is a small value: the heads of a conversation, and a few values beside its nodes. A method that changes it
// returns a new DAG; the old one stays valid. Each node points to its parents. A fork or a rewind therefore copies
// nothing, and appending costs the same at any length.
//
// # From graph to conversation
//
// [DAG.Transcript] puts the graph in order: depth-first and post-order from the heads, parents in their declared order,
// each node once. System prompts, declared tools and messages are sent to a model. Executions, sub-graphs, stop reasons
// and records of the program are not.
//
// # Looking at it
//
//   - fmt.Println(d) draws the conversation ([DAG.String]). Package viz draws diagrams.
//   - [DAG.Validate] returns all problems of the conversation.
//   - [DAG.Verify] checks the checksum of every node.
//   - [DAG.Redact] erases the content of nodes; their IDs and positions are kept.
//   - [DAG.Prune] removes unreachable nodes.
//   - [DAG.Graph] returns a graph for the algorithms of gonum.
//
// # Concurrency
//
// A DAG is safe for concurrent use: any number of goroutines may read and extend the same one. Each gets its own
// result.
//
// # Errors
//
// A fluent chain keeps its first error: the steps after it change nothing. [DAG.Err], saving and running return the
// error. It names the step. The findings of [DAG.Validate] are not errors: sending repairs
// them.
package dag
