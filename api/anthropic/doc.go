// Package anthropic is a client for Anthropic's Messages API. It uses the official SDK, and also works on Bedrock and
// Vertex.
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
// [Body] builds the request body. It is a pure function. It first repairs a conversation of any shape to make it
// acceptable to the API (see dialect.Repair), and reports the changes. The SDK sends these bytes unchanged.
//
// A compatible server, such as llama.cpp or Ollama, is named by Options.Server: see package compatible. It then gets
// its own thinking back without a signature. For models on your own machine, prefer package openai's NewChat.
//
// # What comes back
//
// A streamed response and a whole one give the same blocks:
//
//   - A block known to Plait is a content.Text, a content.ToolUse and so on. Other members of such a block (citations,
//     a caller) are kept in its Extra.
//   - A block of another type, such as a server tool's call or result, is a content.Opaque, byte for byte.
//   - Both go back to this API unchanged, and to no other.
//
// A tool call's arguments stay as the model wrote them. If the response was cut off, they are the fragment received.
//
// # Concurrency
//
// A provider is safe for concurrent use. Its sequence of events is for one goroutine. Leaving it early closes the
// response.
//
// # Errors
//
// Errors are *api.Error. errors.Is reports their kind. Status, Type, Message, RequestID, RetryAfter and Body come from
// the API.
//
//   - An error inside a stream has Status 200.
//   - A stream that ends before the response is complete is api.ErrCut.
//   - If the context ends the request, the error wraps the context's error and its cause.
//
// The SDK's retries are off: api.Client retries.
package anthropic
