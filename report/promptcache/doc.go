// Package promptcache reports, for each model call of a conversation, how much of the request the provider could read
// from its prompt cache, how much it reported to have read, and where and why the beginning of the request changed.
//
// The smallest whole program:
//
//	for _, call := range promptcache.Calls(d, nil) {
//		fmt.Println(call)
//	}
//
// A provider caches the beginning of a request: the tools, the system prompts, the messages, in this order. A change
// costs the cache of everything behind it. [Calls] compares each request with an earlier one, as the conversation has
// them (dag.Transcript), and finds the first part that differs.
//
// # The figures
//
//   - Read and Written of a [Call] are reported by the provider.
//   - Input is reported too, or estimated where the provider reported nothing (api.EstimateTokens).
//   - Shared and Predicted are estimates. They are best for a request that only added to the one before: they are then
//     the tokens that the provider reported for that one.
//
// A prediction uses what the providers document: the minimum length of a cached prefix, the steps in which it grows, how
// long it is kept, and whether it ends only at a breakpoint. For a server that none of them runs, all of Shared is
// predicted.
//
// A conversation does not record the options of its requests, nor what a Hook.Send changed in them. A change of the tool
// choice, for example, is found as "unexplained".
//
// # Concurrency
//
// The functions keep no state and are safe for concurrent use.
//
// # Errors
//
// There are none: a conversation with an error (dag.DAG.Err) has the calls that are in its nodes.
package promptcache
