// Package batch sends the requests of many runs together, through the batch API of a provider: at half the price, with
// responses within a day.
//
//	nightly, err := batch.Open("nightly.batch", nil)
//	model := anthropic.New("claude-sonnet-4-5", &anthropic.Options{Batches: nightly})
//	agent := executor.Agent{Provider: model, Prices: prices.Times(0.5)}
//
//	answer := func(ctx context.Context, q string) (dag.DAG, error) { return agent.Run(ctx, dag.New().User(q)) }
//	for d, err := range executor.Each(ctx, 10_000, slices.Values(questions), answer) { … }
//	err = nightly.Close()
//
// A run does not know of it: its request waits in a batch, and the response comes at once, not streamed. A run with
// tools takes a batch for each turn. As many requests can wait together as runs are under way, so the limit of Each is
// the size of a batch.
//
// # A second process
//
// Before a batch is created, its requests are written to the file, and after it the batch's ID. A program that is
// started again with the same file makes the same requests, finds them there, and takes up the batches: no request is
// made twice. Requests are the same if their bytes are; equal ones of one program are counted: two equal tickets are two
// requests. Change a prompt, an option or the model's tools, and everything is sent, and paid, again.
//
// The file holds no responses. They stay with the provider, which deletes them after some days or weeks: see its
// documentation. When the work is done, delete the file.
//
// # Errors
//
// A failure is an *api.Error. Besides the kinds of package api, it may have one of these:
//
//   - [ErrExpired], [ErrCancelled]: the provider did not get to the request. The run fails: an api.Client does not retry
//     it, because another batch may take another day. When the program is run again, the request is sent again. This
//     holds for every request that the provider reports as failed.
//   - [ErrNoResult]: the results of the batch have no line for the request, or two that differ. It is not sent again.
//   - [ErrInDoubt]: the connection failed while a batch was created, so it may exist. Nothing is sent until
//     [Batches.Resolve] is called. The text of the error has the steps.
//   - [ErrFile]: the file is damaged, for another model, or open in another program.
package batch
