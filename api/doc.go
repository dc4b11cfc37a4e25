// Package api is the boundary to models: what is asked, what comes back, and what can go wrong.
//
// The smallest whole program:
//
//	client := api.NewClient(provider, nil)
//	answer, err := client.Send(ctx, api.Request{Messages: []content.Message{{Role: content.User, Blocks: content.Words("Hello")}}})
//	fmt.Println(answer.Blocks.Text(), answer.Usage.Total())
//
// A [Provider] is one method that streams; a model of your own takes a dozen lines. A [Client] stands in front of it and does,
// once for all providers, what every caller needs: retries, checking the order of events, and folding them into a [Response].
//
// A request need not be valid. The provider repairs it before it is sent, the same way every time, and reports each change as a
// [RepairNote]. A conversation can continue with any provider: docs/switching.md has the rules.
//
// [Options] say how a model is to answer, in one form for all providers, and [Output] in which form of JSON; [Decode] turns such an
// answer into a Go value. [Prices] has the cost of a response, and [ReadPrices] reads a file of them.
//
// Who writes a provider also needs package api/dialect. Package api/apitest has a scripted model for tests.
//
// # Concurrency
//
// Providers and Clients are safe for concurrent use. A sequence of events is for one goroutine and is used once; leaving it
// early stops the request and returns when nothing of it runs any more.
//
// # Errors
//
// What a model's API answers is an [*Error]. Its kind is asked with errors.Is: [ErrRateLimited], [ErrOverloaded],
// [ErrContextTooLong], [ErrInvalidRequest], [ErrAuth], [ErrNotFound], [ErrFiltered], [ErrServer], [ErrTransport], [ErrCut],
// [ErrStalled], [ErrNothing]; a provider that breaks its own rules is [ErrProtocol]. When the context ends a request, the context's
// error and its cause are in the chain. An answer that [Decode] cannot read is an [*OutputError].
package api
