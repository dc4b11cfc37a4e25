package content_test

import (
	"errors"
	"fmt"

	"github.com/plait-dev/plait/content"
)

func ExampleOf() {
	said, err := content.Of(
		content.Text{Text: "What is in this picture?"},
		content.Image{Source: content.Source{URL: "https://example.com/cat.png"}},
	)
	fmt.Println(said.Len(), said.Text(), err)

	_, err = content.Of(content.Text{Text: "Look:"}, content.Image{})
	fmt.Println(errors.Is(err, content.ErrBlock), err)
	// Output:
	// 2 What is in this picture? <nil>
	// true block 1 (image): its source needs exactly one of data, text, URL and file ID; it has 0
}

func ExampleBlocks() {
	answer, _ := content.Of(
		content.Thinking{Text: "Two cities, so two calls.", Signature: "c2lnbmVk"},
		content.ToolUse{ID: "a", Name: "get_weather", Input: `{"city":"Paris"}`},
		content.ToolUse{ID: "b", Name: "get_weather", Input: `{"city":"Tokyo"}`},
	)
	for _, call := range answer.ToolUses() {
		fmt.Println(call.Name, call.Input)
	}
	for i, block := range answer.All() {
		if t, ok := block.(content.Thinking); ok {
			fmt.Println(i, t.Text)
		}
	}
	// Output:
	// get_weather {"city":"Paris"}
	// get_weather {"city":"Tokyo"}
	// 0 Two cities, so two calls.
}

// A provider's own fields and blocks are carried byte for byte, and go back to that provider only.
func ExampleExtra() {
	t := content.Text{Text: "It rains.", Extra: content.Extra{API: "anthropic", JSON: `{"citations":[]}`}}
	fmt.Println(t.Extra.For("anthropic"))
	fmt.Println(t.Extra.For("gemini") == "")
	// Output:
	// {"citations":[]}
	// true
}

func ExampleJSON_Canonical() {
	fmt.Println(content.JSON(`{ "b": 1.0, "a": "\u0041" }`).Canonical())
	fmt.Println(content.JSON(`{"cut off`).Valid())
	// Output:
	// {"a":"A","b":1.0}
	// false
}

func ExampleTool_Check() {
	fmt.Println(content.Tool{Name: "get_weather", Schema: `{"type":"object"}`}.Check())
	fmt.Println(content.Tool{Name: "get weather", Schema: `{"type":"object"}`}.Check())
	// Output:
	// <nil>
	// invalid tool definition: the name "get weather" does not match ^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$
}

func ExampleUsage_Plus() {
	total := content.Usage{Input: 100, Output: 20}.Plus(content.Usage{Input: 30, CacheRead: 100, Output: 5})
	fmt.Println(total.Input, total.CacheRead, total.Output, total.Total())
	// Output: 130 100 25 255
}
