// Package store keeps conversations where several programs share them: in memory, or in a database.
//
// A [Driver] is what a database implements. It stores nodes as records, and moves named heads by compare-and-set: of
// two writers on one head one wins, and the other gets a [ConflictError]. [Memory] is the driver in memory.
//
// [Runs] is a Driver that also keeps durable runs: pauses, the calls they wait for, claims and results, each changed in
// one transaction with the conversation.
package store
