package api_test

import (
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

func ExamplePrices() {
	prices := api.Prices{"claude-sonnet-4-5": {Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}}
	used := content.Usage{Input: 1000, Output: 500, CacheRead: 20_000}
	for _, model := range []string{"claude-sonnet-4-5-20250929", "claude-haiku-4-5"} {
		if cost, known := prices.Cost(model, used); known {
			fmt.Printf("%s: %.4f\n", model, cost)
		} else {
			fmt.Println(model + ": not known")
		}
	}
	// Output:
	// claude-sonnet-4-5-20250929: 0.0165
	// claude-haiku-4-5: not known
}

func TestPriceIsThatOfTheNameOrOfItsSnapshot(t *testing.T) {
	prices := api.Prices{
		"gpt-5": {Input: 1, Output: 1}, "gpt-5-mini": {Input: 2, Output: 1}, "gpt-5-2025-01-01": {Input: 3, Output: 1},
		"claude-sonnet-4-5": {Input: 4, Output: 1}, "gemini-2.5-pro": {Input: 5, Output: 1}, "models/own": {Input: 6, Output: 1},
		"": {Input: 7, Output: 1}, "free": {},
	}
	for model, input := range map[string]float64{
		"gpt-5": 1, "gpt-5-mini": 2, "gpt-5-2025-01-01": 3, "gpt-5-2025-08-07": 1, "gpt-5-mini-2025-08-07": 2, "gpt-5-latest": 1, "gpt-5-001": 1,
		"claude-sonnet-4-5-20250929": 4, "claude-sonnet-4-5@20250929": 4, "models/gemini-2.5-pro": 5, "models/gemini-2.5-pro-002": 5,
		"publishers/google/models/gemini-2.5-pro": 5, "models/own": 6, "": 7, "free": 0, "free-20260101": 0,
		"gpt-5-nano": -1, "gpt-5-mini-high": -1, "gpt": -1, "gpt-5-": -1, "gpt-5-0613": -1, "gpt-5-20250807-preview": -1, "gpt-5-1": -1,
		"gpt-5-latest-latest": -1, "gpt-5-2025-08-07-001": -1, "GPT-5": -1, "claude-sonnet-4": -1, "openai/gpt-5": -1, "own": -1,
		"claude-sonnet-4-5@latest": -1, "gpt-5-12345678": -1, "unknown": -1,
	} {
		price, known := prices.Of(model)
		require.Equal(t, input >= 0, known, model)
		require.Equal(t, max(input, 0), price.Input, model)
	}
	_, known := api.Prices(nil).Cost("gpt-5", content.Usage{})
	require.False(t, known)
}

func TestEveryKindOfTokenIsPaidOnce(t *testing.T) {
	costs := func(p api.Price, u content.Usage) float64 {
		cost, complete := p.Cost(u)
		require.True(t, complete)
		return cost
	}
	p := api.Price{Input: 1, Output: 10, CacheRead: 100, CacheWrite: 1000}
	require.Equal(t, 1111.0, costs(p, content.Usage{Input: 1e6, Output: 1e6, CacheRead: 1e6, CacheWrite: 1e6, Reasoning: 1e6}), "reasoning is a part of the output")
	require.Zero(t, costs(api.Price{}, content.Usage{Input: 1e6, Output: 1e6, CacheRead: 1e6, CacheWrite: 1e6}), "free")
	require.Zero(t, costs(p, content.Usage{}))
}

func TestAMissingPriceIsNotZero(t *testing.T) {
	for name, test := range map[string]struct {
		price    api.Price
		used     content.Usage
		cost     float64
		complete bool
	}{
		"no cached tokens":          {api.Price{Input: 1, Output: 10}, content.Usage{Input: 1e6, Output: 1e6}, 11, true},
		"cached tokens were read":   {api.Price{Input: 1, Output: 10}, content.Usage{CacheRead: 1e6}, 1, false},
		"cached tokens are written": {api.Price{Input: 1, Output: 10, CacheRead: 0.1}, content.Usage{CacheRead: 1e6, CacheWrite: 1e6}, 1.1, false},
		"output without a price":    {api.Price{Input: 1}, content.Usage{Input: 1e6, Output: 1e6}, 1, false},
		"input without a price":     {api.Price{Output: 1}, content.Usage{Input: 1e6, CacheRead: 1e6}, 0, false},
	} {
		cost, complete := test.price.Cost(test.used)
		require.InDelta(t, test.cost, cost, 1e-9, name)
		require.Equal(t, test.complete, complete, name)

		known := !strings.Contains(name, "without a price")
		if !known {
			test.cost = 0
		}
		cost, ok := api.Prices{"m": test.price}.Cost("m", test.used)
		require.InDelta(t, test.cost, cost, 1e-9, name)
		require.Equal(t, known, ok, name)
	}
}

func TestACostIsFiniteAndNotNegative(t *testing.T) {
	dear := api.Price{Input: math.MaxFloat64, Output: math.MaxFloat64}
	cost, _ := dear.Cost(content.Usage{Input: math.MaxInt64, Output: math.MaxInt64})
	require.Equal(t, math.MaxFloat64, cost)
	cost, complete := api.Price{Input: 1, Output: 1}.Cost(content.Usage{Input: -1e6, CacheRead: -5, Output: 1e6})
	require.Equal(t, 1.0, cost, "a count below zero costs nothing")
	require.True(t, complete)
}

func TestPricesThatAreNoPrices(t *testing.T) {
	for says, price := range map[string]api.Price{
		`Input of model "m" is NaN: it is not finite`:      {Input: math.NaN(), Output: 1},
		`Output of model "m" is +Inf: it is not finite`:    {Input: 1, Output: math.Inf(1)},
		`CacheRead of model "m" is -Inf: it is not finite`: {Input: 1, Output: 1, CacheRead: math.Inf(-1)},
		`CacheWrite of model "m" is -1: it is negative`:    {Input: 1, Output: 1, CacheWrite: -1},
	} {
		prices := api.Prices{"m": price, "a": {Input: 1, Output: 2}}
		err := prices.Check()
		require.EqualError(t, err, "invalid price: "+says)
		require.ErrorContains(t, err, "invalid price")
		cost, known := prices.Cost("m", content.Usage{Input: 1, Output: 1, CacheRead: 1, CacheWrite: 1})
		require.False(t, known, says)
		require.Zero(t, cost, says)
	}
	require.NoError(t, api.Prices(nil).Check())
	require.NoError(t, api.Prices{"free": {}, "m": {Input: 1, Output: 2, CacheRead: 0.1, CacheWrite: 3}}.Check())
}

func ExampleReadPrices() {
	list, err := api.ReadPrices(strings.NewReader(`{
		"date": "2026-11-01",
		"currency": "USD",
		"models": {
			"claude-sonnet-4-5": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75},
			"gpt-5": {"input": 1.25, "output": 10},
			"my-local-model": {"input": 0, "output": 0}
		}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(list.Date.Format(time.DateOnly), list.Currency)

	used := content.Usage{Input: 100_000, CacheRead: 400_000, Output: 20_000}
	for _, model := range []string{"claude-sonnet-4-5-20250929", "gpt-5", "my-local-model", "o9"} {
		price, known := list.Prices.Of(model)
		cost, complete := price.Cost(used)
		fmt.Printf("%s: known %v, cost %.3f, complete %v\n", model, known, cost, known && complete)
	}
	// Output:
	// 2026-11-01 USD
	// claude-sonnet-4-5-20250929: known true, cost 0.720, complete true
	// gpt-5: known true, cost 0.825, complete false
	// my-local-model: known true, cost 0.000, complete true
	// o9: known false, cost 0.000, complete false
}

func TestPriceFilesThatCannotBeRead(t *testing.T) {
	models := func(m string) string { return `{"date":"2026-11-01","currency":"EUR","models":` + m + `}` }
	for file, says := range map[string]string{
		``:   "EOF",
		`[]`: "",
		`{"date":"2026-11-01","currency":"EUR","models":{}} {}`:               "",
		`{"date":"today","currency":"EUR","models":{"m":{}}}`:                 `"date" is "today", not a date such as 2026-11-01`,
		`{"currency":"EUR","models":{"m":{}}}`:                                `date: it is missing`,
		`{"date":"2026-11-01","models":{"m":{}}}`:                             `currency: it is missing`,
		`{"date":"2026-11-01","currency":"EUR"}`:                              `models: it is missing`,
		models(`{}`):                                                          `"models" is empty`,
		`{"date":"2026-11-01","currency":"EUR","unit":1000}`:                  "unit",
		models(`{"m":{"input":1,"output":2,"cacheRead":1}}`):                  "models/m/cacheRead: it does not belong there",
		models(`{"m":{"input":1,"output":2},"m":{"input":1,"output":2}}`):     "models/m: it is not valid JSON: duplicate object member name",
		models(`{"m":{"output":2}}`):                                          `Input of model "m" is 0: it is missing`,
		models(`{"m":{"input":1,"output":null}}`):                             `Output of model "m" is 0: it is missing`,
		models(`{"m":{"input":1,"output":0}}`):                                `Output of model "m" is 0: it is 0 beside other prices`,
		models(`{"m":{"input":1,"output":2,"cache_read":0}}`):                 `CacheRead of model "m" is 0: it is 0 beside other prices`,
		models(`{"m":{"input":1,"output":2,"cache_write":0}}`):                `CacheWrite of model "m" is 0: it is 0 beside other prices`,
		models(`{"m":{"input":-1,"output":2}}`):                               `Input of model "m" is -1: it is negative`,
		models(`{"m":{"input":1e999,"output":2}}`):                            "models/m/input: it is no number that fits",
		models(`{"m":{"input":"1","output":2}}`):                              "models/m/input: it is no number that fits",
		models(`{"a\u001b/b":{"x":1}}`):                                       `models/a\x1b~1b/x: it does not belong there`,
		models(strings.Repeat(`{"m":`, 20_000) + strings.Repeat(`}`, 20_000)): "deep; the limit is 3",
		`{"sample_spec":{"input_cost_per_token":0.1}}`:                        "sample_spec",
		strings.Repeat(" ", 17<<20):                                           "larger than 16 MiB",
	} {
		list, err := api.ReadPrices(strings.NewReader(file))
		require.ErrorContains(t, err, "invalid price", "%.80s", file)
		require.ErrorContains(t, err, says, "%.80s", file)
		require.Zero(t, list)
	}
	_, err := api.ReadPrices(strings.NewReader(`{"claude-sonnet-4-5": {"input": 3, "output": 15}}`))
	require.ErrorContains(t, err, `it has the form {"date": "2026-11-01", "currency": "USD", "models": {"NAME": {"input": 3, "output": 15}}}`)
	_, err = api.ReadPrices(iotest.ErrReader(io.ErrUnexpectedEOF))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestWritesForAnHourHaveTheirPrice(t *testing.T) {
	used := content.Usage{CacheWrite: 3_000_000, CacheWriteLong: 1_000_000}
	list, err := api.ReadPrices(strings.NewReader(
		`{"date":"2026-11-01","currency":"USD","models":{"m":{"input":3,"output":15,"cache_write":3.75,"cache_write_long":6}}}`))
	require.NoError(t, err)
	cost, complete := list.Prices["m"].Cost(used)
	require.InDelta(t, 2*3.75+6, cost, 1e-9)
	require.True(t, complete)

	for price, want := range map[api.Price]float64{
		{Input: 3, Output: 15, CacheWrite: 3.75}: 3 * 3.75,
		{Input: 3, Output: 15}:                   9,
	} {
		cost, complete := price.Cost(used)
		require.InDelta(t, want, cost, 1e-9)
		require.False(t, complete, "it is an estimate")
	}
	cost, complete = api.Price{}.Cost(used)
	require.Zero(t, cost)
	require.True(t, complete, "a free model")
}

func TestEmptyModelNameHasNoPrice(t *testing.T) {
	for _, model := range []string{"-latest", "models/", "models/-latest", "-20250101"} {
		_, known := api.Prices{"": {Input: 1, Output: 1}}.Of(model)
		require.False(t, known, model)
	}
}
