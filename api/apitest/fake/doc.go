// Package fake has strict fakes of the APIs of Anthropic, OpenAI and Google. They refuse the same requests as the real
// API, with the API's own error texts.
//
// The smallest whole program:
//
//	model := fake.Anthropic(fake.AnthropicMessage(content.Text{Text: "It is 22°C in Tokyo."}))
//	server := httptest.NewServer(model)
//	// … run a program that sends its requests to server.URL …
//	fmt.Println(len(model.Bodies()), model.Refused())
//
// [Anthropic], [OpenAIChat], [OpenAIResponses] and [Gemini] return a fake with prepared replies. [CheckAnthropic],
// [CheckOpenAIChat], [CheckOpenAIResponses] and [CheckGemini] check one request without a server.
//
// Replies are used in order. [Func] answers by request instead, and [Reply.Always] all further requests. The responses
// are those of the models claude-fake, gpt-fake and gemini-fake, whatever model the request names: a table of prices
// needs these names.
//
// # Concurrency
//
// An [API] is safe for concurrent use.
//
// # Errors
//
// A refusal is an *api.Error with the status, the type and the message of the real API.
package fake
