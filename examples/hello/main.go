// Command hello is the program of the README's first page: one tool, one question, in thirty lines.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

type Place struct {
	City string `json:"city" jsonschema:"the city's name"`
}

func lookUp(ctx context.Context, in Place) (string, error) { return "22°C in " + in.City, nil }

func main() {
	weather := executor.Func("get_weather", "Current weather for one city.", lookUp)
	d := dag.New().Tools(weather).User("What is the weather in Tokyo?")

	// A script plays the model: no key, no network.
	model := apitest.NewScript(apitest.Say("").Call(apitest.Use("get_weather", Place{"Tokyo"})), apitest.Say("It is 22°C."))
	d, err := executor.Run(context.Background(), model, d)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d)        // the whole conversation, as a log
	fmt.Println(d.Text()) // the answer
}
