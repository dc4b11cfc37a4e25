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
// What a provider would refuse is repaired before it is sent: [Repair] turns any list of messages into one that keeps a
// provider's [Rules], the same way every time, and says what it did.
//
// [Options] say how a model is to answer, in one form for all providers, and [Output] in which form of JSON; [Decode] turns such an
// answer into a Go value. A conversation goes on with any provider: [Targets] has the rules. [Prices] has the cost of a response, and
// [ReadPrices] reads a file of them.
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
