// Package anthropic speaks to Anthropic's Messages API through the official SDK, also on Bedrock and Vertex.
//
// The smallest whole program:
//
//	model := anthropic.New("claude-sonnet-4-5", nil) // with the key in ANTHROPIC_API_KEY
//	answer, err := api.NewClient(model, nil).Send(ctx, api.Request{
//		Messages: []content.Message{{Role: content.User, Blocks: content.Words("Hello")}},
//	})
//	if err != nil {
//		return err
//	}
//	fmt.Println(answer.Blocks.Text())
//
// # What is sent
//
// [Body] makes the request's body, and is a pure function. It first makes a conversation of any shape one that the API accepts
// (see dialect.Repair), and reports what it changed. The SDK carries these bytes unchanged.
//
// # What comes back
//
// A streamed answer and a whole one give the same blocks. What Plait models is a content.Text, a content.ToolUse and so on;
// further members of such a block (citations, a caller) are kept in its Extra, and blocks of other types (the calls and results
// of server tools, say) as content.Opaque, byte for byte. Both go back to this API as they came, and to no other.
//
// A tool's arguments stay as the model wrote them. Where the answer was cut off, they are the fragment that came.
//
// # Concurrency
//
// A [Provider] is safe for concurrent use. Its sequence of events is for one goroutine. Leaving it early closes the response.
//
// # Errors
//
// Errors are *api.Error; errors.Is tells their kind, and Status, Type, Message, RequestID, RetryAfter and Body are the API's own.
// An error inside a stream has Status 200. A stream that ends before the answer does is api.ErrCut. When the context ends the
// request, the error has the context's error and its cause in its chain. The SDK's retries are off: api.Client retries.
package anthropic
