// Package gemini speaks to Google's Gemini models through the official SDK, with a key of the Gemini API or on Vertex AI.
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
// [Body] makes the request's body, and is a pure function. It first makes a conversation of any shape one that the API accepts
// (see dialect.Repair and dialect.TargetOf), and reports what it changed. The SDK finds the address and adds the authorization; the bytes
// are ours, unchanged.
//
//   - All results of one step go back in one content, in call order. What else the user's side says, and the images and documents
//     in results, stand in a content after it.
//   - The text of a result that is a JSON object is the functionResponse's response as it is; any other text is {"output":"…"}, and
//     an error {"error":"…"}.
//   - The API gives many calls no id. Such a call goes back without one, and its result too: they are told by their places.
//   - A thoughtSignature goes back on the part that it came with. The first call of a step that has none, as one of another
//     provider, gets the one that Google has for this where the model wants one: from Gemini 3 on, told by the model's name.
//   - A tool is declared by its Name, Description and Schema. One that the API itself runs has an Extra that is the entry of
//     "tools", such as content.Tool{Name: "google_search", Extra: content.Extra{API: gemini.API, JSON: `{"googleSearch":{}}`}}; a
//     member "type" in it is for other readers, and not sent. Models before Gemini 3 take none of these beside functions: they are
//     left out then, and noted.
//
// # What comes back
//
// A streamed answer and a whole one give the same blocks: text that comes in several parts, with nothing beside it, is one
// content.Text, and thought is one content.Thinking, whose Extra always names this API. A signature that comes after it, on a part
// whose text is empty, is a part of that block; one that comes after anything else is a content.Opaque, as is every part that
// Plait does not model (executable code and its result, calls of Google's own tools). All of it goes back as it came.
//
// What the API says about its whole answer (groundingMetadata, citationMetadata, urlContextMetadata) is in the Extra of the
// answer's last block, where that is no Opaque. It is never sent.
//
// A filter that stops the answer, or refuses the request, is content.StopRefusal. Of several candidates only the first is read.
//
// # Concurrency
//
// A [Provider] is safe for concurrent use. Its sequence of events is for one goroutine. Leaving it early closes the response.
//
// # Errors
//
// Errors are *api.Error; errors.Is tells their kind, and Status, Type, Message, RetryAfter and Body are the API's own. An error
// inside a stream has Status 200. A stream that ends before the answer does is api.ErrCut. An answer that ends because the model
// wrote a call that cannot be read (MALFORMED_FUNCTION_CALL and the like) holds nothing to go on with: it is api.ErrServer, so that
// it is asked for again. When the context ends the request, the error has the context's error and its cause in its chain. The
// SDK's retries are off: api.Client retries.
package gemini
