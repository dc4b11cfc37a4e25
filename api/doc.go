// Package api is the boundary to models: requests, responses and errors.
//
// The smallest whole program:
//
//	client := api.NewClient(provider, nil)
//	response, err := client.Send(ctx, api.Request{
//		Messages: []content.Message{{Role: content.User, Blocks: content.Words("Hello")}},
//	})
//	fmt.Println(response.Blocks.Text(), response.Usage.Total())
//
// A [Provider] is one streaming method; a model of your own takes a dozen lines. A [Client] adds the common needs of
// all callers, for every provider: it retries, checks the order of events, and folds them into a [Response].
//
// A request need not be valid. The provider repairs it before it is sent, the same way every time, and reports each
// change as a [RepairNote]. A conversation can continue with any provider: docs/switching.md has the rules.
//
// [Options] control the response, in one form for all providers. [Output] requests JSON with a schema, and [Decode]
// turns such a response into a Go value. [Prices] computes the cost of a response, and [ReadPrices] reads a file of
// them.
//
// To write a provider, see also package api/dialect. Package api/apitest has a scripted model for tests.
//
// # Concurrency
//
// Providers and Clients are safe for concurrent use. A sequence of events is for one goroutine and one use. Leaving it
// early stops the request, and returns after everything of the request has ended.
//
// # Errors
//
// A failure of a model's API is an [*Error]. Test for its kind with errors.Is: [ErrRateLimited], [ErrOverloaded],
// [ErrContextTooLong], [ErrInvalidRequest], [ErrAuth], [ErrQuota], [ErrNotFound], [ErrFiltered], [ErrServer], [ErrTransport],
// [ErrCut], [ErrStalled], [ErrNothing]; a provider that breaks its own rules is [ErrProtocol]. When the context ends a
// request, the context's error and its cause are in the chain. For a response that [Decode] cannot read, it returns an
// [*OutputError].
package api
