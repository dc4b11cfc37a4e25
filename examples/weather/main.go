// Command weather asks a model for the weather in three cities: three tool calls fan out, run at the same time, come together,
// and end in an answer. It needs no network and no key, because the model is a scripted one. The conversation is saved as
// weather.json and drawn as weather.mmd; when it is started again it goes on where it stopped.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/examples/internal/weather"
)

func main() {
	p := weather.Program{Model: model(), Out: os.Stdout, File: "weather.json", Drawing: "weather.mmd"}
	if err := p.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// model plays a model that answers both questions.
func model() api.Provider { return apitest.NewScript(apitest.Func(answer).Always()) }

func answer(req api.Request) apitest.Turn {
	last := req.Messages[len(req.Messages)-1].Blocks
	var said []string
	for _, result := range last.ToolResults() {
		said = append(said, result.Content.Text())
	}
	switch {
	case len(said) == 3 && strings.HasSuffix(said[0], "F"):
		return apitest.Say(fmt.Sprintf("Tokyo has %s, Paris %s and New York %s: New York is the warmest.", said[0], said[1], said[2]))
	case len(said) == 3:
		return apitest.Say(fmt.Sprintf("It is %s in Tokyo, %s in Paris and %s in New York.", said[0], said[1], said[2]))
	case strings.Contains(last.Text(), "Fahrenheit"):
		return apitest.Say("I ask again, in Fahrenheit.").Call(calls("fahrenheit")...)
	}
	return apitest.Say("I look up all three at once.").Call(calls("")...)
}

func calls(unit string) (list []content.ToolUse) {
	for _, city := range []string{"Tokyo", "Paris", "New York"} {
		list = append(list, apitest.Use("get_weather", weather.Forecast{City: city, Unit: unit}))
	}
	return list
}
