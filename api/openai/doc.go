// Package openai is a client for OpenAI's models, through the official SDK. It supports the Responses API and Chat
// Completions. Many other servers implement these APIs as well.
//
// The smallest whole program:
//
//	model := openai.NewResponses("gpt-5", nil) // with the key in OPENAI_API_KEY
//	answer, err := api.NewClient(model, nil).Send(ctx, api.Request{
//		Messages: []content.Message{{Role: content.User, Blocks: content.Words("Hello")}},
//	})
//	if err != nil {
//		return err
//	}
//	fmt.Println(answer.Blocks.Text())
//
// [NewChat] is for Chat Completions. With the SDK's option.WithBaseURL it connects to a compatible server (DeepSeek,
// vLLM, llama.cpp, OpenRouter, Gemini), with azure.WithEndpoint to Azure.
//
// # Compatible servers
//
// A provider treats its server as a compatible one if its base URL is neither OpenAI's nor Azure's. In Responses,
//
//   - a small MaxTokens is sent as it is,
//   - a response of MaxTokens tokens or more counts as cut off, because some servers report every response as
//     completed,
//   - items of a stream without output_index are identified by their IDs.
//
// Options.Server names the server. Requests then have the server's own form: see package compatible. For models on your
// own machine, prefer Chat Completions.
//
// # What is sent
//
// [ResponsesBody] and [ChatBody] return the request's body, and are pure functions. They first repair a conversation of
// any shape to make it acceptable to the API (see dialect.Repair and dialect.Target), and report the changes. The SDK
// sends these bytes unchanged.
//
// In Chat Completions, system prompts are the first messages, with the role in [Options]. A tool message can only hold
// text: images and documents of a tool result go to the next user message, and a text in their place refers to them. An
// error result begins with "Error".
//
// # What comes back
//
// A streamed response and a whole one give the same blocks. Known parts become a content.Text, a content.ToolUse and so
// on. Further members are kept in the block's Extra or as a content.Opaque. Both are sent back to this API unchanged,
// and to no other.
//
//   - Compatible servers send the model's thinking in "reasoning_content", "reasoning" or "reasoning_details". It
//     becomes a content.Thinking. It is sent back under the same name, or the name the server is known to read, unless
//     [Options].OmitThinking is set.
//   - A refusal becomes a content.Text, and is sent back as a refusal. The response's Stop is content.StopRefusal.
//   - Audio becomes a content.Text with its transcript, and is sent back by its ID.
//   - A tool's arguments stay as the model wrote them. Missing arguments become an empty object. If the response was
//     cut off, the arguments are the received fragment.
//   - A Chat Completions response is complete once the model's finish_reason was received: compatible servers send
//     neither usage nor "[DONE]" reliably.
//
// # Concurrency
//
// A [Chat] and a [Responses] are safe for concurrent use. A sequence of events is for one goroutine. Leaving it early
// closes the response.
//
// # Errors
//
// Errors are *api.Error. Use errors.Is to find their kind.
//
//   - Type is the API's error code or, if there is none, its error type. Status, Message, RequestID, RetryAfter and
//     Body are the API's own.
//   - An error inside a stream has Status 200.
//   - A stream that ends before the response is complete gives api.ErrCut.
//   - An account without credit gives api.ErrAuth. A client does not retry it.
//   - When the context ends the request, the error wraps the context's error and its cause.
//
// The SDK's retries are off: api.Client retries.
package openai
