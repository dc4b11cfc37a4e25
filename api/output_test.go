package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

type (
	plan struct {
		Goal  string `json:"goal" jsonschema:"in one sentence"`
		Steps []step `json:"steps"`
	}
	step struct {
		Title  string        `json:"title"`
		Kind   string        `json:"kind" enum:"read,write"`
		Within time.Duration `json:"within,omitzero"`
		After  *int          `json:"after"`
	}
	colour      string
	pair[T any] struct {
		First, Second T
	}
	chain struct {
		Next *chain `json:"next"`
	}
	größe                                                                     struct{ N int }
	a_name_that_goes_on_for_longer_than_any_provider_takes_the_name_of_a_form struct{}
)

func (colour) Enum() []any { return []any{"red", "green"} }

// A model is asked for a value of a Go type, and its answer becomes one.
func ExampleOutput() {
	type City struct {
		Name    string `json:"name"`
		Country string `json:"country" jsonschema:"as a two-letter code"`
	}
	var req api.Request
	req.Options.Output = api.Output[City]()
	fmt.Println(req.Options.Output.Name, req.Options.Output.JSON)

	city, err := api.Decode[City](`{"name":"Tokyo","country":"JP"}`)
	fmt.Println(city, err)
	// Output:
	// City {"type":"object","properties":{"name":{"type":"string"},"country":{"type":"string","description":"as a two-letter code"}},"required":["name","country"],"additionalProperties":false}
	// {Tokyo JP} <nil>
}

// What is wrong with an answer is said in words that a model can act on, when it is asked again.
func ExampleDecode() {
	type Step struct {
		Title   string `json:"title"`
		Minutes int    `json:"minutes"`
	}
	_, err := api.Decode[[]Step](`{"answer":[{"title":"Boil water","minutes":"three"},{"minutes":2}]}`)
	var wrong *api.OutputError
	if errors.As(err, &wrong) {
		fmt.Println("Answer again. " + strings.Join(wrong.Problems, ", "))
	}
	_, err = api.Decode[[]Step](`{"answer":[{"title":"Boil wa`)
	fmt.Println(errors.Is(err, io.ErrUnexpectedEOF), err)
	// Output:
	// Answer again. answer[0].minutes: must be integer, is string, answer[1].title: is required
	// true the response does not have the requested form: answer: answer[0].title: the response is cut off here, after 28 bytes of JSON
}

func TestOutputNamesTheForm(t *testing.T) {
	for want, form := range map[string]api.Schema{
		"plan":             api.Output[plan](),
		"answer":           api.Output[[]plan](),
		"pair_plan":        api.Output[pair[plan]](),
		"pair_pair_string": api.Output[*pair[pair[string]]](),
		"gr_e":             api.Output[größe](),
		"colour":           api.Output[colour](),
		"Duration":         api.Output[time.Duration](),
		"a_name_that_goes_on_for_longer_than_any_provider_takes_the_name_o": api.Output[a_name_that_goes_on_for_longer_than_any_provider_takes_the_name_of_a_form](),
	} {
		require.Equal(t, want[:min(64, len(want))], form.Name)
		require.NoError(t, api.Options{Output: form}.Check(), want)
	}
	for _, form := range []api.Schema{api.Output[struct{ A int }](), api.Output[string](), api.Output[map[string]int](), api.Output[[3]int]()} {
		require.Equal(t, "answer", form.Name)
		require.NoError(t, api.Options{Output: form}.Check())
	}
}

func TestOutputIsTheSameEachTime(t *testing.T) {
	require.True(t, api.Output[plan]() == api.Output[plan]())
	require.True(t, api.Output[chain]() == api.Output[chain](), "also where no schema can be made")
	o := api.Options{Output: api.Output[plan]()}.Over(api.Options{Output: api.Output[colour]()})
	require.Equal(t, "plan", o.Output.Name)
	require.Equal(t, "colour", api.Options{}.Over(api.Options{Output: api.Output[colour]()}).Output.Name)
}

