package main

import (
	"strings"
	"testing"

	"github.com/plait-dev/plait/internal/testkit/goldentest"
)

const whole = `◆ system    You know the weather.
◆ tools     get_weather
○ user      How is it in Tokyo?
● assistant [claude-fake] → get_weather
▪ get_weather(city: "Tokyo") → 22°C
● assistant [claude-fake] 22°C in Tokyo.
■ stop      end_turn · 2 turns · 1 tool call · 30 tokens
○ user      How is it in Paris?
● assistant [gpt-fake] → get_weather
▪ get_weather(city: "Paris") → 18°C
● assistant [gpt-fake] 18°C in Paris.
■ stop      end_turn · 2 turns · 1 tool call · 30 tokens
○ user      How is it in Cairo?
● assistant [gpt-fake] → get_weather
▪ get_weather(city: "Cairo") → 31°C
● assistant [gpt-fake] 31°C in Cairo.
■ stop      end_turn · 2 turns · 1 tool call · 30 tokens
○ user      How is it in Oslo?
● assistant [gemini-fake] → get_weather
▪ get_weather(city: "Oslo") → 9°C
● assistant [gemini-fake] 9°C in Oslo.
■ stop      end_turn · 2 turns · 1 tool call · 30 tokens
`

func TestEachModelContinuesTheConversation(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	got := goldentest.WithoutTimes(out.String())
	if got != whole {
		t.Errorf("it printed\n%s", got)
	}
}
