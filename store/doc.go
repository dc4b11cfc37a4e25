// Package store keeps conversations by key, for programs that share them: in a database, or in memory. A conversation
// has named heads, as a git repository has branches.
//
// The smallest whole program opens a conversation by its key, runs an agent, and saves each step:
//
//	s := store.New(store.Memory())
//	c, err := s.Conversation(ctx, "user-17")
//	agent.Save = c.Append
//	d, err := agent.Run(ctx, c.DAG().User("Hello"))
//
// [Memory] keeps conversations in memory. Package store/sqlite, a module of its own, keeps them in a file. A database
// of your own implements [Driver], in 105 lines (docs/guides/own-store.md), and package storetest checks it.
//
// # Conversations and heads
//
// A conversation has a key and named heads. [Store.Conversation] opens head "main", and [Conversation.Fork] makes
// another one without copying. An append stores only the new nodes, and moves one head: its cost does not grow with the
// conversation.
//
// # Two writers
//
// A head moves by compare-and-set. If two requests continue the same conversation at once, one wins. The other gets a
// [ConflictError], and its nodes are kept under a head of their own. The error has its name: merge it with dag.Merge,
// give it another name with [Conversation.Fork], or drop it with [Conversation.Remove].
//
// # After a crash
//
// A crash during a tool phase leaves open calls ([dag.DAG.OpenCalls]). There are two ways to continue:
//
//   - Close the phase with [dag.DAG.CloseTools] before the next message. Nothing is executed. The model reads that the
//     outcome of a started call is unknown, and that the others have no result.
//   - Run the conversation as it is, with the next message in executor.Agent.Steering. Open calls are decided first.
//
// A message appended directly after open calls ends their phase too, with the same texts for the model.
//
// # Transactions
//
// A database is also a [Transactor]: an append and a program's own rows commit together. Package executor/durable keeps
// runs in this way.
//
// # Concurrency
//
// A [Store], a [Conversation] and a [Driver] are safe for concurrent use. A Conversation has one writer at a time: open
// one for each request.
//
// # Errors
//
// [ErrMoved] marks a refused append, [ErrNotStored] a missing head or record, [ErrName] a key or name that is not
// allowed, and [ErrRecord] a damaged record, or one that cannot be stored. A [ConflictError] has the head as it is, and
// a [RecordError] the node. Errors about the conversation itself come from package dag.
package store