func TestAFormIsAlwaysAnObject(t *testing.T) {
	for want, form := range map[string]api.Schema{
		`{"type":"object","properties":{"answer":{"type":"array","items":{"type":"string"}}},"required":["answer"],"additionalProperties":false}`: api.Output[[]string](),
		`{"type":"object","properties":{"answer":{"type":"string","enum":["red","green"]}},"required":["answer"],"additionalProperties":false}`:   api.Output[colour](),
		`{"type":"object","properties":{"answer":{"type":"boolean"}},"required":["answer"],"additionalProperties":false}`:                         api.Output[*bool](),
		`{"type":"object","properties":{"answer":{"type":"string","format":"date-time"}},"required":["answer"],"additionalProperties":false}`:     api.Output[time.Time](),
		`{"type":"object","additionalProperties":{"type":"integer"}}`:                                                                             api.Output[map[string]int](),
		`{"type":"object","properties":{},"additionalProperties":false}`:                                                                          api.Output[struct{}](),
	} {
		require.JSONEq(t, want, string(form.JSON))
	}
}

type method interface{ M() }

func TestATypeWithoutAFormIsRefusedByCheck(t *testing.T) {
	for says, form := range map[string]api.Schema{
		"cycle":                 api.Output[chain](),
		"the JSON type of":      api.Output[any](),
		"nothing can be":        api.Output[struct{ M method }](),
		"unsupported":           api.Output[struct{ C chan int }](),
		"the JSON type of ":     api.Output[json.RawMessage](),
		"is not \"object\"":     {Name: "x", JSON: `{"type":"array"}`},
		"its schema: not valid": {Name: "x", JSON: `{"type":"object"`},
		"its name \"\"":         {JSON: `{"type":"object"}`},
		"its name \"two words":  {Name: "two words", JSON: `{"type":"object"}`},
	} {
		err := api.Options{Output: form}.Check()
		require.ErrorIs(t, err, api.ErrInvalidRequest, says)
		require.ErrorContains(t, err, "Options.Output: ", says)
		require.ErrorContains(t, err, says)
	}
	require.NoError(t, api.Options{Output: api.Schema{Name: "x", JSON: `{"type":"object"}`}}.Check())
	_, err := api.Decode[chain]("{}")
	require.ErrorAs(t, err, new(*api.OutputError))
	require.ErrorContains(t, err, "cycle")
}

func TestDecodeAcceptsOutputThatFitsTheForm(t *testing.T) {
	want := plan{Goal: "tea", Steps: []step{{Title: "boil", Kind: "read", Within: 90 * time.Second}}}
	const answer = `{"goal":"tea","steps":[{"title":"boil","kind":"read","within":"90s","after":null}]}`
	for name, text := range map[string]string{
		"bare":                 answer,
		"space around":         "\n\t " + answer + "\n",
		"fenced":               "```json\n" + answer + "\n```",
		"fenced, no language":  "```\n" + answer + "\n```\n",
		"words around a fence": "Here is the plan:\n\n```json\n" + answer + "\n```\nAnything else?",
		"a fence indented":     "  ```JSON\r\n" + answer + "\r\n  ```\r\n",
		"a fence without end":  "```json\n" + answer,
		"in lines":             strings.ReplaceAll(answer, ",", ",\n"),
	} {
		got, err := api.Decode[plan](text)
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
	}
	colours, err := api.Decode[[]colour](`{"answer":["red","green"]}`)
	require.NoError(t, err)
	require.Equal(t, []colour{"red", "green"}, colours)
	n, err := api.Decode[*int](`{"answer":7}`)
	require.NoError(t, err)
	require.Equal(t, 7, *n)
	quoted, err := api.Decode[map[string]string]("{\"code\":\"```\\nx\\n```\"}")
	require.NoError(t, err)
	require.Equal(t, "```\nx\n```", quoted["code"])
}

