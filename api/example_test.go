package api_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

// echo is a whole model: it answers with what it was told.
type echo struct{}

func (echo) Stream(_ context.Context, req api.Request) iter.Seq2[api.Event, error] {
	return api.Once(func(yield func(api.Event, error) bool) {
		if len(req.Messages) == 0 {
			yield(nil, &api.Error{Kind: api.ErrNothing, API: "echo"})
			return
		}
		said := content.Text{Text: strings.ToUpper(req.Messages[len(req.Messages)-1].Blocks.Text())}
		_ = yield(api.BlockEnd{Index: 0, Block: said}, nil) &&
			yield(api.Finish{API: "echo", Stop: content.StopEndTurn, Usage: content.Usage{Output: 1}}, nil)
	})
}

func ExampleClient() {
	client := api.NewClient(echo{}, nil)
	answer, err := client.Send(context.Background(), api.Request{
		Messages: []content.Message{{Role: content.User, Blocks: content.Words("hello")}},
	})
	fmt.Println(answer.Blocks.Text(), answer.Stop, answer.Usage.Total(), err)
	// Output: HELLO end_turn 1 <nil>
}

func ExampleClient_Stream() {
	for event, err := range api.NewClient(echo{}, nil).Stream(context.Background(), api.Request{
		Messages: []content.Message{{Role: content.User, Blocks: content.Words("hello")}},
	}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch e := event.(type) {
		case api.BlockEnd:
			fmt.Println("block", e.Index, e.Block.(content.Text).Text)
		case api.Finish:
			fmt.Println("end", e.Stop)
		}
	}
	// Output:
	// block 0 HELLO
	// end end_turn
}

func ExampleError() {
	_, err := api.NewClient(echo{}, nil).Send(context.Background(), api.Request{})
	var failure *api.Error
	fmt.Println(errors.Is(err, api.ErrNothing), errors.As(err, &failure), api.Retryable(err))
	fmt.Println(failure.API, "says", err)
	// Output:
	// true true false
	// echo says echo: no message to send
}

func ExampleOnce() {
	events := api.Once(func(yield func(api.Event, error) bool) { yield(api.Finish{}, nil) })
	for range 2 {
		for event, err := range events {
			fmt.Printf("%T %v\n", event, err)
		}
	}
	// Output:
	// api.Finish <nil>
	// <nil> provider broke the protocol: the events of one request were ranged over twice
}
