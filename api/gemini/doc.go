// Package gemini is a client for Google's Gemini models. It uses the official SDK, with a key of the Gemini API or on
// Vertex AI.
//
// The smallest whole program:
//
//	model := gemini.New("gemini-2.5-flash", nil) // with the key in GEMINI_API_KEY
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
// acceptable to the API (see dialect.Repair and dialect.TargetOf), and reports the changes. The SDK provides the
// address and the authorization. The bytes are those of Body, unchanged.
//
//   - All results of one step are sent in one content, in call order. The rest of the user's message, and the images
//     and documents in results, follow in another content.
//   - If the text of a result is a JSON object, it is sent unchanged, as the functionResponse's response. Any other
//     text is sent as {"output":"…"}, and an error as {"error":"…"}.
//   - The API gives many calls no ID. Such a call and its result are sent without one, and matched by order.
//   - A thoughtSignature is sent on its original part. Models from Gemini 3 on, recognized by their names, require one
//     on the first call of a step. If this call has none, because it came from another provider for example, it gets
//     the signature provided by Google for such calls.
//   - A tool is declared by its Name, Description and Schema. A tool run by the API itself has its entry of "tools" as
//     Extra, such as content.Tool{Name: "google_search", Extra: content.Extra{API: gemini.API, JSON:
//     `{"googleSearch":{}}`}}. A member "type" in it is for other readers, and not sent. Models before Gemini 3 accept
//     no such tool next to functions: they are left out then, and noted.
//
// # What comes back
//
// A streamed response and a whole one give the same blocks:
//
//   - Text in several parts, without other members, is one content.Text.
//   - Thinking is one content.Thinking. Its Extra always names this API.
//   - A signature after such a block, on a part with an empty text, belongs to the block. A signature after anything
//     else is a content.Opaque.
//   - Every part unknown to Plait (executable code and its result, calls of Google's own tools) is a content.Opaque.
//   - All of it is sent back unchanged.
//
// The API's information about the whole response (groundingMetadata, citationMetadata, urlContextMetadata) is in the
// Extra of the last block. If that is a content.Opaque, or if there is no block, it is in api.Finish.Details. It is never
// sent. The API's other facts about the response (such as avgLogprobs, safetyRatings, promptFeedback and
// finishMessage) are in the Details too.
//
// If a filter stops the response or refuses the request, the stop reason is content.StopRefusal. Of several candidates,
// only the first is read.
//
// # Concurrency
//
// A provider is safe for concurrent use. Its sequence of events is for one goroutine. Leaving it early closes the
// response.
//
// # Errors
//
// Errors are *api.Error. errors.Is reports their kind. Status, Type, Message, RetryAfter and Body come from the API.
//
//   - An error inside a stream has Status 200.
//   - A stream that ends before the response is complete is api.ErrCut.
//   - An unreadable call (MALFORMED_FUNCTION_CALL and the like) ends the response with nothing to continue from. It is
//     api.ErrServer: a client repeats the request.
//   - If the context ends the request, the error wraps the context's error and its cause.
//
// The SDK's retries are off: api.Client retries.
package gemini