func TestDecodeErrorNamesReasonAndPath(t *testing.T) {
	for text, says := range map[string]string{
		"":                                     "root: the response has no text",
		" \n":                                  "root: the response has no text",
		"I would rather not.":                  "root: not JSON: invalid character 'I'",
		"```json\n```":                         "root: the response is cut off here, after 0 bytes",
		"```\n{}\n```\n```\n{}\n```":           "root: the response has 2 fenced blocks",
		`{"goal":"tea"`:                        "root: the response is cut off here, after 13 bytes",
		`{"goal":"tea","steps":[{"title":"bo`:  "steps[0].title: the response is cut off here",
		"```json\n{\"goal\":\"te":              "goal: the response is cut off here",
		`{"goal":"tea"} and more`:              "root: not JSON: invalid character 'a' after top-level value",
		`{"goal":"tea","goal":"x","steps":[]}`: `goal: not JSON: duplicate object member name`,
		"{\"goal\":\"tea\"}\n```json\n{\"goal\":\"tea\",\"steps\":[]}\n```": "root: not JSON: invalid character '`' after top-level value",
		`["tea"]`:                              "root: must be object, is array",
		`null`:                                 "root: must be object, is null",
		`{"goal":"tea"}`:                       "steps: is required",
		`{"goal":"tea","steps":null}`:          "steps: must be array, is null",
		`{"Goal":"tea","goal":"x","steps":[]}`: "Goal: is not a member of the form",
		`{"goal":"tea","steps":[{"title":"a","kind":"wait","after":1.5}]}`:     `steps[0].after: must be integer, is number; steps[0].kind: must be one of "read", "write"`,
		`{"goal":"tea","steps":[{"title":"a","kind":"read","within":"soon"}]}`: "root: ",
		`{"goal":1,"steps":[1,2,3,4]}`:                                         "and 2 more",
		`{"answer":{"goal":"tea","steps":[]}}`:                                 "goal: is required",
		"{\"goal\":\"tea\",\"steps\":[1,\x1b]}":                                "not JSON",
	} {
		got, err := api.Decode[plan](text)
		require.Zero(t, got)
		require.ErrorAs(t, err, new(*api.OutputError), "%q", text)
		require.ErrorContains(t, err, says, "%q", text)
		require.NotContains(t, err.Error(), "\x1b")
		var wrong *api.OutputError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "plan", wrong.Form)
		require.Equal(t, text, wrong.Answer)
		require.Equal(t, strings.Contains(says, "is cut off here"), errors.Is(err, io.ErrUnexpectedEOF), "%q", text)
		require.False(t, api.Retryable(err))
	}
	_, err := api.Decode[string](`"words"`)
	require.ErrorContains(t, err, "root: must be object, is string", "what is no object is wrapped in one")
}

func TestAnErrorOfDecodeIsShort(t *testing.T) {
	_, err := api.Decode[plan](`{"goal":"tea","steps":[],"` + strings.Repeat("x", 1<<20) + `":1}`)
	require.ErrorAs(t, err, new(*api.OutputError))
	require.Less(t, len(err.Error()), 2000)
	_, err = api.Decode[map[string]any](`{"a":` + strings.Repeat("[", 20_000))
	require.ErrorAs(t, err, new(*api.OutputError))
	require.Less(t, len(err.Error()), 2000)
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"goal":"tea","steps":[{"title":"a","kind":"read","within":"90s"}]}`, "```json\n{}\n```", "```\n```\n```", "[[[[", "\xff", `{"goal":"\ud800"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := api.Decode[plan](text)
		if err != nil {
			require.ErrorAs(t, err, new(*api.OutputError))
			require.Zero(t, got)
			return
		}
		again, err := content.ToJSON(map[string]any{"goal": got.Goal, "steps": []any{}})
		require.NoError(t, err)
		_, err = api.Decode[plan](string(again))
		require.NoError(t, err)
	})
}
