package main

import (
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/api/gemini"
	"github.com/plait-dev/plait/api/openai"
)

func Example() {
	main()
	// Output:
	// ◆ tools     get_weather
	// ○ user      What is the weather in Tokyo?
	// ● assistant → get_weather
	// ▪ get_weather(city: "Tokyo") → 22°C in Tokyo
	// ● assistant It is 22°C.
	// ■ stop      end_turn · 2 turns · 1 tool call
	// It is 22°C.
}

// The models of docs/first-hour.md. The release check puts each line into the program and runs it, with a strict fake of
// the API in place of the server.
var _ = []func() api.Provider{
	func() api.Provider {
		model := openai.NewChat("qwen3:8b", nil)
		return model
	},
	func() api.Provider {
		model := anthropic.New("claude-sonnet-4-5", nil)
		return model
	},
	func() api.Provider {
		model := openai.NewResponses("gpt-5", nil)
		return model
	},
	func() api.Provider {
		model := gemini.New("gemini-2.5-flash", nil)
		return model
	},
}
