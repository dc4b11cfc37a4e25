// Package openai speaks to OpenAI's models through the official SDK: by the Responses API and by Chat Completions, which many other
// servers understand as well.
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
// [NewChat] is for Chat Completions. With the SDK's option.WithBaseURL it speaks to a compatible server (DeepSeek, vLLM, llama.cpp,
// OpenRouter, Gemini), with azure.WithEndpoint to Azure.
//
// # Compatible servers
//
// A provider takes its server for a compatible one when its base URL leads neither to OpenAI nor to Azure. In Responses,
//
//   - a small MaxTokens is sent as it is,
//   - an answer of MaxTokens tokens or more counts as cut off, because some servers report every answer as completed,
//   - items of a stream without output_index go by their ids.
//
// # What is sent
//
// [ResponsesBody] and [ChatBody] make the request's body, and are pure functions. They first make a conversation of any shape one
// that the API accepts (see dialect.Repair and dialect.Target), and report what they changed. The SDK carries these bytes unchanged.
//
// A conversation by Chat Completions has its system prompts in front, in the role that [Options] say. A tool's message holds text
// only there: the pictures and documents of a result go into the user's message that follows, and a text in their place says so;
// a result that is an error begins with "Error".
//
// # What comes back
//
// A streamed answer and a whole one give the same blocks. What Plait models is a content.Text, a content.ToolUse and so on; further
// members are kept in the block's Extra or as content.Opaque. Both go back to this API as they came, and to no other.
//
// The fields in which compatible servers have the model's thinking ("reasoning_content", "reasoning", "reasoning_details") become a
// content.Thinking, and go back under the very name they came under, unless [Options].OmitThinking says otherwise. A refusal is a
// content.Text, which goes back as a refusal, and the answer's Stop is then content.StopRefusal. An answer that was said aloud is
// the text of it, and goes back by its id.
//
// A tool's arguments stay as the model wrote them. Where it wrote none they are an empty object; where the answer was cut off, they
// are the fragment that came. An answer by Chat Completions is whole once the model's finish_reason is there: compatible servers
// send neither usage nor "[DONE]" reliably.
//
// # Concurrency
//
// A [Chat] and a [Responses] are safe for concurrent use. A sequence of events is for one goroutine. Leaving it early closes the
// response.
//
// # Errors
//
// Errors are *api.Error; errors.Is tells their kind. Type is the API's code or, where there is none, its type; Status, Message,
// RequestID, RetryAfter and Body are the API's own. An error inside a stream has Status 200. A stream that ends before the answer
// does is api.ErrCut. An account without credit is api.ErrAuth, which is not retried. When the context ends the request, the error
// has the context's error and its cause in its chain. The SDK's retries are off: api.Client retries.
package openai
